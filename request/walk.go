package request

import "iter"

// ThreadRows yields thread t's own row and all of its stages, parents first.
func (s *Set) ThreadRows(t int) iter.Seq[int] {
	return func(yield func(int) bool) {
		th := &s.Threads[t]
		if th.Row != None && !yield(th.Row) {
			return
		}
		var walk func(stages []uint32) bool
		walk = func(stages []uint32) bool {
			for _, i := range stages {
				if !yield(int(i)) || !walk(s.Tree.Children(int(i))) {
					return false
				}
			}
			return true
		}
		walk(th.Stages)
	}
}

// GatewayRows yields the gateway's rows around a request, with how many of them each
// lies in.
func (s *Set) GatewayRows(r *Request) iter.Seq2[int, int] {
	return func(yield func(i, depth int) bool) {
		var walk func(i, depth int) bool
		walk = func(i, depth int) bool {
			if s.Kind(i) != Gateway {
				return true
			}
			if !yield(i, depth) {
				return false
			}
			for _, c := range s.Tree.Children(i) {
				if !walk(int(c), depth+1) {
					return false
				}
			}
			return true
		}
		if r.Gateway != None {
			walk(r.Gateway, 0)
		}
	}
}

// EachSelectedStage calls f for the selected stages among the given ones and all below,
// parents first; outermost tells which are in no other.
func (s *Set) EachSelectedStage(stages []uint32, outermost bool, f func(i int, outermost bool)) {
	for _, i := range stages {
		selected := s.Kind(int(i)) == Stage
		if selected {
			f(int(i), outermost)
		}
		s.EachSelectedStage(s.Tree.Children(int(i)), outermost && !selected, f)
	}
}

// OnScheduler reports whether thread t follows the batches of a rank.
func (s *Set) OnScheduler(t int) bool {
	return s.Procs[s.Threads[t].Proc].Schedules
}
