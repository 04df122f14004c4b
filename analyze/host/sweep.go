package host

import "github.com/sgtrace/sgtrace/trace"

// A Sweep passes over the frames of a thread, forward in time, and knows of every moment what
// S the stack makes of it.
type Sweep[S any] struct {
	// Enter returns what holds in a frame that is entered where around holds. Outside of all
	// frames, the zero value does.
	Enter func(around S, f *Frame) S
	// Ahead are the frames that have not begun, in order.
	Ahead []Frame
	open  []Open[S]
	// Changed is when a frame last began or ended.
	Changed trace.Time
}

// An Open frame is one that has begun and not ended.
type Open[S any] struct {
	To trace.Time
	In S // what holds in it
}

// MoveTo moves on to an instant, which is not before the last one. Frames that end before it
// and had not begun are not entered.
func (s *Sweep[S]) MoveTo(t trace.Time) {
	s.close(t)
	for len(s.Ahead) > 0 && s.Ahead[0].From <= t {
		f := &s.Ahead[0]
		s.Ahead = s.Ahead[1:]
		if f.To > t {
			s.open = append(s.open, Open[S]{f.To, s.Enter(s.around(f), f)})
		}
		s.Changed = max(s.Changed, f.From)
		if f.To <= t {
			s.Changed = max(s.Changed, f.To)
		}
	}
}

// rounding is by how much frames of old traces may end too early: their times are whole
// microseconds.
const rounding = 1000

// around returns what holds around a frame that begins now: what the thread is in. A range that
// outlasts the function that began it, such as the __enter__ of a context manager, is not in
// that function.
func (s *Sweep[S]) around(f *Frame) (around S) {
	n := len(s.open)
	for f.Kind == RangeFrame && n > 0 && s.open[n-1].To < f.To-rounding {
		n--
	}
	if n > 0 {
		around = s.open[n-1].In
	}
	return around
}

// close leaves the frames that ended. One that ends after the frames in it stays below these.
func (s *Sweep[S]) close(t trace.Time) {
	n := len(s.open)
	for n > 0 && s.open[n-1].To <= t {
		n--
		s.Changed = max(s.Changed, s.open[n].To)
	}
	s.open = s.open[:n]
}

// Here returns what holds now.
func (s *Sweep[S]) Here() (here S) {
	if n := len(s.open); n > 0 {
		here = s.open[n-1].In
	}
	return here
}

// Open returns the frames that the thread is in now, the innermost last. It is valid until the
// next move.
func (s *Sweep[S]) Open() []Open[S] { return s.open }

// Until returns how long the stack stays the same, at most to limit.
func (s *Sweep[S]) Until(limit trace.Time) trace.Time {
	if len(s.Ahead) > 0 {
		limit = min(limit, s.Ahead[0].From)
	}
	if n := len(s.open); n > 0 {
		limit = min(limit, s.open[n-1].To)
	}
	return limit
}
