package overtime

import (
	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/metric"
	"github.com/sgtrace/sgtrace/analyze/operators"
	"github.com/sgtrace/sgtrace/analyze/profilewalk"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// OperatorSubkind is the subkind of findings about operators that take longer in the same place.
const OperatorSubkind = "time of operators in the same place"

var operatorMetric = &observed{pace: "operators", metric: &metric.Metric{Long: OperatorSubkind, Unit: table.Number, Better: metric.Less}}

// SlowerOperators returns since when ranks take longer for the same operators, by how long their threads are in each and in none
// within. Where no device ran, operators are what kernels are elsewhere, and are compared in the same way.
func SlowerOperators(set *profile.Set, opt profilewalk.Options) []finding.Finding {
	c := Collect(set, Options{From: opt.From, To: opt.To})
	c.operators = true
	byStream := make([][][]pacedKernel, len(set.Streams)) // and by rank
	operators.Each(set, opt, func(i int) operators.Visitor {
		byRank := make([][]pacedKernel, len(set.Ranks))
		byStream[i] = byRank
		return operators.Visitor{
			Call: func(rank, thread int32, name trace.Sym, at trace.Time, self int64) {
				if self > 0 {
					byRank[rank] = append(byRank[rank], pacedKernel{start: at, took: self, name: name, stream: uint32(thread)})
				}
			},
			Work: func(*profile.Kernel, trace.Sym) {},
		}
	})
	n, recorded, t := 0, make([][]request.Interval, len(set.Ranks)), &Timeline{}
	var calls [][]pacedKernel
	for rank := range set.Ranks {
		var all []pacedKernel
		for _, byRank := range byStream {
			all = append(all, byRank[rank]...)
		}
		if n += len(all); len(all) == 0 || n > maxPaced {
			continue
		}
		sortByStart(all)
		last := &all[len(all)-1]
		recorded[rank] = []request.Interval{{From: all[0].start, To: last.start + trace.Time(last.took)}}
		t.length += distribution.Between(recorded[rank][0].From, recorded[rank][0].To)
		for i := range all {
			k := &all[i]
			k.start, _ = c.place(int32(rank), k.start, k.start)
		}
		t.Devices, calls = append(t.Devices, Device{Rank: set.Ranks[rank], RankIndex: int32(rank)}), append(calls, all)
	}
	c.Recorded(recorded)
	t.Grid, t.fine = *c.coarse, c.grid
	changes := c.paces(t, calls)
	for i := range changes {
		changes[i].What, changes[i].metric = OperatorSubkind, operatorMetric
	}
	t.Changes, t.judged = t.join(changes), len(t.Devices)
	found, _ := t.Findings()
	for i := range found {
		found[i].Severity = finding.Warning
	}
	return found
}
