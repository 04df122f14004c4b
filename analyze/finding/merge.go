package finding

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/trace"
)

// Merge makes one finding of those about the same thing: the first one leads, the others
// become its evidence. Consequences of findings become evidence, too.
func Merge(found []Finding, consequences []Consequence) []Finding {
	var out []Finding
	found = takeConsequences(found, slices.DeleteFunc(slices.Clone(consequences), func(c Consequence) bool { return !c.Around }))
	for i := range found {
		k := slices.IndexFunc(out, func(f Finding) bool { return f.sameAs(&found[i]) })
		if k < 0 {
			out = append(out, found[i])
		} else {
			out[k].take(&found[i])
		}
	}
	return takeConsequences(out, consequences)
}

// Sort sorts findings by decreasing cost; at equal cost, those that matter more come first, and then certain ones.
func Sort(found []Finding) {
	slices.SortStableFunc(found, func(x, y Finding) int {
		return cmp.Or(cmp.Compare(y.weight(), x.weight()), cmp.Compare(x.Severity.order(), y.Severity.order()), cmp.Compare(x.Confidence, y.Confidence), strings.Compare(x.Text, y.Text))
	})
}

// weight is the cost by which f is sorted. A failure whose cost is unknown may cost anything between nothing and all: half.
func (f *Finding) weight() float64 {
	if f.Cost == 0 && f.Severity == Critical {
		return 0.5
	}
	return f.Cost
}

// sameAs reports whether two findings are about the same thing. Load and imbalance are the same, as balancers fail under load.
func (f *Finding) sameAs(g *Finding) bool {
	if f.isLoad() && g.isLoad() && f.Subkind != LonePrompts && g.Subkind != LonePrompts {
		return f.meets(g)
	}
	return f.Kind == g.Kind && f.Subkind == g.Subkind && f.meets(g) && !f.again(g)
}

// again reports whether two findings that look alike are separate events: the same number changed again,
// or one is about servers of a role that went away together, and the other about a server at another time.
func (f *Finding) again(g *Finding) bool {
	number := f.Kind == Change && f.Subkind != "" && f.Metric.Name == g.Metric.Name
	once := func(x *Finding) bool { return x.Kind == Lifecycle && x.At.Scope == place.WholeRole && x.Until == 0 }
	return (number || once(f) || once(g)) && f.Since != 0 && g.Since != 0 && max(f.Since-g.Since, g.Since-f.Since) > slack+f.Within+g.Within
}

func (f *Finding) isLoad() bool { return f.Kind == Load || f.Kind == Imbalance }

// meets reports whether two findings overlap in place and in time.
func (f *Finding) meets(g *Finding) bool {
	if f.Until != 0 && f.Until < g.Since || g.Until != 0 && g.Until < f.Since {
		return false
	}
	x, y := f.reach(), g.reach()
	return x.Overlaps(&y)
}

// reach returns the place where f is felt, according to its scope.
func (f *Finding) reach() place.Location {
	switch {
	case f.Scope == Everywhere || f.At.Scope == place.Everywhere:
		return place.Location{}
	case f.Scope == InRole:
		return place.Location{Scope: place.WholeRole, Role: f.At.Role}
	}
	return f.At
}

// take makes g evidence of f. A limit comes first in the evidence.
func (f *Finding) take(g *Finding) {
	f.took = append(append(f.took, *g), g.took...)
	all := g.asEvidence()
	if g.Kind == Limit {
		f.Evidence = append(all, f.Evidence...)
	}
	for _, e := range all {
		known := func(other Evidence) bool { return strings.HasSuffix(other.Text, e.Text) } // "along with it: .."
		if e.Text != f.Text && !slices.ContainsFunc(f.Evidence, known) {
			f.Evidence = append(f.Evidence, e)
		}
	}
	f.say(g)
	if g.Severity == Critical {
		f.Severity = Critical // failures stay critical, whatever their cause
	}
	f.Since = cmp.Or(f.Since, g.Since)
	if f.Affected.N == 0 {
		f.Affected = g.Affected
	}
	switch {
	case f.Kind == Straggler && g.Kind == Straggler && g.CostBasis == f.CostBasis && f.Claim != nil && g.Claim != nil && g.Cost > f.Cost:
		// If the rank also begins steps late, they take longer by more than it ends them late.
		f.Cost, f.Claim = g.Cost, f.Claim.And(g.Claim)
	case f.isLoad() && g.Kind != Common && (g.CostBasis == f.CostBasis && g.Cost > f.Cost || g.pays(f)): // the cost of load shows elsewhere: in queues
		f.Cost, f.CostBasis, f.Severity, f.Claim = g.Cost, g.CostBasis, g.Severity, g.Claim
	}
}

// asEvidence returns the sentence and the evidence of a finding, for another one that it becomes evidence of.
func (f *Finding) asEvidence() []Evidence {
	list := append([]Evidence{{Text: f.Text}}, f.Evidence...)
	for i := range list {
		if list[i].cost = cmp.Or(list[i].cost, f.Cost); f.Kind == Limit {
			list[i].cost = 1 // it says why requests wait
		}
	}
	return list
}

// SortEvidence puts the evidence of each finding in order. If load or something else changed, what shows most of the cost comes
// first: it says how that makes requests slower. Chances come last.
func SortEvidence(found []Finding) {
	for i := range found {
		f := &found[i]
		class := func(e *Evidence) int {
			switch {
			case e.Chance:
				return 2
			case (f.Kind == Change || f.Kind == Load) && f.Cost > 0 && e.cost >= f.Cost/2:
				return 0
			}
			return 1
		}
		slices.SortStableFunc(f.Evidence, func(x, y Evidence) int { return class(&x) - class(&y) })
	}
}

// pays reports whether f has the extra time of requests, and g only the time that servers
// spent in the state that explains it: then f's cost is the cost of g.
func (f *Finding) pays(g *Finding) bool {
	return f.Cost > 0 && f.CostBasis == RequestTime && g.CostBasis == ServerTime && f.Claim == nil && (g.isLoad() || g.Kind == Limit || g.Kind == Change)
}

// say adds to the sentence of f what it should say about g. If g is the same thing at another place, the evidence is enough.
func (f *Finding) say(g *Finding) {
	if same := f.Kind == g.Kind && f.Subkind == g.Subkind; g.Brief != "" && !same && !strings.Contains(f.Text, g.Brief) {
		f.Text += "; " + g.Brief
		if f.Brief != "" {
			f.Brief += "; " + g.Brief
		}
	}
}

// nearlyAll is the part of its time that others must have claimed for a symptom to be their consequence.
const nearlyAll = 0.8

// Fold makes a symptom evidence of the finding that has claimed most of its time, if earlier findings have claimed nearly
// all of it, and if the symptom did not begin before that finding. Other findings without time of their own become Info.
func Fold(found []Finding, taken []Taken, symptom func(*Finding) bool) []Finding {
	var folded []int
	for k := len(found) - 1; k > 0; k-- {
		f, cause := &found[k], &found[taken[k].By]
		if taken[k].Part < nearlyAll {
			continue
		}
		if !symptom(f) || f.Since != 0 && f.Since+slack+f.Within+cause.Within < cause.Since {
			if f.Severity == Warning {
				f.Severity = Info
			}
			continue
		}
		cause.Evidence = append(cause.Evidence, Evidence{Text: f.Text, cost: f.Cost})
		cause.say(f)
		folded = append(folded, k)
	}
	for _, k := range folded {
		found = slices.Delete(found, k, k+1)
	}
	return found
}

// slack is how long before its cause a consequence may seem to begin: the time at which load changed is an estimate.
const slack = trace.Time(2 * time.Second)

// A Consequence relates findings of one kind to findings of another that they bring about. Its
// fields restrict the effects, or say what becomes of the cause.
type Consequence struct {
	Cause, Effect Kind
	CauseSubkind  string   // of the cause; "": any
	Subkinds      []string // of the effect; nil: any
	// OnRanks excludes effects that are not on a single rank: they have other causes, too.
	OnRanks bool
	// SameRequests excludes effects whose requests are not mostly those of the cause.
	SameRequests bool
	// Later excludes effects that were there before the cause.
	Later bool
	// AtPlaces excludes effects that are everywhere: they come from outside.
	AtPlaces bool
	// NotBefore excludes effects that began before the cause. An effect without a beginning may belong to a cause without one.
	NotBefore bool
	// Enough reports whether a cause explains an effect; nil: always.
	Enough func(effect, cause *Finding) bool
	// Around excludes effects that do not begin while the cause lasts. Such consequences are
	// applied to each finding separately, before findings about the same thing are merged.
	Around bool
	// Elsewhere allows effects at other places than the cause: at the other end of a link.
	Elsewhere bool
	// Costs makes the cost of the effect a cost of the cause.
	Costs bool
	// Adds returns what the effect costs in addition to the cause, because it is about other devices, or another time. nil: nothing.
	Adds func(effect, cause *Finding) float64
	// Tells adds the whole sentence of the effect to that of the cause.
	Tells bool
	// Dates lets the cause begin when the effect did, if the beginning of the cause is unknown or less exact.
	Dates bool
	// Same says that the effect is the cause, seen by another source: the sentence of the cause is enough.
	Same bool
	// Guessed reports that only their times relate effect and cause; then the cause becomes Likely. nil: never.
	Guessed func(effect, cause *Finding) bool
}

// isEffect reports whether f is an effect of a cause.
func (c *Consequence) isEffect(f, cause *Finding) bool {
	return f.Kind == c.Effect && (c.Subkinds == nil || slices.Contains(c.Subkinds, f.Subkind)) && (f.meets(cause) || c.Around || c.Elsewhere) &&
		(!c.OnRanks || f.At.Scope == place.OneRank) &&
		(!c.SameRequests || f.Affected.mostly(&cause.Affected)) &&
		(!c.Later || cause.Since != 0 && f.Since+slack+f.Within+cause.Within >= cause.Since) &&
		(!c.AtPlaces || f.At.Scope != place.Everywhere) &&
		(!c.NotBefore || f.Since+slack >= cause.Since) &&
		(c.Enough == nil || c.Enough(f, cause)) &&
		(!c.Around || f.beginsIn(cause))
}

// beginsIn reports whether f begins while a cause lasts, or soon after, while servers share
// their work anew: within half the duration of the cause.
func (f *Finding) beginsIn(cause *Finding) bool {
	const slack = trace.Time(5 * time.Second) // a change of shares shows only after some requests
	off := slack + f.Within + cause.Within
	if cause.Since == 0 || f.Since == 0 || f.Since+off < cause.Since {
		return false
	}
	return cause.Until == 0 || f.Since <= cause.Until+(cause.Until-cause.Since)/2+off
}

// take makes an effect evidence of its cause.
func (c *Consequence) take(cause, f *Finding) {
	before := *cause
	if c.Guessed != nil && c.Guessed(f, cause) {
		cause.Confidence = Likely
	}
	if cause.take(f); c.Same {
		cause.Text, cause.Brief = before.Text, before.Brief
	}
	if c.Tells {
		cause.Text += "; " + f.Text
		cause.Evidence = slices.DeleteFunc(cause.Evidence, func(e Evidence) bool { return e.Text == f.Text })
	}
	if c.Adds != nil && f.CostBasis == cause.CostBasis {
		cause.Cost = min(1, cause.Cost+c.Adds(f, cause))
	}
	if cause.Since = before.Since; c.Dates && (before.Since == 0 || before.Within > f.Within) {
		cause.Since, cause.Within = f.Since, f.Within
	} // otherwise the cause keeps its own beginning, as an effect may begin later
	switch ofRequests := f.CostBasis == RequestTime && f.Claim != nil; {
	case !c.Costs:
	case f.CostBasis == cause.CostBasis && f.Claim != nil && cause.Claim != nil:
		cause.Claim = cause.Claim.And(f.Claim)
		if f.Cost > cause.Cost {
			cause.Cost, cause.Severity = f.Cost, f.Severity
		}
	case ofRequests || f.pays(cause) || f.Cost > cause.Cost && (cause.CostBasis != RequestTime || cause.Claim == nil && (f.CostBasis == RequestTime || cause.Cost == 0)): // the time that users wait is the cost
		cause.Cost, cause.CostBasis, cause.Severity, cause.Claim = f.Cost, f.CostBasis, f.Severity, f.Claim
	}
}

// isCause reports whether f, or one of its consequences, is a cause of another finding.
func (c *Consequence) isCause(f, of *Finding) bool {
	is := func(cause *Finding) bool {
		return cause.Kind == c.Cause && (c.CauseSubkind == "" || cause.Subkind == c.CauseSubkind) && c.isEffect(of, cause)
	}
	return is(f) || slices.ContainsFunc(f.took, func(took Finding) bool { return is(&took) })
}

// takeConsequences makes effects evidence of their causes, each of the first cause that it can have.
func takeConsequences(found []Finding, consequences []Consequence) []Finding {
	for i := range consequences {
		c := &consequences[i]
		effect := make([]bool, len(found))
		for k := range found {
			if found[k].Kind != c.Effect {
				continue
			}
			for by := range found {
				if effect[k] = by != k && !effect[by] && c.isCause(&found[by], &found[k]); effect[k] {
					c.take(&found[by], &found[k])
					break
				}
			}
		}
		var left []Finding
		for k := range found {
			if !effect[k] {
				left = append(left, found[k])
			}
		}
		found = left
	}
	return found
}
