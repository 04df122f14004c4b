package request

import (
	"cmp"
	"slices"

	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/trace"
)

// Lead returns the scheduler thread of the lowest rank of a part, or None.
func (s *Set) Lead(p *Part) int {
	if p.lead != 0 {
		return int(p.lead) - leadOffset
	}
	return s.findLead(p)
}

// leadOffset is added to the thread in [Part.lead], so that None is not 0.
const leadOffset = 2

// FindLeads determines the lead of every part, once threads and procs are final.
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

// ProcOfPart returns the proc whose clock the times of a part are on: that of its own span, or else of a thread; None is unknown.
func (s *Set) ProcOfPart(p *Part) int {
	switch {
	case p.Root != None:
		return s.ProcOf(p.Root)
	case len(s.ThreadsOf(p)) > 0:
		return s.Threads[s.ThreadsOf(p)[0]].Proc
	}
	return None
}

// EachStage calls f for the given stages and everything below them, parents first.
func (s *Set) EachStage(stages []uint32, f func(i int)) {
	for _, i := range stages {
		f(int(i))
		if below := s.Tree.Children(int(i)); len(below) > 0 {
			s.EachStage(below, f)
		}
	}
}

// LastStage returns the last first-level stage of thread t with meaning m, nil if there is none.
func (s *Set) LastStage(t int, m Meaning) *Row {
	for _, i := range slices.Backward(s.StagesOf(t)) {
		if row := &s.Rows[i]; row.Means == m {
			return row
		}
	}
	return nil
}

// A Token is the output of a prefill, of a decode step, or of a batch that takes over a token from the
// prefill server. A prefill after a retraction yields one, too.
type Token struct {
	End  trace.Time
	Step int32 // number of preceding decode steps; NoStep for other stages
	Lost int32 // number of missing steps between the previous token and this one
	// Handed says that nothing was computed: a batch takes over a token left by the prefill server, or from
	// before a retraction.
	Handed bool
}

// NoStep is the step number of tokens that are not from a decode step.
const NoStep = -1

// Tokens fills list with the tokens of thread t, in order.
func (s *Set) Tokens(list []Token, t int) []Token {
	list = list[:0]
	s.EachStage(s.StagesOf(t), func(i int) {
		if row := &s.Rows[i]; row.Means.GivesToken() && !s.Implausible(i) && Plausible(row.End) {
			x := Token{End: row.End, Step: NoStep, Handed: row.Means == Prebuilt}
			if row.Means == Stepping {
				x.Step = max(0, row.Step)
			}
			list = append(list, x)
		}
	})
	slices.SortStableFunc(list, func(x, y Token) int { return cmp.Or(cmp.Compare(x.End, y.End), cmp.Compare(x.Step, y.Step)) })
	numberSteps(list)
	return list
}

// numberSteps computes the missing steps of a list, or, if the steps' own numbers don't increase, renumbers them.
func numberSteps(list []Token) {
	last, increase := int32(NoStep), true
	for i := range list {
		if x := &list[i]; x.Step != NoStep {
			x.Lost, increase = x.Step-last-1, increase && x.Step > last
			last = x.Step
		}
	}
	if increase {
		return
	}
	last = 0
	for i := range list {
		if x := &list[i]; x.Step != NoStep {
			x.Step, x.Lost = last, 0
			last++
		}
	}
}

// tokenThread returns the thread that shows the tokens of a part, or None.
func (s *Set) tokenThread(p *Part) int {
	if p.Role == Prefill || p.Role == Sender {
		return None
	}
	return s.Lead(p)
}

// TokenTimes returns when the tokens of a part came out on its lead rank, in order.
func (s *Set) TokenTimes(p *Part) []trace.Time {
	lead := s.tokenThread(p)
	if lead == None {
		return nil
	}
	return order.Each(s.Tokens(nil, lead), func(x Token) trace.Time { return x.End })
}

// Gaps returns the times between consecutive tokens of r in ns, in order, without gaps from which steps are
// missing.
func (s *Set) Gaps(r *Request) []int64 {
	lead := s.tokenThread(&s.Parts[s.Answering(r)])
	if lead == None {
		return nil
	}
	tokens := s.Tokens(nil, lead)
	var gaps []int64
	for i := 1; i < len(tokens); i++ {
		if tokens[i].Lost == 0 {
			gaps = append(gaps, int64(tokens[i].End-tokens[i-1].End))
		}
	}
	return gaps
}

// PercentileIndex returns the index, from 0, of a percentile among n sorted values by nearest rank: rank
// ceil(percent/100 * n). It uses integers, since in floating point 0.07*100 is 7.000000000000001, and its
// ceiling 8.
func PercentileIndex[N int | uint64](n, percent N) N {
	return max(1, (percent*n+99)/100) - 1
}

// NearestRank returns a percentile of sorted values by nearest rank, which is one of the values. There must
// be at least one.
func NearestRank[T any](sorted []T, percent int) T {
	return sorted[PercentileIndex(len(sorted), percent)]
}
