package gpu

import (
	"fmt"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/metric"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/profile"
)

// gpuLabel is the rank of a device, with the device where a rank has several.
func (g *GPUs) gpuLabel(gpu *GPU) string {
	if g.several {
		return fmt.Sprintf("%s GPU %d", gpu.Rank, gpu.Device)
	}
	return gpu.Rank
}

// gpuColumns makes columns of devices.
type gpuColumns struct{ gpus *GPUs }

func (c gpuColumns) first() []table.Field[GPU] {
	return []table.Field[GPU]{
		{Column: table.Column{Name: "rank", Doc: "rank, or process that is none; with the device where ranks have several"},
			Cell: func(g *GPU) table.Cell { return table.TextCell(c.gpus.gpuLabel(g)) }},
		{Column: table.Column{Name: "device", Unit: table.Count, Doc: "device, as the process numbers it", Detail: true},
			Cell: func(g *GPU) table.Cell { return table.Cell{N: int64(g.Device)} }},
	}
}

// time is a duration.
func (gpuColumns) time(name, doc string, of func(*GPU) int64) table.Field[GPU] {
	return table.Field[GPU]{Column: table.Column{Name: name, Unit: table.Duration, Doc: doc}, Cell: func(g *GPU) table.Cell { return table.Cell{N: of(g)} }}
}

// part is a duration for programs, and its part of the length for people.
func (gpuColumns) part(name, doc string, of func(*GPU) int64) []table.Field[GPU] {
	return part(name, doc, "length", (*GPU).Length, of)
}

// times are some times, and their parts of the length.
func (gpuColumns) times(times ...timeOf) []table.Field[GPU] {
	return partsOf((*GPU).did, (*GPU).Length, "length", times...)
}

// Report makes a table of what every device was busy with.
func (g *GPUs) Report() *table.Table {
	c := gpuColumns{g}
	captured := c.time("captured", "from the first row of the rank to the end of the last: calls, annotations, kernels, copies", func(g *GPU) int64 { return g.Captured })
	length := c.time("length", lengthDoc, (*GPU).Length)
	captured.Scale, length.Scale = "length", "length"
	fields := append(c.first(), captured, length)
	fields = append(fields, c.times(busyTime, computeTime, commTime, exposedComm, copyTime)...)
	fields = append(fields, table.Detail(c.times(exposedCopy))...)
	other := c.times(otherTime)
	if !g.any(func(g *GPU) bool { return g.Time(profile.ClassOther) > 0 }) {
		other = table.Detail(other)
	}
	fields = append(fields, other...)
	fields = append(fields, table.Detail(c.times(exposedOther))...)
	fields = append(fields, c.times(idleTime)...)
	fields = append(fields,
		table.Field[GPU]{Column: table.Column{Name: metric.Overlap.Name, Unit: metric.Overlap.Unit, Doc: metric.Overlap.Doc, Detail: true},
			Cell: func(g *GPU) table.Cell {
				comm := g.Time(profile.ClassCommunication)
				return table.ShareCell(comm-g.Exposed(profile.ClassCommunication), comm)
			}},
		table.Field[GPU]{Column: table.Column{Name: "rows", Unit: table.Count, Doc: "kernels and copies", Detail: true}, Cell: func(g *GPU) table.Cell { return table.Cell{N: g.Rows} }},
		table.Field[GPU]{Column: table.Column{Name: "kernels", Unit: table.Count, Doc: "kernels", Detail: true}, Cell: func(g *GPU) table.Cell { return table.Cell{N: g.Kernels} }},
		table.Field[GPU]{Column: table.Column{Name: "early", Unit: table.Duration, Doc: "kernels had started and waited for the communication before them on their stream, sum over kernels: they neither compute nor hide it", Detail: true},
			Cell: func(g *GPU) table.Cell { return table.Cell{N: g.Early} }},
		table.Field[GPU]{Column: table.Column{Name: "unclassified", Unit: table.Share, Doc: "part of the time of kernels that is of names which no rule knows; they count as compute", Detail: true},
			Cell: func(g *GPU) table.Cell { return table.ShareCell(g.UnknownTime, g.KernelTime) }},
	)
	r := table.New("sgtrace.report.gpu/v1", "GPUs by rank", g.GPUs, fields)
	r.Stay("busy", "idle").Leave("captured", "length")
	if g.classes != profile.DefaultName {
		r.Note("kernel classes come from the rules %q", g.classes)
	}
	g.noteGraphs(r)
	g.noteUnknown(r)
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

// noteGraphs tells where the classes of kernels are not known.
func (g *GPUs) noteGraphs(r *table.Table) {
	busy, other := int64(0), int64(0)
	for i := range g.GPUs {
		busy = distribution.AddTimes(busy, g.GPUs[i].Busy())
		other = distribution.AddTimes(other, g.GPUs[i].Time(profile.ClassOther))
	}
	if other > 0 {
		r.Note("%.1f %% of the busy time has no known class: CUDA graphs whose kernels were not recorded "+
			"(--cuda-graph-trace=node of nsys records them), or what rules call other", 100*distribution.Fraction(other, busy))
	}
}

// causeNames are the columns of idle time.
var causeNames = [NumCauses]string{HostWait: "host wait", KernelWait: "kernel wait", OtherWait: "other"}

var causeDocs = [NumCauses]string{
	HostWait:   "idle until something was launched and began",
	KernelWait: "idle for less than 30 us, though what came next had been launched",
	OtherWait:  "idle for longer, though what came next had been launched, or nobody knows when",
}

// IdleReport makes a table of why devices were idle and how work reached them.
func (g *GPUs) IdleReport() *table.Table {
	c := gpuColumns{g}
	fields := append(c.first(), c.time(metric.Idle.Name, metric.Idle.Doc+", between the first kernel or copy and the end of the last", func(g *GPU) int64 { return g.Idle.Total() }))
	for cause, name := range causeNames {
		fields = append(fields, c.part(name, causeDocs[cause], func(g *GPU) int64 { return g.Idle.Time[cause] })...)
		fields = append(fields, table.Field[GPU]{Column: table.Column{Name: name + " gaps", Unit: table.Count, Doc: "how many gaps of this cause", Detail: true},
			Cell: func(g *GPU) table.Cell { return table.Cell{N: g.Idle.Gaps[cause]} }})
	}
	delay := func(name, doc string, detail bool, of func(*distribution.Summary) int64) table.Field[GPU] {
		return table.Field[GPU]{Column: table.Column{Name: name, Unit: table.Duration, Doc: doc, Scale: "delay", Detail: detail},
			Cell: func(g *GPU) table.Cell { return table.Cell{N: of(&g.Delay), Unknown: g.Delay.N == 0} }}
	}
	const from = "from the end of the call that launched a kernel or copy to its start, 0 if it began before: "
	fields = append(fields,
		delay("delay p50", from+"median, nearest rank", false, func(s *distribution.Summary) int64 { return s.P50 }),
		delay("delay p99", from+"99th percentile, nearest rank", false, func(s *distribution.Summary) int64 { return s.P99 }),
		delay("delay mean", from+"arithmetic mean", true, func(s *distribution.Summary) int64 { return s.Mean }),
		delay("delay max", from+"longest", true, func(s *distribution.Summary) int64 { return s.Max }),
		table.Field[GPU]{Column: table.Column{Name: "launches", Unit: table.Count, Doc: "kernels and copies whose call is known", Detail: true}, Cell: func(g *GPU) table.Cell { return table.Cell{N: g.Called} }},
		table.Field[GPU]{Column: table.Column{Name: "graphs", Unit: table.Share, Doc: "part of the time of kernels that is of launches of CUDA graphs"},
			Cell: func(g *GPU) table.Cell { return table.ShareCell(g.GraphTime, g.KernelTime) }},
		table.Field[GPU]{Column: table.Column{Name: "graph kernels", Unit: table.Share, Doc: "part of the kernels that are of launches of CUDA graphs", Detail: true},
			Cell: func(g *GPU) table.Cell { return table.ShareCell(g.GraphKernels, g.Kernels) }},
		table.Field[GPU]{Column: table.Column{Name: metric.LaunchQueue.Name, Unit: table.Count, Tenths: true, Doc: metric.LaunchQueue.Doc, Detail: true},
			Cell: func(g *GPU) table.Cell { return table.Cell{N: g.Queue, Unknown: g.Called == 0} }},
	)
	r := table.New("sgtrace.report.gpu.idle/v1", "Idle GPUs and launches by rank", g.GPUs, fields)
	r.Stay("idle").Leave("delay p99", "graphs")
	g.noteLaunches(r)
	return r
}

// Launched counts the kernels and copies that calls launch, and those of which the call is
// not known. No call launches migrations of unified memory.
func (g *GPUs) Launched() (rows, unknown int64) {
	for i := range g.GPUs {
		gpu := &g.GPUs[i]
		rows += gpu.Rows - gpu.Migrated
		unknown += gpu.Rows - gpu.Migrated - gpu.Called
	}
	return rows, unknown
}

// noteLaunches tells how much is unknown of calls.
func (g *GPUs) noteLaunches(r *table.Table) {
	if rows, unknown := g.Launched(); unknown > 0 {
		r.Note("the calls that launched %d of %d kernels and copies are not in the files, so gaps before these never count as host wait", unknown, rows)
	}
}
