package finding

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/trace"
)

// Merge makes one finding of those that say the same. Of several the first one leads; the
// others become its evidence, and so do the consequences of findings.
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

// Sort orders findings by cost; of the same cost, what is certain leads.
func Sort(found []Finding) {
	slices.SortStableFunc(found, func(x, y Finding) int {
		return cmp.Or(cmp.Compare(y.Cost, x.Cost), cmp.Compare(x.Confidence, y.Confidence), strings.Compare(x.Text, y.Text))
	})
}

// sameAs reports whether two findings are about one thing. How much there is to do and
// how it is divided are, as balancers fail under load.
func (f *Finding) sameAs(g *Finding) bool {
	if f.isLoad() && g.isLoad() && f.Subkind != LonePrompts && g.Subkind != LonePrompts {
		return f.meets(g)
	}
	return f.Kind == g.Kind && f.Subkind == g.Subkind && f.meets(g) && !f.again(g)
}

// again reports whether one of two findings is of the same number as the other, which changed once more, or of another server than those
// of a role that ceased to work at one time, before or after that.
func (f *Finding) again(g *Finding) bool {
	number := f.Kind == Change && f.Subkind != "" && f.Metric.Name == g.Metric.Name
	once := func(x *Finding) bool { return x.Kind == Lifecycle && x.At.Scope == place.WholeRole && x.Until == 0 }
	return (number || once(f) || once(g)) && f.Since != 0 && g.Since != 0 && max(f.Since-g.Since, g.Since-f.Since) > slack+f.Within+g.Within
}

func (f *Finding) isLoad() bool { return f.Kind == Load || f.Kind == Imbalance }

// meets reports whether two findings are felt at one place, and not at different times.
func (f *Finding) meets(g *Finding) bool {
	if f.Until != 0 && f.Until < g.Since || g.Until != 0 && g.Until < f.Since {
		return false
	}
	x, y := f.reach(), g.reach()
	return x.Overlaps(&y)
}

// reach returns the place with all that is around it within reach.
func (f *Finding) reach() place.Location {
	switch {
	case f.Scope == Everywhere || f.At.Scope == place.Everywhere:
		return place.Location{}
	case f.Scope == InRole:
		return place.Location{Scope: place.WholeRole, Role: f.At.Role}
	}
	return f.At
}

// take makes g evidence of f. A limit that is reached comes first: it says why requests wait.
func (f *Finding) take(g *Finding) {
	f.took = append(append(f.took, *g), g.took...)
	if g.Kind == Limit {
		f.Evidence = append(append([]Evidence{{Text: g.Text}}, g.Evidence...), f.Evidence...)
	}
	for _, e := range append([]Evidence{{Text: g.Text}}, g.Evidence...) {
		known := func(other Evidence) bool { return strings.HasSuffix(other.Text, e.Text) } // "beside it, .."
		if e.Text != f.Text && !slices.ContainsFunc(f.Evidence, known) {
			f.Evidence = append(f.Evidence, e)
		}
	}
	f.say(g)
	if g.Severity == Critical {
		f.Severity = Critical // what fails is no less so for its cause
	}
	f.Since = cmp.Or(f.Since, g.Since)
	if f.Affected.N == 0 {
		f.Affected = g.Affected
	}
	switch {
	case f.Kind == Straggler && g.Kind == Straggler && g.CostBasis == f.CostBasis && f.Claim != nil && g.Claim != nil && g.Cost > f.Cost:
		// Steps take longer by more than the rank ends them late where it begins them late, too.
		f.Cost, f.Claim = g.Cost, f.Claim.And(g.Claim)
	case f.isLoad() && g.Kind != Common && (g.CostBasis == f.CostBasis && g.Cost > f.Cost || g.pays(f)): // what load costs shows elsewhere: in queues
		f.Cost, f.CostBasis, f.Severity, f.Claim = g.Cost, g.CostBasis, g.Severity, g.Claim
	}
}

// pays reports whether f tells what requests take longer, and g how long servers were in a state that is why: what that costs is what they do.
func (f *Finding) pays(g *Finding) bool {
	return f.Cost > 0 && f.CostBasis == RequestTime && g.CostBasis == ServerTime && f.Claim == nil && (g.isLoad() || g.Kind == Limit || g.Kind == Change)
}

// say adds to the sentence of f what it should say of g. Of what is the same elsewhere, evidence says enough.
func (f *Finding) say(g *Finding) {
	if same := f.Kind == g.Kind && f.Subkind == g.Subkind; g.Brief != "" && !same && !strings.Contains(f.Text, g.Brief) {
		f.Text += "; " + g.Brief
		if f.Brief != "" {
			f.Brief += "; " + g.Brief
		}
	}
}

// nearly all of its time makes a symptom the consequence of others.
const nearlyAll = 0.8

// Fold makes symptoms evidence of the finding that has most of the time that they claim, where
// those before them have nearly all of it, and that did not begin later. What else has no
// time of its own is good to know.
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
		cause.Evidence = append(cause.Evidence, Evidence{Text: f.Text})
		cause.say(f)
		folded = append(folded, k)
	}
	for _, k := range folded {
		found = slices.Delete(found, k, k+1)
	}
	return found
}

// slack is how far a consequence may seem to begin before its cause: nobody knows exactly
// when load changed.
const slack = trace.Time(2 * time.Second)

// A Consequence is what findings of one kind bring about that findings of another tell
// of.
type Consequence struct {
	Cause, Effect Kind
	CauseSubkind  string   // of the cause; "" is any
	Subkinds      []string // of the effect; nil is any
	// OnRanks tells that effects which are not bound to one rank are none: they have
	// other causes, too.
	OnRanks bool
	// SameRequests tells that effects which others than the requests of the cause suffer from
	// are none.
	SameRequests bool
	// Later tells that effects which were there before the cause are none.
	Later bool
	// AtPlaces tells that effects which are everywhere are none: they come from outside.
	AtPlaces bool
	// NotBefore tells that effects which began before the cause are none; those that were always
	// there may be of a cause that was.
	NotBefore bool
	// Enough tells whether a cause is large enough for an effect; nil is any.
	Enough func(effect, cause *Finding) bool
	// Around tells that effects which begin at another time than the cause lasts are none. Each
	// finding is looked at by itself then, before those that say the same are one.
	Around bool
	// Elsewhere tells that effects may be at other places than the cause: at the other end of a link.
	Elsewhere bool
	// Costs tells that the cause costs what the effect does.
	Costs bool
	// Adds returns what the cause costs beside its own for the effect: that is of other devices, or of another time. nil is nothing.
	Adds func(effect, cause *Finding) float64
	// Tells tells that the sentence of the cause tells all of the effect.
	Tells bool
	// Dates tells that the cause began when the effect did, where nothing saw it begin, or not as exactly.
	Dates bool
	// Same tells that the effect is what the cause says, seen by others: the sentence says it once.
	Same bool
	// Guessed tells that only times relate the two: the cause is likely then. nil is never.
	Guessed func(effect, cause *Finding) bool
}

// isEffect reports whether f is brought about by a cause.
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

// beginsIn reports whether f begins while a cause lasts, or so soon afterward as servers take
// to share their work anew: half as long as that took.
func (f *Finding) beginsIn(cause *Finding) bool {
	const slack = trace.Time(5 * time.Second) // a change of shares shows after some requests
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
	} // else an effect may begin later
	switch ofRequests := f.CostBasis == RequestTime && f.Claim != nil; {
	case !c.Costs:
	case f.CostBasis == cause.CostBasis && f.Claim != nil && cause.Claim != nil:
		cause.Claim = cause.Claim.And(f.Claim)
		if f.Cost > cause.Cost {
			cause.Cost, cause.Severity = f.Cost, f.Severity
		}
	case ofRequests || f.pays(cause) || f.Cost > cause.Cost && (cause.CostBasis != RequestTime || cause.Claim == nil && (f.CostBasis == RequestTime || cause.Cost == 0)): // what users wait for is the cost
		cause.Cost, cause.CostBasis, cause.Severity, cause.Claim = f.Cost, f.CostBasis, f.Severity, f.Claim
	}
}

// isCause reports whether f, or something that it brings about, is a cause of another finding.
func (c *Consequence) isCause(f, of *Finding) bool {
	is := func(cause *Finding) bool {
		return cause.Kind == c.Cause && (c.CauseSubkind == "" || cause.Subkind == c.CauseSubkind) && c.isEffect(of, cause)
	}
	return is(f) || slices.ContainsFunc(f.took, func(took Finding) bool { return is(&took) })
}

// takeConsequences makes effects evidence of their causes, where they are at one place: of
// the first that each can have.
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
