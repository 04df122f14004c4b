package gaps

import (
	"cmp"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/trace"
)

// waitsForOthers is from how long on it is asked what the other threads did while one did
// nothing that was recorded, ns. A thread that wants the interpreter lock takes it from one
// that runs Python after 5 ms; what runs C holds it for longer.
const waitsForOthers = 200_000

// mayWait reports whether a thread may wait for another one: it does nothing itself, or it is
// in a Python function between two things that were recorded, where it needs the interpreter
// lock.
func (s *site) mayWait() bool { return s.did.idle() || s.did == InPython }

// others are the other threads of the process of a thread.
type others struct {
	of     *rankWork
	but    int32 // the thread itself
	sweeps []sweep
}

// blame finds what another thread did while the one that a cause is of may have waited for
// it. It returns the cause with that, and for how many ns; 0 is nothing. Times only move
// forward.
func (o *others) blame(c cause, from, to trace.Time) (blamed cause, ns int64) {
	if o.sweeps == nil {
		own := o.of.host.threads[o.but]
		for k, t := range o.of.host.threads {
			if int32(k) != o.but && t.id.pid == own.id.pid {
				o.sweeps = append(o.sweeps, sweep{names: o.of.names, frames: t.frames})
			}
		}
	}
	var best work
	for i := range o.sweeps {
		if did := o.sweeps[i].workIn(c.at.did, from, to); did.time > best.time {
			best = did
		}
	}
	if best.time < distribution.Between(from, to)/2 {
		return c, 0
	}
	c.other = best.what
	if c.at.did != Locked && c.at.did != Sleeping {
		c.at.did = OtherThread
	}
	return c, best.time
}

// A work is what a thread did for a time.
type work struct {
	time int64     // ns
	what trace.Sym // what it did for most of that
}

// workIn returns what a thread did while another one may have waited for it. If that one was
// in Python, it may as well have run itself: then this one must have entered or left a Python
// function meanwhile, for which it needs the interpreter lock, and what it did up to there
// counts.
func (s *sweep) workIn(did Did, from, to trace.Time) work {
	s.moveTo(from)
	limit := to
	if did == InPython {
		limit = s.lastTurn(from, to)
	}
	by := map[trace.Sym]int64{}
	var sum work
	for now := from; now < limit; {
		end := s.until(limit)
		if at := s.site(); at.did == InPython || at.did == Collecting || did != InPython && !at.did.idle() {
			ns := distribution.Between(now, end)
			by[cmp.Or(at.frame, at.function, at.operator, at.call)] += ns
			sum.time += ns
		}
		now = end
		s.moveTo(now)
	}
	most := int64(0)
	for what, ns := range by {
		if ns > most || ns == most && s.names.compare(what, sum.what) < 0 {
			sum.what, most = what, ns
		}
	}
	return sum
}

// lastTurn returns when a thread last entered or left a Python function in an interval, the
// beginning if it never did. The thread is there.
func (s *sweep) lastTurn(from, to trace.Time) trace.Time {
	last := from
	note := func(t trace.Time) {
		if t < to {
			last = max(last, t)
		}
	}
	for i := range s.open {
		if o := &s.open[i]; o.at.did == InPython {
			note(o.to)
		}
	}
	for i := range s.frames {
		f := &s.frames[i]
		if f.from >= to {
			break
		}
		if f.kind == pythonFrame {
			note(f.from)
			note(f.to)
		}
	}
	return last
}
