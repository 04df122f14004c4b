package gpu

import (
	"cmp"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/metric"
	"github.com/sgtrace/sgtrace/analyze/profilewalk"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// A CopyKind is all copies or fills of one operation on a device, such as
// "[CUDA memcpy Host-to-Device]".
type CopyKind struct {
	Name     string
	Copied   profilewalk.Copied
	Pageable int64 // ns of Copied in copies of pageable memory
}

// AboutPageable says what is wrong with copies of pageable memory.
const AboutPageable = "the driver copies pageable memory twice, on the calling thread; it copies pinned memory once, at link speed, while kernels run"

func (k *CopyKind) add(c *profile.Copy) {
	k.Copied.Add(c)
	if c.Kind.Pageable() {
		k.Pageable = distribution.AddTimes(k.Pageable, c.Dur())
	}
}

// Join adds the copies of o.
func (k *CopyKind) Join(o *CopyKind) {
	k.Copied.Join(&o.Copied)
	k.Pageable = distribution.AddTimes(k.Pageable, o.Pageable)
}

// copyKinds sums up copies by the symbol of their operation.
type copyKinds map[trace.Sym]*CopyKind

func (k copyKinds) of(name trace.Sym) *CopyKind {
	return order.Memo(k, name, func() *CopyKind { return &CopyKind{} })
}

func (k copyKinds) join(o copyKinds) {
	for name, c := range o {
		k.of(name).Join(c)
	}
}

// list returns the kinds, those that took longest first.
func (k copyKinds) list(syms *trace.Symbols) []CopyKind {
	var out []CopyKind
	for name, c := range k {
		c.Name = syms.Name(name)
		out = append(out, *c)
	}
	SortCopies(out)
	return out
}

// SortCopies orders kinds, those that took longest first.
func SortCopies(list []CopyKind) {
	slices.SortFunc(list, func(a, b CopyKind) int {
		return cmp.Or(cmp.Compare(b.Copied.Time, a.Copied.Time), cmp.Compare(a.Name, b.Name))
	})
}

// A Piece is what a device did between two of [Options.Cuts]. Time in which the same classes run is not
// split at a cut: it counts for the piece in which it begins.
type Piece struct {
	Activity // without Idle; Waits has times only
}

// A CategoryTime is what one column of where GPU time went holds, in ns.
type CategoryTime struct {
	Name string // as people read it: "compute", "idle: host work"
	Time int64
}

// Times returns where the time of the piece went: busy and idle, then each category. The categories add
// up to busy and idle.
func (p *Piece) Times() []CategoryTime {
	list := []CategoryTime{{metric.Busy.Name, p.Busy()}, {metric.Idle.Name, 0}}
	for i, a := range timeColumns() {
		amount := CategoryTime{a.title, a.of(&p.Activity)}
		if i >= numWork {
			list[1].Time = distribution.AddTimes(list[1].Time, amount.Time)
		}
		list = append(list, amount)
	}
	return list
}

// Holds reports whether calls of a name block their thread until the device is done.
func Holds(call string) bool {
	reason := ReasonOf(call)
	return reason == AfterSync || reason == BlockingCopy
}

// A pieceSweep divides what a sweep counts among the pieces.
type pieceSweep struct {
	cuts []trace.Time // starts of the pieces that have not begun
	gpu  *GPU
	now  int
}

// at returns the piece that contains t, nil without cuts. Instants come in order.
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

// waits adds to a piece how much a gap increased idle time, by reason.
func (s *pieceSweep) waits(from trace.Time, before, after *[NumReasons]int64) {
	p := s.at(from)
	if p == nil {
		return
	}
	for reason, t := range after {
		p.Waits.Time[reason] = distribution.AddTimes(p.Waits.Time[reason], t-before[reason])
	}
}
