package compare

import (
	"cmp"
	"math"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// MaxPieces is how many pieces a capture is cut into: as many as tell apart noise and
// change. More gain nothing, and become alike.
const MaxPieces = 20

// MinRequests is how many requests a piece of a capture has at least.
const MinRequests = 10

// Pieces say which piece of a side an instant of a capture lies in.
type Pieces struct {
	Starts []trace.Time // of all pieces of the capture but the first
	First  int          // number of the capture's first piece
	All    int          // how many pieces the side has; 0 is those of the capture
}

// Cuts returns where pieces begin, but the first; never nil where there is one piece only,
// which then ends after all times.
func (p *Pieces) Cuts() []trace.Time {
	if len(p.Starts) == 0 {
		return []trace.Time{math.MaxInt64}
	}
	return p.Starts
}

// N returns how many pieces the side has.
func (p *Pieces) N() int { return cmp.Or(p.All, p.Own()) }

// Own returns how many of them the capture has.
func (p *Pieces) Own() int { return len(p.Starts) + 1 }

// At returns the piece that an instant lies in.
func (p *Pieces) At(t trace.Time) int {
	n, found := slices.BinarySearch(p.Starts, t)
	if found {
		n++
	}
	return p.First + n
}

// CutEvenly makes n pieces that have about as many of the given instants each. It sorts
// them.
func CutEvenly(times []trace.Time, n int) *Pieces {
	slices.Sort(times)
	p := &Pieces{}
	for i := 1; i < n; i++ {
		// An empty piece is no observation.
		if at := times[i*len(times)/n]; at > times[0] && (len(p.Starts) == 0 || at > p.Starts[len(p.Starts)-1]) {
			p.Starts = append(p.Starts, at)
		}
	}
	return p
}

// CutTime makes n pieces of the same length.
func CutTime(first, last trace.Time, n int) *Pieces {
	p := &Pieces{}
	for i := 1; i < n; i++ {
		p.Starts = append(p.Starts, first+trace.Time(float64(last-first)*float64(i)/float64(n)))
	}
	return p
}

// CutOverlapping makes pieces that have the same number of requests. They
// are longer than nine of ten requests, so that few lie in two of them, and what
// a group of requests waited for is one observation.
func CutOverlapping(s *request.Set, list []request.Request) *Pieces {
	n := len(list)
	if n == 0 {
		first, last, _ := s.Bounds()
		return CutTime(first, last, MaxPieces)
	}
	lengths := make([]int64, n)
	for i := range list {
		lengths[i] = max(1, int64(list[i].End-list[i].Start))
	}
	slices.Sort(lengths)
	span := distribution.Between(list[0].Start, list[n-1].Start)
	return CutRequests(list, span/request.NearestRank(lengths, 90))
}

// CutRequests makes at most so many pieces with the same number of requests.
func CutRequests(list []request.Request, most int64) *Pieces {
	starts := order.EachRow(list, func(r *request.Request) trace.Time { return r.Start })
	return CutEvenly(starts, int(max(1, min(MaxPieces, int64(len(starts)/MinRequests), most))))
}

// Captures says how many captures a side is made of if each counts as one observation.
type Captures struct {
	N     int // 0 is one capture that is cut into pieces
	Added int // how many of them are in it
}

// Whole reports whether every piece is a capture.
func (c Captures) Whole() bool { return c.N > 0 }

// Pieces returns the pieces that what is in the capture which is being added belongs to: those
// that it was cut into, or one for all of it.
func (c Captures) Pieces(cut *Pieces) *Pieces {
	if !c.Whole() {
		return cut
	}
	return &Pieces{First: c.Added, All: c.N}
}
