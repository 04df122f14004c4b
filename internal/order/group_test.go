package order

import (
	"slices"
	"testing"
)

// Groups come in the order of their keys' first use, however often a key comes.
func TestGroups(t *testing.T) {
	var g Groups[string, int]
	for _, key := range []string{"b", "a", "b", "c", "a", "b"} {
		*g.Of(key)++
	}
	if !slices.Equal(g.Keys, []string{"b", "a", "c"}) || !slices.Equal(g.List, []int{3, 2, 1}) || g.At("c") != 2 || g.At("d") != 3 {
		t.Errorf("%q have %d", g.Keys, g.List)
	}
}

// A value is made once, also one that is zero.
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
