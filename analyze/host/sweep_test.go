package host

import (
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/trace"
)

// sweepOf returns a sweep that tracks the names of the frames around a thread.
func sweepOf(syms *trace.Symbols, frames ...Frame) *Sweep[string] {
	return &Sweep[string]{Ahead: frames, Enter: func(around string, f *Frame) string {
		return strings.TrimPrefix(around+";"+syms.Name(f.Name), ";")
	}}
}

// A range contains the frames that run until it ends. It is not inside the function
// that began it, unless the function only seems to end early because of rounding.
func TestRangeThatOutlastsItsFunction(t *testing.T) {
	const us = 1000
	syms := trace.NewSymbols()
	frame := func(kind Kind, name string, from, to trace.Time) Frame {
		return Frame{From: from * us, To: to * us, Name: syms.Intern(name), Kind: kind}
	}
	s := sweepOf(syms,
		frame(PythonFrame, "main", 0, 100),
		frame(PythonFrame, "__enter__", 10, 14),
		frame(PythonFrame, "record", 11, 13),
		frame(RangeFrame, "step", 12, 60),
		frame(PythonFrame, "forward", 20, 50),
		frame(RangeFrame, "layer", 30, 51), // rounding makes it end 1 us after forward
		frame(OperatorFrame, "aten::mm", 35, 45),
		frame(PythonFrame, "__exit__", 58, 62),
	)
	for _, c := range []struct {
		at   trace.Time
		want string
	}{
		{5, "main"}, {11, "main;__enter__;record"}, {12, "main;step"}, {15, "main;step"}, {25, "main;step;forward"},
		{40, "main;step;forward;layer;aten::mm"}, {55, "main;step"}, {59, "main;step;__exit__"}, {70, "main"}, {100, ""},
	} {
		s.MoveTo(c.at * us)
		if got := s.Here(); got != c.want {
			t.Errorf("at %d us: %q, want %q", c.at, got, c.want)
		}
	}
}
