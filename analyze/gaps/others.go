package gaps

import (
	"cmp"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/host"
	"github.com/sgtrace/sgtrace/trace"
)

// waitsForOthers is from how long on it is asked what the other threads did while one did
// nothing that was recorded, ns. A thread that wants the interpreter lock takes it from one
// that runs Python after 5 ms; what runs C holds it for longer.
const waitsForOthers = 200_000

// mayWait reports whether a thread may wait for another one: it does nothing itself, or it is
// in a Python function between two things that were recorded, where it needs the interpreter
// lock.
func (s *site) mayWait() bool { return s.did.Idle() || s.did == host.InPython }

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
			if int32(k) != o.but && t.id.PID == own.id.PID {
				o.sweeps = append(o.sweeps, newSweep(o.of.names, t.frames))
			}
		}
	}
	var best work
	for i := range o.sweeps {
		if did := workIn(&o.sweeps[i], o.of.names, c.at.did, from, to); did.time > best.time {
			best = did
		}
	}
	if best.time < distribution.Between(from, to)/2 {
		return c, 0
	}
	c.other = best.what
	if c.at.did != host.Locked && c.at.did != host.Sleeping {
		c.at.did = host.OtherThread
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
func workIn(s *sweep, n *host.Names, did host.Did, from, to trace.Time) work {
	s.MoveTo(from)
	limit := to
	if did == host.InPython {
		limit = lastTurn(s, from, to)
	}
	by := map[trace.Sym]int64{}
	var sum work
	for now := from; now < limit; {
		end := s.Until(limit)
		if at := s.Here(); at.did == host.InPython || at.did == host.Collecting || did != host.InPython && !at.did.Idle() {
			ns := distribution.Between(now, end)
			by[cmp.Or(at.frame, at.function, at.operator, at.call)] += ns
			sum.time += ns
		}
		now = end
		s.MoveTo(now)
	}
	most := int64(0)
	for what, ns := range by {
		if ns > most || ns == most && n.Compare(what, sum.what) < 0 {
			sum.what, most = what, ns
		}
	}
	return sum
}

// lastTurn returns when a thread last entered or left a Python function in an interval, the
// beginning if it never did. The thread is there.
func lastTurn(s *sweep, from, to trace.Time) trace.Time {
	last := from
	note := func(t trace.Time) {
		if t < to {
			last = max(last, t)
		}
	}
	for _, o := range s.Open() {
		if o.In.did == host.InPython {
			note(o.To)
		}
	}
	for i := range s.Ahead {
		f := &s.Ahead[i]
		if f.From >= to {
			break
		}
		if f.Kind == host.PythonFrame {
			note(f.From)
			note(f.To)
		}
	}
	return last
}
