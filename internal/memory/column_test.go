package memory

import "testing"

// Values that are added by any mixture of methods keep their order and positions.
func TestExtendKeepsOrder(t *testing.T) {
	for _, before := range []int{0, 1, columnRows - 1, columnRows, columnRows + 1} {
		var c Column[int]
		for i := range before {
			c.Push(i)
		}
		want, places := before, map[int]*int{}
		for _, n := range []int{0, 1, 5, columnRows, 0, 3*columnRows + 7} {
			for _, part := range c.Extend(n) {
				for i := range part {
					if part[i] != 0 {
						t.Fatalf("%d before: value %d is %d at first", before, want, part[i])
					}
					part[i] = want
					places[want] = &part[i]
					want++
				}
			}
			c.Push(want)
			want++
		}
		if c.Len() != want {
			t.Fatalf("%d before: %d values, want %d", before, c.Len(), want)
		}
		for i := range want {
			if *c.At(i) != i {
				t.Fatalf("%d before: value %d is %d", before, i, *c.At(i))
			}
			if at, ok := places[i]; ok && at != c.At(i) {
				t.Fatalf("%d before: value %d has moved", before, i)
			}
		}
	}
}
