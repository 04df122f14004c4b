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

// What begins to come is found though it is too little for a comparison of shares. What came before, at random, or
// for a short time is not.
func TestBegins(t *testing.T) {
	at := func(n int, trues ...int) []bool {
		is := make([]bool, n)
		for _, i := range trues {
			is[i] = true
		}
		return is
	}
	for _, c := range []struct {
		name string
		is   []bool
		ok   bool
	}{
		{"since the middle", at(1000, 505, 560, 580, 640, 700, 730, 790, 850, 860, 910, 955, 990), true},
		{"one before", at(1000, 120, 505, 560, 580, 640, 700, 730, 790, 850, 860, 910, 955, 990), false},
		{"few", at(1000, 505, 580, 640, 730, 790, 850, 990), false},
		{"soon", at(1000, 105, 160, 280, 340, 400, 530, 590, 650, 760, 810, 955, 990), false},
		{"over", at(1000, 505, 506, 508, 510, 511, 513, 514, 516, 517, 520, 521, 523), false},
	} {
		found := Begins(c.is, Options{Alpha: 1e-3})
		if (len(found) == 1) != c.ok {
			t.Errorf("%s: %+v", c.name, found)
		}
		if c.ok && (found[0].At != 505 || found[0].First > 500 || found[0].Last != 505 || found[0].P < 1e-4 || found[0].P > 3e-4) { // 0.495^12 = 0.0002
			t.Errorf("%s: %+v", c.name, found)
		}
	}
}
