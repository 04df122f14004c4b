package simulator

import "testing"

func TestClock(t *testing.T) {
	c := Clock{skew: -1000, drift: 20, since: 5e9}
	for _, test := range []struct{ at, want int64 }{{5e9, 5e9 - 1000}, {6e9, 6e9 - 1000 + 20_000}, {4e9, 4e9 - 1000 - 20_000}} {
		if got := c.At(test.at); got != test.want || c.Undo(got) != test.at {
			t.Errorf("at %d it shows %d, want %d; that is %d", test.at, got, test.want, c.Undo(got))
		}
	}
	if got := c.Length(5e9, 6e9); got != 1e9+20_000 {
		t.Errorf("a second takes %d ns", got)
	}
}
