package gaps

import (
	"fmt"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/host"
	"github.com/sgtrace/sgtrace/analyze/words"
)

// A thread that wants the interpreter lock (GIL) of CPython waits for 5 ms before it asks the
// one that has it to give it up, which does so at its next bytecode that may, unless it is in C;
// if another thread was faster, it waits 5 ms more. So a host whose lock another thread keeps
// stands still for a turn and a little, or for two, and not for what lies between. Code that
// sleeps, or works, does that for times of one kind.
const (
	moves        = 1_000_000 // ns: a shorter stretch has nothing to do with it
	turn         = 4_900_000 // ns; clocks tick
	late         = 1_600_000 // ns, until the other thread gives the lock up, a turn
	manyTurns    = 50
	mostOfWait   = 2.0 / 3
	hardlyAny    = 1.0 / 20 // of the stretches
	eachOfTheTwo = 1.0 / 20
)

// turns are the stretches in which a thread that may pause moved on no sooner than after
// [moves], by how long they took.
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

// tell reports whether the stretches are such turns, and most of the time that devices wait.
func (t *turns) tell(wait int64) bool {
	n := float64(t.one + t.two + t.more)
	return n >= manyTurns && float64(t.one+t.two) >= n/2 && float64(t.one) >= eachOfTheTwo*n && float64(t.two) >= eachOfTheTwo*n &&
		float64(t.others) <= hardlyAny*n && float64(t.time) >= mostOfWait*float64(wait)
}

// locking is the suspect that another thread keeps the interpreter lock, though nothing was recorded
// of it; of no time where stretches do not tell that.
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
	s.text = fmt.Sprintf("looks like another Python thread that keeps the interpreter lock (GIL): the launching thread recorded nothing for 5 to 6.5 ms %s times, for 10 to 13 ms %s times, and hardly ever for a time between, and a thread asks for that lock every 5 ms",
		words.Thousands(g.turns.one), words.Thousands(g.turns.two))
	return s
}
