package kernel

import (
	"cmp"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/walk"
	"github.com/sgtrace/sgtrace/profile"
)

// A LaunchSum is the time of all kernels of one name that calls of one name launched,
// from the call to the end of the kernel.
type LaunchSum struct {
	Row      walk.Row
	PID      int32 // -1 is unknown, or ranks are pooled
	TID      int64 // as PID
	Device   int32 // as PID; as the process counts
	CallName string
	// Whole lasts from the start of the call to the end of the kernel. Queue is what
	// lies between the end of the call and the start of the kernel, of those kernels
	// that began later.
	Whole, Call, Queue, Run distribution.Distribution
}

// LaunchSums are the times of launches by call and kernel, the longest total first.
type LaunchSums struct {
	Rows   []LaunchSum
	ByRank bool
	// Orphans is how many kernels were left out since their call was not recorded.
	Orphans int64

	ranks       int // in the set
	approximate int // rows
}

// SumLaunches sums up launches by call and kernel, like cuda_kern_exec_sum of nsys
// stats; by rank, also by thread and device. The window bounds the kernels, not the
// calls. It holds 16 bytes per kernel and, while it walks through a stream, 16 per
// call.
func SumLaunches(set *profile.Set, opt walk.Options) *LaunchSums {
	streams := make([]*launcher, len(set.Streams))
	in := opt.Store()
	walk.EachStream(set, func(i int, stream profile.Stream) { streams[i] = joinLaunches(set, stream, &opt, in) })
	s := &LaunchSums{ByRank: opt.ByRank, ranks: len(set.Ranks)}
	var all []walk.Member[launchKey, launchGroup]
	for _, l := range streams {
		s.Orphans += l.orphans
		for i := range l.groups {
			g := &l.groups[i]
			class := &l.classes[g.class]
			key := launchKey{l.threads.keys[class.thread], g.device, class.name, g.kernel}
			rank := key.thread.rank
			if !opt.ByRank {
				key.thread, key.device = pooledThread, -1
			}
			all = append(all, walk.Member[launchKey, launchGroup]{Key: key, Rank: rank, Part: g})
		}
	}
	var t distribution.Tally
	for _, p := range walk.Pools(all, launchKey.compare) {
		s.add(set, &p, in, &t)
	}
	slices.SortFunc(s.Rows, func(a, b LaunchSum) int {
		return cmp.Or(a.Row.Compare(&b.Row, a.Whole.Total, b.Whole.Total), strings.Compare(a.CallName, b.CallName),
			cmp.Compare(a.PID, b.PID), cmp.Compare(a.TID, b.TID), cmp.Compare(a.Device, b.Device))
	})
	return s
}

func (k launchKey) compare(o launchKey) int {
	return cmp.Or(cmp.Compare(k.kernel, o.kernel), cmp.Compare(k.call, o.call), cmp.Compare(k.thread.rank, o.thread.rank),
		cmp.Compare(k.thread.pid, o.thread.pid), cmp.Compare(k.thread.tid, o.thread.tid), cmp.Compare(k.device, o.device))
}

// add makes a row.
func (s *LaunchSums) add(set *profile.Set, p *walk.Pool[launchKey, launchGroup], in *distribution.Store, t *distribution.Tally) {
	row := LaunchSum{
		Row: walk.NewRow(set, walk.Key{Rank: p.Key.thread.rank, Name: p.Key.kernel}, p.Ranks),
		PID: p.Key.thread.pid, TID: p.Key.thread.tid, Device: p.Key.device, CallName: set.Syms.Name(p.Key.call),
	}
	approximate := false
	for _, part := range []struct {
		of     func(*launchGroup) *distribution.Sample
		result *distribution.Distribution
	}{
		{func(g *launchGroup) *distribution.Sample { return &g.whole }, &row.Whole},
		{func(g *launchGroup) *distribution.Sample { return &g.call }, &row.Call},
		{func(g *launchGroup) *distribution.Sample { return &g.queue }, &row.Queue},
		{func(g *launchGroup) *distribution.Sample { return &g.run }, &row.Run},
	} {
		d, a := t.Of(walk.Samples(p.Parts, part.of, in)...)
		*part.result = d
		approximate = approximate || a
	}
	if approximate {
		s.approximate++
	}
	s.Rows = append(s.Rows, row)
}

// Report makes a table of the sums.
func (s *LaunchSums) Report() *table.Table {
	row := func(r *LaunchSum) *walk.Row { return &r.Row }
	fields := walk.RankFields(s.ByRank, row)
	if s.ByRank {
		fields = append(fields, walk.ThreadFields(func(r *LaunchSum) (int32, int64) { return r.PID, r.TID })...)
		fields = append(fields, table.Field[LaunchSum]{Column: table.Column{Name: "device", Unit: table.Count, Doc: "device, as the process numbers it"},
			Cell: func(r *LaunchSum) table.Cell { return table.NumberCell(int64(r.Device)) }})
	}
	for _, part := range []table.DistributionColumns[LaunchSum]{
		{What: "launches", Of: func(r *LaunchSum) *distribution.Distribution { return &r.Whole }, Show: []string{"total", "instances", "avg", "med", "max", "p99"}},
		{Prefix: "call ", What: "calls", Of: func(r *LaunchSum) *distribution.Distribution { return &r.Call }, Show: []string{"avg"}},
		{Prefix: "queue ", What: "kernels that waited", Of: func(r *LaunchSum) *distribution.Distribution { return &r.Queue }, Show: []string{"instances", "avg"}},
		{Prefix: "kernel ", What: "kernels", Of: func(r *LaunchSum) *distribution.Distribution { return &r.Run }, Show: []string{"avg"}},
	} {
		part.Unit = table.Duration
		fields = append(fields, table.DistributionFields(part)...)
	}
	fields = append(fields, walk.RanksFields(s.ByRank, s.ranks, row)...)
	fields = append(fields,
		table.Field[LaunchSum]{Column: table.Column{Name: "call", Doc: "name of the call"}, Cell: func(r *LaunchSum) table.Cell { return table.TextCell(r.CallName) }},
		walk.NameField("kernel", row))
	r := table.New("sgtrace.report.launches/v1", "Kernel launches", s.Rows, fields)
	if s.Orphans > 0 {
		r.Note("kernels left out because the calls that launched them were not recorded: %d", s.Orphans)
	}
	table.NoteFewSamples(r, s.Rows, func(r *LaunchSum) int64 { return r.Whole.N }, func(r *LaunchSum) string { return r.Row.Name })
	table.NoteApproximate(r, s.approximate)
	return r
}
