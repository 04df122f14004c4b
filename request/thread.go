package request

import (
	"github.com/sgtrace/sgtrace/internal/memory"
)

// StagesOf returns the rows of the first-level stages of thread t, in order of their start.
// They must not be modified.
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

// SetStages says which rows are the first-level stages of thread t, in order of their start.
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

// Fail says how thread t ended, and why.
func (s *Set) Fail(t int, status Status, reason string) {
	s.Threads[t].Status, s.Threads[t].reason = status, s.Syms.Intern(reason)
}

// redactReasons gives the reasons of threads the texts of a redactor.
func (s *Set) redactReasons(redacted func(string) string) {
	for t := range s.AllThreads() {
		if reason := &s.Threads[t].reason; *reason != 0 {
			*reason = s.Syms.Intern(redacted(s.Syms.Name(*reason)))
		}
	}
}

// Retractions counts how often the share of thread t was thrown out of the batch. A decode
// server of SGLang reports a second retraction when the request enters again, as soon as it
// has reconnected.
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
