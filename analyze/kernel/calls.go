package kernel

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

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
					g.results.add(c.Result)
				}
			}
		}
	})
	return s
}

// results counts what calls of one name returned.
type results struct {
	known  int64           // calls whose result was recorded
	failed map[int32]int64 // by result; nil is none
}

func (r *results) add(result int32) {
	if result == profile.UnknownResult {
		return
	}
	r.known++
	if !profile.Failed(result) {
		return
	}
	if r.failed == nil {
		r.failed = map[int32]int64{}
	}
	r.failed[result]++
}

// merge adds the counts of o.
func (r *results) merge(o *results) {
	r.known += o.known
	if r.failed == nil && len(o.failed) > 0 {
		r.failed = map[int32]int64{}
	}
	for result, n := range o.failed {
		r.failed[result] += n
	}
}

// count returns how many calls failed; -1 is unknown.
func (r *results) count() int64 {
	if r.known == 0 {
		return -1
	}
	n := int64(0)
	for _, k := range r.failed {
		n += k
	}
	return n
}

// String lists results of calls that failed, the most frequent first:
// "558 cudaErrorLaunchOutOfResources (701)".
func (r *results) String() string {
	var list []string
	for _, result := range slices.SortedFunc(maps.Keys(r.failed), func(a, b int32) int {
		return cmp.Or(cmp.Compare(r.failed[b], r.failed[a]), cmp.Compare(a, b))
	}) {
		list = append(list, fmt.Sprintf("%d %s (%d)", r.failed[result], profile.ResultName(result), result))
	}
	return strings.Join(list, ", ")
}

// resultFields are the columns about calls that failed. People see them if any did.
func (s *NameSums) resultFields() []table.Field[NameSum] {
	if !s.calls {
		return nil
	}
	none := !slices.ContainsFunc(s.Rows, func(r NameSum) bool { return len(r.results.failed) > 0 })
	return []table.Field[NameSum]{
		{Column: table.Column{Name: "failed", Unit: table.Count, Doc: "how many returned an error", Detail: none},
			Cell: func(r *NameSum) table.Cell { return table.NumberCell(r.results.count()) }},
		{Column: table.Column{Name: "errors", Doc: "what they returned, the most frequent first", Detail: none},
			Cell: func(r *NameSum) table.Cell { return table.TextCell(r.results.String()) }},
	}
}
