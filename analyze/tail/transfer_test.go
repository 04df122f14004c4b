package tail

import (
	"testing"

	"github.com/sgtrace/sgtrace/internal/changepoint"
)

// Slow transfers begin where most of the slow ones are: a few earlier ones, close together, do not count as the start.
func TestMostOfTheSlow(t *testing.T) {
	run := func(n int, every int) (out []bool) {
		for i := range n {
			out = append(out, every > 0 && i%every == 0)
		}
		return out
	}
	join := func(lists ...[]bool) (all []bool) {
		for _, l := range lists {
			all = append(all, l...)
		}
		return all
	}
	at := func(n int, list ...int) (out []changepoint.Change) {
		for i, k := range list {
			c := changepoint.Change{At: k, To: n}
			if i+1 < len(list) {
				c.To = list[i+1]
			}
			out = append(out, c)
		}
		return out
	}
	for _, x := range []struct {
		name         string
		slow         []bool
		changes      []changepoint.Change
		since, until int
	}{
		{"none", run(100, 0), nil, 0, 0},
		{"from some time on", join(run(100, 0), run(100, 2)), at(200, 100), 100, 0},
		{"for a while", join(run(100, 0), run(50, 2), run(100, 0)), at(250, 100, 150), 100, 150},
		{"at first", join(run(100, 2), run(100, 0)), at(200, 100), 0, 100},
		{"after a few", join(run(50, 0), run(20, 4), run(200, 0), run(200, 2)), at(470, 50, 70, 270), 270, 0},
		{"ever more", join(run(100, 0), run(100, 3), run(100, 2)), at(300, 100, 200), 100, 0},
	} {
		since, until := most(x.changes, changepoint.Count(x.slow))
		number := func(c *changepoint.Change) int {
			if c == nil {
				return 0
			}
			return c.At
		}
		if number(since) != x.since || number(until) != x.until {
			t.Errorf("%s: from %d to %d, want %d to %d", x.name, number(since), number(until), x.since, x.until)
		}
	}
}
