package kernel

import (
	"slices"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/profilewalk"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/profile"
)

// A NameSum is the time of all kernels, or calls, of one name.
type NameSum struct {
	Row          profilewalk.Row
	Share        float64 // of the total of all rows
	Graph        bool    // a CUDA graph of which only the whole was recorded
	Distribution distribution.Distribution

	results profilewalk.Results // of calls
}

// timed collects the events of one name.
type timed struct {
	time    distribution.Sample
	results profilewalk.Results // of calls
}

// NameSums are the times of kernels or calls by name, the longest total first.
type NameSums struct {
	Rows   []NameSum
	ByRank bool

	schema, title, what string
	calls               bool
	ranks               int // in the set
	approximate         int // rows
}

// SumKernels sums up the time of kernels by name, like cuda_gpu_kern_sum of nsys
// stats. It holds 4 bytes per kernel.
func SumKernels(set *profile.Set, opt profilewalk.Options) *NameSums {
	s := &NameSums{schema: "sgtrace.report.kernels/v1", title: "Kernels", what: "kernel"}
	s.sum(set, &opt, func(stream profile.Stream, b *profilewalk.ByName[timed], in *distribution.Store) {
		for k := range profile.Within(stream, opt.From, opt.To).Kernels {
			kind := uint8(0)
			if k.Graph {
				kind = 1
			}
			if opt.Keeps(&k.Event) {
				b.Of(k.Rank, k.Name, kind).time.Add(k.Dur(), in)
			}
		}
	})
	return s
}

// sum collects the rows of the events that add passes from every stream.
func (s *NameSums) sum(set *profile.Set, opt *profilewalk.Options, add func(profile.Stream, *profilewalk.ByName[timed], *distribution.Store)) {
	streams := make([]*profilewalk.ByName[timed], len(set.Streams))
	in := opt.Store()
	profilewalk.EachStream(set, func(i int, stream profile.Stream) {
		streams[i] = profilewalk.NewByName[timed](set)
		add(stream, streams[i], in)
	})
	s.ByRank, s.ranks = opt.ByRank, len(set.Ranks)
	var t distribution.Tally
	all := int64(0)
	for _, p := range profilewalk.Pools(profilewalk.Members(opt, streams), profilewalk.Key.Compare) {
		row := NameSum{Row: profilewalk.NewRow(set, p.Key, p.Ranks), Graph: p.Key.Kind == 1}
		var approximate bool
		row.Distribution, approximate = t.Of(profilewalk.Samples(p.Parts, func(g *timed) *distribution.Sample { return &g.time }, in)...)
		if approximate {
			s.approximate++
		}
		for _, part := range p.Parts {
			row.results.Merge(&part.results)
		}
		all = distribution.AddTimes(all, row.Distribution.Total)
		s.Rows = append(s.Rows, row)
	}
	for i := range s.Rows {
		s.Rows[i].Share = distribution.Fraction(s.Rows[i].Distribution.Total, all)
	}
	slices.SortFunc(s.Rows, func(a, b NameSum) int { return a.Row.Compare(&b.Row, a.Distribution.Total, b.Distribution.Total) })
}

// Report makes a table of the sums.
func (s *NameSums) Report() *table.Table {
	row := func(r *NameSum) *profilewalk.Row { return &r.Row }
	fields := profilewalk.RankFields(s.ByRank, row)
	fields = append(fields, profilewalk.ShareField("share of the total of all rows", func(r *NameSum) float64 { return r.Share }))
	fields = append(fields, table.DistributionFields(table.DistributionColumns[NameSum]{
		Unit: table.Duration, What: s.what + "s", Of: func(r *NameSum) *distribution.Distribution { return &r.Distribution },
		Show: []string{"total", "instances", "avg", "med", "min", "max", "p99"},
	})...)
	fields = append(fields, s.resultFields()...)
	fields = append(fields, profilewalk.RanksFields(s.ByRank, s.ranks, row)...)
	fields = append(fields, profilewalk.NameField(s.what, row))
	r := table.New(s.schema, s.title, s.Rows, fields)
	s.noteGraphs(r)
	table.NoteFewSamples(r, s.Rows, func(r *NameSum) int64 { return r.Distribution.N }, func(r *NameSum) string { return r.Row.Name })
	table.NoteApproximate(r, s.approximate)
	return r
}

// noteGraphs adds a note about rows that are not kernels but whole CUDA graphs.
func (s *NameSums) noteGraphs(r *table.Table) {
	graphs, runs, time := 0, int64(0), int64(0)
	for i := range s.Rows {
		if row := &s.Rows[i]; row.Graph {
			graphs++
			runs += row.Distribution.N
			time = distribution.AddTimes(time, row.Distribution.Total)
		}
	}
	if graphs > 0 {
		r.Note("CUDA graphs without recorded kernels: %d, with %d runs and %s, which count in the shares; "+
			"nsys records their kernels with --cuda-graph-trace=node", graphs, runs, table.InWords(time))
	}
}
