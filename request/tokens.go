package request

import (
	"cmp"
	"slices"

	"github.com/sgtrace/sgtrace/trace"
)

// Lead returns the scheduler thread of the lowest rank of a part, or None.
func (s *Set) Lead(p *Part) int {
	if p.lead != 0 {
		return int(p.lead) - leadOffset
	}
	return s.findLead(p)
}

// leadOffset is what [Part.lead] is more than a thread, so that None is not 0.
const leadOffset = 2

// FindLeads finds the lead of every part once, when threads and procs are settled.
func (s *Set) FindLeads() {
	for i := range s.AllParts() {
		s.Parts[i].lead = int32(s.findLead(&s.Parts[i]) + leadOffset)
	}
}

func (s *Set) findLead(p *Part) int {
	lead := None
	for _, t := range s.ThreadsOf(p) {
		proc := &s.Procs[s.Threads[t].Proc]
		if !proc.Schedules && s.Threads[t].Row != None {
			continue
		}
		if lead == None || cmp.Or(proc.Rank.Compare(s.Procs[s.Threads[lead].Proc].Rank), cmp.Compare(t, lead)) < 0 {
			lead = t
		}
	}
	return lead
}

// EachStage calls f for the given stages and everything below, parents first.
func (s *Set) EachStage(stages []uint32, f func(i int)) {
	for _, i := range stages {
		f(int(i))
		if below := s.Tree.Children(int(i)); len(below) > 0 {
			s.EachStage(below, f)
		}
	}
}

// LastStage returns the last first-level stage of thread t that means m, nil if there
// is none.
func (s *Set) LastStage(t int, m Meaning) *Row {
	for _, i := range slices.Backward(s.StagesOf(t)) {
		if row := &s.Rows[i]; row.Means == m {
			return row
		}
	}
	return nil
}

// TokenTimes returns when the tokens of a part came out on its lead rank, in order: with
// the end of a prefill, of a decode step, or of a batch that takes over a token from
// the prefill server. A prefill that follows a retraction gives one, too.
func (s *Set) TokenTimes(p *Part) []trace.Time {
	lead := s.Lead(p)
	if lead == None || p.Role == Prefill || p.Role == Sender {
		return nil
	}
	var times []trace.Time
	s.EachStage(s.StagesOf(lead), func(i int) {
		if row := &s.Rows[i]; row.Means.GivesToken() && !s.Implausible(i) {
			times = append(times, row.End)
		}
	})
	slices.Sort(times)
	return times
}

// Gaps returns the times between consecutive tokens of r in ns, in order.
func (s *Set) Gaps(r *Request) []int64 {
	tokens := s.TokenTimes(&s.Parts[s.Answering(r)])
	if len(tokens) < 2 {
		return nil
	}
	gaps := make([]int64, len(tokens)-1)
	for i := range gaps {
		gaps[i] = int64(tokens[i+1] - tokens[i])
	}
	return gaps
}
