package host

// Recorded tells which kinds of frames profilers recorded.
type Recorded [CallFrame + 1]bool

// Join adds the kinds of o.
func (r *Recorded) Join(o *Recorded) {
	for kind, has := range o {
		r[kind] = r[kind] || has
	}
}

// Code reports whether anything was recorded that tells where in its code a thread is.
func (r *Recorded) Code() bool { return r[PythonFrame] || r[OperatorFrame] || r[RangeFrame] }

// Missing says what was not recorded of where in its code a thread is, and which options of
// profilers record it.
func (r *Recorded) Missing() []string {
	var notes []string
	if !r[PythonFrame] {
		notes = append(notes, "no Python functions were recorded: torch.profiler records them with with_stack=True")
	}
	if !r[OperatorFrame] && !r[RangeFrame] {
		notes = append(notes, "no operators or ranges were recorded: torch.profiler and NVTX ranges (--trace=cuda,nvtx,osrt of nsys) say what the host works on")
	}
	return notes
}
