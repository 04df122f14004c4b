package analyze

import (
	"cmp"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/profile"
)

// A LaunchSum is the time of all kernels of one name that calls of one name launched,
// from the call to the end of the kernel.
type LaunchSum struct {
	sumRow
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
func SumLaunches(set *profile.Set, opt SumOptions) *LaunchSums {
	streams := make([]*launcher, len(set.Streams))
	in := opt.store()
	eachStream(set, func(i int, stream profile.Stream) { streams[i] = joinLaunches(set, stream, &opt, in) })
	s := &LaunchSums{ByRank: opt.ByRank, ranks: len(set.Ranks)}
	var all []member[launchKey, launchGroup]
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
			all = append(all, member[launchKey, launchGroup]{key, rank, g})
		}
	}
	var t distribution.Tally
	for _, p := range pools(all, launchKey.compare) {
		s.add(set, &p, in, &t)
	}
	slices.SortFunc(s.Rows, func(a, b LaunchSum) int {
		return cmp.Or(a.compare(&b.sumRow, a.Whole.Total, b.Whole.Total), strings.Compare(a.CallName, b.CallName),
			cmp.Compare(a.PID, b.PID), cmp.Compare(a.TID, b.TID), cmp.Compare(a.Device, b.Device))
	})
	return s
}

func (k launchKey) compare(o launchKey) int {
	return cmp.Or(cmp.Compare(k.kernel, o.kernel), cmp.Compare(k.call, o.call), cmp.Compare(k.thread.rank, o.thread.rank),
		cmp.Compare(k.thread.pid, o.thread.pid), cmp.Compare(k.thread.tid, o.thread.tid), cmp.Compare(k.device, o.device))
}

// add makes a row.
func (s *LaunchSums) add(set *profile.Set, p *pool[launchKey, launchGroup], in *distribution.Store, t *distribution.Tally) {
	row := LaunchSum{
		sumRow: newSumRow(set, sumKey{rank: p.key.thread.rank, name: p.key.kernel}, p.ranks),
		PID:    p.key.thread.pid, TID: p.key.thread.tid, Device: p.key.device, CallName: set.Syms.Name(p.key.call),
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
		d, a := t.Of(samples(p.parts, part.of, in)...)
		*part.result = d
		approximate = approximate || a
	}
	if approximate {
		s.approximate++
	}
	s.Rows = append(s.Rows, row)
}

// Report makes a table of the sums.
func (s *LaunchSums) Report() *Report {
	row := func(r *LaunchSum) *sumRow { return &r.sumRow }
	fields := rankFields(s.ByRank, row)
	if s.ByRank {
		fields = append(fields, threadFields(func(r *LaunchSum) (int32, int64) { return r.PID, r.TID })...)
		fields = append(fields, field[LaunchSum]{Column{Name: "device", Unit: Count, Doc: "device, as the process counts"},
			func(r *LaunchSum) Cell { return numberCell(int64(r.Device)) }})
	}
	for _, part := range []distributionColumns[LaunchSum]{
		{what: "launch", of: func(r *LaunchSum) *distribution.Distribution { return &r.Whole }, show: []string{"total", "instances", "avg", "med", "max", "p99"}},
		{prefix: "call ", what: "call", of: func(r *LaunchSum) *distribution.Distribution { return &r.Call }, show: []string{"avg"}},
		{prefix: "queue ", what: "kernel that waited", of: func(r *LaunchSum) *distribution.Distribution { return &r.Queue }, show: []string{"instances", "avg"}},
		{prefix: "kernel ", what: "kernel", of: func(r *LaunchSum) *distribution.Distribution { return &r.Run }, show: []string{"avg"}},
	} {
		part.unit = Duration
		fields = append(fields, distributionFields(part)...)
	}
	fields = append(fields, ranksFields(s.ByRank, s.ranks, row)...)
	fields = append(fields,
		field[LaunchSum]{Column{Name: "call", Doc: "name of the call"}, func(r *LaunchSum) Cell { return textCell(r.CallName) }},
		nameField("kernel", row))
	r := tabulate("sgtrace.report.launches/v1", "Kernel launches", s.Rows, fields)
	if s.Orphans > 0 {
		r.note("kernels left out, as the calls that launched them were not recorded: %d", s.Orphans)
	}
	noteFewSamples(r, s.Rows, func(r *LaunchSum) int64 { return r.Whole.N }, func(r *LaunchSum) string { return r.Name })
	noteApproximate(r, s.approximate)
	return r
}
