package host

import (
	"maps"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/profilewalk"
)

// A box without others is as wide as all rows whose stacks begin with its stack. It
// lies within its parent's box, next to its siblings.
func TestFlame(t *testing.T) {
	for seed := range uint64(10) {
		p := newPlayground(seed)
		for rank := range int32(ranks) {
			p.fill(rank, 0, 1, end, "rpoc", 6)
		}
		s := Sum(p.set(), profilewalk.Options{}, nil)
		for of := range numOf {
			want := map[string]int64{}
			for row := range s.Rows(of) {
				if !row.activity().waits() {
					frames := row.names()
					for k := range frames {
						want[strings.Join(frames[:k+1], "|")] += row.self()
					}
				}
			}
			got := map[string]int64{}
			eachBox(t, s.Flame(of, 0), func(path []string, b *Box) { got[strings.Join(path, "|")] += b.Time })
			if !maps.Equal(got, want) {
				t.Fatalf("seed %d, %s:\n got %v\nwant %v", seed, names[of], got, want)
			}
			narrow := s.Flame(of, 0.05)
			if len(narrow.Boxes) >= len(want) && len(want) > 40 {
				t.Errorf("%d boxes are as many as frames", len(narrow.Boxes))
			}
			eachBox(t, narrow, func(path []string, b *Box) {
				if float64(b.Time) < 0.05*float64(narrow.Total) {
					t.Errorf("%v takes %d of %d", path, b.Time, narrow.Total)
				}
				if all := want[strings.Join(path, "|")]; b.Merged == 0 && b.Time != all {
					t.Errorf("%v takes %d, want %d", path, b.Time, all)
				}
			})
		}
	}
}

// eachBox calls do with every box and the names on the path to it, and checks its position.
func eachBox(t *testing.T, f Flame, do func(path []string, b *Box)) {
	t.Helper()
	around := []Box{{Time: f.Total}}
	free := []int64{0} // by depth, the earliest start of the next box
	var path []string
	for i := range f.Boxes {
		b := &f.Boxes[i]
		if b.Depth >= len(around) {
			t.Fatalf("%s is %d deep in %d", b.Name, b.Depth, len(around)-1)
		}
		around, path, free = around[:b.Depth+1], append(path[:b.Depth], b.Name), free[:b.Depth+1]
		in := around[b.Depth]
		if b.From < free[b.Depth] || b.From < in.From || b.From+b.Time > in.From+in.Time {
			t.Fatalf("%v is from %d for %d, in %d for %d", path, b.From, b.Time, in.From, in.Time)
		}
		free[b.Depth] = b.From + b.Time
		around, free = append(around, *b), append(free, b.From)
		do(path, b)
	}
}
