package serverlimit

import (
	"cmp"
	"slices"

	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/trace"
)

// A segment is a period in which no request on a server changes its state.
type segment struct {
	from, to trace.Time
	n        [numStates]int32 // requests in each state
}

// An edge is a request entering or leaving a state.
type edge struct {
	at    trace.Time
	state state
	step  int32 // 1 or -1
}

// segments divides the time of a server into segments, in order and without gaps.
func (v *server) segments() []segment {
	n := 0
	for of := range numStates {
		n += len(v.intervals[of])
	}
	edges := memory.Make[edge](2 * n)[:0]
	for of := range numStates {
		for _, h := range v.intervals[of] {
			edges = append(edges, edge{h.time.From, of, 1}, edge{h.time.To, of, -1})
		}
	}
	slices.SortFunc(edges, func(x, y edge) int { return cmp.Compare(x.at, y.at) })
	var out []segment
	var now segment
	for i := range edges {
		e := &edges[i]
		if i > 0 && e.at > now.from {
			now.to = e.at
			out = memory.Append(out, now)
		}
		now.from = e.at
		now.n[e.state] += e.step
	}
	memory.Free(edges)
	return out
}

// A spell is a period in which requests wait on a server in one state, with short pauses: counted from either end, at
// least one request waits at least half of the time.
type spell struct {
	segments []segment
	wait     state
}

func (p *spell) from() trace.Time { return p.segments[0].from }
func (p *spell) to() trace.Time   { return p.segments[len(p.segments)-1].to }

// spells finds the periods in which requests are in a state. Two are merged if the time between them is short
// compared with the first, and a request waits for most of the time. The latter matters because every request is in a
// handshake for a moment, even after a limit is gone.
func spells(all []segment, wait state) []spell {
	const short = 10 // a pause is at most one tenth of the spell before it
	var out []spell
	first, last := -1, -1
	end := func() {
		if first >= 0 {
			out = dense(out, all[first:last+1], wait)
		}
	}
	for i := range all {
		if all[i].n[wait] == 0 {
			continue
		}
		if first >= 0 && short*(all[i].from-all[last].to) > all[last].to-all[first].from {
			end()
			first = -1
		}
		if first < 0 {
			first = i
		}
		last = i
	}
	end()
	return out
}

// dense appends the periods in which a request waits for most of the time, counted from their start and from their
// end, and which cannot be extended or joined. These are the maximal scoring subsequences of Ruzzo and Tompa, who
// find them in linear time.
func dense(out []spell, all []segment, wait state) []spell {
	type run struct {
		from, to    int
		left, right trace.Time // waiting minus not waiting, up to where the run begins and ends
		lower       int        // the last run before it with a smaller left; -1 for none
	}
	var runs []run
	var sum trace.Time
	for i := range all {
		length := all[i].to - all[i].from
		if all[i].n[wait] == 0 {
			sum -= length
			continue
		}
		now := run{from: i, to: i + 1, left: sum, right: sum + length, lower: len(runs) - 1}
		sum = now.right
		for now.lower >= 0 {
			before := runs[now.lower]
			if before.left >= now.left {
				now.lower = before.lower
				continue
			}
			if before.right >= now.right {
				break
			}
			runs = runs[:now.lower]
			now.from, now.left, now.lower = before.from, before.left, before.lower
		}
		runs = append(runs, now)
	}
	for _, r := range runs {
		out = append(out, spell{all[r.from:r.to], wait})
	}
	return out
}

// share returns the share of the waiting in which a condition holds.
func (p *spell) share(holds func(s *segment) bool) float64 {
	w := p.weigh(func(s *segment) int32 {
		if holds(s) {
			return 1
		}
		return 0
	})
	return w[1] / w.whole()
}

// most returns the largest value of of in a spell, and when it first occurs.
func (p *spell) most(of func(s *segment) int32) (most int32, at trace.Time) {
	for i := range p.segments {
		if n := of(&p.segments[i]); n > most {
			most, at = n, p.segments[i].from
		}
	}
	return most, at
}

// waited returns how long requests waited, in ns, summed over requests.
func (p *spell) waited() int64 {
	return order.SumRows(p.segments, func(s *segment) int64 { return int64(s.to-s.from) * int64(s.n[p.wait]) })
}
