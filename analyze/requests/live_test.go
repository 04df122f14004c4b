package requests

import (
	"testing"

	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/testkit/testset"
	"github.com/sgtrace/sgtrace/trace"
)

// The state of a request at a moment agrees with its waterfall: a stage that is open
// then, but only one that computes if any does.
func TestAt(t *testing.T) {
	sets := map[string]*request.Set{"fixture": testset.Fixture(t), "pd": testset.LoadDump(t, "b_pd_smg_tp2.jsonl.zst")}
	for name, s := range sets {
		first, last, _ := s.Bounds()
		computing := 0
		for k := range trace.Time(40) {
			at := first + (last-first)*k/40
			live := map[*request.Request]*Live{}
			m := At(s, at)
			for i := range m.Live {
				live[m.Live[i].Request] = &m.Live[i]
			}
			for r := range s.Requests {
				req := &s.Requests[r]
				l := live[req]
				if under := req.Start <= at && (at < req.End || req.Status == request.Unfinished); under != (l != nil) {
					t.Fatalf("%s at %v: %s is under way: %t", name, at, s.Text(req.RID), under)
				}
				if l != nil && checkLive(t, s, r, l, at) {
					computing++
				}
			}
		}
		if computing == 0 {
			t.Errorf("%s: no request ever computes", name)
		}
	}
}

// checkLive compares the state of a request with its waterfall, and reports whether it computes.
func checkLive(t *testing.T, s *request.Set, r int, l *Live, at trace.Time) bool {
	t.Helper()
	computes := func(name string) bool {
		return name == "prefill_forward" || name == "decode_forward" || name == "decode_loop"
	}
	open, anyComputes, found := 0, false, false
	for _, span := range NewWaterfall(s, r).spans() {
		if span.row.Depth > 0 || span.from > at || int64(at-span.from) >= span.dur || span.lane.Part == request.None {
			continue
		}
		open++
		anyComputes = anyComputes || computes(span.row.Name)
		found = found || l.Stage != request.None && span.row.Name == s.Name(l.Stage) && int64(at-span.from) == l.In
	}
	switch {
	case open == 0 && l.Stage == request.None:
		return false
	case !found:
		t.Fatalf("%s at %v: stage %d, and none of %d open ones is it", s.Text(l.Request.RID), at, l.Stage, open)
	case anyComputes != computes(s.Name(l.Stage)):
		t.Fatalf("%s at %v is in %s, computing %t", s.Text(l.Request.RID), at, s.Name(l.Stage), anyComputes)
	}
	return anyComputes
}
