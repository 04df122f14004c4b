package gpu

import (
	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/metric"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/profile/kernelname"
)

// A timeColumn is one column of where the time of a device went. All columns add up to Length.
type timeColumn struct {
	name, title, doc string // title is for people
	of               func(*Activity) int64
}

// numWork is how many of the columns are work; the others are idle time.
const numWork = 4

// timeColumns returns the columns in the order in which people read them: work, then idle time by
// reason. Work counts only where it is exposed.
func timeColumns() (list []timeColumn) {
	for _, t := range []timeOf{computeTime, exposedComm, exposedCopy, exposedOther} {
		list = append(list, timeColumn{t.metric.Name, t.metric.Title, t.metric.Doc, t.of})
	}
	for reason := Capturing; reason < NumReasons; reason++ {
		name := "idle: " + ReasonWords[reason]
		list = append(list, timeColumn{name, name, reasonDocs[reason], func(a *Activity) int64 { return a.Waits.Time[reason] }})
	}
	return list
}

// lengthDoc defines the length of a device: all shares of its time are shares of this.
const lengthDoc = "from the first step, kernel, or copy to the end of the last one, summed over recordings; without annotated steps, of kernels and copies only"

// reasonDocs define the idle columns.
var reasonDocs = [NumReasons]string{
	Capturing:     "idle while the host captures a CUDA graph: what it launches meanwhile does not run",
	ProfilerStart: "idle while the host waits in the first gloo collective of the recording, because ranks do not start recording at the same time",
	Compiling:     "idle while the host compiles code, according to the names of ranges or functions",
	Modules:       "idle while the host loads kernels or instantiates a CUDA graph, including first launches of a kernel that take 1 ms or longer",
	Allocation:    "idle while the host allocates or frees device or pinned memory",
	BlockingCopy:  "idle while the host is in a blocking copy",
	Meeting:       "idle while the host waits in a gloo collective for other ranks or their data",
	BetweenSteps:  "idle while the host is outside of annotated steps",
	AfterSync:     "idle because the host waited for the device to finish before it launched more work",
	HostWork:      "idle because the host launched late, with no runtime call to explain it",
	LaunchGap:     "idle for less than 30 us before work that had already been launched",
	Dependency:    "idle for 30 us or longer before work that had already been launched: it waits for an event or another stream",
	Withheld:      "idle for 0.1 ms or longer before a kernel that had already been launched and that no recorded work kept from starting: another process may be using the GPU",
	Unseen:        "nothing recorded is running, but the host waits for the device: the device does unrecorded work",
	Migration:     "idle before a migration of unified memory pages, which no call launches",
	NotRecorded:   "idle before work whose launch was not recorded",
}

// TimeReport makes a table of where the time of every device went: the columns add up to
// the length.
func (g *GPUs) TimeReport() *table.Table {
	c := gpuColumns{g}
	fields := append(c.first(), table.NsColumn("length", lengthDoc, (*GPU).Length))
	for _, a := range timeColumns() {
		fields = append(fields, g.shown(c.column(a), a.of)...)
	}
	r := table.New("sgtrace.report.gpu.time/v2", "Where GPU time went, by rank", g.GPUs, fields)
	r.Leave("length")
	g.noteGraphs(r)
	return r
}

// shownShare is the least share of a device's time for a column to be shown to people.
const shownShare = 0.005

// ShareReport makes a short table of where the time of every device went.
func (g *GPUs) ShareReport(schema string) *table.Table {
	c := gpuColumns{g}
	captured := table.NsColumn("captured", "from the rank's first row to the end of its last one", func(g *GPU) int64 { return g.Captured })
	length := table.NsColumn("length", lengthDoc, (*GPU).Length)
	fields := append(c.first(), length) // what the shares are of
	fields = append(fields, table.Detail([]table.Field[GPU]{captured})...)
	fields = append(fields, c.times(busyTime)...)
	work := timeColumns()[:numWork]
	for _, a := range work[:numWork-1] {
		fields = append(fields, c.column(a)...)
	}
	other := work[numWork-1]
	fields = append(fields, g.shown(c.column(other), other.of)...)
	fields = append(fields, c.times(idleTime)...)
	cold := c.part("cold", "part of idle while a process starts: the host loads code, compiles, or captures a CUDA graph", (*GPU).coldTime)
	fields = append(fields, g.shown(cold, (*Activity).coldTime)...)
	fields = append(fields, table.TextColumn("mostly", "reason for most of the idle time", (*GPU).mostly))
	return table.New(schema, "Where GPU time went", g.GPUs, fields).Leave("length")
}

// column returns the fields of a column: a share, and the time itself.
func (c gpuColumns) column(a timeColumn) []table.Field[GPU] {
	return titled(a.title, c.part(a.name, a.doc, func(g *GPU) int64 { return a.of(&g.Activity) }))
}

// shown leaves columns visible to people if some device spends a notable share of its time there, and makes them details otherwise.
func (g *GPUs) shown(fields []table.Field[GPU], of func(*Activity) int64) []table.Field[GPU] {
	if g.any(func(g *GPU) bool { return distribution.Fraction(of(&g.Activity), g.Length()) >= shownShare }) {
		return fields
	}
	return table.Detail(fields)
}

func (a *Activity) coldTime() int64 { return a.Cold.Total() }

// mostly names the reason for most of the idle time; "" if that is negligible.
func (g *GPU) mostly() string {
	if g.Blind {
		return ""
	}
	most := NoReason
	for reason, t := range g.Waits.Time {
		if t > g.Waits.Time[most] {
			most = Reason(reason)
		}
	}
	if distribution.Fraction(g.Waits.Time[most], g.Length()) < shownShare {
		return ""
	}
	return ReasonWords[most]
}

// A timeOf is a metric of devices, and how it is measured.
type timeOf struct {
	metric *metric.Metric
	of     func(*Activity) int64
}

// Times of devices.
var (
	busyTime     = timeOf{metric.Busy, (*Activity).Busy}
	idleTime     = timeOf{metric.Idle, (*Activity).IdleTime}
	computeTime  = timeOf{metric.Compute, ran(kernelname.ClassCompute)}
	commTime     = timeOf{metric.Comm, ran(kernelname.ClassCommunication)}
	exposedComm  = timeOf{metric.ExposedComm, exposed(kernelname.ClassCommunication)}
	copyTime     = timeOf{metric.Copying, ran(kernelname.ClassMemory)}
	exposedCopy  = timeOf{metric.ExposedCopy, exposed(kernelname.ClassMemory)}
	otherTime    = timeOf{metric.Other, ran(kernelname.ClassOther)}
	exposedOther = timeOf{metric.ExposedOther, exposed(kernelname.ClassOther)}
)

func ran(class kernelname.Class) func(*Activity) int64 {
	return func(a *Activity) int64 { return a.Time(class) }
}

func exposed(class kernelname.Class) func(*Activity) int64 {
	return func(a *Activity) int64 { return a.Exposed(class) }
}

// partsOf returns the columns of some times: shares of a whole for people, and ns.
func partsOf[T any](did func(*T) *Activity, whole func(*T) int64, wholeName string, times ...timeOf) (fields []table.Field[T]) {
	for _, t := range times {
		part := part(t.metric.Name, t.metric.Doc, wholeName, whole, func(r *T) int64 { return t.of(did(r)) })
		if t.metric.Title != t.metric.Name {
			part = titled(t.metric.Title, part)
		}
		fields = append(fields, part...)
	}
	return fields
}

// part returns the columns of a duration: ns for programs, and its share of whole for people.
func part[T any](name, doc, wholeName string, whole, of func(*T) int64) []table.Field[T] {
	return []table.Field[T]{
		table.PartColumn(name, doc+", as a share of "+wholeName, func(r *T) (int64, int64) { return of(r), whole(r) }),
		table.NsColumn(name, doc, of).InDetail(),
	}
}

// titled gives fields another title for people.
func titled[T any](title string, fields []table.Field[T]) []table.Field[T] {
	for i := range fields {
		fields[i].Title = title
	}
	return fields
}
