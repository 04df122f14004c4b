package gpu

import (
	"testing"

	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/testkit/testset"
	"github.com/sgtrace/sgtrace/trace"
)

// Calls outside of the window are not evidence of what happened in it.
func TestCallTimesInWindow(t *testing.T) {
	syms := trace.NewSymbols()
	var s testset.RowStream
	for _, start := range []trace.Time{10, 150, 170, 400} {
		s.CallRows = append(s.CallRows, profile.Call{TID: 1, Event: profile.Event{Start: start, End: start + 20, Name: syms.Intern("cudaFree"), PID: 7}})
	}
	g := Measure(testset.SetOf(syms, []string{"TP0"}, &s), Options{From: 100, To: 300})
	if len(g.Calls) != 1 || g.Calls[0].N != 2 || g.Calls[0].Time != 40 {
		t.Errorf("%+v", g.Calls)
	}
}
