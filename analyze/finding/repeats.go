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
func Repeats(found []Finding) (out []Finding) {
	const several = 3
	joined := make([]bool, len(found))
	for i := range found {
		if joined[i] {
			continue
		}
		var like []int
		for k := i; k < len(found); k++ {
			if k == i || !joined[k] && found[k].isLike(&found[i]) {
				like = append(like, k)
			}
		}
		if len(like) < several {
			out = append(out, found[i])
			continue
		}
		var same []Finding
		for _, k := range like {
			joined[k], same = true, append(same, found[k])
		}
		slices.SortFunc(same, func(x, y Finding) int { return cmp.Compare(x.Since, y.Since) }) // not at the same time
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
