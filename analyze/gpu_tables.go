package analyze

import (
	"strings"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/profile"
)

// A runningRow is how long some classes ran at once, on all devices.
type runningRow struct {
	what string
	time int64
	all  int64 // ns of all rows
}

// OverlapReport makes a table of what ran at the same time as what, on all devices
// together: the kernel type breakdown of Holistic Trace Analysis.
func (g *GPUs) OverlapReport() *Report {
	var rows []runningRow
	all := int64(0)
	for running := Running(1); running < numRunning; running++ {
		row := runningRow{what: running.String()}
		for i := range g.GPUs {
			row.time = distribution.AddTimes(row.time, g.GPUs[i].Running[running])
		}
		if row.time > 0 {
			rows = append(rows, row)
			all = distribution.AddTimes(all, row.time)
		}
	}
	for i := range rows {
		rows[i].all = all
	}
	r := tabulate("sgtrace.report.gpu.overlap/v1", "What ran at the same time", rows, []field[runningRow]{
		{Column{Name: "running", Doc: "classes of kernels that ran at once, and no other"}, func(r *runningRow) Cell { return textCell(r.what) }},
		{Column{Name: "time", Unit: Duration, Doc: "sum over all devices"}, func(r *runningRow) Cell { return Cell{N: r.time} }},
		{Column{Name: "share", Unit: Share, Doc: "part of the time in which anything ran"}, func(r *runningRow) Cell { return shareCell(r.time, r.all) }},
	})
	_ = r.Sort("time", true) // there is such a column
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
func (g *GPUs) StreamReport() *Report {
	var rows []streamRow
	for i := range g.GPUs {
		for _, s := range g.GPUs[i].Streams {
			rows = append(rows, streamRow{&g.GPUs[i], s})
		}
	}
	length := func(r *streamRow) int64 { return r.Length() }
	time := func(name, doc string, of func(*streamRow) int64) field[streamRow] {
		return field[streamRow]{Column{Name: name, Unit: Duration, Doc: doc}, func(r *streamRow) Cell { return Cell{N: of(r)} }}
	}
	part := func(name, doc string, of func(*streamRow) int64) []field[streamRow] {
		return append(detail([]field[streamRow]{time(name, doc, of)}),
			field[streamRow]{Column{Name: name, Unit: Share, Doc: doc + ", part of length"}, func(r *streamRow) Cell { return shareCell(of(r), length(r)) }})
	}
	fields := []field[streamRow]{
		{Column{Name: "rank", Doc: "rank, or process that is none; with the device where ranks have several"}, func(r *streamRow) Cell { return textCell(g.gpuLabel(r.gpu)) }},
		{Column{Name: "device", Unit: Count, Doc: "device, as the process counts", Detail: true}, func(r *streamRow) Cell { return Cell{N: int64(r.gpu.Device)} }},
		{Column{Name: "stream", Unit: Count, Doc: "number of the stream"}, func(r *streamRow) Cell { return Cell{N: r.Stream} }},
		{Column{Name: "rows", Unit: Count, Doc: "kernels, and copies whose stream is known"}, func(r *streamRow) Cell { return Cell{N: r.Rows} }},
		time("length", "from the first start to the last end", length),
	}
	fields = append(fields, part("busy", "something runs", func(r *streamRow) int64 { return r.Busy })...)
	for cause, name := range causeNames {
		fields = append(fields, part(name, causeDocs[cause], func(r *streamRow) int64 { return r.Idle.Time[cause] })...)
		fields = append(fields, field[streamRow]{Column{Name: name + " gaps", Unit: Count, Doc: "how many gaps of this cause", Detail: true},
			func(r *streamRow) Cell { return Cell{N: r.Idle.Gaps[cause]} }})
	}
	return tabulate("sgtrace.report.gpu.streams/v1", "Streams by rank", rows, fields)
}

// StepReport makes a table of how long steps took.
func (g *GPUs) StepReport() *Report {
	ns := func(prefix, name, doc string, of func(*StepTime) *distribution.Summary, v func(*distribution.Summary) int64) field[StepTime] {
		scale := prefix + "step"
		if name == "total" {
			scale = prefix + "total"
		}
		return field[StepTime]{Column{Name: prefix + name, Unit: Duration, Doc: doc, Scale: scale},
			func(t *StepTime) Cell { return Cell{N: v(of(t)), Unknown: of(t).N == 0} }}
	}
	sums := func(prefix, what string, of func(*StepTime) *distribution.Summary) []field[StepTime] {
		return []field[StepTime]{
			ns(prefix, "total", "sum of "+what, of, func(s *distribution.Summary) int64 { return s.Total }),
			ns(prefix, "p50", "median of "+what+", nearest rank", of, func(s *distribution.Summary) int64 { return s.P50 }),
			ns(prefix, "p99", "99th percentile of "+what+", nearest rank", of, func(s *distribution.Summary) int64 { return s.P99 }),
		}
	}
	host := func(t *StepTime) *distribution.Summary { return &t.Host }
	device := func(t *StepTime) *distribution.Summary { return &t.Device }
	fields := []field[StepTime]{
		{Column{Name: "kind", Doc: "prefill (EXTEND), decode, or other: mixtures, ProfilerStep"}, func(t *StepTime) Cell { return textCell(stepKinds[t.Kind]) }},
		{Column{Name: "batch", Doc: "requests in the batch"}, func(t *StepTime) Cell { return textCell(t.batches()) }},
		{Column{Name: "rank", Doc: "rank, or process that is none"}, func(t *StepTime) Cell { return textCell(t.Rank) }},
		{Column{Name: "n", Unit: Count, Doc: "steps"}, func(t *StepTime) Cell { return Cell{N: int64(t.Host.N)} }},
	}
	fields = append(fields, sums("", "the time from begin to end of the annotation", host)...)
	fields = append(fields, field[StepTime]{Column{Name: "gpu n", Unit: Count, Doc: "steps that launched a kernel or copy", Detail: true},
		func(t *StepTime) Cell { return Cell{N: int64(t.Device.N)} }})
	fields = append(fields, sums("gpu ", "the time from the first start to the last end of what the thread launched in the step", device)...)
	r := tabulate("sgtrace.report.steps/v1", "Steps by kind, batch size and rank", g.Steps, fields)
	noteSamples(r, g.Steps, func(t *StepTime) int64 { return int64(t.Host.N) },
		func(t *StepTime) string {
			return strings.Join(strings.Fields(stepKinds[t.Kind]+" "+t.batches()+" "+t.Rank), " ")
		})
	return r
}

// batches is the bucket as text: "17-32"; "" is unknown.
func (t *StepTime) batches() string { return batchWords(t.MinBatch, t.MaxBatch) }

// KernelReport makes a table of the kernels of every rank beside those of the others.
func (g *GPUs) KernelReport() *Report {
	ns := func(name, doc, scale string, v func(*RankKernel) int64) field[RankKernel] {
		return field[RankKernel]{Column{Name: name, Unit: Duration, Doc: doc, Scale: scale}, func(k *RankKernel) Cell { return Cell{N: v(k)} }}
	}
	ratio := func(name, doc string, v func(*RankKernel) float64) field[RankKernel] {
		return field[RankKernel]{Column{Name: name, Unit: Share, Doc: doc}, func(k *RankKernel) Cell { return Cell{Share: v(k), Unknown: v(k) == unknownRatio} }}
	}
	r := tabulate("sgtrace.report.gpu.kernels/v1", "Kernels by rank", g.Kernels, []field[RankKernel]{
		{Column{Name: "rank", Doc: "rank, or process that is none"}, func(k *RankKernel) Cell { return textCell(k.Rank) }},
		ns("excess", "total minus the median of the totals of the ranks that ran it; all of it if no other rank did; where ranks were captured for different times, of totals per time", "total", func(k *RankKernel) int64 { return k.Excess }),
		ns("total", "sum", "total", func(k *RankKernel) int64 { return k.Total }),
		ratio("of median", "total, or total per time, divided by that median", func(k *RankKernel) float64 { return k.RelTotal }),
		{Column{Name: "n", Unit: Count, Doc: "kernels"}, func(k *RankKernel) Cell { return Cell{N: int64(k.N)} }},
		ns("p50", "median, nearest rank", "kernel", func(k *RankKernel) int64 { return k.P50 }),
		ns("p99", "99th percentile, nearest rank", "kernel", func(k *RankKernel) int64 { return k.P99 }),
		detail([]field[RankKernel]{ratio("p50 of median", "p50 divided by the median of the p50 of the ranks that ran it", func(k *RankKernel) float64 { return k.RelP50 })})[0],
		{Column{Name: "ranks", Unit: Count, Doc: "ranks that ran it", Detail: true}, func(k *RankKernel) Cell { return Cell{N: int64(k.Ranks)} }},
		{Column{Name: "class", Doc: "what it does", Detail: true}, func(k *RankKernel) Cell { return textCell(k.Class.String()) }},
		{Column{Name: "kernel", Doc: "name of the kernel", Most: mostName}, func(k *RankKernel) Cell { return textCell(k.Name) }},
	})
	if g.perSecond {
		r.note("ranks were captured for different times, so that excess and of median compare totals per second captured: excess is against the median of the ranks, for as long as the rank was captured")
	}
	for i := range g.Kernels {
		if k := &g.Kernels[i]; k.Class == profile.ClassCommunication && k.Ranks > 1 {
			r.note("kernels that communicate wait for each other: they are short on the rank that the others wait for")
			break
		}
	}
	return r
}
