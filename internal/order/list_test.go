package order

import (
	"slices"
	"testing"
)

// Lists keep their order, and rows are looked at where they are.
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
	if n, sum := Count(list, odd), Sum(list, func(x *int) int { return *x }); n != 3 || sum != 11 {
		t.Error(n, sum)
	}
	if Each([]int{}, odd) != nil || EachRow([]int{}, func(*int) bool { return true }) != nil || Only(list, func(int) bool { return false }) != nil {
		t.Error("a list of nothing")
	}
}
