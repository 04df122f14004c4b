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
		table.TextColumn("what", "gpu, host, or hosts: KV caches go from one to the other", func(o *O) string { return o.Level.String() }),
		table.TextColumn("name", "GPU 5 of node7; a rank where nobody says on which GPU it ran", func(o *O) string { return o.String() }),
		table.CountColumn("found", "runs that found it late or slow", func(o *O) int64 { return int64(o.Found) }),
		table.CountColumn("of", "runs that could have found it", func(o *O) int64 { return int64(o.Could) }),
		table.NumberColumn("expected", "runs that would find it if chance chose among its peers", func(o *O) float64 { return o.Expected }),
		table.NumberColumn("p", "probability that any of its peers is found so often by chance", func(o *O) float64 { return o.P }),
		table.TextColumn("sure", "certain, likely, may be chance, not enough data", func(o *O) string { return string(o.Sure) }),
		runTime("first", "when the first run began that found it", func(o *O) trace.Time { return o.First }),
		runTime("last", "when the last one did", func(o *O) trace.Time { return o.Last }),
		table.TextColumn("kinds", "of the findings, the most frequent first", func(o *O) string { return kindList(o.Kinds) }),
		table.TextColumn("because", "of a host: the GPU on it that each of these runs found", func(o *O) string {
			if o.Because == nil {
				return ""
			}
			return o.Because.String()
		}),
		table.TextColumn("uuid", "of the GPU, if it is known", func(o *O) string { return o.UUID }),
		table.TextColumn("host", "of the GPU, the host, or where KV caches come from", func(o *O) string { return o.Host }),
		table.TextColumn("to", "of hosts: where KV caches go", func(o *O) string { return o.To }),
		table.CountColumn("gpu", "number of the GPU on its host", func(o *O) int64 {
			if o.Level != GPU || o.GPU < 0 {
				return request.Unknown
			}
			return int64(o.GPU)
		}),
		table.TextColumn("ranks", "that ran on the GPU when it was found", func(o *O) string { return strings.Join(o.Ranks, ", ") }),
		hoursColumn("gpu hours", "that devices and schedulers lost to what was found there", func(o *O) float64 { return o.GPUTime }),
		hoursColumn("request hours", "that requests took longer because of it", func(o *O) float64 { return o.RequestTime }),
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
		table.TextColumn("kind", "of findings", func(t *Total) string { return string(t.Kind) }),
		table.CountColumn("runs", "that have such findings", func(t *Total) int64 { return int64(t.Runs) }),
		table.CountColumn("findings", "before those that say the same are merged", func(t *Total) int64 { return int64(t.Findings) }),
		hoursColumn("gpu hours", "that devices and schedulers lost", func(t *Total) float64 { return t.GPU }),
		table.ShareColumn("of gpu hours", "that, of all that was recorded", func(t *Total) float64 { return share(t.GPU, gpu) }),
		hoursColumn("request hours", "that requests took longer", func(t *Total) float64 { return t.Request }),
		table.ShareColumn("of request hours", "that, of the E2E of all finished requests", func(t *Total) float64 { return share(t.Request, requests) }),
	})
	r.Stay("gpu hours", "request hours").Leave("findings")
	r.Note("kinds don't add up: one second may be lost to several of them")
	return r
}

// runReport returns a table of the runs.
func (f *Fleet) runReport() *table.Table {
	type R = *Run
	r := table.New("sgtrace.report.fleet.runs/v1", "Runs", f.Runs, []table.Field[R]{
		runTime("first", "begin of the first input", func(r *R) trace.Time { return (*r).From }),
		runTime("last", "end of the last input", func(r *R) trace.Time { return (*r).To }),
		table.CountColumn("inputs", "files and folders", func(r *R) int64 { return int64((*r).Inputs) }),
		table.CountColumn("hosts", "with ranks", func(r *R) int64 { return int64((*r).Hosts) }),
		table.CountColumn("ranks", "recorded, or working for requests", func(r *R) int64 { return int64((*r).Ranks) }),
		hoursColumn("gpu hours", "recorded", func(r *R) float64 { return (*r).recorded() }),
		table.CountColumn("findings", "as 'sgtrace report' lists them", func(r *R) int64 { return int64((*r).Findings) }),
		table.TextColumn("top", "the finding that costs most", func(r *R) string { return (*r).Top }),
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
		runTime("first", "begin of the run", func(l *runLoss) trace.Time { return l.run.From }),
		table.TextColumn("kind", "of findings", func(l *runLoss) string { return string(l.Kind) }),
		table.CountColumn("findings", "before those that say the same are merged", func(l *runLoss) int64 { return int64(l.Findings) }),
		hoursColumn("gpu hours", "that devices and schedulers lost", func(l *runLoss) float64 { return l.GPU }),
		table.ShareColumn("of gpu hours", "that, of what the run recorded", func(l *runLoss) float64 { return share(l.GPU, l.run.recorded()) }),
		hoursColumn("request hours", "that requests took longer", func(l *runLoss) float64 { return l.Request }),
		table.ShareColumn("of request hours", "that, of the E2E of its finished requests", func(l *runLoss) float64 { return share(l.Request, l.run.RequestTime) }),
	})
}

// dayReport returns a table of step times by day.
func (f *Fleet) dayReport() *table.Table {
	r := table.New("sgtrace.report."+stepTable+"/v1", "Step times by day", f.Days, []table.Field[Day]{
		table.TextColumn("day", "on which runs began", func(d *Day) string { return d.Day }),
		table.TextColumn("kind", "of steps", func(d *Day) string { return d.Kind }),
		table.TextColumn("of", "devices: from the first kernel of a step to the end of the last; requests: as servers traced them", func(d *Day) string { return d.Of }),
		table.CountColumn("runs", "with such steps", func(d *Day) int64 { return int64(d.Runs) }),
		table.CountColumn("hosts", "with such steps", func(d *Day) int64 { return int64(d.Hosts) }),
		table.NsColumn("step", "median step of a host in a run, of which the median over runs, and then over hosts", func(d *Day) int64 { return d.Median }),
		table.NumberColumn("level", "by which factor steps take longer than on the median day, whichever hosts there are", func(d *Day) float64 { return d.Level }),
		table.NumberColumn("change", "ratio of the level from this day on to that before, on a day on which it changed", func(d *Day) float64 {
			if d.Drift == nil {
				return math.NaN()
			}
			return d.Drift.Ratio
		}),
		table.TextColumn("with", "versions that changed at about that time", func(d *Day) string { return d.Drift.versions() }),
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
		table.TextColumn("of", "software", func(u *VersionUse) string { return u.Version.Of }),
		table.TextColumn("version", "as inputs call it", func(u *VersionUse) string { return u.Version.Is }),
		table.CountColumn("runs", "that had it", func(u *VersionUse) int64 { return int64(u.Runs) }),
		runTime("first", "when the first of them began", func(u *VersionUse) trace.Time { return u.First }),
		runTime("last", "when the last of them began", func(u *VersionUse) trace.Time { return u.Last }),
		table.TextColumn("after", "the version that was seen before", func(u *VersionUse) string { return u.Before }),
	})
	if len(f.Versions) == 0 {
		r.Note("no input tells a version: exports of Nsight Systems and traces of PyTorch do, and dumps with the resource attribute service.version")
	}
	return r
}
