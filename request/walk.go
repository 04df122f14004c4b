package request

import (
	"iter"

	"github.com/sgtrace/sgtrace/internal/memory"
)

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

// GatewayRows yields the gateway's rows around a request, with the nesting depth of each.
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

// EachSelectedStage calls f for the selected stages among the given ones and all below them, parents first;
// outermost says that a stage is in no other selected one.
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

// EachRowOf calls f for the rows of request r that reports measure, with the proc of each: the selected
// stages, parents first, and the spans of its gateway.
func (s *Set) EachRowOf(r int, f func(i, proc int)) {
	req := &s.Requests[r]
	for _, part := range s.PartsOf(req) {
		for _, t := range s.ThreadsOf(&s.Parts[part]) {
			proc := s.Threads[t].Proc
			s.EachSelectedStage(s.StagesOf(t), true, func(i int, _ bool) { f(i, proc) })
		}
	}
	for i := range s.GatewayRows(req) {
		if s.RequestOf(i) == r { // several requests may share it
			f(i, s.ProcOf(i))
		}
	}
}

// EachRowBeside calls f for the rows that reports measure but that belong to no request, with the proc of
// each: those of services without rules, and of gateways.
func (s *Set) EachRowBeside(f func(i, proc int)) {
	for i := range s.All() {
		if k := s.Kind(i); k == Generic || k == Gateway && s.RequestOf(i) == None {
			f(i, s.ProcOf(i))
		}
	}
}

// StageName returns the name of row i in reports: a stage by its name, others as "service:name".
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

// StagesOf returns the rows of the first-level stages of thread t, sorted by start. They must not be
// modified.
func (s *Set) StagesOf(t int) []uint32 {
	var stages []uint32
	switch th := &s.Threads[t]; {
	case th.stages < 0:
		stages = s.stages[^th.stages]
	case th.stages > 0:
		stages = s.Tree.Children(th.Row)[:th.stages]
	}
	memory.Touch(len(stages) * RowSize)
	return stages
}

// SetStages sets the first-level stages of thread t, sorted by start.
func (s *Set) SetStages(t int, stages []uint32) {
	th := &s.Threads[t]
	if th.Row != None {
		if below := s.Tree.Children(th.Row); len(stages) <= len(below) && (len(stages) == 0 || &stages[0] == &below[0]) {
			th.stages = int32(len(stages))
			return
		}
	}
	if th.stages < 0 {
		s.stages[^th.stages] = stages
		return
	}
	th.stages = ^int32(len(s.stages))
	s.stages = append(s.stages, stages)
}

// ReasonOf returns why thread t was aborted or failed, "" if it was not.
func (s *Set) ReasonOf(t int) string {
	if reason := s.Threads[t].reason; reason != 0 {
		return s.Syms.Name(reason)
	}
	return ""
}

// Fail sets how thread t ended, and why.
func (s *Set) Fail(t int, status Status, reason string) {
	s.Threads[t].Status, s.Threads[t].reason = status, s.Syms.Intern(reason)
}

// redactReasons redacts the reasons of threads.
func (s *Set) redactReasons(redacted func(string) string) {
	for t := range s.AllThreads() {
		if reason := &s.Threads[t].reason; *reason != 0 {
			*reason = s.Syms.Intern(redacted(s.Syms.Name(*reason)))
		}
	}
}

// Retractions returns how often thread t's work was removed from the batch. A decode server of SGLang
// reports a second retraction when the request reenters, as soon as it has reconnected; that is not
// counted.
func (s *Set) Retractions(t int) int64 {
	var events, again int64
	for i := range s.ThreadRows(t) {
		if s.Again(i) {
			again++
		}
		for _, e := range s.InstantsOf(i) {
			if e.Kind == Retracted {
				events++
			}
		}
	}
	if again == 0 {
		return events
	}
	return max(events-again, (events+1)/2)
}
