package judge

import (
	"math"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/trace"
)

// Equal findings about ranks of a role are one finding, led by the one with the highest cost, and costs add up.
func TestAlike(t *testing.T) {
	list := []finding.Finding{{Text: "a", Cost: 0.1}, {Text: "b", Cost: 0.3}, {Text: "c", Cost: 0.2}}
	got := Alike(list)
	if len(got) != 1 || got[0].Text != "b; the same goes for 2 others of its role" || math.Abs(got[0].Cost-0.6) > 1e-9 || len(got[0].Evidence) != 2 {
		t.Errorf("%+v", got)
	}
	one := place.Location{Scope: place.OneRank, Rank: trace.NoRank}
	two := one
	two.Host = "b"
	list = []finding.Finding{{Text: "more", At: one, Cost: 0.2}, {Text: "longer", At: one, Cost: 0.3}, {Text: "more there", At: two, Cost: 0.1}, {Text: "longer there", At: two, Cost: 0.1}}
	got = Alike(list)
	if len(got) != 1 || got[0].Text != "longer; the same goes for 1 other of its role" || math.Abs(got[0].Cost-0.4) > 1e-9 {
		t.Errorf("of two ranks: %+v", got)
	}
	list = []finding.Finding{{Text: "a little", At: two, Cost: 0.01}, {Text: "much", At: one, Cost: 0.3}}
	if got = Alike(list); len(got) != 1 || got[0].Text != "much" || got[0].At != one || len(got[0].Evidence) != 1 {
		t.Errorf("little elsewhere: %+v", got)
	}
}
