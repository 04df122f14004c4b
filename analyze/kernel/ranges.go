package kernel

import (
	"cmp"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/profilewalk"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// A RangeSum is the time of all ranges of one name, on the threads that opened them
// and on the devices that did what was asked for in them.
type RangeSum struct {
	Row   profilewalk.Row
	Share float64 // of the total time of all rows
	Style profile.RangeStyle
	Time  distribution.Distribution
	// Projected is the time of the ranges as devices saw them: from the start of the first operation
	// that was asked for in the range to the end of the last one. Ranges that asked for none do not
	// count, here and in the fields below.
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
func SumRanges(set *profile.Set, opt profilewalk.Options) *RangeSums {
	streams := make([]*profilewalk.ByName[ranges], len(set.Streams))
	open := make([]openRanges, len(set.Streams))
	in := opt.Store()
	profilewalk.EachStream(set, func(i int, stream profile.Stream) {
		streams[i], open[i] = sumRanges(set, stream, &opt, in)
	})
	s := &RangeSums{ByRank: opt.ByRank, ranks: len(set.Ranks)}
	s.Open, s.OpenNames = allOpen(set, open)
	s.sum(set, &opt, streams, in)
	return s
}

// sumRanges sums up the ranges of a stream.
func sumRanges(set *profile.Set, stream profile.Stream, opt *profilewalk.Options, in *distribution.Store) (*profilewalk.ByName[ranges], openRanges) {
	n := newNest(set, stream, opt)
	projections := n.project(set, stream, opt)
	sums := profilewalk.NewByName[ranges](set)
	group := func(class int32) *ranges {
		c := &n.classes[class]
		return sums.Of(n.threads.keys[c.thread].rank, c.name, uint8(c.style))
	}
	n.levels(func(i, level, parent int32) {
		s, p := &n.spans[i], &projections[i]
		g := group(s.class)
		g.time.Add(int64(s.end-s.start), in)
		if p.ops == 0 {
			return
		}
		g.projected.Add(int64(p.last-p.first), in)
		g.of = distribution.AddTimes(g.of, int64(s.end-s.start))
		g.ops += int64(p.ops)
		g.levels += int64(level)
		if parent != none {
			group(n.spans[parent].class).contained++
		}
	})
	return sums, n.open
}

// sum makes the rows.
func (s *RangeSums) sum(set *profile.Set, opt *profilewalk.Options, streams []*profilewalk.ByName[ranges], in *distribution.Store) {
	var t distribution.Tally
	all := int64(0)
	for _, p := range profilewalk.Pools(profilewalk.Members(opt, streams), profilewalk.Key.Compare) {
		row := RangeSum{Row: profilewalk.NewRow(set, p.Key, p.Ranks), Style: profile.RangeStyle(p.Key.Kind)}
		var ofTime, ofProjected bool
		row.Time, ofTime = t.Of(profilewalk.Samples(p.Parts, func(r *ranges) *distribution.Sample { return &r.time }, in)...)
		row.Projected, ofProjected = t.Of(profilewalk.Samples(p.Parts, func(r *ranges) *distribution.Sample { return &r.projected }, in)...)
		for _, r := range p.Parts {
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
		return cmp.Or(a.Row.Compare(&b.Row, a.Time.Total, b.Time.Total), cmp.Compare(a.Style, b.Style))
	})
}

// openRanges are the ranges of a stream that were left out since they were never closed.
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

// allOpen merges the ranges that were left out of all streams.
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

// noteOpen adds a note about ranges that were left out.
func noteOpen(r *table.Table, n int64, names []string) {
	if n == 0 {
		return
	}
	list := strings.Join(names, ", ")
	if n > int64(len(names)) {
		list += ", ..."
	}
	r.Note("ranges left out because they were never closed, so their length is meaningless: %d (%s)", n, list)
}

// Report makes a table of the sums.
func (s *RangeSums) Report() *table.Table {
	row := func(r *RangeSum) *profilewalk.Row { return &r.Row }
	fields := profilewalk.RankFields(s.ByRank, row)
	fields = append(fields, profilewalk.ShareField("share of the total of all rows; ranges overlap", func(r *RangeSum) float64 { return r.Share }))
	fields = append(fields, table.DistributionFields(table.DistributionColumns[RangeSum]{
		Unit: table.Duration, What: "ranges", Of: func(r *RangeSum) *distribution.Distribution { return &r.Time },
		Show: []string{"total", "instances", "avg", "med", "max", "p99"},
	})...)
	fields = append(fields, table.DistributionFields(table.DistributionColumns[RangeSum]{
		Prefix: "proj ", Unit: table.Duration, What: "ranges with device work", Of: func(r *RangeSum) *distribution.Distribution { return &r.Projected },
		Show: []string{"total", "instances", "avg", "med", "max", "p99"},
	})...)
	fields = append(fields, projectedFields()...)
	fields = append(fields, profilewalk.RanksFields(s.ByRank, s.ranks, row)...)
	fields = append(fields,
		profilewalk.StyleField(func(r *RangeSum) profile.RangeStyle { return r.Style }),
		profilewalk.NameField("range", row))
	r := table.New("sgtrace.report.ranges/v1", "Ranges", s.Rows, fields)
	noteOpen(r, s.Open, s.OpenNames)
	table.NoteFewSamples(r, s.Rows, func(r *RangeSum) int64 { return r.Time.N }, func(r *RangeSum) string { return r.Row.Name })
	table.NoteApproximate(r, s.approximate)
	return r
}

// projectedFields returns the other columns about ranges with work on a device.
func projectedFields() []table.Field[RangeSum] {
	number := func(column table.Column, of func(*RangeSum) int64) table.Field[RangeSum] {
		return table.Field[RangeSum]{Column: column, Cell: func(r *RangeSum) table.Cell {
			n := r.Projected.N
			if n == 0 {
				return table.Cell{Unknown: true}
			}
			v := of(r)
			if column.Tenths {
				v = distribution.Tenths(v/n, (20*(v%n)+n)/(2*n))
			}
			return table.Cell{N: v}
		}}
	}
	mean := func(name, doc string, of func(*RangeSum) int64) table.Field[RangeSum] {
		return number(table.Column{Name: name, Unit: table.Count, Doc: doc, Tenths: true, Detail: true}, of)
	}
	ops := mean("ops avg", "device operations per range", func(r *RangeSum) int64 { return r.Ops })
	ops.Detail = false
	return []table.Field[RangeSum]{
		number(table.Column{Name: "proj range total", Unit: table.Duration, Doc: "total duration on threads of the ranges that launched device work", Detail: true},
			func(r *RangeSum) int64 { return r.RangeTime }),
		number(table.Column{Name: "ops", Unit: table.Count, Doc: "number of device operations launched in the ranges; a graph launch counts as one", Detail: true},
			func(r *RangeSum) int64 { return r.Ops }),
		ops,
		mean("level avg", "nesting level: average number of ranges around it", func(r *RangeSum) int64 { return r.Levels }),
		mean("children avg", "average number of ranges with device work directly within it", func(r *RangeSum) int64 { return r.Children }),
	}
}
