package kernel

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/walk"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/profile"
)

// A MemorySum is all copies of one operation between two kinds of memory, or all fills of one.
type MemorySum struct {
	Row    walk.Row
	Copied walk.Copied
	Kind   profile.CopyKind
	Share  float64                   // of the total time of all rows
	Speeds distribution.Distribution // bytes per ms, of the copies of known size that took time
}

// memoryCopies is a group of copies between two kinds of memory.
type memoryCopies struct {
	Copied walk.Copied
	speed  distribution.Sample // bytes per ms: 4 bytes hold 4 TB/s
}

// memoryKey says what a MemorySum is of.
type memoryKey struct {
	Key  walk.Key
	kind profile.CopyKind
}

func (k memoryKey) compare(o memoryKey) int {
	return cmp.Or(k.Key.Compare(o.Key), cmp.Compare(k.kind.From, o.kind.From), cmp.Compare(k.kind.To, o.kind.To))
}

func (g *copies) addMemory(c *profile.Copy, in *distribution.Store) {
	m := g.memory[c.Kind]
	if m == nil {
		if g.memory == nil {
			g.memory = map[profile.CopyKind]*memoryCopies{}
		}
		m = &memoryCopies{}
		g.memory[c.Kind] = m
	}
	m.Copied.Add(c)
	if dur := c.Dur(); c.Bytes >= 0 && dur > 0 {
		m.speed.Add(int64(math.Round(float64(c.Bytes)/float64(dur)*1e6)), in)
	}
}

// sumMemory makes the rows of kinds of memory.
func (s *CopySums) sumMemory(set *profile.Set, opt *walk.Options, streams []*walk.ByName[copies], in *distribution.Store) {
	var all []walk.Member[memoryKey, memoryCopies]
	for _, group := range walk.Members(opt, streams) {
		for kind, m := range group.Part.memory {
			all = append(all, walk.Member[memoryKey, memoryCopies]{Key: memoryKey{group.Key, kind}, Rank: group.Rank, Part: m})
		}
	}
	var t distribution.Tally
	for _, p := range walk.Pools(all, memoryKey.compare) {
		row := MemorySum{Row: walk.NewRow(set, p.Key.Key, p.Ranks), Kind: p.Key.kind}
		for _, part := range p.Parts {
			row.Copied.Join(&part.Copied)
		}
		row.Speeds, _ = t.Of(walk.Samples(p.Parts, func(m *memoryCopies) *distribution.Sample { return &m.speed }, in)...)
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
	row := func(r *MemorySum) *walk.Row { return &r.Row }
	median := table.NumberColumn("p50 gb per second", "the same of single copies, median", func(r *MemorySum) float64 {
		if r.Speeds.N == 0 {
			return math.NaN()
		}
		return float64(r.Speeds.Median) / 1e7 // tenths of bytes per ms
	})
	fields := append(walk.RankFields(s.ByRank, row),
		walk.ShareField("part of the total time of all rows", func(r *MemorySum) float64 { return r.Share }),
		table.NsColumn("total", "sum of the durations", func(r *MemorySum) int64 { return r.Copied.Time }),
		table.CountColumn("instances", "how many there are", func(r *MemorySum) int64 { return r.Copied.N }))
	fields = append(fields, walk.CopiedFields(func(r *MemorySum) *walk.Copied { return &r.Copied })...)
	fields = append(fields, median)
	fields = append(fields, walk.RanksFields(s.ByRank, s.ranks, row)...)
	fields = append(fields, walk.NameField("operation", row), walk.MemoryField(func(r *MemorySum) profile.CopyKind { return r.Kind }))
	t := table.New("sgtrace.report.copies.memory/v1", "Copies and fills by kind of memory", s.Memory, fields)
	s.notePageable(t)
	return t
}

// notePageable says what is wrong with memory that is not pinned.
func (s *CopySums) notePageable(t *table.Table) {
	var all walk.Copied
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
