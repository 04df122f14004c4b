package drawing

import (
	"cmp"
	"slices"

	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/internal/parallel"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// slack is how far, in ns, a child may extend beyond its parent, or overlap its sibling, and still be drawn
// inside the parent, cut to fit. SGLang's slices lie on a grid of 256 ns and are recalibrated by about as
// much; anything beyond a microsecond is real concurrency and gets its own lane.
const slack = 1000 // ns

// A unit is a span that is drawn on a lane, with everything that nests in it.
type unit struct {
	from, to trace.Time
	span     int32
	proc     int32
	request  int32 // None for spans without a request
}

// findUnits finds the units of a view, in the order of their spans. of reports whether the view has a span,
// and alone whether nothing nests in it.
func (l *layout) findUnits(of, alone func(i int) bool) (units []unit, isTop []bool) {
	n := l.set.Len()
	isTop = memory.Make[bool](n)
	parallel.Rows(n, request.RowSize, func(from, to int) {
		for i := from; i < to; i++ {
			if l.drawn(i) && of(i) {
				l.splitConcurrent(i, isTop)
			}
		}
	})
	units = parallel.Gather(n, request.RowSize, func(list []unit, from, to int) []unit {
		for i := from; i < to; i++ {
			if !l.drawn(i) || !of(i) {
				continue
			}
			s := l.set.Row(i)
			if p := l.above(i); p == request.None || l.set.ProcOf(p) != int(s.Proc) || alone(p) {
				isTop[i] = true
			}
			if isTop[i] {
				list = append(list, unit{s.Start, max(s.Start, s.End), int32(i), s.Proc, int32(l.set.RequestOf(i))})
			}
		}
		return list
	})
	return units, isTop
}

// sortUnits sorts units by start, then longest first.
func (l *layout) sortUnits(units []unit) {
	slices.SortFunc(units, func(x, y unit) int {
		switch {
		case x.from != y.from:
			return cmp.Compare(x.from, y.from)
		case x.to != y.to:
			return cmp.Compare(y.to, x.to)
		}
		return l.set.Compare(int(x.span), int(y.span))
	})
}

// splitConcurrent makes the children of span i that do not nest units of their own.
func (l *layout) splitConcurrent(i int, isTop []bool) {
	s := l.set.Row(i)
	at := s.Start
	l.below(i, func(c int) {
		child := l.set.Row(c)
		if l.set.ProcOf(c) != l.set.ProcOf(i) {
			return
		}
		if child.Start+slack < at || child.Start > s.End+slack || child.End > s.End+slack {
			isTop[c] = true
			return
		}
		at = max(at, child.End)
	})
}

// pack assigns units, which are sorted by start, to lanes: a request keeps its lane if possible; others
// take the first free one.
func pack(units []unit) (lanes [][]unit) {
	var ends laneEnds
	home := map[int32]int{}
	for _, u := range units {
		free := func(k int) bool {
			last := lanes[k][len(lanes[k])-1].request
			return ends.at(k) <= u.from || u.request != request.None && last == u.request && ends.at(k) <= u.from+slack
		}
		k, ok := home[u.request]
		if !ok || u.request == request.None || !free(k) {
			k = ends.next(0, u.from+slack)
			for k < len(lanes) && !free(k) {
				k = ends.next(k+1, u.from+slack)
			}
		}
		if k == len(lanes) {
			ends.add()
			lanes = append(lanes, nil)
		}
		ends.set(k, u.to)
		home[u.request] = k
		lanes[k] = memory.Append(lanes[k], u)
	}
	return lanes
}

// eachGroup calls f for the units of each group, which are numbered from 0; the order within a group is
// kept. Groups without units, and the group None, are skipped.
func eachGroup(units []unit, group func(u *unit) int32, f func(units []unit)) {
	var ends []int
	for i := range units {
		if g := int(group(&units[i])); g != request.None {
			for g >= len(ends) {
				ends = append(ends, 0)
			}
			ends[g]++
		}
	}
	for g := 1; g < len(ends); g++ {
		ends[g] += ends[g-1]
	}
	if len(ends) == 0 {
		return
	}
	sorted := memory.Make[unit](ends[len(ends)-1])
	for i := len(units) - 1; i >= 0; i-- {
		if g := group(&units[i]); g != request.None {
			ends[g]--
			sorted[ends[g]] = units[i]
		}
	}
	for g, from := range ends {
		to := len(sorted)
		if g+1 < len(ends) {
			to = ends[g+1]
		}
		if from < to {
			f(sorted[from:to])
		}
	}
}

func byProc(u *unit) int32    { return u.proc }
func byRequest(u *unit) int32 { return u.request }
