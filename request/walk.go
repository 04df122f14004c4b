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
		walk(s.StagesOf(t))
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
		if below := s.Tree.Children(int(i)); len(below) > 0 {
			s.EachSelectedStage(below, outermost && !selected, f)
		}
	}
}

// EachRowOf calls f for the rows of request r that reports measure, with the proc of each: the
// selected stages, parents first, and the spans of its gateway.
func (s *Set) EachRowOf(r int, f func(i, proc int)) {
	req := &s.Requests[r]
	for _, part := range s.PartsOf(req) {
		for _, t := range s.ThreadsOf(&s.Parts[part]) {
			proc := s.Threads[t].Proc
			s.EachSelectedStage(s.StagesOf(t), true, func(i int, _ bool) { f(i, proc) })
		}
	}
	for i := range s.GatewayRows(req) {
		if s.RequestOf(i) == r { // several may share it
			f(i, s.ProcOf(i))
		}
	}
}

// EachRowBeside calls f for the rows that reports measure and that belong to no request, with
// the proc of each: those of services without rules, and of gateways.
func (s *Set) EachRowBeside(f func(i, proc int)) {
	for i := range s.All() {
		if k := s.Kind(i); k == Generic || k == Gateway && s.RequestOf(i) == None {
			f(i, s.ProcOf(i))
		}
	}
}

// StageName returns what reports call row i: a stage by its name, others as "service:name".
func (s *Set) StageName(i int) string {
	if s.Kind(i) == Stage {
		return s.Name(i)
	}
	service := s.Writers[s.Sources[s.Rows[i].Source].Writer].Service
	return s.Syms.Name(service) + ":" + s.Name(i)
}

// OnScheduler reports whether thread t follows the batches of a rank.
func (s *Set) OnScheduler(t int) bool {
	return s.Procs[s.Threads[t].Proc].Schedules
}
