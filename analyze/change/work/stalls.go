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

// A Stall is when nothing that a rank worked at went on for long.
type Stall struct {
	At, First, Last trace.Time // when it began, and between which times
	Length          int64      // ns
	Held            []Held
}

// A Held is a piece of work that was held up, for how long.
type Held struct {
	Piece *Piece
	NS    int64
}

// slow returns the pieces that took far longer than others usually do, where the middle of them is what is usual: those that stood still are no
// part of that. It returns nothing if they are so many that the rank is slow, and does not stand still.
func (p *Pace) slow() (slow []Held) {
	const (
		noticed = 100_000_000 // ns
		beyond  = 8           // times what requests vary by
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
	extra() // they were put in order
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

// Stalls finds times at which a rank held up all that it decoded, by far longer than anything usually is.
func (p *Pace) Stalls() (out []Stall) {
	const alike = 1.5 // that half of those it holds up are held up
	slow := p.slow()
	slices.SortStableFunc(slow, func(a, b Held) int { return cmp.Compare(a.Piece.To, b.Piece.To) })
	for len(slow) > 0 { // all that were under way when the first of them ended
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
			continue // who stands still holds up all for as long
		}
		s := Stall{Length: distribution.LowerMedian(lengths), Held: of}
		s.First, s.Last = from, max(from, end-trace.Time(s.Length)) // between these it began
		s.At = s.First + (s.Last-s.First)/2
		out = append(out, s)
	}
	slices.SortStableFunc(out, func(a, b Stall) int { return cmp.Compare(a.At, b.At) })
	return out
}

// PrefillStalls finds prefills that took far longer than others of as many tokens do.
func (p *Pace) PrefillStalls() (out []Stall) {
	for _, h := range p.slow() {
		if x := h.Piece; p.isLate(x) {
			out = append(out, Stall{At: x.From, First: x.From, Last: x.To - trace.Time(h.NS), Length: h.NS, Held: []Held{h}})
		}
	}
	return out
}

// isLate reports whether pieces of as much work, or more, took far less: then it is not what there was to do, whatever that usually costs.
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

// Ends are when the pieces of work of a rank ended, the first one first: of all that it does, and of what it decodes.
type Ends struct{ all, decoded []trace.Time }

// EndsByRank are those of each rank, of what it decodes and of what it prefills: a scheduler that stands still does neither.
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

// StandStill reports whether nothing ends in a stall, wherever it lies: what begins there, if it can, is held up, too. Prompts that piled up
// meanwhile are computed first, before those that were held up are decoded again, so that these see more of it than nothing ends for: the
// stall is as long as that.
func (e *Ends) StandStill(x *Stall) bool {
	const about = 0.8 // the length follows from what is usual
	least, to := trace.Time(about*float64(x.Length)), x.Last+trace.Time(x.Length)
	from, until := x.Last+request.SameBatch, x.First+trace.Time(x.Length)-request.SameBatch // it has begun, and is not over yet
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

// firstIn returns the first of some times after another one; the last time that there is without any.
func firstIn(of []trace.Time, after trace.Time) trace.Time {
	if k, _ := slices.BinarySearch(of, after+1); k < len(of) {
		return of[k]
	}
	return math.MaxInt64
}
