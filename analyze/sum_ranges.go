package analyze

import (
	"cmp"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// A RangeSum is the time of all ranges of one name, on the threads that opened them
// and on the devices that did what was asked for in them.
type RangeSum struct {
	sumRow
	Share float64 // of the total time of all rows
	Style profile.RangeStyle
	Time  distribution.Distribution
	// Projected is the time of the ranges as devices saw them: from the start of the
	// first operation that was asked for in the range, to the end of the last one.
	// Ranges that asked for none are not among them; what follows is of those that are.
	Projected distribution.Distribution
	RangeTime int64 // Time of the ranges
	Ops       int64 // operations; a run of a graph is one
	Levels    int64 // ranges around them
	Children  int64 // ranges directly within them
}

// RangeSums are the times of ranges by name and style, the longest total first.
type RangeSums struct {
	Rows   []RangeSum
	ByRank bool
	// Open is how many ranges were left out since they were never closed, OpenNames are
	// the first names of those.
	Open      int64
	OpenNames []string

	ranks       int // in the set
	approximate int // rows
}

// ranges is a group of ranges.
type ranges struct {
	time, projected        distribution.Sample
	of                     int64 // time of those that were projected
	ops, levels, contained int64
}

// SumRanges sums up ranges by name, like nvtx_sum and nvtx_gpu_proj_sum of nsys stats
// together. It holds 48 bytes per range and 4 per call of a stream while it walks
// through it, and 8 bytes per range of the others.
func SumRanges(set *profile.Set, opt SumOptions) *RangeSums {
	streams := make([]*byName[ranges], len(set.Streams))
	open := make([]openRanges, len(set.Streams))
	in := opt.store()
	eachStream(set, func(i int, stream profile.Stream) {
		streams[i], open[i] = sumRanges(set, stream, &opt, in)
	})
	s := &RangeSums{ByRank: opt.ByRank, ranks: len(set.Ranks)}
	s.Open, s.OpenNames = allOpen(set, open)
	s.sum(set, &opt, streams, in)
	return s
}

// sumRanges sums up the ranges of a stream.
func sumRanges(set *profile.Set, stream profile.Stream, opt *SumOptions, in *distribution.Store) (*byName[ranges], openRanges) {
	n := newNest(set, stream, opt)
	projections := n.project(set, stream, opt)
	sums := newByName[ranges](set, opt)
	group := func(class int32) *ranges {
		c := &n.classes[class]
		return sums.of(n.threads.keys[c.thread].rank, c.name, uint8(c.style))
	}
	n.levels(func(i, level, parent int32) {
		s, p := &n.spans[i], &projections[i]
		g := group(s.class)
		if g != nil {
			g.time.Add(int64(s.end-s.start), in)
		}
		if p.ops == 0 {
			return
		}
		if g != nil {
			g.projected.Add(int64(p.last-p.first), in)
			g.of = distribution.AddTimes(g.of, int64(s.end-s.start))
			g.ops += int64(p.ops)
			g.levels += int64(level)
		}
		if parent != none {
			if g := group(n.spans[parent].class); g != nil {
				g.contained++
			}
		}
	})
	return sums, n.open
}

// sum makes the rows.
func (s *RangeSums) sum(set *profile.Set, opt *SumOptions, streams []*byName[ranges], in *distribution.Store) {
	var t distribution.Tally
	all := int64(0)
	for _, p := range pools(members(opt, streams), sumKey.compare) {
		row := RangeSum{sumRow: newSumRow(set, p.key, p.ranks), Style: profile.RangeStyle(p.key.kind)}
		var ofTime, ofProjected bool
		row.Time, ofTime = t.Of(samples(p.parts, func(r *ranges) *distribution.Sample { return &r.time }, in)...)
		row.Projected, ofProjected = t.Of(samples(p.parts, func(r *ranges) *distribution.Sample { return &r.projected }, in)...)
		for _, r := range p.parts {
			row.RangeTime = distribution.AddTimes(row.RangeTime, r.of)
			row.Ops += r.ops
			row.Levels += r.levels
			row.Children += r.contained
		}
		if ofTime || ofProjected {
			s.approximate++
		}
		all = distribution.AddTimes(all, row.Time.Total)
		s.Rows = append(s.Rows, row)
	}
	for i := range s.Rows {
		s.Rows[i].Share = distribution.Fraction(s.Rows[i].Time.Total, all)
	}
	slices.SortFunc(s.Rows, func(a, b RangeSum) int {
		return cmp.Or(a.compare(&b.sumRow, a.Time.Total, b.Time.Total), cmp.Compare(a.Style, b.Style))
	})
}

// openRanges are the ranges of a stream that were left out.
type openRanges struct {
	n     int64
	names []trace.Sym // the first few
}

// openNamed is how many names of ranges that were never closed are kept.
const openNamed = 3

func (o *openRanges) add(n int64, names ...trace.Sym) {
	o.n += n
	for _, name := range names {
		if len(o.names) < openNamed && !slices.Contains(o.names, name) {
			o.names = append(o.names, name)
		}
	}
}

// allOpen puts the ranges that were left out together.
func allOpen(set *profile.Set, streams []openRanges) (n int64, names []string) {
	var all openRanges
	for _, o := range streams {
		all.add(o.n, o.names...)
	}
	for _, name := range all.names {
		names = append(names, set.Syms.Name(name))
	}
	return all.n, names
}

// noteOpen tells of ranges that were left out.
func noteOpen(r *Report, n int64, names []string) {
	if n == 0 {
		return
	}
	list := strings.Join(names, ", ")
	if n > int64(len(names)) {
		list += ", ..."
	}
	r.note("ranges left out, as they were never closed and their length means nothing: %d (%s)", n, list)
}

// Report makes a table of the sums.
func (s *RangeSums) Report() *Report {
	row := func(r *RangeSum) *sumRow { return &r.sumRow }
	fields := rankFields(s.ByRank, row)
	fields = append(fields, shareField("part of the total of all rows; ranges overlap", func(r *RangeSum) float64 { return r.Share }))
	fields = append(fields, distributionFields(distributionColumns[RangeSum]{
		unit: Duration, what: "range", of: func(r *RangeSum) *distribution.Distribution { return &r.Time },
		show: []string{"total", "instances", "avg", "med", "max", "p99"},
	})...)
	fields = append(fields, distributionFields(distributionColumns[RangeSum]{
		prefix: "proj ", unit: Duration, what: "range with work on a device", of: func(r *RangeSum) *distribution.Distribution { return &r.Projected },
		show: []string{"total", "instances", "avg", "med", "max", "p99"},
	})...)
	fields = append(fields, projectedFields()...)
	fields = append(fields, ranksFields(s.ByRank, s.ranks, row)...)
	fields = append(fields,
		styleField(func(r *RangeSum) profile.RangeStyle { return r.Style }),
		nameField("range", row))
	r := tabulate("sgtrace.report.ranges/v1", "Ranges", s.Rows, fields)
	noteOpen(r, s.Open, s.OpenNames)
	noteFewSamples(r, s.Rows, func(r *RangeSum) int64 { return r.Time.N }, func(r *RangeSum) string { return r.Name })
	noteApproximate(r, s.approximate)
	return r
}

// projectedFields are what else is known of ranges that were projected.
func projectedFields() []field[RangeSum] {
	number := func(column Column, of func(*RangeSum) int64) field[RangeSum] {
		return field[RangeSum]{column, func(r *RangeSum) Cell {
			n := r.Projected.N
			if n == 0 {
				return Cell{Unknown: true}
			}
			v := of(r)
			if column.Tenths {
				v = distribution.Tenths(v/n, (20*(v%n)+n)/(2*n))
			}
			return Cell{N: v}
		}}
	}
	mean := func(name, doc string, of func(*RangeSum) int64) field[RangeSum] {
		return number(Column{Name: name, Unit: Count, Doc: doc, Tenths: true, Detail: true}, of)
	}
	ops := mean("ops avg", "operations on devices per range", func(r *RangeSum) int64 { return r.Ops })
	ops.Detail = false
	return []field[RangeSum]{
		number(Column{Name: "proj range total", Unit: Duration, Doc: "sum of the times, on threads, of the ranges that have work on a device", Detail: true},
			func(r *RangeSum) int64 { return r.RangeTime }),
		number(Column{Name: "ops", Unit: Count, Doc: "operations on devices that were asked for in the ranges; a run of a graph is one", Detail: true},
			func(r *RangeSum) int64 { return r.Ops }),
		ops,
		mean("level avg", "ranges around it", func(r *RangeSum) int64 { return r.Levels }),
		mean("children avg", "ranges with work on a device directly within it", func(r *RangeSum) int64 { return r.Children }),
	}
}
