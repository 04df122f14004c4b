package gpu

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/metric"
	"github.com/sgtrace/sgtrace/analyze/profilewalk"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/profile/kernelname"
)

// Label is the rank of a device, with the number of the device where ranks have several.
func (g *GPUs) Label(gpu *GPU) string {
	if g.several {
		return fmt.Sprintf("%s GPU %d", gpu.Rank, gpu.Device)
	}
	return gpu.Rank
}

// gpuColumns makes columns of devices.
type gpuColumns struct{ gpus *GPUs }

func (c gpuColumns) first() []table.Field[GPU] {
	return []table.Field[GPU]{
		table.TextColumn("rank", "rank, or name of a process that is not a rank; with the device if a rank uses several", func(g *GPU) string { return c.gpus.Label(g) }),
		table.CountColumn("device", "device number within the process", func(g *GPU) int64 { return int64(g.Device) }).InDetail(),
	}
}

// part returns the columns of a duration: ns for programs, and its share of the length for people.
func (gpuColumns) part(name, doc string, of func(*GPU) int64) []table.Field[GPU] {
	return unlessBlind(part(name, doc, "length", (*GPU).Length, of))
}

// times returns the columns of some times: ns, and shares of the length.
func (gpuColumns) times(times ...timeOf) []table.Field[GPU] {
	return unlessBlind(partsOf(func(g *GPU) *Activity { return &g.Activity }, (*GPU).Length, "length", times...))
}

// unlessBlind makes cells of devices unknown if only their copies are known.
func unlessBlind(fields []table.Field[GPU]) []table.Field[GPU] {
	for i := range fields {
		cell := fields[i].Cell
		fields[i].Cell = func(g *GPU) table.Cell {
			if g.Blind {
				return table.Cell{Unknown: true}
			}
			return cell(g)
		}
	}
	return fields
}

// Report makes a table of what every device was busy with.
func (g *GPUs) Report() *table.Table {
	c := gpuColumns{g}
	captured := table.NsColumn("captured", "from the rank's first call, annotation, kernel, or copy to the end of the last one", func(g *GPU) int64 { return g.Captured })
	length := table.NsColumn("length", lengthDoc, (*GPU).Length)
	captured.Scale, length.Scale = "length", "length"
	fields := append(c.first(), captured, length)
	fields = append(fields, c.times(busyTime, computeTime, commTime, exposedComm, copyTime)...)
	fields = append(fields, table.Detail(c.times(exposedCopy))...)
	other := c.times(otherTime)
	if !g.any(func(g *GPU) bool { return g.Time(kernelname.ClassOther) > 0 }) {
		other = table.Detail(other)
	}
	fields = append(fields, other...)
	fields = append(fields, table.Detail(c.times(exposedOther))...)
	fields = append(fields, c.times(idleTime)...)
	fields = append(fields,
		table.Field[GPU]{Column: table.Column{Name: metric.Overlap.Name, Unit: metric.Overlap.Unit, Doc: metric.Overlap.Doc, Detail: true},
			Cell: func(g *GPU) table.Cell {
				comm := g.Time(kernelname.ClassCommunication)
				return table.ShareCell(comm-g.Exposed(kernelname.ClassCommunication), comm)
			}},
		table.CountColumn("rows", "number of kernels and copies", func(g *GPU) int64 { return g.Rows }).InDetail(),
		table.CountColumn("kernels", "kernels", func(g *GPU) int64 { return g.Kernels }).InDetail(),
		table.NsColumn("early", "time that kernels had started but waited for communication before them on their stream, summed over kernels; it counts neither as compute nor as hiding communication", func(g *GPU) int64 { return g.Early }).InDetail(),
		table.PartColumn("unclassified", "share of kernel time in kernels whose names match no rule; they count as compute", func(g *GPU) (int64, int64) { return g.UnknownTime, g.KernelTime }).InDetail(),
	)
	r := table.New("sgtrace.report.gpu/v1", "GPUs by rank", g.GPUs, fields)
	r.Stay("busy", "idle").Leave("captured", "length")
	if g.classes != kernelname.DefaultName {
		r.Note("kernel classes come from the rules %q", g.classes)
	}
	g.noteGraphs(r)
	if part, which := g.Unclassified(); part >= muchUnknown {
		r.Note("%s; classify them with --classes FILE", which)
	}
	return r
}

func (g *GPUs) any(is func(*GPU) bool) bool {
	for i := range g.GPUs {
		if is(&g.GPUs[i]) {
			return true
		}
	}
	return false
}

// noteGraphs adds a note if kernels have no known class.
func (g *GPUs) noteGraphs(r *table.Table) {
	if other := g.Total(func(d *GPU) int64 { return d.Time(kernelname.ClassOther) }); other > 0 {
		r.Note("%.1f %% of the busy time has no known class: CUDA graphs whose kernels were not recorded "+
			"(--cuda-graph-trace=node of nsys records them), or what rules call other", 100*distribution.Fraction(other, g.Total((*GPU).Busy)))
	}
}

// causeNames are the columns of idle time.
var causeNames = [NumCauses]string{HostWait: "host wait", KernelWait: "kernel wait", OtherWait: "other"}

var causeDocs = [NumCauses]string{
	HostWait:   "idle waiting for the host: the next work was launched only after the device went idle",
	KernelWait: "idle for less than 30 us before work that had already been launched",
	OtherWait:  "idle for 30 us or longer before work that had already been launched, or before work whose launch was not recorded",
}

// IdleReport makes a table of why devices were idle and how work reached them.
func (g *GPUs) IdleReport() *table.Table {
	c := gpuColumns{g}
	fields := append(c.first(), table.NsColumn(metric.Idle.Name, metric.Idle.Doc+" between the first kernel or copy and the end of the last one", (*GPU).IdleTime))
	for cause, name := range causeNames {
		fields = append(fields, c.part(name, causeDocs[cause], func(g *GPU) int64 { return g.Idle.Time[cause] })...)
		fields = append(fields, table.CountColumn(name+" gaps", "number of gaps with this cause", func(g *GPU) int64 { return g.Idle.Gaps[cause] }).InDetail())
	}
	delay := func(name, doc string, detail bool, of func(*distribution.Summary) int64) table.Field[GPU] {
		return table.Field[GPU]{Column: table.Column{Name: name, Unit: table.Duration, Doc: doc, Scale: "delay", Detail: detail},
			Cell: func(g *GPU) table.Cell { return table.Cell{N: of(&g.Delay), Unknown: g.Delay.N == 0} }}
	}
	const from = "launch delay: from the end of the launching call to the start of the kernel or copy, 0 if it began before; "
	fields = append(fields,
		delay("delay p50", from+"median, nearest rank", false, func(s *distribution.Summary) int64 { return s.P50 }),
		delay("delay p99", from+"99th percentile, nearest rank", false, func(s *distribution.Summary) int64 { return s.P99 }),
		delay("delay mean", from+"arithmetic mean", true, func(s *distribution.Summary) int64 { return s.Mean }),
		delay("delay max", from+"longest", true, func(s *distribution.Summary) int64 { return s.Max }),
		table.CountColumn("launches", "number of kernels and copies whose call was recorded", func(g *GPU) int64 { return g.Called }).InDetail(),
		table.PartColumn("graphs", "share of kernel time launched by CUDA graphs", func(g *GPU) (int64, int64) { return g.GraphTime, g.KernelTime }),
		table.PartColumn("graph kernels", "share of kernels launched by CUDA graphs", func(g *GPU) (int64, int64) { return g.GraphKernels, g.Kernels }).InDetail(),
		table.Field[GPU]{Column: table.Column{Name: metric.LaunchQueue.Name, Unit: table.Count, Tenths: true, Doc: metric.LaunchQueue.Doc, Detail: true},
			Cell: func(g *GPU) table.Cell { return table.Cell{N: g.Queue, Unknown: g.Called == 0} }},
	)
	r := table.New("sgtrace.report.gpu.idle/v1", "Idle GPUs and launches by rank", g.GPUs, fields)
	r.Stay("idle").Leave("delay p99", "graphs")
	if rows, unknown := g.Launched(); unknown > 0 {
		r.Note("the calls that launched %d of %d kernels and copies are not in the files, so gaps before these never count as host wait", unknown, rows)
	}
	return r
}

// Launched returns how many kernels and copies calls launch, and for how many of them the call is
// unknown. Migrations of unified memory, which no call launches, do not count.
func (g *GPUs) Launched() (rows, unknown int64) {
	for i := range g.GPUs {
		gpu := &g.GPUs[i]
		rows += gpu.Rows - gpu.Migrated
		unknown += gpu.Rows - gpu.Migrated - gpu.Called
	}
	return rows, unknown
}

// A runningRow is how long some classes ran at once, on all devices.
type runningRow struct {
	what string
	time int64
	all  int64 // ns of all rows
}

// OverlapReport makes a table of what ran at the same time as what, on all devices
// together: the kernel type breakdown of Holistic Trace Analysis.
func (g *GPUs) OverlapReport() *table.Table {
	var rows []runningRow
	all := int64(0)
	for running := Running(1); running < numRunning; running++ {
		row := runningRow{what: running.String(), time: g.Total(func(d *GPU) int64 { return d.Running[running] })}
		if row.time > 0 {
			rows = append(rows, row)
			all = distribution.AddTimes(all, row.time)
		}
	}
	for i := range rows {
		rows[i].all = all
	}
	r := table.New("sgtrace.report.gpu.overlap/v1", "What ran at the same time", rows, []table.Field[runningRow]{
		table.TextColumn("running", "exact set of kernel classes running at the same time", func(r *runningRow) string { return r.what }),
		table.NsColumn("time", "total over all devices", func(r *runningRow) int64 { return r.time }),
		table.PartColumn("share", "share of the time in which anything ran", func(r *runningRow) (int64, int64) { return r.time, r.all }),
	})
	_ = r.Sort("time", true) // cannot fail: there is such a column
	return r
}

// String names the classes: "compute and memory".
func (r Running) String() string {
	var names []string
	for _, c := range exposure {
		if r.Has(c) {
			names = append(names, c.String())
		}
	}
	return strings.Join(names, " and ")
}

// A streamRow is a stream with its device.
type streamRow struct {
	gpu *GPU
	GPUStream
}

// StreamReport makes a table of the streams of all devices.
func (g *GPUs) StreamReport() *table.Table {
	var rows []streamRow
	for i := range g.GPUs {
		for _, s := range g.GPUs[i].Streams {
			rows = append(rows, streamRow{&g.GPUs[i], s})
		}
	}
	length := func(r *streamRow) int64 { return r.Length() }
	parts := func(name, doc string, of func(*streamRow) int64) []table.Field[streamRow] {
		list := part(name, doc, "length", length, of)
		slices.Reverse(list)
		return list
	}
	fields := []table.Field[streamRow]{
		table.TextColumn("rank", "rank, or name of a process that is not a rank; with the device if a rank uses several", func(r *streamRow) string { return g.Label(r.gpu) }),
		table.CountColumn("device", "device number within the process", func(r *streamRow) int64 { return int64(r.gpu.Device) }).InDetail(),
		table.CountColumn("stream", "number of the stream", func(r *streamRow) int64 { return r.Stream }),
		table.CountColumn("rows", "number of kernels, and of copies whose stream is known", func(r *streamRow) int64 { return r.Rows }),
		table.NsColumn("length", "from the start of the first kernel or copy to the end of the last one", length),
	}
	fields = append(fields, parts("busy", "time with something running", func(r *streamRow) int64 { return r.Busy })...)
	for cause, name := range causeNames {
		fields = append(fields, parts(name, causeDocs[cause], func(r *streamRow) int64 { return r.Idle.Time[cause] })...)
		fields = append(fields, table.CountColumn(name+" gaps", "number of gaps with this cause", func(r *streamRow) int64 { return r.Idle.Gaps[cause] }).InDetail())
	}
	return table.New("sgtrace.report.gpu.streams/v1", "Streams by rank", rows, fields)
}

// StepReport makes a table of how long steps took.
func (g *GPUs) StepReport() *table.Table {
	ns := func(prefix, name, doc string, of func(*StepTime) *distribution.Summary, v func(*distribution.Summary) int64) table.Field[StepTime] {
		scale := prefix + "step"
		if name == "total" {
			scale = prefix + "total"
		}
		return table.Field[StepTime]{Column: table.Column{Name: prefix + name, Unit: table.Duration, Doc: doc, Scale: scale},
			Cell: func(t *StepTime) table.Cell { return table.Cell{N: v(of(t)), Unknown: of(t).N == 0} }}
	}
	sums := func(prefix, what string, of func(*StepTime) *distribution.Summary) []table.Field[StepTime] {
		return []table.Field[StepTime]{
			ns(prefix, "total", "sum of "+what, of, func(s *distribution.Summary) int64 { return s.Total }),
			ns(prefix, "p50", "median of "+what+", nearest rank", of, func(s *distribution.Summary) int64 { return s.P50 }),
			ns(prefix, "p99", "99th percentile of "+what+", nearest rank", of, func(s *distribution.Summary) int64 { return s.P99 }),
		}
	}
	host := func(t *StepTime) *distribution.Summary { return &t.Host }
	device := func(t *StepTime) *distribution.Summary { return &t.Device }
	busy := func(t *StepTime) *distribution.Summary { return &t.Busy }
	fields := []table.Field[StepTime]{
		table.TextColumn("kind", "kind of step: prefill (EXTEND), decode, or other (mixed steps, ProfilerStep)", func(t *StepTime) string { return profilewalk.StepKinds[t.Kind] }),
		table.TextColumn("batch", "requests in the batch", func(t *StepTime) string { return t.Batches() }),
		table.TextColumn("rank", "rank, or name of a process that is not a rank", func(t *StepTime) string { return t.Rank }),
		table.CountColumn("n", "number of steps", func(t *StepTime) int64 { return int64(t.Host.N) }),
	}
	fields = append(fields, sums("", "the duration of the annotation", host)...)
	fields = append(fields, table.CountColumn("gpu n", "number of steps that launched a kernel or copy", func(t *StepTime) int64 { return int64(t.Device.N) }).InDetail())
	fields = append(fields, sums("gpu ", "the time from the start of the first to the end of the last kernel or copy that the thread launched in the step", device)...)
	work := sums("gpu busy ", "the time in which work launched by the thread in the step was running, added up over devices", busy)
	work[0].Scale = "gpu total"
	fields = append(append(fields, work[0]), table.Detail(work[1:])...)
	r := table.New("sgtrace.report.steps/v1", "Steps by kind, batch size and rank", g.Steps, fields)
	r.Stay("p50", "gpu p50").Leave("total", "gpu total", "gpu p99", "gpu busy total")
	table.NoteSamples(r, g.Steps, func(t *StepTime) int64 { return int64(t.Host.N) },
		func(t *StepTime) string {
			return strings.Join(strings.Fields(profilewalk.StepKinds[t.Kind]+" "+t.Batches()+" "+t.Rank), " ")
		})
	return r
}

// Batches is the range of batch sizes as text: "17-32"; "" is unknown.
func (t *StepTime) Batches() string { return profilewalk.BatchWords(t.MinBatch, t.MaxBatch) }

// KernelReport makes a table of the kernels of every rank, compared with those of the others.
func (g *GPUs) KernelReport() *table.Table {
	ns := func(name, doc, scale string, v func(*RankKernel) int64) table.Field[RankKernel] {
		return table.NsColumn(name, doc, func(k *RankKernel) int64 { return v(k) }).OnScale(scale)
	}
	ratio := func(name, doc string, v func(*RankKernel) float64) table.Field[RankKernel] {
		return table.Field[RankKernel]{Column: table.Column{Name: name, Unit: table.Factor, Doc: doc}, Cell: func(k *RankKernel) table.Cell { return table.Cell{Share: v(k), Unknown: v(k) == unknownRatio} }}
	}
	r := table.New("sgtrace.report.gpu.kernels/v1", "Kernels by rank", g.Kernels, []table.Field[RankKernel]{
		table.TextColumn("rank", "rank, or name of a process that is not a rank", func(k *RankKernel) string { return k.Rank }),
		ns("excess", "total minus the median total of the ranks that ran the kernel; equals total if no other rank ran it; compares totals per captured time if capture times differ", "total", func(k *RankKernel) int64 { return k.Excess }),
		ns("total", "sum", "total", func(k *RankKernel) int64 { return k.Summary.Total }),
		ratio("of median", "total (or total per captured time) divided by that median", func(k *RankKernel) float64 { return k.RelTotal }),
		table.CountColumn("n", "number of kernels", func(k *RankKernel) int64 { return int64(k.Summary.N) }),
		ns("p50", "median, nearest rank", "kernel", func(k *RankKernel) int64 { return k.Summary.P50 }),
		ns("p99", "99th percentile, nearest rank", "kernel", func(k *RankKernel) int64 { return k.Summary.P99 }),
		ratio("p50 of median", "p50 divided by the median p50 of the ranks that ran the kernel", func(k *RankKernel) float64 { return k.RelP50 }).InDetail(),
		table.CountColumn("ranks", "number of ranks that ran the kernel", func(k *RankKernel) int64 { return int64(k.Ranks) }).InDetail(),
		table.TextColumn("class", "class of the kernel: compute, communication, memory, other", func(k *RankKernel) string { return k.Class.String() }).InDetail(),
		table.TextColumn("kernel", "name of the kernel", func(k *RankKernel) string { return k.Name }).AtMost(table.MaxName),
	})
	r.Stay("excess", "of median").Leave("total", "n")
	r.Note("of median: 1 is the median of the ranks that ran the kernel")
	if g.perSecond {
		r.Note("capture times of ranks differ, so excess and of median compare totals per second of capture; excess is relative to the median of the ranks, times the capture time of the rank")
	}
	for i := range g.Kernels {
		if k := &g.Kernels[i]; k.Class == kernelname.ClassCommunication && k.Ranks > 1 {
			r.Note("communication kernels wait for each other: they are short on the rank that the others wait for")
			break
		}
	}
	return r
}
