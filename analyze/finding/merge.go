package finding

import (
	"cmp"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/place"
)

// Merge tells what says the same as one finding, and orders them by weight.
// Of several the first one is told; the others become its evidence, and so do the
// consequences of findings.
func Merge(found []Finding, consequences []Consequence) []Finding {
	var out []Finding
	for i := range found {
		k := slices.IndexFunc(out, func(f Finding) bool { return f.sameAs(&found[i]) })
		if k < 0 {
			out = append(out, found[i])
		} else {
			out[k].take(&found[i])
		}
	}
	out = takeConsequences(out, consequences)
	slices.SortStableFunc(out, func(x, y Finding) int {
		return cmp.Or(cmp.Compare(y.Weight, x.Weight), strings.Compare(x.Text, y.Text))
	})
	return out
}

// sameAs reports whether two findings are about one thing. How much there is to do and
// how it is divided are, as balancers fail under load.
func (f *Finding) sameAs(g *Finding) bool {
	load := func(f *Finding) bool { return f.Kind == Load || f.Kind == Imbalance }
	if load(f) && load(g) {
		return f.At.Overlaps(&g.At)
	}
	return f.Kind == g.Kind && f.Topic == g.Topic && f.At.Overlaps(&g.At)
}

// take makes g evidence of f.
func (f *Finding) take(g *Finding) {
	for _, text := range append([]string{g.Text}, g.Evidence...) {
		if text != f.Text && !slices.Contains(f.Evidence, text) {
			f.Evidence = append(f.Evidence, text)
		}
	}
	if f.Since == 0 {
		f.Since = g.Since
	}
	if f.Kind == Load || f.Kind == Imbalance {
		f.Weight = max(f.Weight, g.Weight) // what it costs shows elsewhere: in queues
	}
}

// A Consequence is what findings of one kind bring about that findings of another tell
// of.
type Consequence struct {
	Cause, Effect Kind
	Topics        []string // of the effect
}

// takeConsequences makes effects evidence of their causes, where they are at one place.
func takeConsequences(found []Finding, consequences []Consequence) []Finding {
	for _, c := range consequences {
		k := slices.IndexFunc(found, func(f Finding) bool { return f.Kind == c.Cause })
		if k < 0 {
			continue
		}
		cause := found[k]
		found = slices.DeleteFunc(found, func(f Finding) bool {
			effect := f.Kind == c.Effect && slices.Contains(c.Topics, f.Topic) && f.At.Overlaps(&cause.At) &&
				(c.Cause != Slower || f.At.Scope == place.OneRank) // it tells of no other server
			if effect {
				cause.take(&f)
			}
			return effect
		})
		k = slices.IndexFunc(found, func(f Finding) bool { return f.Kind == c.Cause })
		found[k] = cause
	}
	return found
}
