package fleet

import (
	"fmt"
	"math"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// Names of the tables with the numbers in findings.
const (
	offenderTable = "fleet.offenders"
	stepTable     = "fleet.steps"
	versionTable  = "fleet.versions"
)

// Repeats returns the repeat offenders as findings. If a host is one because of one of its
// GPUs, it is evidence for the finding about the GPU.
func (f *Fleet) Repeats() (found []finding.Finding, check finding.Check) {
	told := map[key]int{} // index into found
	for i := range f.Offenders {
		if o := &f.Offenders[i]; o.repeats() && o.Because == nil {
			told[o.key()] = len(found)
			found = append(found, f.repeat(o))
		}
	}
	for i := range f.Offenders {
		o := &f.Offenders[i]
		if !o.repeats() || o.Because == nil {
			continue
		}
		if at, ok := told[o.Because.key()]; ok {
			found[at].Evidence = append(found[at].Evidence, o.evidence("its host "+o.String()))
			continue
		}
		found = append(found, f.repeat(o))
	}
	return found, finding.Check{What: "repeat offenders", Of: "run", N: len(f.Runs), Needed: f.runsNeeded()}
}

// repeat returns the finding about an offender.
func (f *Fleet) repeat(o *Offender) finding.Finding {
	x := finding.Finding{
		Subkind: o.Level.String() + " " + o.String() + " " + o.UUID, At: o.location(), Since: o.First, Text: o.sentence(),
		Metric: finding.Metric{Name: "runs", Unit: table.Number, Before: o.Expected, After: float64(o.Found)}, P: finding.Chance(o.P),
		Evidence: []finding.Evidence{o.evidence(o.String())},
		Show:     [][]string{{"--fleet", "--table", offenderTable}},
	}
	gpu, requests := f.recorded()
	switch {
	case o.GPUTime > 0:
		x.Cost, x.CostBasis = share(o.GPUTime, gpu), finding.GPUTime
		x.Evidence = append(x.Evidence, finding.Sentence("%s were lost to what was found there", gpuHours(o.GPUTime)).
			In(offenderTable, o.row(), "gpu_hours", hours(o.GPUTime)))
	case o.RequestTime > 0:
		x.Cost, x.CostBasis = share(o.RequestTime, requests), finding.RequestTime
	}
	return x
}

// sentence says how often the offender was found, and how often chance would find it.
func (o *Offender) sentence() string {
	name := o.String()
	if o.UUID != "" && o.GPU >= 0 {
		name += " (" + o.UUID + ")"
	}
	return fmt.Sprintf("%s was late or slow in %d of %d runs (%s), %s expected by chance; %s%s",
		name, o.Found, o.Could, kindList(o.Kinds), words.ThreeDigits(o.Expected), words.Chance(o.P), between(o.First, o.Last))
}

// evidence returns evidence from the table of offenders.
func (o *Offender) evidence(name string) finding.Evidence {
	return finding.Sentence("%s was found in %d of %d runs", name, o.Found, o.Could).In(offenderTable, o.row(), "found", float64(o.Found))
}

// row identifies the offender's row in the table. Two GPUs may have the same name, but not the same UUID.
func (o *Offender) row() []finding.Key {
	return finding.Row("what", o.Level.String(), "name", o.String(), "uuid", o.UUID)
}

// location returns the place of the offender: a GPU of a host, a host, or the connection to another one.
func (o *Offender) location() place.Location {
	at := place.Location{Scope: place.OneRank, Role: request.Other, Host: o.Host, Rank: trace.NoRank}
	switch {
	case o.Level == Host:
		at.Label = "host"
	case o.Level == Hosts:
		at.Label = "to " + o.To
	default:
		alone := o.Subject
		alone.Host = ""
		at.Label = alone.String()
	}
	return at
}

// runsNeeded returns how many runs it takes to tell whether anything is found more often than by
// chance: enough for a subject that is found in every run, or two if no subject was found at all.
func (f *Fleet) runsNeeded() int {
	if len(f.Offenders) == 0 {
		return 2
	}
	needed := math.MaxInt
	for i := range f.Offenders {
		o := &f.Offenders[i]
		if o.Sure == TooLittle { // other runs may not be enough, either
			needed = min(needed, max(o.Needed, len(f.Runs)+1))
			continue
		}
		needed = min(needed, o.Needed)
	}
	return needed
}

// Drifts returns changes of step times by day as findings.
func (f *Fleet) Drifts() (found []finding.Finding, check finding.Check) {
	gpu, requests := f.recorded()
	check = finding.Check{What: "step times by day", Of: "day", Needed: minDays}
	days := map[Series]int{}
	for i := range f.Days {
		day := &f.Days[i]
		days[day.Series]++
		check.N = max(check.N, days[day.Series])
		d := day.Drift
		if d == nil {
			continue
		}
		x := finding.Finding{
			Subkind: "steps by day: " + d.Kind + ", " + d.Of, Since: day.From, Text: d.String(),
			Metric: finding.Metric{Name: "level", Unit: table.Number, Before: 1, After: d.Ratio}, P: finding.Chance(d.P),
		}
		x.Evidence = []finding.Evidence{finding.Sentence("from %s on, they take %s times as long as before", d.Day, words.ThreeDigits(d.Ratio)).
			In(stepTable, finding.Row("day", day.Day, "kind", day.Kind, "of", day.Of), "change", d.Ratio)}
		if x.Cost, x.CostBasis = share(d.Lost, gpu), finding.GPUTime; d.Of == ofRequests {
			x.Cost, x.CostBasis = share(d.Lost, requests), finding.RequestTime
		}
		if math.IsNaN(x.Cost) {
			x.Cost = 0
		}
		for _, u := range d.Versions {
			x.Evidence = append(x.Evidence, finding.Sentence("%s %s, after %s, was seen in %s", u.Version.Of, u.Version.Is, u.Before, words.Counted(u.Runs, "run")).
				In(versionTable, finding.Row("of", u.Version.Of, "version", u.Version.Is), "runs", float64(u.Runs)))
		}
		found = append(found, x)
	}
	if len(f.Days) == 0 {
		check.Reason = "no run tells steps"
	}
	return found, check
}

// Words says how many runs there are, which GPUs and hosts are late or slow repeatedly, and when step times changed.
func (f *Fleet) Words() string {
	parts := []string{words.Thousands(int64(len(f.Runs))) + between(f.Runs[0].From, f.Runs[len(f.Runs)-1].From)}
	if idle := order.Count(f.Runs, func(r *Run) bool { return r.recorded() == 0 && r.RequestTime == 0 }); idle > 0 && idle < len(f.Runs) {
		parts[0] += fmt.Sprintf(" (%s without work of devices or requests)", words.Thousands(int64(idle)))
	}
	repeats := false
	for i := range f.Offenders {
		if o := &f.Offenders[i]; o.repeats() && o.Because == nil {
			repeats = true
			parts = append(parts, fmt.Sprintf("%s was late or slow in %d of %d", o.String(), o.Found, o.Could))
		}
	}
	if !repeats {
		parts = append(parts, "no repeat offender")
	}
	for i := range f.Days {
		if d := f.Days[i].Drift; d != nil {
			parts = append(parts, d.change())
		}
	}
	if n := order.Count(f.Runs, (*Run).tells); n > 0 { // over all runs, these may not stand out
		has, its := "has", "its"
		if n > 1 {
			has, its = "have", "their"
		}
		parts = append(parts, fmt.Sprintf("%s %s findings of %s own ('sgtrace report --fleet' lists them)", words.Thousands(int64(n)), has, its))
	}
	return strings.Join(parts, "; ")
}
