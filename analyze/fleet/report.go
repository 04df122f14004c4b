package fleet

import (
	"fmt"
	"math"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// offenderReport makes a table of what was found late or slow. Its title is the verdict.
func (f *Fleet) offenderReport() *table.Table {
	type O = Offender
	sentences := f.repeats()
	title := f.nobody()
	if len(sentences) > 0 {
		title = "Repeat offender: " + sentences[0]
	}
	r := table.New("sgtrace.report.fleet.offenders/v1", title, f.Offenders, []table.Field[O]{
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
	})
	for i := range r.Columns[len(r.Columns)-5:] {
		r.Columns[len(r.Columns)-5+i].Detail = true
	}
	r.Stay("found", "of", "sure").Leave("expected", "kinds", "because")
	for _, sentence := range sentences[min(1, len(sentences)):] {
		r.Note("%s", sentence)
	}
	return r
}

// repeats says of each repeat offender how often it was found; of a host only what is not about
// one of its GPUs.
func (f *Fleet) repeats() (sentences []string) {
	told := map[key]bool{}
	for i := range f.Offenders {
		if o := &f.Offenders[i]; o.Repeats() && o.Because == nil {
			told[o.key()] = true
		}
	}
	for i := range f.Offenders {
		o := &f.Offenders[i]
		if !o.Repeats() || o.Because != nil && told[o.Because.key()] {
			continue
		}
		name := o.String()
		if o.UUID != "" && o.GPU >= 0 {
			name += " (" + o.UUID + ")"
		}
		sentences = append(sentences, fmt.Sprintf("%s was late or slow in %d of %d runs (%s), %s expected by chance; %s; %s%s",
			name, o.Found, o.Could, kindList(o.Kinds), words.ThreeDigits(o.Expected), o.Sure, words.Chance(o.P), between(o.First, o.Last)))
	}
	return sentences
}

// between says when the first and the last of some runs began, if that is known.
func between(first, last trace.Time) string {
	switch {
	case first == 0 || last == 0:
		return ""
	case dayOf(first) == dayOf(last):
		return "; on " + dayOf(first)
	}
	return fmt.Sprintf("; from %s to %s", dayOf(first), dayOf(last))
}

// nobody says that there are no repeat offenders, and why.
func (f *Fleet) nobody() string {
	enough := len(f.Offenders) == 0 && len(f.Runs) > 1
	for i := range f.Offenders {
		enough = enough || f.Offenders[i].Sure == Maybe
	}
	if !enough {
		return fmt.Sprintf("Not enough data for repeat offenders: %s", words.Counted(len(f.Runs), "run"))
	}
	return fmt.Sprintf("No repeat offenders in %s: nothing was late or slow more often than chance explains", words.Counted(len(f.Runs), "run"))
}

func kindList(kinds []finding.Kind) string {
	texts := make([]string, len(kinds))
	for i, kind := range kinds {
		texts[i] = string(kind)
	}
	return strings.Join(texts, ", ")
}

// runTime is a column of when a run began; 0 is unknown.
func runTime[T any](name, doc string, of func(*T) trace.Time) table.Field[T] {
	return table.TimeField(name, doc, func(row *T) (trace.Time, bool) { return of(row), of(row) != 0 })
}

// hoursColumn is a column of times that are ns.
func hoursColumn[T any](name, doc string, of func(*T) float64) table.Field[T] {
	return table.NumberColumn(name, doc, func(row *T) float64 { return hours(of(row)) })
}

// totalReport makes a table of what each kind of finding cost in all runs.
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

// runReport makes a table of the runs.
func (f *Fleet) runReport() *table.Table {
	type R = *Run
	r := table.New("sgtrace.report.fleet.runs/v1", "Runs", f.Runs, []table.Field[R]{
		runTime("first", "begin of the first input", func(r *R) trace.Time { return (*r).From }),
		runTime("last", "end of the last input", func(r *R) trace.Time { return (*r).To }),
		table.CountColumn("inputs", "files and folders", func(r *R) int64 { return int64((*r).Inputs) }),
		table.CountColumn("hosts", "with ranks", func(r *R) int64 { return int64((*r).Hosts) }),
		table.CountColumn("ranks", "recorded, or working for requests", func(r *R) int64 { return int64((*r).Ranks) }),
		hoursColumn("gpu hours", "recorded", func(r *R) float64 { return (*r).Recorded() }),
		table.CountColumn("findings", "as 'sgtrace report' lists them", func(r *R) int64 { return int64((*r).Findings) }),
		table.TextColumn("top", "the finding that costs most", func(r *R) string { return (*r).Top }),
	})
	top := &r.Columns[len(r.Columns)-1]
	top.Most = table.MostName
	r.Stay("hosts", "findings").Leave("last", "inputs", "top")
	return r
}

// A runLoss is a row of what runs lost.
type runLoss struct {
	run *Run
	Loss
}

// lossReport makes a table of what each run lost to each kind of finding.
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
		table.ShareColumn("of gpu hours", "that, of what the run recorded", func(l *runLoss) float64 { return share(l.GPU, l.run.Recorded()) }),
		hoursColumn("request hours", "that requests took longer", func(l *runLoss) float64 { return l.Request }),
		table.ShareColumn("of request hours", "that, of the E2E of its finished requests", func(l *runLoss) float64 { return share(l.Request, l.run.RequestTime) }),
	})
}

// dayReport makes a table of step times by day. Its title says when they changed.
func (f *Fleet) dayReport() *table.Table {
	var sentences []string
	for i := range f.Days {
		if d := f.Days[i].Drift; d != nil {
			sentences = append(sentences, d.String())
		}
	}
	title := "Step times by day: no change"
	switch {
	case !f.longEnough():
		title = fmt.Sprintf("Step times by day: not enough days to find changes; %d are needed", leastDays)
	case len(sentences) > 0:
		title = sentences[0]
	}
	r := table.New("sgtrace.report.fleet.steps/v1", title, f.Days, []table.Field[Day]{
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
	r.Stay("step", "change").Leave("of", "runs", "hosts")
	for _, sentence := range sentences[min(1, len(sentences)):] {
		r.Note("%s", sentence)
	}
	return r
}

// longEnough reports whether any series has so many days that a change can be found.
func (f *Fleet) longEnough() bool {
	count := map[Series]int{}
	for i := range f.Days {
		count[f.Days[i].Series]++
		if count[f.Days[i].Series] >= leastDays {
			return true
		}
	}
	return false
}

// String says when step times changed, by how much, and with which versions.
func (d *Drift) String() string {
	direction := "longer"
	if d.Ratio < 1 {
		direction = "shorter"
	}
	when := d.Day
	if d.First != d.Last {
		when += fmt.Sprintf(" (%s to %s)", d.First, d.Last)
	}
	text := fmt.Sprintf("%s steps take %s %% %s since %s, by %s; %s", title(d.Kind), words.InPercent(math.Abs(d.Ratio-1)), direction, when, d.Of, words.Chance(d.P))
	if with := d.versions(); with != "" {
		text += "; at about that time, " + with
	}
	return text
}

func title(text string) string { return strings.ToUpper(text[:1]) + text[1:] }

// versions says which versions changed: "GPU driver went from 550.54 to 560.28".
func (d *Drift) versions() string {
	if d == nil {
		return ""
	}
	var parts []string
	for _, u := range d.Versions {
		parts = append(parts, fmt.Sprintf("%s went from %s to %s", u.Of, u.Before, u.Is))
	}
	return strings.Join(parts, ", ")
}

// versionReport makes a table of the versions that inputs tell of.
func (f *Fleet) versionReport() *table.Table {
	r := table.New("sgtrace.report.fleet.versions/v1", "Versions", f.Versions, []table.Field[Use]{
		table.TextColumn("of", "software", func(u *Use) string { return u.Of }),
		table.TextColumn("version", "as inputs call it", func(u *Use) string { return u.Is }),
		table.CountColumn("runs", "that had it", func(u *Use) int64 { return int64(u.Runs) }),
		runTime("first", "when the first of them began", func(u *Use) trace.Time { return u.First }),
		runTime("last", "when the last of them began", func(u *Use) trace.Time { return u.Last }),
		table.TextColumn("after", "the version that was seen before", func(u *Use) string { return u.Before }),
	})
	if len(f.Versions) == 0 {
		r.Note("no input tells a version: exports of Nsight Systems and traces of PyTorch do, and dumps with the resource attribute service.version")
	}
	return r
}
