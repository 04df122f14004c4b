package overtime

import (
	"fmt"
	"math"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/metric"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// A cellRow is one device in one bucket.
type cellRow struct{ device, bucket int32 }

// Report makes a table of the devices: a row per device and bucket that was recorded.
func (t *Timeline) Report() *table.Table {
	var rows []cellRow
	for d := range t.Devices {
		for b := range t.Devices[d].Cells {
			if t.Devices[d].Cells[b].Recorded > 0 {
				rows = append(rows, cellRow{int32(d), int32(b)})
			}
		}
	}
	device := func(r *cellRow) *Device { return &t.Devices[r.device] }
	cell := func(r *cellRow) *Cell { return &t.Devices[r.device].Cells[r.bucket] }
	share := func(m *metric.Metric, of func(*Cell) int64) table.Field[cellRow] {
		return table.ShareColumn(m.Name, m.Doc+", as a share of the recorded time", func(r *cellRow) float64 { return distribution.Fraction(of(cell(r)), cell(r).Recorded) })
	}
	fields := []table.Field[cellRow]{
		table.TextColumn("rank", "rank, or name of a process that is not a rank; with the device if a rank uses several", func(r *cellRow) string { return t.Name(device(r)) }),
		table.TimeColumn("time", "start of the bucket, Unix time", func(r *cellRow) trace.Time { return t.Start(int(r.bucket)) }),
		table.NsColumn("recorded", "part of the bucket in which the rank was recorded: from its first call, annotation, kernel, or copy to the end of the last", func(r *cellRow) int64 { return cell(r).Recorded }),
		table.YesColumn("partial", "yes if the bucket was only partly recorded; sgtrace does not search it for changes", func(r *cellRow) bool { return cell(r).Recorded < t.Bucket }),
		share(metric.Busy, func(c *Cell) int64 { return c.Busy }),
		share(metric.Compute, func(c *Cell) int64 { return c.Compute }),
		share(metric.Comm, func(c *Cell) int64 { return c.Comm }),
		share(metric.ExposedComm, func(c *Cell) int64 { return c.Comm - c.Hidden }),
		table.ShareColumn(metric.Overlap.Name, metric.Overlap.Doc, func(r *cellRow) float64 { return cell(r).Overlap() }),
		table.NumberColumn(metric.LaunchQueue.Name, metric.LaunchQueue.Doc, func(r *cellRow) float64 { return device(r).QueueDepth(cell(r)) }),
		table.CountColumn("queue max", "most kernels and copies launched but not yet started at one time", func(r *cellRow) int64 {
			if !device(r).Called {
				return request.Unknown
			}
			return int64(cell(r).MostQueued)
		}),
		table.ShareColumn("in steps", "share of the recorded time in server steps: from when the host begins one to the end of the work that it launched", func(r *cellRow) float64 {
			if !device(r).Stepped {
				return math.NaN()
			}
			return distribution.Fraction(cell(r).Stepped, cell(r).Recorded)
		}),
		table.NumberColumn("tokens per second", "tokens computed per second, spread evenly over each step; empty unless the names of all steps give their tokens", func(r *cellRow) float64 { return device(r).TokenRate(cell(r)) }),
		table.NumberColumn("under way", "average number of requests in progress in the dumps, over all servers", func(r *cellRow) float64 {
			if t.Under == nil {
				return math.NaN()
			}
			return t.Under[r.bucket]
		}),
	}
	fields = append(fields, table.Detail([]table.Field[cellRow]{
		table.CountColumn("device", "device number within the process", func(r *cellRow) int64 { return int64(device(r).Device) }),
		table.NsColumn(metric.Busy.Name+" time", metric.Busy.Doc, func(r *cellRow) int64 { return cell(r).Busy }),
		table.NsColumn(metric.Comm.Name+" time", metric.Comm.Doc, func(r *cellRow) int64 { return cell(r).Comm }),
		table.NsColumn("hidden time", "time in which communication and compute kernels run at once", func(r *cellRow) int64 { return cell(r).Hidden }),
	})...)
	out := table.New("sgtrace.report.timeline.gpus/v1", "GPUs over time", rows, fields)
	for _, note := range t.Notes() {
		out.Note("%s", note)
	}
	return out
}

// Overlap returns the share of the communication that computation hides; NaN if there is none.
func (c *Cell) Overlap() float64 { return distribution.Ratio(float64(c.Hidden), float64(c.Comm)) }

// TokenRate returns tokens per second; NaN is unknown.
func (d *Device) TokenRate(c *Cell) float64 {
	if !d.Counted {
		return math.NaN()
	}
	return distribution.Ratio(c.Tokens, float64(c.Recorded)/1e9)
}

// A pointRow is a counter in one bucket.
type pointRow struct{ counter, bucket int32 }

// CounterReport makes a table of what was sampled: a row per counter and bucket.
func (t *Timeline) CounterReport() *table.Table {
	var rows []pointRow
	for c := range t.Counters {
		for b := range t.Counters[c].Points {
			if !math.IsNaN(t.Counters[c].Points[b].Mean) {
				rows = append(rows, pointRow{int32(c), int32(b)})
			}
		}
	}
	counter := func(r *pointRow) *Counter { return &t.Counters[r.counter] }
	point := func(r *pointRow) *CounterPoint { return &t.Counters[r.counter].Points[r.bucket] }
	fields := []table.Field[pointRow]{
		table.TextColumn("rank", "rank of the counter; empty if it is a counter of the host", func(r *pointRow) string { return counter(r).Rank }),
		table.TextColumn("source", "device, network card, or switch", func(r *pointRow) string { return counter(r).Source }),
		table.TextColumn("counter", "name of the counter, as the profiler gives it", func(r *pointRow) string { return counter(r).Name }),
		table.TextColumn("unit", "unit of mean and max", func(r *pointRow) string { return counter(r).Unit }),
		table.TimeColumn("time", "start of the bucket, Unix time", func(r *pointRow) trace.Time { return t.Start(int(r.bucket)) }),
		table.CountColumn("samples", "samples in the bucket; a memory value holds until the next one", func(r *pointRow) int64 { return int64(point(r).Samples) }),
		table.NumberColumn("mean", "mean of the samples; for memory, the mean over time", func(r *pointRow) float64 { return point(r).Mean }),
		table.NumberColumn("max", "highest value", func(r *pointRow) float64 { return point(r).Most }),
	}
	return table.New("sgtrace.report.timeline.counters/v1", "Counters over time", rows, fields)
}

// ChangeReport makes a table of the changes.
func (t *Timeline) ChangeReport() *table.Table {
	fields := []table.Field[Change]{
		table.TextColumn("part", "change; with load: the load changed, too; back: undoes an earlier change; ramp-up, drain: may be the start or end of the load", (*Change).part),
		table.TimeColumn("time", "start of the first bucket after the change, Unix time", func(c *Change) trace.Time { return c.Time }),
		table.NsColumn("within", "95 % error bound of the time", func(c *Change) int64 { return int64(max(c.Time-c.First, c.Last-c.Time)) }),
		table.TextColumn("what", "metric that changed", func(c *Change) string { return c.What }),
		table.TextColumn("where", "devices or counter sources that changed at about that time", func(c *Change) string { return strings.Join(c.Where, ", ") }),
		table.TextColumn("before", "mean from the previous change to this one", func(c *Change) string { return c.metric.text(c.Before) }),
		table.TextColumn("after", "mean from this change to the next one", func(c *Change) string { return c.metric.text(c.After) }),
		table.NumberColumn("p", "probability of finding such a change in any series if nothing changed", func(c *Change) float64 { return c.P }),
	}
	fields = append(fields, table.Detail([]table.Field[Change]{
		table.NumberColumn("value before", "before, as a number; shares are 0 to 1", func(c *Change) float64 { return c.Before }),
		table.NumberColumn("value after", "after, as a number; shares are 0 to 1", func(c *Change) float64 { return c.After }),
		table.TimeField("until", "when the change was undone; empty if never", func(c *Change) (trace.Time, bool) { return c.Until, c.Until != 0 }),
		table.TextColumn("sentence", "the change in one sentence", t.Sentence),
	})...)
	out := table.New("sgtrace.report.timeline.gpuchanges/v1", "Changes of GPUs and counters", t.Changes, fields)
	if t.judged == 0 && len(t.Devices) > 0 {
		out.Note("nothing was searched: fewer than %d buckets of any device were recorded whole, with work in them; --bucket makes them shorter", fewest)
	}
	return out
}

// part returns the kind of a change.
func (c *Change) part() string {
	switch {
	case c.Edge && c.After > c.Before:
		return "ramp-up"
	case c.Edge:
		return "drain"
	case c.back:
		return "back"
	case c.less:
		return "with load"
	}
	return "change"
}

// Notes say what was not recorded, and how to record it.
func (t *Timeline) Notes() []string {
	if t.N() == 0 {
		return []string{"there are no calls, annotations, kernels, or copies, so there is no time to divide"}
	}
	var have [3]bool // by profile.CounterKind
	for i := range t.Counters {
		have[t.Counters[i].Kind] = true
	}
	called, stepped := false, false
	for i := range t.Devices {
		called, stepped = called || t.Devices[i].Called, stepped || t.Devices[i].Stepped
	}
	var notes []string
	add := func(missing bool, note string) {
		if missing {
			notes = append(notes, note)
		}
	}
	add(len(t.Spans) > 1, "recordings are far apart; the time between them is left out")
	add(t.skipped > 0, fmt.Sprintf("%s beyond the %d of a rank that are looked at: left out", words.Counted(t.skipped, "device"), maxDevices))
	add(len(t.Devices) == 0, "no kernels or copies were recorded")
	add(!called && len(t.Devices) > 0, "the launch queue is not known: calls were not recorded; torch.profiler does with ProfilerActivity.CPU, nsys with --trace=cuda")
	add(!stepped && t.Under == nil && len(t.Devices) > 0, "nothing tells when there was work: no steps are annotated, and no dump has requests of this time")
	add(!have[profile.MemoryCounter], "memory was not recorded: torch.profiler records it with profile_memory=True, nsys with --cuda-memory-usage=true")
	add(!have[profile.DeviceCounter], "metrics of GPUs were not recorded (SMs active, tensor cores, DRAM): nsys records them with --gpu-metrics-devices=all")
	add(!have[profile.NetworkCounter], "network cards were not recorded: nsys records them with --nic-metrics=true")
	return notes
}
