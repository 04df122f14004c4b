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

// MaxPieces is the largest number of pieces of a capture. That is enough to tell change from
// noise; more pieces gain nothing, and neighbors become alike.
const MaxPieces = 20

// MinRequests is the least number of requests in a piece of a capture.
const MinRequests = 10

// Pieces map an instant of a capture to a piece of its side.
type Pieces struct {
	Starts []trace.Time // starts of all pieces of the capture but the first
	First  int          // number of the capture's first piece
	All    int          // number of pieces of the side; 0: as many as the capture has
}

// Cuts returns the starts of all pieces but the first. It is never nil: a single piece ends at the end of time.
func (p *Pieces) Cuts() []trace.Time {
	if len(p.Starts) == 0 {
		return []trace.Time{math.MaxInt64}
	}
	return p.Starts
}

// N returns the number of pieces of the side.
func (p *Pieces) N() int { return cmp.Or(p.All, p.Own()) }

// Own returns the number of pieces of the capture.
func (p *Pieces) Own() int { return len(p.Starts) + 1 }

// At returns the piece that an instant lies in.
func (p *Pieces) At(t trace.Time) int {
	n, found := slices.BinarySearch(p.Starts, t)
	if found {
		n++
	}
	return p.First + n
}

// CutEvenly cuts into at most n pieces with about the same number of the given instants each. It sorts the instants.
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

// CutTime cuts into n pieces of the same length.
func CutTime(first, last trace.Time, n int) *Pieces {
	p := &Pieces{}
	for i := 1; i < n; i++ {
		p.Starts = append(p.Starts, first+trace.Time(float64(last-first)*float64(i)/float64(n)))
	}
	return p
}

// CutOverlapping cuts into pieces with the same number of requests, each longer than nine of ten requests
// are. Few requests then lie in two pieces, and what a group of requests waited for is one observation.
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

// CutRequests cuts into at most `most` pieces with the same number of requests.
func CutRequests(list []request.Request, most int64) *Pieces {
	starts := order.EachRow(list, func(r *request.Request) trace.Time { return r.Start })
	return CutEvenly(starts, int(max(1, min(MaxPieces, int64(len(starts)/MinRequests), most))))
}

// Captures is how many captures a side consists of, if each counts as one observation.
type Captures struct {
	N     int // 0: a single capture, cut into pieces
	Added int // how many have been added so far
}

// Whole reports whether every piece is a whole capture.
func (c Captures) Whole() bool { return c.N > 0 }

// Pieces returns the pieces for the capture that is being added: those that it was cut into, or one for the whole capture.
func (c Captures) Pieces(cut *Pieces) *Pieces {
	if !c.Whole() {
		return cut
	}
	return &Pieces{First: c.Added, All: c.N}
}
