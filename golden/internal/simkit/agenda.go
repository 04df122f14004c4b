package simkit

import (
	"container/heap"
	"math"
)

// Agenda lists future events in the order of virtual time; things of the same
// time happen in the order in which they were put down. The zero value is empty.
type Agenda struct {
	Now   int64
	count uint64
	due   entries
}

type entry struct {
	at  int64
	seq uint64
	do  func()
}

// At puts something down for a time, which must not have passed.
func (a *Agenda) At(t int64, do func()) {
	a.count++
	heap.Push(&a.due, entry{t, a.count, do})
}

// Play does everything, including what is put down meanwhile.
func (a *Agenda) Play() { a.PlayUntil(math.MaxInt64) }

// PlayUntil does what is put down for times up to end.
func (a *Agenda) PlayUntil(end int64) {
	for len(a.due) > 0 && a.due[0].at <= end {
		e := heap.Pop(&a.due).(entry)
		a.Now = max(a.Now, e.at)
		e.do()
	}
}

// entries implements heap.Interface.
type entries []entry

func (e entries) Len() int      { return len(e) }
func (e entries) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *entries) Push(x any)   { *e = append(*e, x.(entry)) }

func (e entries) Less(i, j int) bool {
	if e[i].at != e[j].at {
		return e[i].at < e[j].at
	}
	return e[i].seq < e[j].seq
}

func (e *entries) Pop() any {
	old := *e
	last := old[len(old)-1]
	old[len(old)-1] = entry{} // let go of the closure
	*e = old[:len(old)-1]
	return last
}
