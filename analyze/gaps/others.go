package gaps

import (
	"cmp"
	"fmt"
	"math"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/gpu"
	"github.com/sgtrace/sgtrace/analyze/host"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// waitsForOthers is how long a thread must do nothing that was recorded, ns, before the other threads
// are looked at. A thread that wants the interpreter lock takes it after 5 ms from one that runs
// Python; one that runs C holds it for longer.
const waitsForOthers = 200_000

// mayWait reports whether a thread may be waiting for another one: it does nothing itself, or it is in
// a Python function between two recorded events, where it needs the interpreter lock.
func (s *site) mayWait() bool { return s.did.Idle() || s.did == host.InPython }

// others are the other threads of the process of a thread.
type others struct {
	of     *rankWork
	but    int32 // the thread itself
	sweeps []sweep
}

// blame finds what another thread did while the thread of c may have waited for it. It returns the
// cause with that, and for how many ns it did so; 0 if there is none. Times only move forward.
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

// workIn returns what a thread did while another one may have waited for it. If that one was in Python,
// it may as well have run itself. Then only what this thread did until it last entered or left a Python
// function counts, since for that it needs the interpreter lock.
func workIn(s *sweep, n *host.Names, did host.Activity, from, to trace.Time) work {
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

// lastTurn returns when a thread last entered or left a Python function in an interval, from if it
// never did. s is at from.
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

// An avoidable is something that hosts need not do again and again while devices wait.
type avoidable struct {
	did                    host.Activity
	what                   string // what the check looks for
	while                  string // continues "the GPU is idle"
	subkind, metric, about string
	least                  int64 // fewest gaps at a place in the code that count
}

var (
	pageable = avoidable{host.CopyingPageable, "copies of pageable memory", "while the host copies pageable memory",
		"pageable copies", "idle in pageable copies", gpu.AboutPageable, 1}
	allocating = avoidable{host.Allocating, "allocations of memory", "while the host repeatedly allocates or frees memory",
		"allocations", "idle in allocations", "a memory pool avoids this; PyTorch has one, and asks CUDA again only after torch.cuda.empty_cache(), or when nothing in the pool fits", 10}
)

// Pageable returns a finding if devices idle much while the host copies pageable memory, wherever in the
// code it does, for the reasons for which of returns true. length is the time of all devices, in ns.
func (g *Gaps) Pageable(length int64, of func(gpu.Reason) bool) ([]finding.Finding, finding.Check) {
	return g.avoid(&pageable, length, 0, of)
}

// Allocations is like Pageable for calls that allocate or free memory. cold is the idle time in these
// while processes start, which does not count.
func (g *Gaps) Allocations(length, cold int64, of func(gpu.Reason) bool) ([]finding.Finding, finding.Check) {
	return g.avoid(&allocating, length, cold, of)
}

func (g *Gaps) avoid(a *avoidable, length, cold int64, of func(gpu.Reason) bool) ([]finding.Finding, finding.Check) {
	s := suspect{rank: thing, table: "gaps"}
	for i := range g.Causes {
		if c := &g.Causes[i]; c.Activity == a.did && c.Gaps >= a.least && of(c.Reason) {
			s.time = distribution.AddTimes(s.time, c.Time)
			s.rows = append(s.rows, c)
		}
	}
	if of(gpu.Allocation) {
		s.time -= cold
	}
	check := g.judge(a.what)
	if s.rows == nil && check.Reason == "" {
		check.Reason = "no GPU waits " + a.while
	}
	if check.State() != finding.LookedAt {
		return nil, check
	}
	share := distribution.Fraction(s.time, length)
	wait, _ := g.wait()
	if worst := g.worst(); share < ofThing || worst.stands(length, wait) && worst.rows[0].Activity == a.did {
		return nil, check // the finding about the worst suspect says this
	}
	f := finding.Finding{Subkind: a.subkind, Cost: share, Brief: fmt.Sprintf("for %.0f %% of the time (%s) %s", 100*share, words.Nearly(s.time), a.while),
		Metric: finding.Metric{Name: a.metric, Unit: table.Share, Before: math.NaN(), After: share}}
	f.Text = g.areIdle() + " idle " + f.Brief
	f.Evidence = append(s.evidence(g.export), finding.Sentence("%s", a.about))
	return []finding.Finding{f}, check
}

// areIdle begins a sentence about the devices.
func (g *Gaps) areIdle() string {
	if g.several {
		return "the GPUs are"
	}
	return "the GPU is"
}

// A place is where in the code a thread was, by a stack that was recorded when the profiler interrupted
// it, or at a call. Symbols are 0 where there is no such function.
type place struct {
	did      host.Activity // InPython or InNative
	function trace.Sym     // innermost function, unless that is frame
	frame    trace.Sym     // innermost function that belongs to no library
}

// places caches the places of the stacks of one walk.
type places struct {
	syms  *trace.Symbols
	known map[*profile.Stacks][]place // by stack; did is 0 until it is looked at
}

func newPlaces(syms *trace.Symbols) *places {
	return &places{syms: syms, known: map[*profile.Stacks][]place{}}
}

func (p *places) of(s *profile.Sample) place {
	known := order.Memo(p.known, s.Stacks, func() []place { return make([]place, s.Stacks.Len()+1) })
	if known[s.Stack].did == host.NotRecorded {
		known[s.Stack] = p.look(s)
	}
	return known[s.Stack]
}

func (p *places) look(s *profile.Sample) place {
	at := place{did: host.InNative}
	innermost := true
	for f := range s.Stacks.From(s.Stack) {
		fn := host.FunctionOf(p.syms.Name(f.Function), p.syms.Name(f.Module))
		if fn.Name == "" {
			continue
		}
		name := p.syms.Intern(fn.Name)
		if innermost {
			at.function, innermost = name, false
		}
		if fn.Python {
			at.did = host.InPython
		}
		if fn.Own {
			at.frame = name
			if at.function == name {
				at.function = 0
			}
			break
		}
	}
	return at
}

// A thread that wants the interpreter lock (GIL) of CPython waits for 5 ms before it asks its holder to
// give it up, which the holder does at its next bytecode that allows it, unless it is in C. If another
// thread gets the lock first, the wait goes on for 5 ms more. So a host whose lock another thread keeps
// stands still for a little more than one turn, or than two, and hardly ever for a time between these.
// Code that sleeps or works takes times of one kind.
const (
	moves        = 1_000_000 // ns: shorter stretches have nothing to do with the lock
	turn         = 4_900_000 // ns: a little less than 5 ms, as clocks tick
	late         = 1_600_000 // ns per turn, until the holder gives the lock up
	manyTurns    = 50
	mostOfWait   = 2.0 / 3
	hardlyAny    = 1.0 / 20 // of the stretches
	eachOfTheTwo = 1.0 / 20
)

// turns are the stretches of at least [moves] in which a thread that may pause did not move on, by
// their length.
type turns struct {
	one, two, more, others int64 // how many took one turn, two, longer, and neither
	time                   int64 // ns of turns
}

func (t *turns) add(ns int64) {
	switch {
	case ns < moves:
		return
	case ns >= turn && ns < turn+late:
		t.one++
	case ns >= 2*turn && ns < 2*(turn+late):
		t.two++
	case ns >= 2*(turn+late):
		t.more++
	default:
		t.others++
		return
	}
	t.time = distribution.AddTimes(t.time, ns)
}

func (t *turns) join(o *turns) {
	t.one, t.two, t.more, t.others = t.one+o.one, t.two+o.two, t.more+o.more, t.others+o.others
	t.time = distribution.AddTimes(t.time, o.time)
}

// tell reports whether the stretches are such turns, and most of the time for which devices wait.
func (t *turns) tell(wait int64) bool {
	n := float64(t.one + t.two + t.more)
	return n >= manyTurns && float64(t.one+t.two) >= n/2 && float64(t.one) >= eachOfTheTwo*n && float64(t.two) >= eachOfTheTwo*n &&
		float64(t.others) <= hardlyAny*n && float64(t.time) >= mostOfWait*float64(wait)
}

// locking is the suspect that another thread keeps the interpreter lock, though nothing of that was
// recorded. Its time is 0 if the stretches do not show it.
func (g *Gaps) locking() suspect {
	wait, _ := g.wait()
	if t := &g.turns; !t.tell(wait) || !g.Recorded[host.OperatorFrame] && !g.Recorded[host.PythonFrame] {
		return suspect{}
	}
	s := suspect{rank: thing, table: "gaps", time: g.turns.time, likely: true}
	for i := range g.Causes {
		if c := &g.Causes[i]; silent(c.Activity) && c.counts() {
			s.rows = append(s.rows, c)
		}
	}
	s.text = fmt.Sprintf("looks like another Python thread that holds the interpreter lock (GIL): the launching thread recorded nothing for 5 to 6.5 ms %s times, for 10 to 13 ms %s times, and hardly ever for anything in between; a thread that waits for the GIL asks for it every 5 ms",
		words.Thousands(g.turns.one), words.Thousands(g.turns.two))
	return s
}
