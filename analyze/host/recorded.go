package host

import "strings"

// Recorded tells which kinds of frames profilers recorded.
type Recorded [numKinds]bool

// Join adds the kinds of o.
func (r *Recorded) Join(o *Recorded) {
	for kind, has := range o {
		r[kind] = r[kind] || has
	}
}

// Code reports whether anything was recorded that tells where in its code a thread is.
func (r *Recorded) Code() bool { return r[PythonFrame] || r[OperatorFrame] || r[RangeFrame] }

// Seen tells what was recorded of threads beside what they did.
type Seen struct {
	Samples, Runs, Backtraces bool
	Python                    bool // functions of Python are in samples
}

// Join adds what o has.
func (s *Seen) Join(o *Seen) {
	s.Samples, s.Runs = s.Samples || o.Samples, s.Runs || o.Runs
	s.Backtraces, s.Python = s.Backtraces || o.Backtraces, s.Python || o.Python
}

// Missing says what was not recorded of where in its code a thread is, and which options of
// profilers record it. export tells that some inputs are of Nsight Systems.
func (r *Recorded) Missing(seen *Seen, export bool) []string {
	var notes []string
	if !r[PythonFrame] && !seen.Python {
		notes = append(notes, "no Python functions were recorded: torch.profiler records them with with_stack=True")
	}
	if !r[OperatorFrame] && !r[RangeFrame] {
		notes = append(notes, "no operators or ranges were recorded: torch.profiler and NVTX ranges (--trace=cuda,nvtx,osrt of nsys) say what the host works on")
	}
	if options := seen.options(); export && options != "" {
		notes = append(notes, "nsys records more of what the host did with "+options)
	}
	return notes
}

// options lists those of nsys that would have recorded what was not seen of threads.
func (s *Seen) options() string {
	var options []string
	add := func(seen bool, option string) {
		if !seen {
			options = append(options, option)
		}
	}
	add(s.Samples, "--sample=process-tree (what threads run)")
	add(s.Python, "--python-sampling=true (their Python functions)")
	add(s.Runs, "--cpuctxsw=process-tree (when threads have a core)")
	add(s.Backtraces, "--cudabacktrace=all and --python-backtrace=cuda (where calls are made)")
	return strings.Join(options, "; ")
}
