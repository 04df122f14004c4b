package simulator

import (
	"cmp"
	"container/heap"
	"math"
)

// A Queue holds things by time; things of the same time come out in the order in which they were put
// in. The zero value is empty.
type Queue[T any] struct {
	count uint64
	due   entries[T]
}

type entry[T any] struct {
	at  int64
	seq uint64
	is  T
}

// Put puts something in for a time.
func (q *Queue[T]) Put(at int64, is T) {
	q.count++
	heap.Push(&q.due, entry[T]{at, q.count, is})
}

// Next returns when the first thing is due; ok is false if there is none.
func (q *Queue[T]) Next() (at int64, ok bool) {
	if len(q.due) == 0 {
		return 0, false
	}
	return q.due[0].at, true
}

// Take takes the first thing out.
func (q *Queue[T]) Take() T { return heap.Pop(&q.due).(entry[T]).is }

// entries implements heap.Interface.
type entries[T any] []entry[T]

func (e entries[T]) Len() int      { return len(e) }
func (e entries[T]) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *entries[T]) Push(x any)   { *e = append(*e, x.(entry[T])) }

func (e entries[T]) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(e[i].at, e[j].at), cmp.Compare(e[i].seq, e[j].seq)) < 0
}

func (e *entries[T]) Pop() any {
	last := (*e)[len(*e)-1]
	clear((*e)[len(*e)-1:]) // let go of what it holds
	*e = (*e)[:len(*e)-1]
	return last
}

// Agenda is what will happen in virtual time.
type Agenda struct {
	Now int64
	due Queue[func()]
}

// At puts something down for a time, which must not have passed.
func (a *Agenda) At(t int64, do func()) { a.due.Put(t, do) }

// Play does everything, including what is put down meanwhile.
func (a *Agenda) Play() { a.PlayUntil(math.MaxInt64) }

// PlayUntil does what is put down for times up to end.
func (a *Agenda) PlayUntil(end int64) {
	for at, ok := a.due.Next(); ok && at <= end; at, ok = a.due.Next() {
		do := a.due.Take()
		a.Now = max(a.Now, at)
		do()
	}
}
