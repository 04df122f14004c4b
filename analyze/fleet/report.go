package fleet

import (
	"fmt"
	"math"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// offenderReport returns a table of subjects that were found late or slow.
func (f *Fleet) offenderReport() *table.Table {
	type O = Offender
	r := table.New("sgtrace.report."+offenderTable+"/v1", "Late or slow in some runs", f.Offenders, []table.Field[O]{
		table.TextColumn("what", "gpu, host, or hosts (a pair between which KV caches are sent)", func(o *O) string { return o.Level.String() }),
		table.TextColumn("name", "name, such as GPU 5 of node7; a rank if its GPU is unknown", func(o *O) string { return o.String() }),
		table.CountColumn("found", "number of runs in which it was found late or slow", func(o *O) int64 { return int64(o.Found) }),
		table.CountColumn("of", "number of runs in which it could have been found", func(o *O) int64 { return int64(o.Could) }),
		table.NumberColumn("expected", "number of runs expected to find it by chance among its peers", func(o *O) float64 { return o.Expected }),
		table.NumberColumn("p", "probability that it or any peer is found this often by chance", func(o *O) float64 { return o.P }),
		table.TextColumn("sure", "verdict: certain, likely, may be chance, or not enough data", func(o *O) string { return string(o.Sure) }),
		runTime("first", "start of the first run in which it was found", func(o *O) trace.Time { return o.First }),
		runTime("last", "start of the last run in which it was found", func(o *O) trace.Time { return o.Last }),
		table.TextColumn("kinds", "kinds of the findings, most frequent first", func(o *O) string { return kindList(o.Kinds) }),
		table.TextColumn("because", "for a host: its GPU that was found in each of these runs", func(o *O) string {
			if o.Because == nil {
				return ""
			}
			return o.Because.String()
		}),
		table.TextColumn("uuid", "UUID of the GPU, if known", func(o *O) string { return o.UUID }),
		table.TextColumn("host", "host, host of the GPU, or sending host", func(o *O) string { return o.Host }),
		table.TextColumn("to", "for a pair of hosts: receiving host", func(o *O) string { return o.To }),
		table.CountColumn("gpu", "number of the GPU on its host", func(o *O) int64 {
			if o.Level != GPU || o.GPU < 0 {
				return request.Unknown
			}
			return int64(o.GPU)
		}),
		table.TextColumn("ranks", "ranks that ran on the GPU when it was found", func(o *O) string { return strings.Join(o.Ranks, ", ") }),
		hoursColumn("gpu hours", "GPU hours that devices and schedulers lost to these findings", func(o *O) float64 { return o.GPUTime }),
		hoursColumn("request hours", "hours that requests took longer because of these findings", func(o *O) float64 { return o.RequestTime }),
	})
	for i := range r.Columns[len(r.Columns)-7:] {
		r.Columns[len(r.Columns)-7+i].Detail = true
	}
	r.Stay("found", "of", "sure").Leave("expected", "kinds", "because")
	return r
}

// between returns in words when the first and the last of some runs began; "" if unknown.
func between(first, last trace.Time) string {
	switch {
	case first == 0 || last == 0:
		return ""
	case dayOf(first) == dayOf(last):
		return "; on " + dayOf(first)
	}
	return fmt.Sprintf("; from %s to %s", dayOf(first), dayOf(last))
}

func kindList(kinds []finding.Kind) string {
	texts := order.Each(kinds, func(kind finding.Kind) string { return string(kind) })
	return strings.Join(texts, ", ")
}

// runTime returns a column with the beginning of a run; 0 is unknown.
func runTime[T any](name, doc string, of func(*T) trace.Time) table.Field[T] {
	return table.TimeField(name, doc, func(row *T) (trace.Time, bool) { return of(row), of(row) != 0 })
}

// hoursColumn returns a column in hours of times in ns.
func hoursColumn[T any](name, doc string, of func(*T) float64) table.Field[T] {
	return table.NumberColumn(name, doc, func(row *T) float64 { return hours(of(row)) })
}

// totalReport returns a table of what each kind of finding cost in all runs.
func (f *Fleet) totalReport() *table.Table {
	gpu, requests := f.recorded()
	title := fmt.Sprintf("%s recorded in %s", gpuHours(gpu), words.Counted(len(f.Runs), "run"))
	if len(f.Totals) > 0 && f.Totals[0].GPU > 0 {
		t := &f.Totals[0]
		title += fmt.Sprintf(", of which %s (%s %%) were lost to %s", gpuHours(t.GPU), words.InPercent(t.GPU/gpu), t.Kind)
	}
	r := table.New("sgtrace.report.fleet.losses/v1", title, f.Totals, []table.Field[Total]{
		table.TextColumn("kind", "kind of finding", func(t *Total) string { return string(t.Kind) }),
		table.CountColumn("runs", "number of runs with such findings", func(t *Total) int64 { return int64(t.Runs) }),
		table.CountColumn("findings", "number of findings before duplicates are merged", func(t *Total) int64 { return int64(t.Findings) }),
		hoursColumn("gpu hours", "GPU hours that devices and schedulers lost", func(t *Total) float64 { return t.GPU }),
		table.ShareColumn("of gpu hours", "gpu_hours as a share of all recorded GPU time", func(t *Total) float64 { return share(t.GPU, gpu) }),
		hoursColumn("request hours", "hours that requests took longer", func(t *Total) float64 { return t.Request }),
		table.ShareColumn("of request hours", "request_hours as a share of the E2E of all finished requests", func(t *Total) float64 { return share(t.Request, requests) }),
	})
	r.Stay("gpu hours", "request hours").Leave("findings")
	r.Note("kinds don't add up: one second may be lost to several of them")
	return r
}

// runReport returns a table of the runs.
func (f *Fleet) runReport() *table.Table {
	type R = *Run
	r := table.New("sgtrace.report.fleet.runs/v1", "Runs", f.Runs, []table.Field[R]{
		runTime("first", "start of the first input", func(r *R) trace.Time { return (*r).From }),
		runTime("last", "end of the last input", func(r *R) trace.Time { return (*r).To }),
		table.CountColumn("inputs", "number of input files and folders", func(r *R) int64 { return int64((*r).Inputs) }),
		table.CountColumn("hosts", "number of hosts with ranks", func(r *R) int64 { return int64((*r).Hosts) }),
		table.CountColumn("ranks", "number of ranks that were recorded or worked on requests", func(r *R) int64 { return int64((*r).Ranks) }),
		hoursColumn("gpu hours", "recorded GPU hours", func(r *R) float64 { return (*r).recorded() }),
		table.CountColumn("findings", "number of findings, as 'sgtrace report' lists them", func(r *R) int64 { return int64((*r).Findings) }),
		table.TextColumn("top", "finding with the highest cost", func(r *R) string { return (*r).Top }),
	})
	top := &r.Columns[len(r.Columns)-1]
	top.Most = table.MaxName
	r.Stay("hosts", "findings").Leave("last", "inputs", "top")
	return r
}

// A runLoss is a loss with its run.
type runLoss struct {
	run *Run
	Loss
}

// lossReport returns a table of what each run lost to each kind of finding.
func (f *Fleet) lossReport() *table.Table {
	var rows []runLoss
	for _, r := range f.Runs {
		for _, loss := range r.Losses {
			rows = append(rows, runLoss{r, loss})
		}
	}
	return table.New("sgtrace.report.fleet.costs/v1", "Lost by run and kind", rows, []table.Field[runLoss]{
		runTime("first", "start of the run", func(l *runLoss) trace.Time { return l.run.From }),
		table.TextColumn("kind", "kind of finding", func(l *runLoss) string { return string(l.Kind) }),
		table.CountColumn("findings", "number of findings before duplicates are merged", func(l *runLoss) int64 { return int64(l.Findings) }),
		hoursColumn("gpu hours", "GPU hours that devices and schedulers lost", func(l *runLoss) float64 { return l.GPU }),
		table.ShareColumn("of gpu hours", "gpu_hours as a share of the run's recorded GPU time", func(l *runLoss) float64 { return share(l.GPU, l.run.recorded()) }),
		hoursColumn("request hours", "hours that requests took longer", func(l *runLoss) float64 { return l.Request }),
		table.ShareColumn("of request hours", "request_hours as a share of the E2E of the run's finished requests", func(l *runLoss) float64 { return share(l.Request, l.run.RequestTime) }),
	})
}

// dayReport returns a table of step times by day.
func (f *Fleet) dayReport() *table.Table {
	r := table.New("sgtrace.report."+stepTable+"/v1", "Step times by day", f.Days, []table.Field[Day]{
		table.TextColumn("day", "day on which the runs began (UTC)", func(d *Day) string { return d.Day }),
		table.TextColumn("kind", "kind of step", func(d *Day) string { return d.Kind }),
		table.TextColumn("of", "source of the step time: devices (from the start of a step's first kernel to the end of its last) or requests (decode steps as servers traced them)", func(d *Day) string { return d.Of }),
		table.CountColumn("runs", "number of runs with such steps", func(d *Day) int64 { return int64(d.Runs) }),
		table.CountColumn("hosts", "number of hosts with such steps", func(d *Day) int64 { return int64(d.Hosts) }),
		table.NsColumn("step", "step time: median step of a host in a run, then the median over runs, then over hosts", func(d *Day) int64 { return d.Median }),
		table.NumberColumn("level", "step time relative to the median day, adjusted for which hosts ran", func(d *Day) float64 { return d.Level }),
		table.NumberColumn("change", "on a day with a change: ratio of the level from this day on to the level before", func(d *Day) float64 {
			if d.Drift == nil {
				return math.NaN()
			}
			return d.Drift.Ratio
		}),
		table.TextColumn("with", "software versions that changed at about that time", func(d *Day) string { return d.Drift.versions() }),
	})
	return r.Stay("step", "change").Leave("of", "runs", "hosts")
}

// String says when step times changed, by how much, and with which versions.
func (d *Drift) String() string {
	text := words.Capitalized(d.change())
	if d.First != d.Last {
		text += fmt.Sprintf(" (%s to %s)", d.First, d.Last)
	}
	text += fmt.Sprintf(", by %s; %s", d.Of, words.Chance(d.P))
	if with := d.versions(); with != "" {
		text += "; at about that time, " + with
	}
	return text
}

// change says by how much step times changed, and on which day.
func (d *Drift) change() string {
	direction := "longer"
	if d.Ratio < 1 {
		direction = "shorter"
	}
	return fmt.Sprintf("%s steps take %s %% %s since %s", d.Kind, words.InPercent(math.Abs(d.Ratio-1)), direction, d.Day)
}

// versions says which versions changed: "GPU driver went from 550.54 to 560.28".
func (d *Drift) versions() string {
	if d == nil {
		return ""
	}
	parts := order.Each(d.Versions, func(u VersionUse) string { return u.String() })
	return strings.Join(parts, ", ")
}

// versionReport returns a table of the versions in the inputs.
func (f *Fleet) versionReport() *table.Table {
	r := table.New("sgtrace.report."+versionTable+"/v1", "Versions", f.Versions, []table.Field[VersionUse]{
		table.TextColumn("of", "name of the software", func(u *VersionUse) string { return u.Version.Of }),
		table.TextColumn("version", "version, as the inputs give it", func(u *VersionUse) string { return u.Version.Is }),
		table.CountColumn("runs", "number of runs with this version", func(u *VersionUse) int64 { return int64(u.Runs) }),
		runTime("first", "start of the first of these runs", func(u *VersionUse) trace.Time { return u.First }),
		runTime("last", "start of the last of these runs", func(u *VersionUse) trace.Time { return u.Last }),
		table.TextColumn("after", "previous version", func(u *VersionUse) string { return u.Before }),
	})
	if len(f.Versions) == 0 {
		r.Note("no input tells a version: exports of Nsight Systems and traces of PyTorch do, and dumps with the resource attribute service.version")
	}
	return r
}
