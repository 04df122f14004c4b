package profilewalk

import "testing"

// Launches have more blocks, or as many, only if nearly all kernel time says so; what is unknown, or divided, says neither.
func TestMore(t *testing.T) {
	for name, c := range map[string]struct {
		kernels []Resized
		times   float64
		want    float64
	}{
		"as many":            {[]Resized{{100, 100, 9}, {50, 50.5, 1}}, 1.5, 1},
		"more":               {[]Resized{{100, 800, 5}, {100, 400, 3}, {100, 100, 2}}, 7, 8},
		"fewer":              {[]Resized{{100, 50, 9}, {100, 100, 1}}, 0.5, 0.5},
		"the smaller part":   {[]Resized{{100, 800, 4}, {100, 100, 6}}, 7, 0},
		"too few to explain": {[]Resized{{100, 110, 10}}, 3, 0},
		"mostly unknown":     {[]Resized{{100, 100, 5}, {0, 100, 3}, {100, 0, 2}}, 1.5, 0},
		"nothing":            {nil, 1.5, 0},
	} {
		if got := More(c.kernels, c.times); got != c.want {
			t.Errorf("%s: %g, want %g", name, got, c.want)
		}
	}
}

// The mean is unknown if that of one launch is.
func TestBlocks(t *testing.T) {
	var a, b Blocks
	a.Add(-256) // one block
	a.Add(3)
	b.Add(0)
	if a.Mean() != 2 || b.Mean() != 0 {
		t.Errorf("%g and %g, want 2 and 0", a.Mean(), b.Mean())
	}
	if a.Join(&b); a.Mean() != 0 {
		t.Errorf("%g, want 0", a.Mean())
	}
}
