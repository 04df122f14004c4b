package order

import (
	"slices"
	"testing"
)

// Lists keep their order, and rows are accessed in place.
func TestLists(t *testing.T) {
	list := []int{3, 1, 2, 5}
	odd := func(x int) bool { return x%2 == 1 }
	if got := Each(list, func(x int) int64 { return int64(10 * x) }); !slices.Equal(got, []int64{30, 10, 20, 50}) {
		t.Error(got)
	}
	if got := EachRow(list, func(x *int) *int { return x }); len(got) != 4 || got[2] != &list[2] {
		t.Error(got)
	}
	if got := Only(list, odd); !slices.Equal(got, []int{3, 1, 5}) {
		t.Error(got)
	}
	if n, sum := Count(list, odd), SumRows(list, func(x *int) int { return *x }); n != 3 || sum != 11 {
		t.Error(n, sum)
	}
	if n, sum, all := CountRows(list, func(x *int) bool { return odd(*x) }), Sum(list, func(x int) int { return 2 * x }), Total(list); n != 3 || sum != 22 || all != 11 {
		t.Error(n, sum, all)
	}
	if got := Set([]int{3, 1, 3}); len(got) != 2 || !got[1] || !got[3] || got[2] {
		t.Error(got)
	}
	if got := With(With([]int{3, 1}, 1), 2); !slices.Equal(got, []int{3, 1, 2}) {
		t.Error(got)
	}
	if got := Distinct([]int{3, 1, 3, 2, 1}); !slices.Equal(got, []int{1, 2, 3}) {
		t.Error(got)
	}
	if a, b, c := Earlier(0, int64(5)), Earlier(5, int64(7)), Earlier(5, int64(-1)); a != 5 || b != 5 || c != -1 {
		t.Error(a, b, c)
	}
	if Each([]int{}, odd) != nil || EachRow([]int{}, func(*int) bool { return true }) != nil || Only(list, func(int) bool { return false }) != nil {
		t.Error("a list of nothing")
	}
}

// A key's row is created once, at the position of the key's first use.
func TestAt(t *testing.T) {
	index, list, made := map[string]int32{}, []string{}, 0
	var got []int32
	for _, key := range []string{"a", "b", "a", "c", "b"} {
		got = append(got, At(index, &list, key, func() string { made++; return key + "!" }))
	}
	if !slices.Equal(got, []int32{0, 1, 0, 2, 1}) || !slices.Equal(list, []string{"a!", "b!", "c!"}) || made != 3 {
		t.Error(got, list, made)
	}
}
