package collective

import (
	"reflect"
	"testing"
)

// The parts of a course add up to the waits of the whole time, however many there are.
func TestWaitCourseAddsUp(t *testing.T) {
	set := threeRanks().Set
	c := Measure(set, 0, 0)
	for _, parts := range []int{1, 2, 7, 100} {
		course := c.waitCourse(set, 0, 0, parts)
		sums := make([][]int64, len(c.Ranks))
		for i := range sums {
			sums[i] = make([]int64, len(c.Ranks))
		}
		for _, w := range course.Waits {
			sums[w.Rank][w.Last] += w.Wait
		}
		met := 0
		for _, n := range course.Met {
			met += n
		}
		if !reflect.DeepEqual(sums, c.WaitMatrix()) || met != c.Counts.Sync {
			t.Errorf("%d parts: waits %v of %d collectives, want %v of %d", parts, sums, met, c.WaitMatrix(), c.Counts.Sync)
		}
	}
	if course := c.WaitCourse(set, 1, 2); course != nil {
		t.Errorf("where nothing is: %v", course)
	}
}
