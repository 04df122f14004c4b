package cause

import (
	"testing"

	"github.com/sgtrace/sgtrace/request"
)

// A client retries several times: only the last answer had to take its time, and if there is none, one attempt
// that takes as long as the median request. Times are in s, half of each in the queue and half in decoding.
func TestInVain(t *testing.T) {
	of := func(r int, s int64) (a Attribution) {
		a.Request, a.E2E[Queue], a.E2E[Decode] = r, s*5e8, s*5e8
		return a
	}
	b := NewCosts(&request.Set{Requests: make([]request.Request, 7)}, []Attribution{of(0, 2), of(1, 2), of(2, 3)}, nil)
	b.AddUnanswered([]Attribution{of(3, 5), of(4, 6), of(5, 5), of(6, 1)})
	claim := b.InVain([][]int{{3, 2}, {4, 5}, {6}})
	for i, want := range []int64{2, 2, 3, 0, 0, 2, 1} {
		spent := b.at(i).spent()
		left := spent[:]
		if claim(i, left); left[Queue]+left[Decode] != want*1e9 || left[Queue] != left[Decode] {
			t.Errorf("request %d: %d and %d ns are no part of it, want %d s", b.at(i).Request, left[Queue], left[Decode], want)
		}
	}
}
