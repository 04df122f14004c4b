package kernel

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/profilewalk"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/profile"
)

// A CopySum is the time and size of all copies of one kind, or of all fills.
type CopySum struct {
	Row        profilewalk.Row
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
func SumCopies(set *profile.Set, opt profilewalk.Options) *CopySums {
	streams := make([]*profilewalk.ByName[copies], len(set.Streams))
	in := opt.Store()
	profilewalk.EachStream(set, func(i int, stream profile.Stream) {
		b := profilewalk.NewByName[copies](set)
		for c := range profile.Within(stream, opt.From, opt.To).Copies {
			if !opt.Keeps(&c.Event) {
				continue
			}
			g := b.Of(c.Rank, c.Name, 0)
			g.time.Add(c.Dur(), in)
			if c.Bytes >= 0 {
				g.size.Add(c.Bytes, in)
			}
			g.addMemory(c, in)
		}
		streams[i] = b
	})
	s := &CopySums{ByRank: opt.ByRank, ranks: len(set.Ranks)}
	s.sum(set, &opt, streams, in)
	s.sumMemory(set, &opt, streams, in)
	return s
}

// sum makes the rows.
func (s *CopySums) sum(set *profile.Set, opt *profilewalk.Options, streams []*profilewalk.ByName[copies], in *distribution.Store) {
	var t distribution.Tally
	for _, p := range profilewalk.Pools(profilewalk.Members(opt, streams), profilewalk.Key.Compare) {
		row := CopySum{Row: profilewalk.NewRow(set, p.Key, p.Ranks)}
		var ofTime, ofSize bool
		row.Time, ofTime = t.Of(profilewalk.Samples(p.Parts, func(c *copies) *distribution.Sample { return &c.time }, in)...)
		row.Size, ofSize = t.Of(profilewalk.Samples(p.Parts, func(c *copies) *distribution.Sample { return &c.size }, in)...)
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
	row := func(r *CopySum) *profilewalk.Row { return &r.Row }
	fields := profilewalk.RankFields(s.ByRank, row)
	fields = append(fields, profilewalk.ShareField("share of the total time of all rows", func(r *CopySum) float64 { return r.Share }))
	fields = append(fields, table.DistributionFields(table.DistributionColumns[CopySum]{
		Unit: table.Duration, What: "operations", Of: func(r *CopySum) *distribution.Distribution { return &r.Time },
		Show: []string{"total", "instances", "avg", "med", "min", "max", "p99"},
	})...)
	fields = append(fields, table.DistributionFields(table.DistributionColumns[CopySum]{
		Prefix: "size ", Unit: table.Bytes, What: "operations", Of: func(r *CopySum) *distribution.Distribution { return &r.Size },
		Show: []string{"total", "avg", "med", "min", "max"},
	})...)
	fields = append(fields, profilewalk.RanksFields(s.ByRank, s.ranks, row)...)
	fields = append(fields, profilewalk.NameField("operation", row))
	r := table.New("sgtrace.report.copies/v1", "Memory copies and fills", s.Rows, fields)
	if s.unknown > 0 {
		r.Note("operations of unknown size: %d", s.unknown)
	}
	table.NoteFewSamples(r, s.Rows, func(r *CopySum) int64 { return r.Time.N }, func(r *CopySum) string { return r.Row.Name })
	table.NoteApproximate(r, s.approximate)
	return r
}

// SumCalls sums up the time of calls into the CUDA runtime and driver by name, like
// cuda_api_sum of nsys stats, and counts those that failed. It holds 4 bytes per call.
func SumCalls(set *profile.Set, opt profilewalk.Options) *NameSums {
	s := &NameSums{schema: "sgtrace.report.calls/v1", title: "Runtime and driver calls", what: "call", calls: true}
	s.sum(set, &opt, func(stream profile.Stream, b *profilewalk.ByName[timed], in *distribution.Store) {
		for c := range stream.Calls {
			if opt.Keeps(&c.Event) {
				g := b.Of(c.Rank, c.Name, 0)
				g.time.Add(c.Dur(), in)
				g.results.Add(c.Result)
			}
		}
	})
	return s
}

// resultFields are the columns about calls that failed. People see them if any did.
func (s *NameSums) resultFields() []table.Field[NameSum] {
	if !s.calls {
		return nil
	}
	none := !slices.ContainsFunc(s.Rows, func(r NameSum) bool { return r.results.Failed() > 0 })
	return []table.Field[NameSum]{
		table.CountColumn("failed", "number of calls that returned an error", func(r *NameSum) int64 { return r.results.Failed() }).DetailIf(none),
		table.TextColumn("errors", "error codes returned, most frequent first", func(r *NameSum) string { return r.results.String() }).DetailIf(none),
	}
}

// A MemorySum is all copies of one operation between two kinds of memory, or all fills of one.
type MemorySum struct {
	Row    profilewalk.Row
	Copied profilewalk.Copied
	Kind   profile.CopyKind
	Share  float64                   // of the total time of all rows
	Speeds distribution.Distribution // bytes per ms, of the copies of known size that took time
}

// memoryCopies is a group of copies between two kinds of memory.
type memoryCopies struct {
	Copied profilewalk.Copied
	speed  distribution.Sample // bytes per ms: 4 bytes hold 4 TB/s
}

// A memoryKey identifies a MemorySum.
type memoryKey struct {
	Key  profilewalk.Key
	kind profile.CopyKind
}

func (k memoryKey) compare(o memoryKey) int {
	return cmp.Or(k.Key.Compare(o.Key), cmp.Compare(k.kind.From, o.kind.From), cmp.Compare(k.kind.To, o.kind.To))
}

func (g *copies) addMemory(c *profile.Copy, in *distribution.Store) {
	if g.memory == nil {
		g.memory = map[profile.CopyKind]*memoryCopies{}
	}
	m := order.Memo(g.memory, c.Kind, func() *memoryCopies { return &memoryCopies{} })
	m.Copied.Add(c)
	if dur := c.Dur(); c.Bytes >= 0 && dur > 0 {
		m.speed.Add(int64(math.Round(float64(c.Bytes)/float64(dur)*1e6)), in)
	}
}

// sumMemory makes the rows of kinds of memory.
func (s *CopySums) sumMemory(set *profile.Set, opt *profilewalk.Options, streams []*profilewalk.ByName[copies], in *distribution.Store) {
	var all []profilewalk.Member[memoryKey, memoryCopies]
	for _, group := range profilewalk.Members(opt, streams) {
		for kind, m := range group.Part.memory {
			all = append(all, profilewalk.Member[memoryKey, memoryCopies]{Key: memoryKey{group.Key, kind}, Rank: group.Rank, Part: m})
		}
	}
	var t distribution.Tally
	for _, p := range profilewalk.Pools(all, memoryKey.compare) {
		row := MemorySum{Row: profilewalk.NewRow(set, p.Key.Key, p.Ranks), Kind: p.Key.kind}
		for _, part := range p.Parts {
			row.Copied.Join(&part.Copied)
		}
		row.Speeds, _ = t.Of(profilewalk.Samples(p.Parts, func(m *memoryCopies) *distribution.Sample { return &m.speed }, in)...)
		s.Memory = append(s.Memory, row)
	}
	for i := range s.Memory {
		s.Memory[i].Share = distribution.Fraction(s.Memory[i].Copied.Time, s.time)
	}
	slices.SortFunc(s.Memory, func(a, b MemorySum) int {
		return cmp.Or(a.Row.Compare(&b.Row, a.Copied.Time, b.Copied.Time), strings.Compare(a.Kind.String(), b.Kind.String()))
	})
}

// memory makes the table of copies by kinds of memory.
func (s *CopySums) memory() *table.Table {
	row := func(r *MemorySum) *profilewalk.Row { return &r.Row }
	median := table.NumberColumn("p50 gb per second", "median bandwidth of single copies in GB/s", func(r *MemorySum) float64 {
		if r.Speeds.N == 0 {
			return math.NaN()
		}
		return float64(r.Speeds.MedianTenths) / 1e7 // tenths of bytes per ms
	})
	fields := append(profilewalk.RankFields(s.ByRank, row),
		profilewalk.ShareField("share of the total time of all rows", func(r *MemorySum) float64 { return r.Share }),
		table.NsColumn("total", "total duration", func(r *MemorySum) int64 { return r.Copied.Time }),
		table.CountColumn("instances", "number of copies or fills", func(r *MemorySum) int64 { return r.Copied.N }))
	fields = append(fields, profilewalk.CopiedFields(func(r *MemorySum) *profilewalk.Copied { return &r.Copied })...)
	fields = append(fields, median)
	fields = append(fields, profilewalk.RanksFields(s.ByRank, s.ranks, row)...)
	fields = append(fields, profilewalk.NameField("operation", row), profilewalk.MemoryField(func(r *MemorySum) profile.CopyKind { return r.Kind }))
	t := table.New("sgtrace.report.copies.memory/v1", "Copies and fills by kind of memory", s.Memory, fields)
	s.notePageable(t)
	return t
}

// notePageable adds a note if much of the time goes to copies of pageable memory.
func (s *CopySums) notePageable(t *table.Table) {
	var all profilewalk.Copied
	for i := range s.Memory {
		if s.Memory[i].Kind.Pageable() {
			all.Join(&s.Memory[i].Copied)
		}
	}
	const much = 1.0 / 100
	if distribution.Fraction(all.Time, s.time) >= much {
		t.Note("%s to or from pageable memory, %s: the calling thread may be held meanwhile, which pinned memory avoids; --ops names who made the call, --gaps the time that a GPU was idle",
			words.Counted(int(all.N), "operation"), table.InWords(all.Time))
	}
}
