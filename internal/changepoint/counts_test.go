package changepoint

import "testing"

// A single crowd is found among occasional true values. Two crowds, or one at the very beginning,
// are not.
func TestCrowd(t *testing.T) {
	sequence := func(parts ...int) (is []bool) { // lengths of the runs of false, true, false, ...
		for i, n := range parts {
			for range n {
				is = append(is, i%2 == 1)
			}
		}
		return is
	}
	for _, c := range []struct {
		is          []bool
		first, last int
		ok          bool
	}{
		{sequence(50, 30), 50, 79, true},
		{sequence(50, 30, 60), 50, 79, true},
		{sequence(20, 1, 40, 9, 3, 9, 60), 61, 81, true},
		{sequence(60, 1, 60, 1, 60, 1), 0, 0, false},
		{sequence(50, 30, 60, 30, 60), 0, 0, false},
		{sequence(10, 30, 60), 0, 0, false},
		{sequence(100), 0, 0, false},
		{nil, 0, 0, false},
	} {
		first, last, ok := Crowd(c.is, 40)
		if ok != c.ok || ok && (first != c.first || last != c.last) {
			t.Errorf("%v: from %d to %d, %v", c.is, first, last, ok)
		}
	}
}
