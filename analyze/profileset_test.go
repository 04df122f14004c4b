package analyze

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// A rowStream passes rows that a test made. As documented, what it passes is
// overwritten by the next row.
type rowStream struct {
	kernels []profile.Kernel
	copies  []profile.Copy
	calls   []profile.Call
	ranges  []profile.Range
}

func (s *rowStream) Kernels(yield func(*profile.Kernel) bool) { passRows(s.kernels, yield) }
func (s *rowStream) Copies(yield func(*profile.Copy) bool)    { passRows(s.copies, yield) }
func (s *rowStream) Calls(yield func(*profile.Call) bool)     { passRows(s.calls, yield) }
func (s *rowStream) Ranges(yield func(*profile.Range) bool)   { passRows(s.ranges, yield) }

func passRows[T any](rows []T, yield func(*T) bool) {
	var row T
	for _, row = range rows {
		if !yield(&row) {
			return
		}
	}
}

// shuffled returns the rows in another order.
func (s *rowStream) shuffled(r *rand.Rand) *rowStream {
	return &rowStream{shuffle(r, s.kernels), shuffle(r, s.copies), shuffle(r, s.calls), shuffle(r, s.ranges)}
}

func shuffle[T any](r *rand.Rand, rows []T) []T {
	rows = slices.Clone(rows)
	r.Shuffle(len(rows), func(i, k int) { rows[i], rows[k] = rows[k], rows[i] })
	return rows
}

// split returns two streams, with the rows of which first is true in one of them.
func (s *rowStream) split(first func(e *profile.Event) bool) []profile.Stream {
	var out [2]rowStream
	at := func(e *profile.Event) *rowStream {
		if first(e) {
			return &out[0]
		}
		return &out[1]
	}
	for _, k := range s.kernels {
		to := at(&k.Event)
		to.kernels = append(to.kernels, k)
	}
	for _, c := range s.copies {
		to := at(&c.Event)
		to.copies = append(to.copies, c)
	}
	for _, c := range s.calls {
		to := at(&c.Event)
		to.calls = append(to.calls, c)
	}
	for _, r := range s.ranges {
		to := at(&r.Event)
		to.ranges = append(to.ranges, r)
	}
	return []profile.Stream{&out[0], &out[1]}
}

// setOf makes a set of streams.
func setOf(syms *trace.Symbols, ranks []string, streams ...profile.Stream) *profile.Set {
	return &profile.Set{Syms: syms, Ranks: ranks, Streams: streams}
}

// randomStream has two ranks with two threads each, ranges that nest and cross,
// calls within and across them, graphs, orphans, and times from 0 ns to minutes. Many
// times are equal.
func randomStream(r *rand.Rand, syms *trace.Symbols) *rowStream {
	s := &rowStream{}
	name := func(names ...string) trace.Sym { return syms.Intern(names[r.IntN(len(names))]) }
	event := func(rank int32, start, dur int64, corr int, n trace.Sym) profile.Event {
		return profile.Event{Start: trace.Time(start), End: trace.Time(start + dur), Correlation: int64(corr), Name: n, Rank: rank, PID: 10 + rank}
	}
	length := func() int64 {
		switch r.IntN(20) {
		case 0:
			return 0
		case 1:
			return 5e9 + r.Int64N(1e9) // beyond 32 bits
		}
		return r.Int64N(100)
	}
	for rank := range int32(2) {
		for tid := range int64(2) {
			for range r.IntN(40) {
				s.ranges = append(s.ranges, profile.Range{Event: event(rank, r.Int64N(400), r.Int64N(200), 0, name("a", "b", "c")),
					TID: tid, Style: profile.RangeStyle(r.IntN(2)), Open: r.IntN(10) == 0})
			}
		}
		corr := 1
		for i := range 60 {
			call := profile.Call{Event: event(rank, int64(i)*8, 1+r.Int64N(7), corr, name("cudaLaunchKernel", "cudaGraphLaunch_v10000")), TID: r.Int64N(2)}
			if r.IntN(8) > 0 { // else its kernels are orphans
				s.calls = append(s.calls, call)
			}
			for range r.IntN(4) {
				start := int64(call.Start) + r.Int64N(300)
				if r.IntN(4) == 0 {
					s.copies = append(s.copies, profile.Copy{Event: event(rank, start, length(), corr, name("[copy]", "[set]")), Bytes: r.Int64N(1000) - 1})
				} else {
					s.kernels = append(s.kernels, profile.Kernel{Event: event(rank, start, length(), corr, name("k1", "k2")), Device: int32(r.IntN(2)), Graph: r.IntN(9) == 0})
				}
			}
			corr += 1 + r.IntN(3)
		}
	}
	return s
}

// csvOf renders a report as CSV, which has all columns and rows.
func csvOf(t *testing.T, r *Report) string {
	t.Helper()
	return text(t, r, FormatCSV, Style{})
}
