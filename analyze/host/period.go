package host

import (
	"slices"

	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// LongestPeriod is how far apart samples of a thread that runs may be, ns.
const LongestPeriod = 20_000_000

// Periods are the times between samples of the same thread.
type Periods struct {
	last  map[ThreadID]trace.Time
	times []int64
}

// enoughPeriods is how many times tell the period.
const enoughPeriods = 1 << 16

// Add notes a sample.
func (p *Periods) Add(x *profile.Sample) {
	if len(p.times) == enoughPeriods {
		return
	}
	if p.last == nil {
		p.last = map[ThreadID]trace.Time{}
	}
	id := ThreadID{PID: x.PID, TID: x.TID}
	if last, ok := p.last[id]; ok && x.Start > last && x.Start-last < LongestPeriod {
		p.times = append(p.times, int64(x.Start-last))
	}
	p.last[id] = x.Start
}

// Period returns the period: the lower quartile, because threads that lose their core are
// interrupted later. 0 is unknown.
func (p *Periods) Period() int64 {
	if len(p.times) == 0 {
		return 0
	}
	slices.Sort(p.times)
	return p.times[len(p.times)/4]
}
