package work

import (
	"cmp"
	"slices"
	"unsafe"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/load"
	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/trace"
)

// one weighs every piece as 1, to count pieces.
func one(*Piece) float64 { return 1 }

// union merges the times of prefills, which are ordered by start, into disjoint intervals.
func union(list []load.Prefill) (out []Piece) {
	for _, p := range list {
		if n := len(out); n > 0 && p.From <= out[n-1].To {
			out[n-1].To = max(out[n-1].To, p.To)
		} else {
			out = memory.Append(out, Piece{From: p.From, To: p.To})
		}
	}
	return out
}

// A levelOver is a level that changes at instants, with its integral over time.
type levelOver struct {
	at    []trace.Time
	level []float64 // from at[i] on
	area  []float64 // integral up to at[i]
}

// newLevelOver returns the total weight of the pieces that are under way at each time.
func newLevelOver(list []Piece, weight func(*Piece) float64) *levelOver {
	type edge struct {
		at trace.Time
		by float64
	}
	edges := memory.Make[edge](2 * len(list))[:0]
	for i := range memory.Each(len(list), int(unsafe.Sizeof(Piece{})+2*unsafe.Sizeof(edge{}))) {
		by := weight(&list[i])
		edges = append(edges, edge{list[i].From, by}, edge{list[i].To, -by})
	}
	slices.SortFunc(edges, func(a, b edge) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.by, b.by)) })
	n := len(edges)
	l := &levelOver{memory.Make[trace.Time](n)[:0], memory.Make[float64](n)[:0], memory.Make[float64](n)[:0]}
	level, area := 0.0, 0.0
	for i := range memory.Each(n, 3*int(unsafe.Sizeof(edge{}))) {
		e := edges[i]
		if i > 0 {
			area += level * float64(e.at-edges[i-1].at)
		}
		level += e.by
		l.at, l.level, l.area = append(l.at, e.at), append(l.level, level), append(l.area, area)
	}
	return l
}

// until returns the integral of the level up to t.
func (l *levelOver) until(t trace.Time) float64 {
	i, found := slices.BinarySearch(l.at, t)
	if found {
		return l.area[i]
	}
	if i == 0 {
		return 0
	}
	return l.area[i-1] + l.level[i-1]*float64(t-l.at[i-1])
}

// mean returns the average level between two times.
func (l *levelOver) mean(from, to trace.Time) float64 {
	return distribution.Ratio(l.until(to)-l.until(from), float64(to-from))
}
