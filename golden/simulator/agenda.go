package simulator

import (
	"math"
)

// A Queue holds things by time; things with the same time come out in the order in which they were put in. The zero value
// is empty. It is a binary heap of its own: container/heap puts each thing into an interface, which took a sixth of the
// time of a simulation.
type Queue[T any] struct {
	count uint64
	due   []entry[T]
}

type entry[T any] struct {
	at  int64
	seq uint64
	is  T
}

func (e *entry[T]) before(other *entry[T]) bool {
	return e.at < other.at || e.at == other.at && e.seq < other.seq
}

// Put adds something for a time.
func (q *Queue[T]) Put(at int64, is T) {
	q.count++
	x := entry[T]{at, q.count, is}
	q.due = append(q.due, x)
	i := len(q.due) - 1
	for up := (i - 1) / 2; i > 0 && x.before(&q.due[up]); up = (i - 1) / 2 {
		q.due[i], i = q.due[up], up
	}
	q.due[i] = x
}

// Next returns the time of the first thing; ok is false if there is none.
func (q *Queue[T]) Next() (at int64, ok bool) {
	if len(q.due) == 0 {
		return 0, false
	}
	return q.due[0].at, true
}

// Take removes the first thing.
func (q *Queue[T]) Take() T {
	first, n := q.due[0].is, len(q.due)-1
	last := q.due[n]
	clear(q.due[n:]) // release it
	if q.due = q.due[:n]; n == 0 {
		return first
	}
	i := 0
	for down := 1; down < n; down = 2*i + 1 {
		if right := down + 1; right < n && q.due[right].before(&q.due[down]) {
			down = right
		}
		if !q.due[down].before(&last) {
			break
		}
		q.due[i], i = q.due[down], down
	}
	q.due[i] = last
	return first
}

// Agenda is the events to come in virtual time.
type Agenda struct {
	Now int64
	due Queue[func()]
}

// At schedules do for a time, which must not have passed.
func (a *Agenda) At(t int64, do func()) { a.due.Put(t, do) }

// Play runs everything, including what is scheduled meanwhile.
func (a *Agenda) Play() { a.PlayUntil(math.MaxInt64) }

// PlayUntil runs everything scheduled up to end.
func (a *Agenda) PlayUntil(end int64) {
	for at, ok := a.due.Next(); ok && at <= end; at, ok = a.due.Next() {
		do := a.due.Take()
		a.Now = max(a.Now, at)
		do()
	}
}
