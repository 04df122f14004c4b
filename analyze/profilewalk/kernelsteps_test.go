package profilewalk_test

import (
	"testing"

	"github.com/sgtrace/sgtrace/analyze/profilewalk"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/testkit/testset"
	"github.com/sgtrace/sgtrace/trace"
)

// Work belongs to the step around its call, even within another annotation, wherever it
// runs. Calls on other threads and outside of steps belong to none.
func TestKernelSteps(t *testing.T) {
	syms := trace.NewSymbols()
	event := func(name string, from, to trace.Time, correlation int64) profile.Event {
		return profile.Event{Start: from, End: to, Name: syms.Intern(name), Correlation: correlation, PID: 1}
	}
	s := &testset.RowStream{
		RangeRows: []profile.Range{
			{Event: event("ProfilerStep#1", 50, 400, 0), TID: 7},
			{Event: event("step[DECODE bs=4 g_sq=4 g_sk=100 g_sqsq=4 g_sqsk=100]", 100, 200, 0), TID: 7},
			{Event: event("step[EXTEND bs=1 toks=64]", 200, 300, 0), TID: 7},
		},
		CallRows: []profile.Call{
			{Event: event("cudaLaunchKernel", 110, 115, 1), TID: 7}, {Event: event("cudaGraphLaunch", 210, 215, 2), TID: 7},
			{Event: event("cudaLaunchKernel", 310, 315, 3), TID: 7}, {Event: event("cudaLaunchKernel", 110, 115, 4), TID: 8},
		},
	}
	set := testset.SetOf(syms, []string{"rank 0"}, s)
	steps := profilewalk.ReadKernelSteps(set, set.Streams[0])
	for correlation, want := range map[int64]struct {
		kind  profile.StepKind
		batch int32
		keys  int64
	}{1: {profile.StepDecode, 4, 100}, 2: {profile.StepPrefill, 1, -1}, 3: {profile.StepOther, -1, -1}, 4: {profile.StepOther, -1, -1}, 9: {profile.StepOther, -1, -1}, 0: {profile.StepOther, -1, -1}} {
		e := event("kernel", 900, 950, correlation)
		kind, batch := steps.Kind(&e)
		keys := int64(-1)
		if l := steps.Lengths(&e); l != nil {
			keys = l.GenerationKeys
		}
		if kind != want.kind || batch != want.batch || keys != want.keys {
			t.Errorf("call %d: %v, %d requests, %d keys, want %+v", correlation, kind, batch, keys, want)
		}
	}
	if n := steps.CountServer(&profilewalk.Options{}); n != 2 {
		t.Errorf("%d steps of servers, want 2", n)
	}
	if n := steps.CountServer(&profilewalk.Options{From: 250}); n != 1 {
		t.Errorf("%d steps of servers from 250 on, want 1", n)
	}
}
