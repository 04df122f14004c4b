package analyze

import (
	"slices"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/profile"
)

// A CopySum is the time and size of all copies of one kind, or of all fills.
type CopySum struct {
	sumRow
	Share      float64                   // of the total time of all rows
	Time, Size distribution.Distribution // Size is of the copies whose size is known
}

// CopySums are the times and sizes of copies by operation, the longest total first.
type CopySums struct {
	Rows   []CopySum
	ByRank bool

	ranks       int // in the set
	unknown     int64
	approximate int // rows
}

// copies is a group of copies.
type copies struct{ time, size distribution.Sample }

// SumCopies sums up copies between memories, and fills, by operation, like
// cuda_gpu_mem_time_sum and cuda_gpu_mem_size_sum of nsys stats together. It holds 8
// bytes per copy.
func SumCopies(set *profile.Set, opt SumOptions) *CopySums {
	streams := make([]*byName[copies], len(set.Streams))
	in := opt.store()
	eachStream(set, func(i int, stream profile.Stream) {
		b := newByName[copies](set, &opt)
		for c := range stream.Copies {
			if !opt.keeps(&c.Event) {
				continue
			}
			if g := b.of(c.Rank, c.Name, 0); g != nil {
				g.time.Add(c.Dur(), in)
				if c.Bytes >= 0 {
					g.size.Add(c.Bytes, in)
				}
			}
		}
		streams[i] = b
	})
	s := &CopySums{ByRank: opt.ByRank, ranks: len(set.Ranks)}
	s.sum(set, &opt, streams, in)
	return s
}

// sum makes the rows.
func (s *CopySums) sum(set *profile.Set, opt *SumOptions, streams []*byName[copies], in *distribution.Store) {
	var t distribution.Tally
	all := int64(0)
	for _, p := range pools(members(opt, streams), sumKey.compare) {
		row := CopySum{sumRow: newSumRow(set, p.key, p.ranks)}
		var ofTime, ofSize bool
		row.Time, ofTime = t.Of(samples(p.parts, func(c *copies) *distribution.Sample { return &c.time }, in)...)
		row.Size, ofSize = t.Of(samples(p.parts, func(c *copies) *distribution.Sample { return &c.size }, in)...)
		if ofTime || ofSize {
			s.approximate++
		}
		s.unknown += row.Time.N - row.Size.N
		all = distribution.AddTimes(all, row.Time.Total)
		s.Rows = append(s.Rows, row)
	}
	for i := range s.Rows {
		s.Rows[i].Share = distribution.Fraction(s.Rows[i].Time.Total, all)
	}
	slices.SortFunc(s.Rows, func(a, b CopySum) int { return a.compare(&b.sumRow, a.Time.Total, b.Time.Total) })
}

// Report makes a table of the sums.
func (s *CopySums) Report() *Report {
	row := func(r *CopySum) *sumRow { return &r.sumRow }
	fields := rankFields(s.ByRank, row)
	fields = append(fields, shareField("part of the total time of all rows", func(r *CopySum) float64 { return r.Share }))
	fields = append(fields, distributionFields(distributionColumns[CopySum]{
		unit: Duration, what: "operation", of: func(r *CopySum) *distribution.Distribution { return &r.Time },
		show: []string{"total", "instances", "avg", "med", "min", "max", "p99"},
	})...)
	fields = append(fields, distributionFields(distributionColumns[CopySum]{
		prefix: "size ", unit: Bytes, what: "operation", of: func(r *CopySum) *distribution.Distribution { return &r.Size },
		show: []string{"total", "avg", "med", "min", "max"},
	})...)
	fields = append(fields, ranksFields(s.ByRank, s.ranks, row)...)
	fields = append(fields, nameField("operation", row))
	r := tabulate("sgtrace.report.copies/v1", "Copies and fills of memory", s.Rows, fields)
	if s.unknown > 0 {
		r.note("operations of unknown size: %d", s.unknown)
	}
	noteFewSamples(r, s.Rows, func(r *CopySum) int64 { return r.Time.N }, func(r *CopySum) string { return r.Name })
	noteApproximate(r, s.approximate)
	return r
}
