package kernel

import (
	"slices"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/walk"
	"github.com/sgtrace/sgtrace/profile"
)

// A CopySum is the time and size of all copies of one kind, or of all fills.
type CopySum struct {
	Row        walk.Row
	Share      float64                   // of the total time of all rows
	Time, Size distribution.Distribution // Size is of the copies whose size is known
}

// CopySums are the times and sizes of copies, the longest total first.
type CopySums struct {
	Rows   []CopySum   // by operation
	Memory []MemorySum // by operation and kinds of memory
	ByRank bool

	ranks       int   // in the set
	time        int64 // of all rows, ns
	unknown     int64
	approximate int // rows
}

// copies is a group of copies.
type copies struct {
	time, size distribution.Sample
	memory     map[profile.CopyKind]*memoryCopies
}

// SumCopies sums up copies between memories, and fills, by operation, like
// cuda_gpu_mem_time_sum and cuda_gpu_mem_size_sum of nsys stats together. It holds 12
// bytes per copy.
func SumCopies(set *profile.Set, opt walk.Options) *CopySums {
	streams := make([]*walk.ByName[copies], len(set.Streams))
	in := opt.Store()
	walk.EachStream(set, func(i int, stream profile.Stream) {
		b := walk.NewByName[copies](set, &opt)
		for c := range profile.Within(stream, opt.From, opt.To).Copies {
			if !opt.Keeps(&c.Event) {
				continue
			}
			if g := b.Of(c.Rank, c.Name, 0); g != nil {
				g.time.Add(c.Dur(), in)
				if c.Bytes >= 0 {
					g.size.Add(c.Bytes, in)
				}
				g.addMemory(c, in)
			}
		}
		streams[i] = b
	})
	s := &CopySums{ByRank: opt.ByRank, ranks: len(set.Ranks)}
	s.sum(set, &opt, streams, in)
	s.sumMemory(set, &opt, streams, in)
	return s
}

// sum makes the rows.
func (s *CopySums) sum(set *profile.Set, opt *walk.Options, streams []*walk.ByName[copies], in *distribution.Store) {
	var t distribution.Tally
	for _, p := range walk.Pools(walk.Members(opt, streams), walk.Key.Compare) {
		row := CopySum{Row: walk.NewRow(set, p.Key, p.Ranks)}
		var ofTime, ofSize bool
		row.Time, ofTime = t.Of(walk.Samples(p.Parts, func(c *copies) *distribution.Sample { return &c.time }, in)...)
		row.Size, ofSize = t.Of(walk.Samples(p.Parts, func(c *copies) *distribution.Sample { return &c.size }, in)...)
		if ofTime || ofSize {
			s.approximate++
		}
		s.unknown += row.Time.N - row.Size.N
		s.time = distribution.AddTimes(s.time, row.Time.Total)
		s.Rows = append(s.Rows, row)
	}
	for i := range s.Rows {
		s.Rows[i].Share = distribution.Fraction(s.Rows[i].Time.Total, s.time)
	}
	slices.SortFunc(s.Rows, func(a, b CopySum) int { return a.Row.Compare(&b.Row, a.Time.Total, b.Time.Total) })
}

// Reports makes the tables of copies by operation, and by kinds of memory.
func (s *CopySums) Reports() []*table.Table { return []*table.Table{s.operations(), s.memory()} }

// operations makes the table of copies by operation.
func (s *CopySums) operations() *table.Table {
	row := func(r *CopySum) *walk.Row { return &r.Row }
	fields := walk.RankFields(s.ByRank, row)
	fields = append(fields, walk.ShareField("part of the total time of all rows", func(r *CopySum) float64 { return r.Share }))
	fields = append(fields, table.DistributionFields(table.DistributionColumns[CopySum]{
		Unit: table.Duration, What: "operations", Of: func(r *CopySum) *distribution.Distribution { return &r.Time },
		Show: []string{"total", "instances", "avg", "med", "min", "max", "p99"},
	})...)
	fields = append(fields, table.DistributionFields(table.DistributionColumns[CopySum]{
		Prefix: "size ", Unit: table.Bytes, What: "operations", Of: func(r *CopySum) *distribution.Distribution { return &r.Size },
		Show: []string{"total", "avg", "med", "min", "max"},
	})...)
	fields = append(fields, walk.RanksFields(s.ByRank, s.ranks, row)...)
	fields = append(fields, walk.NameField("operation", row))
	r := table.New("sgtrace.report.copies/v1", "Memory copies and fills", s.Rows, fields)
	if s.unknown > 0 {
		r.Note("operations of unknown size: %d", s.unknown)
	}
	table.NoteFewSamples(r, s.Rows, func(r *CopySum) int64 { return r.Time.N }, func(r *CopySum) string { return r.Row.Name })
	table.NoteApproximate(r, s.approximate)
	return r
}
