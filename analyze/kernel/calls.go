package kernel

import (
	"slices"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/walk"
	"github.com/sgtrace/sgtrace/profile"
)

// SumCalls sums up the time of calls into the CUDA runtime and driver by name, like
// cuda_api_sum of nsys stats, and counts those that failed. It holds 4 bytes per call.
func SumCalls(set *profile.Set, opt walk.Options) *NameSums {
	s := &NameSums{schema: "sgtrace.report.calls/v1", title: "Runtime and driver calls", what: "call", calls: true}
	s.sum(set, &opt, func(stream profile.Stream, b *walk.ByName[timed], in *distribution.Store) {
		for c := range stream.Calls {
			if opt.Keeps(&c.Event) {
				if g := b.Of(c.Rank, c.Name, 0); g != nil {
					g.time.Add(c.Dur(), in)
					g.results.Add(c.Result)
				}
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
		{Column: table.Column{Name: "failed", Unit: table.Count, Doc: "how many returned an error", Detail: none},
			Cell: func(r *NameSum) table.Cell { return table.NumberCell(r.results.Failed()) }},
		{Column: table.Column{Name: "errors", Doc: "what they returned, the most frequent first", Detail: none},
			Cell: func(r *NameSum) table.Cell { return table.TextCell(r.results.String()) }},
	}
}
