package finding

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/trace"
)

// Repeats makes one finding of what came and went several times at one place, by about as much: that has one cause.
func Repeats(found []Finding) []Finding {
	const several = 3
	var out []Finding
	for rest := found; len(rest) > 0; {
		like := func(x Finding) bool { return x.isLike(&rest[0]) }
		same := slices.DeleteFunc(slices.Clone(rest[1:]), func(x Finding) bool { return !like(x) })
		first := rest[0]
		if len(same)+1 < several {
			out, rest = append(out, first), rest[1:]
			continue
		}
		same = append(same, first)
		rest = slices.DeleteFunc(slices.Clone(rest[1:]), like)
		slices.SortStableFunc(same, func(x, y Finding) int { return cmp.Compare(x.Since, y.Since) })
		out = append(out, repeated(same))
	}
	return out
}

// isLike reports whether two findings are about the same thing, which began and ended, by about as much, at two times.
func (f *Finding) isLike(g *Finding) bool {
	const about = 1.25
	over := func(x *Finding) bool {
		return x.Kind == Change && x.Since != 0 && x.Until > x.Since && x.Claim != nil && x.Metric.After > x.Metric.Before
	}
	by := f.Metric.After / f.Metric.Before / (g.Metric.After / g.Metric.Before)
	return over(f) && over(g) && f.Subkind != "" && f.Subkind == g.Subkind && f.Metric.Name == g.Metric.Name && f.At == g.At && max(by, 1/by) <= about &&
		(f.Until < g.Since || g.Until < f.Since)
}

// repeated joins findings in order of time.
func repeated(list []Finding) Finding {
	f := list[0]
	var times []string
	var least, most trace.Time = math.MaxInt64, 0
	for i := range list[1:] {
		g := &list[1+i]
		from, to := words.Tenths(g.Since, g.Until)
		times = append(times, from+" to "+to)
		apart := g.Since - list[i].Since
		least, most = min(least, apart), max(most, apart)
		f.Claim, f.Cost = f.Claim.And(g.Claim), min(1, f.Cost+g.Cost)
		f.Until = g.Until
		f.Evidence = append(append(f.Evidence, Evidence{Text: g.Text}), g.Evidence...)
	}
	const few, regular = 4, 1.1
	if n := len(times) - few; n > 0 {
		times = append(times[:few], fmt.Sprintf("and %d more", n))
	}
	every := ""
	if float64(most) <= regular*float64(least) {
		every = ", every " + words.Nearly(int64(most+least)/2)
	}
	f.Text += fmt.Sprintf("; and again %d times%s: from %s", len(list)-1, every, strings.Join(times, ", "))
	return f
}
