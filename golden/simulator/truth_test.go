package simulator

import "testing"

// TestSlowTransfersAreBlamed checks the only cause that is planted per request, in a run where
// nothing else is slow.
func TestSlowTransfersAreBlamed(t *testing.T) {
	c := DefaultConfig(29)
	c.Incident, c.Straggler, c.Cancels, c.Impatient, c.FailedTransfers = Incident{}, Straggler{}, 0, 0, 0
	c.SlowTransfers, c.Rate = 0.1, 4
	r, err := Play(c)
	if err != nil {
		t.Fatal(err)
	}
	blamed := map[int]bool{}
	for _, s := range r.Truth().Slow {
		blamed[s.Request] = s.Cause == "kv_transfer"
	}
	planted := 0
	for i, q := range r.Requests {
		if q.slowTransfer {
			planted++
		}
		if q.slowTransfer != blamed[i] {
			t.Errorf("request %d: slow transfer %v, blamed %v", i, q.slowTransfer, blamed[i])
		}
	}
	if planted == 0 {
		t.Error("nothing was planted")
	}
}

func TestSummarize(t *testing.T) {
	for _, test := range []struct {
		of   []int64
		want Summary
	}{
		{[]int64{5}, Summary{1, 5, 5, 5, 5, 5}},
		{[]int64{4, 1, 2}, Summary{3, 2, 2, 4, 4, 4}},
		{[]int64{10, 9, 8, 7, 6, 5, 4, 3, 2, 1}, Summary{10, 6, 5, 9, 10, 10}},
	} {
		if got := summarize(test.of); *got != test.want {
			t.Errorf("summarize(%v) = %+v, want %+v", test.of, *got, test.want)
		}
	}
	if summarize(nil) != nil {
		t.Error("no durations have a summary")
	}
}
