package kernel

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/profilewalk"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/testkit/testset"
	"github.com/sgtrace/sgtrace/trace"
)

// sumReports are all reports on the sums of a set.
var sumReports = map[string]func(*profile.Set, profilewalk.Options) *table.Table{
	"kernels":       func(s *profile.Set, o profilewalk.Options) *table.Table { return SumKernels(s, o).Report() },
	"calls":         func(s *profile.Set, o profilewalk.Options) *table.Table { return SumCalls(s, o).Report() },
	"copies":        func(s *profile.Set, o profilewalk.Options) *table.Table { return SumCopies(s, o).Reports()[0] },
	"copies memory": func(s *profile.Set, o profilewalk.Options) *table.Table { return SumCopies(s, o).Reports()[1] },
	"ranges":        func(s *profile.Set, o profilewalk.Options) *table.Table { return SumRanges(s, o).Report() },
	"range kernels": func(s *profile.Set, o profilewalk.Options) *table.Table { return SumRangeKernels(s, o).Report() },
	"launches":      func(s *profile.Set, o profilewalk.Options) *table.Table { return SumLaunches(s, o).Report() },
}

// Results depend neither on the order of rows, nor on the stream of a rank, nor on the numbers of symbols.
func TestSumsIgnoreOrder(t *testing.T) {
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 1))
		syms := trace.NewSymbols()
		stream := testset.RandomStream(r, syms)
		ranks := []string{"rank 0", "rank 1"}
		want := testset.SetOf(syms, ranks, stream)
		for what, got := range map[string]*profile.Set{
			"shuffled": testset.SetOf(syms, ranks, stream.Shuffled(r)),
			"split":    testset.SetOf(syms, ranks, stream.Split(func(e *profile.Event) bool { return e.Rank == 0 })...),
			"renamed":  testset.Renumbered(stream, syms, ranks),
		} {
			for name, report := range sumReports {
				for _, opt := range []profilewalk.Options{{}, {ByRank: true}, {Open: true}, {From: 100, To: 300}} {
					w := testset.CSV(t, report(want, opt))
					opt.Batch, opt.Waiting = 1+r.IntN(4), r.IntN(20)
					if g := testset.CSV(t, report(got, opt)); g != w {
						t.Fatalf("seed %d: %s of rows that were %s, %+v:\n%s\nwant\n%s", seed, name, what, opt, g, w)
					}
				}
			}
		}
	}
}

// Rows may be spread over streams in any way, as far as sums are concerned.
func TestSumsIgnoreStreams(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	syms := trace.NewSymbols()
	stream := testset.RandomStream(r, syms)
	ranks := []string{"rank 0", "rank 1"}
	for _, name := range []string{"kernels", "calls", "copies"} {
		want := testset.CSV(t, sumReports[name](testset.SetOf(syms, ranks, stream), profilewalk.Options{}))
		got := testset.CSV(t, sumReports[name](testset.SetOf(syms, ranks, stream.Split(func(*profile.Event) bool { return r.IntN(2) == 0 })...), profilewalk.Options{}))
		if got != want {
			t.Errorf("%s of two streams:\n%s\nwant\n%s", name, got, want)
		}
	}
}

// Rows of all ranks together are the sums of the rows by rank.
func TestRowsByRankAddUp(t *testing.T) {
	type sum struct{ n, total, min, max, ranks int64 }
	for seed := range uint64(20) {
		syms := trace.NewSymbols()
		set := testset.SetOf(syms, []string{"rank 0", "rank 1"}, testset.RandomStream(rand.New(rand.NewPCG(seed, 5)), syms))
		collect := func(opt profilewalk.Options) map[string]sum {
			out := map[string]sum{}
			add := func(key string, rank int, d *distribution.Distribution) {
				s, ok := out[key]
				if !ok {
					s.min = d.Min
				}
				out[key] = sum{s.n + d.N, s.total + d.Total, min(s.min, d.Min), max(s.max, d.Max), s.ranks + int64(rank)}
			}
			for _, row := range SumKernels(set, opt).Rows {
				key := "kernel " + row.Row.Name
				if row.Graph {
					key = "graph " + row.Row.Name
				}
				add(key, row.Row.Ranks, &row.Distribution)
			}
			for _, row := range SumCopies(set, opt).Rows {
				add("copy "+row.Row.Name, row.Row.Ranks, &row.Time)
			}
			for _, row := range SumRanges(set, opt).Rows {
				add("range "+row.Style.String()+row.Row.Name, row.Row.Ranks, &row.Time)
			}
			for _, row := range SumLaunches(set, opt).Rows {
				add("launch "+row.CallName+row.Row.Name, 0, &row.Whole)
			}
			for _, row := range SumRangeKernels(set, opt).Rows {
				add("range kernel "+row.Range+row.Style.String()+row.Row.Name, 0, &row.Distribution)
			}
			return out
		}
		pooled, byRank := collect(profilewalk.Options{}), collect(profilewalk.Options{ByRank: true})
		if len(pooled) != len(byRank) {
			t.Fatalf("%d names, by rank %d", len(pooled), len(byRank))
		}
		for key, p := range pooled {
			if byRank[key] != p {
				t.Errorf("seed %d: %s has %+v, by rank %+v", seed, key, p, byRank[key])
			}
		}
	}
}

// containing returns the ranges around a call, in no particular order.
func containing(s *testset.RowStream, e *profile.Event, tid int64, open bool) []int {
	var out []int
	for i := range s.RangeRows {
		g := &s.RangeRows[i]
		if g.Rank == e.Rank && g.TID == tid && g.Start <= e.Start && e.End <= g.End && (open || !g.Open) {
			out = append(out, i)
		}
	}
	return out
}

// callOf returns the call that launched some work, or nil.
func callOf(s *testset.RowStream, e *profile.Event) *profile.Call {
	for i := range s.CallRows {
		if c := &s.CallRows[i]; c.Rank == e.Rank && c.Correlation == e.Correlation {
			return c
		}
	}
	return nil
}

// attributed are the ranges to which calls and work belong, found by comparing every call with every range.
type attributed struct {
	stream      *testset.RowStream
	set         *profile.Set
	open        bool
	projections []projection // by range
	kernels     map[rangeKernel]*values
	ranges      map[rangeKernel]map[int]bool
	seen        map[*profile.Call]bool
}

// A rangeKernel identifies a row by its range and its kernel.
type rangeKernel struct {
	row    string
	kernel string
}

func attributeAll(set *profile.Set, s *testset.RowStream, open bool) *attributed {
	a := &attributed{s, set, open, make([]projection, len(s.RangeRows)), map[rangeKernel]*values{}, map[rangeKernel]map[int]bool{}, map[*profile.Call]bool{}}
	for i := range s.KernelRows {
		a.add(&s.KernelRows[i].Event, true)
	}
	for i := range s.CopyRows {
		a.add(&s.CopyRows[i].Event, false)
	}
	return a
}

func (a *attributed) add(e *profile.Event, kernel bool) {
	c := callOf(a.stream, e)
	if c == nil {
		return
	}
	ops := uint32(1)
	if a.seen[c] && strings.Contains(a.set.Syms.Name(c.Name), "Graph") {
		ops = 0
	}
	a.seen[c] = true
	for _, i := range containing(a.stream, &c.Event, c.TID, a.open) {
		a.projections[i].extend(e.Start, e.End, ops)
		if !kernel {
			continue
		}
		g := &a.stream.RangeRows[i]
		row := rangeKernel{rowName(a.set.Ranks[g.Rank], g.TID, g.Style, a.set.Syms.Name(g.Name)), a.set.Syms.Name(e.Name)}
		if a.kernels[row] == nil {
			a.kernels[row], a.ranges[row] = &values{}, map[int]bool{}
		}
		a.kernels[row].add(e.Dur())
		a.ranges[row][i] = true
	}
}

func rowName(rank string, tid int64, style profile.RangeStyle, name string) string {
	return fmt.Sprint(rank, " ", tid, " ", style, " ", name)
}

// Calls and work are attributed to ranges according to the definition.
func TestRangesEqualDefinition(t *testing.T) {
	for seed := range uint64(150) {
		syms := trace.NewSymbols()
		s := testset.RandomStream(rand.New(rand.NewPCG(seed, 6)), syms)
		opt := profilewalk.Options{ByRank: true, Open: seed%2 == 0, Batch: 1 + int(seed%3)}
		set := testset.SetOf(syms, []string{"rank 0", "rank 1"}, s)
		want := attributeAll(set, s, opt.Open)
		for _, row := range SumRanges(set, opt).Rows {
			w := definedRange(s, want.projections, &row, syms, opt.Open)
			if row.Projected != w.Projected || row.Ops != w.Ops || row.Levels != w.Levels || row.Children != w.Children || row.RangeTime != w.RangeTime {
				t.Fatalf("seed %d: %s %s %s\n got %+v\nwant %+v", seed, row.Row.Rank, row.Style, row.Row.Name, row, w)
			}
		}
		rows := SumRangeKernels(set, opt).Rows
		if len(rows) != len(want.kernels) {
			t.Fatalf("seed %d: %d rows of ranges and kernels, want %d", seed, len(rows), len(want.kernels))
		}
		for _, row := range rows {
			key := rangeKernel{rowName(row.Row.Rank, row.TID, row.Style, row.Range), row.Row.Name}
			if want.kernels[key] == nil {
				t.Fatalf("seed %d: there is no %+v", seed, key)
			}
			if w := want.kernels[key].distribution(); row.Distribution != w || row.Ranges != int64(len(want.ranges[key])) {
				t.Fatalf("seed %d: %+v\n got %+v in %d ranges\nwant %+v in %d", seed, key, row.Distribution, row.Ranges, w, len(want.ranges[key]))
			}
		}
	}
}

// definedRange computes the expected values of a row.
func definedRange(s *testset.RowStream, projections []projection, row *RangeSum, syms *trace.Symbols, open bool) RangeSum {
	var want RangeSum
	var times values
	is := func(i int) bool {
		g := &s.RangeRows[i]
		return int(g.Rank) == int(row.Row.RankIndex) && g.Style == row.Style && syms.Name(g.Name) == row.Row.Name
	}
	for i := range s.RangeRows {
		g, p := &s.RangeRows[i], projections[i]
		if p.ops == 0 {
			continue
		}
		around := slices.DeleteFunc(containing(s, &g.Event, g.TID, open), func(k int) bool { return k == i || after(s, syms, k, i) })
		if is(i) {
			times.add(int64(p.last - p.first))
			want.Ops += int64(p.ops)
			want.RangeTime += g.Dur()
			want.Levels += int64(len(around))
		}
		if len(around) == 0 {
			continue
		}
		parent := slices.MinFunc(around, func(a, b int) int {
			x, y := &s.RangeRows[a], &s.RangeRows[b]
			return cmp.Or(cmp.Compare(x.Dur(), y.Dur()), cmp.Compare(y.Start, x.Start), sign(after(s, syms, b, a)))
		})
		if is(parent) {
			want.Children++
		}
	}
	want.Projected = times.distribution()
	return want
}

func sign(before bool) int {
	if before {
		return 1
	}
	return -1
}

// after reports whether range k counts as the inner one of two ranges k and i with equal bounds.
func after(s *testset.RowStream, syms *trace.Symbols, k, i int) bool {
	a, b := &s.RangeRows[k], &s.RangeRows[i]
	if a.Start != b.Start || a.End != b.End {
		return false
	}
	return cmp.Or(strings.Compare(syms.Name(a.Name), syms.Name(b.Name)), cmp.Compare(a.Style, b.Style), cmp.Compare(k, i)) > 0
}

// values summarizes values as the reports do.
type values struct{ distribution.Sample }

func (v *values) add(x int64) { v.Sample.Add(x, distribution.NoLimit) }

func (v *values) distribution() distribution.Distribution {
	var t distribution.Tally
	d, _ := t.Of(&v.Sample)
	return d
}
