package simulator

import "container/heap"

// agenda is what will happen, in the order of virtual time; things of the same
// time happen in the order in which they were put down. The zero value is empty.
type agenda struct {
	now   int64
	count uint64
	due   entries
}

type entry struct {
	at  int64
	seq uint64
	do  func()
}

// at puts something down for a time, which must not have passed.
func (a *agenda) at(t int64, do func()) {
	a.count++
	heap.Push(&a.due, entry{t, a.count, do})
}

// play does everything, including what is put down meanwhile.
func (a *agenda) play() {
	for len(a.due) > 0 {
		e := heap.Pop(&a.due).(entry)
		a.now = max(a.now, e.at)
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
