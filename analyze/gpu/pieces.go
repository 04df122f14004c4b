package gpu

import (
	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/metric"
	"github.com/sgtrace/sgtrace/trace"
)

// A Piece is what a device did between two of [Options.Cuts]. What runs across a cut
// counts where it began to run alone.
type Piece struct {
	Activity // without Idle, and with the times of Waits only
}

// An Amount is the time of one account, in ns.
type Amount struct {
	Name string // "compute", "idle: host work"
	Time int64
}

// Amounts are where the time of the piece went: busy and idle, then each account. The
// accounts add up to busy and idle.
func (p *Piece) Amounts() []Amount {
	list := []Amount{{metric.Busy.Name, p.Busy()}, {metric.Idle.Name, 0}}
	for i, a := range accounts() {
		amount := Amount{a.name, a.of(&p.Activity)}
		if i >= numWork {
			list[1].Time = distribution.AddTimes(list[1].Time, amount.Time)
		}
		list = append(list, amount)
	}
	return list
}

// Holds reports whether a call of a name holds its thread up until the device is done.
func Holds(call string) bool {
	reason := reasonOfCall(call)
	return reason == AfterSync || reason == BlockingCopy
}

// A pieceSweep divides what a sweep counts among the pieces.
type pieceSweep struct {
	cuts []trace.Time // of pieces that have not begun
	gpu  *GPU
	now  int
}

// at returns the piece of an instant, nil without any. Instants come in order.
func (s *pieceSweep) at(t trace.Time) *Piece {
	if s.gpu.Pieces == nil {
		return nil
	}
	for len(s.cuts) > 0 && s.cuts[0] <= t {
		s.cuts = s.cuts[1:]
		s.now++
	}
	return &s.gpu.Pieces[s.now]
}

// runs counts time from an instant in which exactly these classes run.
func (s *pieceSweep) runs(from trace.Time, running Running, length int64) {
	if p := s.at(from); p != nil {
		p.Running[running] = distribution.AddTimes(p.Running[running], length)
	}
}

// waits counts by how much a gap made idle time longer, by reason.
func (s *pieceSweep) waits(from trace.Time, before, after *[NumReasons]int64) {
	p := s.at(from)
	if p == nil {
		return
	}
	for reason, t := range after {
		p.Waits.Time[reason] = distribution.AddTimes(p.Waits.Time[reason], t-before[reason])
	}
}
