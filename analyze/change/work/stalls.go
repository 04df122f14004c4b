package work

import (
	"cmp"
	"math"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// A Stall is a time in which nothing that a rank was working on progressed.
type Stall struct {
	At, First, Last trace.Time // when it began, and the bounds of that
	Length          int64      // ns
	Held            []Held
}

// A Held is a piece of work that was held up, with how long, in ns.
type Held struct {
	Piece *Piece
	NS    int64
}

// slow returns the pieces that took far longer than usual, relative to the median piece, which stalls don't affect. It returns nil if more
// than a third of the pieces are slow: then the rank is slow, not stalled.
func (p *Pace) slow() (slow []Held) {
	const (
		noticed = 100_000_000 // ns
		beyond  = 8           // multiples of the usual scatter, from the median absolute deviation
	)
	if len(p.Pieces) == 0 {
		return nil
	}
	off := memory.Make[float64](len(p.Pieces))
	extra := func() {
		for i := range p.Pieces {
			off[i] = p.Pieces[i].Extra()
		}
	}
	extra()
	middle := distribution.LowerMedian(off)
	extra() // LowerMedian reordered them
	for i := range off {
		off[i] = math.Abs(off[i] - middle)
	}
	limit := max(noticed, beyond*1.4826*distribution.LowerMedian(off))
	for i := range p.Pieces {
		if more := p.Pieces[i].Extra() - middle; more >= limit {
			slow = append(slow, Held{&p.Pieces[i], int64(more)})
		}
	}
	if 3*len(slow) > len(p.Pieces) {
		return nil
	}
	return slow
}

// Stalls finds times in which a rank held up everything that it was decoding for far longer than usual.
func (p *Pace) Stalls() (out []Stall) {
	const alike = 1.5 // largest ratio of the third to the first quartile of how long pieces were held up
	slow := p.slow()
	slices.SortStableFunc(slow, func(a, b Held) int { return cmp.Compare(a.Piece.To, b.Piece.To) })
	for len(slow) > 0 { // each round takes all pieces that were under way when the first of them ended
		end := slow[0].Piece.To
		var of, rest []Held
		for _, h := range slow {
			if h.Piece.From < end {
				of = append(of, h)
			} else {
				rest = append(rest, h)
			}
		}
		slow = rest
		lengths, from := make([]int64, len(of)), of[0].Piece.From
		for k, h := range of {
			lengths[k], from = h.NS, max(from, h.Piece.From)
		}
		if slices.Sort(lengths); float64(lengths[len(of)*3/4]) > alike*float64(lengths[len(of)/4]) {
			continue // a stall holds up everything equally long
		}
		s := Stall{Length: distribution.LowerMedian(lengths), Held: of}
		s.First, s.Last = from, max(from, end-trace.Time(s.Length)) // bounds of its beginning
		s.At = s.First + (s.Last-s.First)/2
		out = append(out, s)
	}
	slices.SortStableFunc(out, func(a, b Stall) int { return cmp.Compare(a.At, b.At) })
	return out
}

// PrefillStalls finds prefills that took far longer than others with as many tokens.
func (p *Pace) PrefillStalls() (out []Stall) {
	for _, h := range p.slow() {
		if x := h.Piece; p.isLate(x) {
			out = append(out, Stall{At: x.From, First: x.From, Last: x.To - trace.Time(h.NS), Length: h.NS, Held: []Held{h}})
		}
	}
	return out
}

// isLate reports whether several pieces with as much work or more took a third of the time or
// less: then the amount of work is no excuse, whatever the model says that it costs.
func (p *Pace) isLate(x *Piece) bool {
	const few, less = 3, 3
	n := 0
	for i := range p.Pieces {
		y := &p.Pieces[i]
		if y.Burden[0] >= x.Burden[0] && y.Burden[1] >= x.Burden[1] && less*y.NS <= x.NS {
			if n++; n == few {
				return true
			}
		}
	}
	return false
}

// Ends are the sorted times at which pieces of a rank's work ended: all of them, and those of decoding.
type Ends struct{ all, decoded []trace.Time }

// EndsByRank returns the ends of every rank, of both decoding and prefill, as a scheduler that stands still does neither.
func (w *Paces) EndsByRank() map[int32]Ends {
	of := map[int32]Ends{}
	for kind, list := range [...][]Pace{w.Decode, w.Prefill} {
		decoded := kind == 0
		for i := range list {
			p := &list[i]
			ends := of[p.Rank]
			for k := range p.Pieces {
				ends.all = memory.Append(ends.all, p.Pieces[k].To)
				if decoded {
					ends.decoded = memory.Append(ends.decoded, p.Pieces[k].To)
				}
			}
			of[p.Rank] = ends
		}
	}
	for _, ends := range of {
		slices.Sort(ends.all)
		slices.Sort(ends.decoded)
	}
	return of
}

// StandStill reports whether no work ends during a stall, wherever it lies within its bounds; work that begins
// then is held up, too. Prompts that piled up are computed before decoding goes on, so requests are held up
// for longer than the rank stood still: StandStill shortens the stall to the time in which nothing ended.
func (e *Ends) StandStill(x *Stall) bool {
	const about = 0.8 // the length is an estimate
	least, to := trace.Time(about*float64(x.Length)), x.Last+trace.Time(x.Length)
	from, until := x.Last+request.SameBatch, x.First+trace.Time(x.Length)-request.SameBatch // surely within the stall
	if from >= until || firstIn(e.decoded, from) < until || firstIn(e.all, from) < max(from, x.First+least) {
		return false
	}
	began, over := x.First, min(to, firstIn(e.all, from))
	if k, _ := slices.BinarySearch(e.all, from+1); k > 0 {
		began = max(began, e.all[k-1])
	}
	if over-began < least {
		return false
	}
	x.Length = min(x.Length, int64(over-began))
	return true
}

// firstIn returns the first of some sorted times that is later than after; the largest possible time if there is none.
func firstIn(of []trace.Time, after trace.Time) trace.Time {
	if k, _ := slices.BinarySearch(of, after+1); k < len(of) {
		return of[k]
	}
	return math.MaxInt64
}
