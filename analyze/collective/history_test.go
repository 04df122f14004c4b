package collective

import (
	"reflect"
	"testing"
)

// The parts of a history add up to the waits of the whole time, whatever their number.
func TestWaitHistoryAddsUp(t *testing.T) {
	set := threeRanks().Set
	c := Measure(set, 0, 0)
	for _, parts := range []int{1, 2, 7, 100} {
		history := c.waitHistory(parts)
		sums := make([][]int64, len(c.Ranks))
		for i := range sums {
			sums[i] = make([]int64, len(c.Ranks))
		}
		for _, w := range history.Waits {
			sums[w.Rank][w.Last] += w.Ns
		}
		met := 0
		for _, n := range history.Met {
			met += n
		}
		if !reflect.DeepEqual(sums, c.WaitMatrix()) || met != c.Counts.Sync {
			t.Errorf("%d parts: waits %v of %d collectives, want %v of %d", parts, sums, met, c.WaitMatrix(), c.Counts.Sync)
		}
	}
	if history := Measure(set, 1, 2).WaitHistory(); history != nil {
		t.Errorf("where nothing is: %v", history)
	}
}
