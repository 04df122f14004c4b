package gaps

import (
	"fmt"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/host"
	"github.com/sgtrace/sgtrace/analyze/words"
)

// A thread that wants the interpreter lock (GIL) of CPython waits for 5 ms before it asks the
// one that has it to give it up, which does so at its next bytecode that may, unless it is in C.
// So a host whose lock another thread keeps stands still for 5 ms and a little, again and again.
const (
	moves        = 1_000_000 // ns: a shorter stretch has nothing to do with it
	turn         = 4_900_000 // ns; clocks tick
	soonAfter    = 6_500_000 // ns: one turn, and not two
	manyTurns    = 50
	mostOfWait   = 2.0 / 3
	hardlyBefore = 1.0 / 20
)

// turns are the stretches in which a thread that may pause moved on no sooner than after
// [moves], by how long they took.
type turns struct {
	before, one, more int64 // how many took less than a turn, about one, and longer
	time              int64 // ns of one and more
}

func (t *turns) add(ns int64) {
	switch {
	case ns < moves:
		return
	case ns < turn:
		t.before++
		return
	case ns < soonAfter:
		t.one++
	default:
		t.more++
	}
	t.time = distribution.AddTimes(t.time, ns)
}

func (t *turns) join(o *turns) {
	t.before, t.one, t.more = t.before+o.before, t.one+o.one, t.more+o.more
	t.time = distribution.AddTimes(t.time, o.time)
}

// locking is the suspect that another thread keeps the interpreter lock, though nothing was recorded
// of it; of no time where stretches do not tell that.
func (g *Gaps) locking() suspect {
	t := &g.turns
	wait, _ := g.wait()
	n := t.one + t.more
	python := g.Recorded[host.OperatorFrame] || g.Recorded[host.PythonFrame]
	if !python || n < manyTurns || 2*t.one < n || float64(t.before) > hardlyBefore*float64(n) || float64(t.time) < mostOfWait*float64(wait) {
		return suspect{}
	}
	s := suspect{rank: thing, table: "gaps", time: t.time, likely: true}
	for i := range g.Causes {
		if c := &g.Causes[i]; silent(c.Activity) && c.counts() {
			s.rows = append(s.rows, c)
		}
	}
	s.text = fmt.Sprintf("looks like another Python thread that keeps the interpreter lock (GIL): the launching thread recorded nothing for 5 to 6.5 ms in %s of %s stretches and for longer in the others, and a thread asks for that lock every 5 ms",
		words.Thousands(t.one), words.Thousands(n))
	return s
}
