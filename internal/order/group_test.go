package order

import (
	"slices"
	"testing"
)

// Groups come in the order in which their keys first occur, however often a key occurs.
func TestGroups(t *testing.T) {
	var g Groups[string, int]
	for _, key := range []string{"b", "a", "b", "c", "a", "b"} {
		*g.Of(key)++
	}
	if !slices.Equal(g.Keys, []string{"b", "a", "c"}) || !slices.Equal(g.List, []int{3, 2, 1}) || g.At("c") != 2 || g.At("d") != 3 {
		t.Errorf("%q have %d", g.Keys, g.List)
	}
}

// Numbers that are joined through others are in one group, and groups come by their lowest number, however they were joined.
func TestUnion(t *testing.T) {
	u := NewUnion(7)
	u.Join(5, 3)
	u.Join(6, 1, 4)
	u.Join(3, 6)
	var got [][]int
	for group := range u.All() {
		got = append(got, slices.Clone(group))
	}
	want := [][]int{{0}, {1, 3, 4, 5, 6}, {2}}
	if !slices.EqualFunc(got, want, slices.Equal[[]int]) || u.Groups() != 3 || u.Find(5) != 1 {
		t.Error(got)
	}
}

// Runs returns stretches of equal neighbors, including the last one, and stops when asked to.
func TestRuns(t *testing.T) {
	var got [][]int
	for run := range Runs([]int{11, 12, 21, 13, 14}, func(a, b *int) bool { return *a/10 == *b/10 }) {
		got = append(got, run)
	}
	if len(got) != 3 || !slices.Equal(got[0], []int{11, 12}) || !slices.Equal(got[1], []int{21}) || !slices.Equal(got[2], []int{13, 14}) {
		t.Error(got)
	}
	for run := range Runs([]int{1, 2, 3}, func(*int, *int) bool { return false }) {
		if run[0] == 2 {
			break
		}
		got = append(got, run)
	}
	if len(got) != 4 {
		t.Error(got)
	}
	var of Groups[string, []int]
	for i, key := range []string{"b", "a", "b"} {
		Add(&of, key, i)
	}
	if !slices.Equal(of.Keys, []string{"b", "a"}) || !slices.Equal(of.List[0], []int{0, 2}) || !slices.Equal(of.List[1], []int{1}) {
		t.Error(of)
	}
}

// A value is computed once, even if it is zero.
func TestMemo(t *testing.T) {
	made, m := 0, map[int]bool{}
	for range 3 {
		for key := range 4 {
			if got := Memo(m, key, func() bool { made++; return key%2 == 0 }); got != (key%2 == 0) {
				t.Errorf("%d is %t", key, got)
			}
		}
	}
	if made != 4 {
		t.Errorf("made %d times, want 4", made)
	}
}
