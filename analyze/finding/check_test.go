package finding

import "testing"

// A statement about the whole needs data about nine tenths of it.
func TestCoverage(t *testing.T) {
	for _, c := range []struct {
		covered Coverage
		state   State
		want    string
	}{
		{Coverage{}, LookedAt, "lateness (400 collectives)"},
		{Coverage{"communication time", 999, 1000}, LookedAt, "lateness (400 collectives)"},
		{Coverage{"communication time", 95_000_000, 100_000_000}, LookedAt, "lateness (400 collectives, 95 % of communication time (95 ms of 100 ms))"},
		{Coverage{"communication time", 89_900_000, 100_000_000}, TooLittle, "Not judged: lateness: only 89 % of communication time (89.9 ms of 100 ms) could be looked at, 90 % needed"},
		{Coverage{"communication time", 90_000_000, 100_000_000}, LookedAt, "lateness (400 collectives, 90 % of communication time (90 ms of 100 ms))"},
		{Coverage{"communication time", 34_000_000, 422_000_000}, TooLittle, "Not judged: lateness: only 8.1 % of communication time (34 ms of 422 ms) could be looked at, 90 % needed"},
	} {
		j := Check{What: "lateness", Of: "collective", N: 400, Needed: 44, Covered: c.covered}
		if j.State() != c.state || j.String() != c.want {
			t.Errorf("%+v: %s: %q, want %q", c.covered, j.State(), j.String(), c.want)
		}
	}
}
