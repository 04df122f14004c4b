package overtime

import (
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/internal/changepoint"
	"github.com/sgtrace/sgtrace/trace"
)

// A ramp is how kernels take longer gradually, as multiples of their time when it begins.
type ramp struct {
	middle trace.Time
	halves [2]float64 // mean before and after the middle
	most   float64    // at the end
}

// steepest is the least share of the searched time that a steady rise takes: anything steeper is a jump.
const steepest = 0.2

// ramping returns how kernels take longer along a course that was fitted to parts of them.
func (p *paced) ramping(x *changepoint.Course, from, parts int) (s slowing, ok bool) {
	n := len(p.kernels)
	start := func(part int) trace.Time { return p.kernels[min(part*n/parts, n-1)].start }
	base, middle := x.Level+x.Of(float64(from), float64(from+1)), (from+parts)/2
	over := func(from, to int) float64 { return (x.Level + x.Of(float64(from), float64(to))) / base }
	if base <= 0 || middle == from {
		return s, false
	}
	r := &ramp{middle: start(middle), halves: [2]float64{over(from, middle), over(middle, parts)}, most: over(parts-1, parts)}
	s = p.along(start(from), r)
	s.first, s.last, s.p = start(max(0, int(x.First)-1)), start(max(from, int(x.Last))), x.P
	return s, s.factor >= minLonger
}

// along returns how much longer kernels take if they follow a ramp, scaled to how much longer their second half takes than their first.
func (p *paced) along(from trace.Time, r *ramp) slowing {
	s := p.since(from, r.middle, 0)
	if s.factor == 0 {
		return s
	}
	part := 1.0
	if rest := r.halves[1] - 1 - s.factor*(r.halves[0]-1); rest > 0 {
		part = (s.factor - 1) / rest
	}
	all := p.kernels[p.index(from):]
	base := pace(p.kernels[p.index(from):p.index(r.middle)]) / max(0.1, 1+part*(r.halves[0]-1))
	usual := 0.0
	s.at, s.took = from, 0
	for i := range all {
		s.took, usual = s.took+all[i].took, usual+all[i].usual
	}
	s.factor, s.lost, s.ramp = max(0.1, 1+part*(r.most-1)), float64(s.took)-base*usual, r
	return s
}

// sinceOf compares kernels in the way of lead: along its ramp, or those since its start with those from first until then.
func (p *paced) sinceOf(lead *slowing, first trace.Time) slowing {
	if lead.ramp != nil {
		return p.along(lead.at, lead.ramp)
	}
	return p.since(first, lead.at, lead.until)
}

// split returns what to compare: the time from..at with the time since at.
func (s *slowing) split(first trace.Time) (from, at trace.Time) {
	if s.ramp != nil {
		return s.at, s.ramp.middle
	}
	return first, s.at
}

// upTo returns "up to " if the factor behind it is reached only at the end.
func (c *Change) upTo() string {
	if c.gradual {
		return "up to "
	}
	return ""
}

// worse says by how much what should take equally long takes longer, or is launched more often.
func (c *Change) worse() string {
	times := words.ThreeDigits(c.After) + " times as "
	switch {
	case c.metric == repeatMetric:
		return "are launched " + times + "often in a row"
	case c.gradual:
		return "take longer gradually, up to " + times + "long,"
	}
	return "take " + times + "long"
}

// clearestOf returns the change that is least likely by chance, of those with the shape that most have: ranks that do the same
// become slower together, and where they pause, a slow rise may look like a jump. It returns nil if all are nil.
func clearestOf(changes []*Change) (clearest *Change) {
	gradual, n := 0, 0
	for _, x := range changes {
		if x != nil {
			if n++; x.gradual {
				gradual++
			}
		}
	}
	for _, x := range changes {
		if x != nil && x.gradual == (2*gradual > n) && (clearest == nil || x.P < clearest.P) {
			clearest = x
		}
	}
	return clearest
}
