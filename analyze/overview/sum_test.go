package overview

import (
	"math/rand/v2"
	"regexp"
	"strconv"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/cause"
	"github.com/sgtrace/sgtrace/analyze/finders"
	"github.com/sgtrace/sgtrace/analyze/finding"
)

var percent = regexp.MustCompile(`([0-9.]+) %`)

// Whatever findings cost, the numbers in the sentence add up as printed, and the
// rows of the table add up to the extra time.
func TestSumAddsUp(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		var r finders.Result
		costs := func() (list []finding.Finding) {
			for range rng.IntN(5) {
				f := finding.Finding{Kind: finding.Tail, CostBasis: finding.RequestTime, Cost: rng.Float64() / 10}
				if rng.IntN(4) == 0 {
					f.CostBasis = finding.Requests
				} else {
					r.Sum.Claimed += f.Cost
				}
				list = append(list, f)
			}
			return list
		}
		r.Findings, r.Muted = costs(), costs()
		for range rng.IntN(3) {
			r.Sum.Rest[rng.IntN(int(cause.Count))] = rng.Float64() / 20
		}
		l := &List{Result: &r, All: rng.IntN(2) == 0}
		sum := 0.0
		for _, s := range l.shares() {
			sum += s.part
		}
		if extra := r.Sum.Extra(); sum < extra-1e-9 || sum > extra+1e-9 {
			t.Fatalf("shares add up to %v of %v", sum, extra)
		}
		text := l.SumText()
		if (text == "") != (r.Sum.Claimed == 0) {
			t.Fatalf("%q for %v", text, r.Sum.Claimed)
		}
		tenths := 0
		for i, m := range percent.FindAllStringSubmatch(text, -1) {
			v, _ := strconv.ParseFloat(m[1], 64)
			if n := int(10*v + 0.5); i == 0 {
				tenths = n
			} else {
				tenths -= n
			}
		}
		if all := regexp.MustCompile("all of it").MatchString(text); !all && tenths != 0 {
			t.Fatalf("%q does not add up", text)
		}
	}
}
