package kernel

import (
	"cmp"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/profilewalk"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// A launcher joins the kernels of a stream to the calls that launched them.
type launcher struct {
	threads threadIndex
	classes []callClass
	byName  []order.Paged[int32] // by thread: index of classes by name, plus one
	calls   []order.Paged[call]  // by rank: by correlation
	long    map[*call]int64
	groups  []launchGroup
	orphans int64 // kernels without a call
}

// A call is what is kept of a call, in 16 bytes.
type call struct {
	end   trace.Time
	dur   uint32 // ns; if it is longRun, the duration is in long
	class int32  // index of classes, plus one; 0 is no call
}

// A callClass is the calls of one name on one thread.
type callClass struct {
	thread int32
	name   trace.Sym
	groups order.Paged[int32] // by kernel: the first one of its groups, plus one
}

// A launchKey identifies a group of launches.
type launchKey struct {
	thread       threadKey
	device       int32
	call, kernel trace.Sym
}

// A launchGroup collects the durations of launches: of the whole, of the call, of the time between, and
// of the kernel.
type launchGroup struct {
	class  int32
	device int32
	kernel trace.Sym
	next   int32 // group of the same class and kernel on another device, plus one

	whole, call, queue, run distribution.Sample
}

// joinLaunches collects the launches of a stream.
func joinLaunches(set *profile.Set, stream profile.Stream, opt *profilewalk.Options, in *distribution.Store) *launcher {
	l := &launcher{threads: newThreadIndex(len(set.Ranks)), calls: make([]order.Paged[call], len(set.Ranks)), long: map[*call]int64{}}
	j := profilewalk.Joiner{Call: l.addCall, Orphan: func(*profile.Kernel) { l.orphans++ }}
	j.Work = func(k *profile.Kernel) bool {
		return !opt.Keeps(&k.Event) || l.addKernel(k, in)
	}
	j.Run(profile.Within(stream, opt.From, opt.To), opt)
	l.calls, l.long = nil, nil
	return l
}

func (l *launcher) addCall(c *profile.Call) {
	if c.Correlation == 0 {
		return
	}
	at := l.calls[c.Rank].At(c.Correlation)
	// A runtime call and the driver call within it may share a correlation; the outer
	// one, which comes first, counts.
	if at.class != 0 {
		return
	}
	dur := c.Dur()
	at.end, at.class = c.Start+trace.Time(dur), l.class(c)
	if at.dur = uint32(min(dur, longRun)); at.dur == longRun {
		l.long[at] = dur
	}
}

// class returns the index of the class of a call, plus one.
func (l *launcher) class(c *profile.Call) int32 {
	thread := l.threads.of(&c.Event, c.TID)
	for int(thread) >= len(l.byName) {
		l.byName = append(l.byName, order.Paged[int32]{})
	}
	at := l.byName[thread].At(int64(c.Name))
	if *at == 0 {
		l.classes = append(l.classes, callClass{thread: thread, name: c.Name})
		*at = int32(len(l.classes))
	}
	return *at
}

// addKernel counts a launch. It returns false if its call is unknown.
func (l *launcher) addKernel(k *profile.Kernel, in *distribution.Store) bool {
	if k.Correlation == 0 {
		return false
	}
	c := l.calls[k.Rank].Find(k.Correlation)
	if c == nil || c.class == 0 {
		return false
	}
	dur := int64(c.dur)
	if c.dur == longRun {
		dur = l.long[c]
	}
	run := k.Dur()
	g := l.group(c.class-1, k)
	g.call.Add(dur, in)
	g.run.Add(run, in)
	// A kernel may end before the call that launched it: the last of a graph often
	// begin when the first ones are long over.
	g.whole.Add(dur+max(0, int64(k.Start-c.end)+run), in)
	if k.Start >= c.end {
		g.queue.Add(int64(k.Start-c.end), in)
	}
	return true
}

// group returns the group of a kernel that was launched by a call of a class. It is
// valid until the next call.
func (l *launcher) group(class int32, k *profile.Kernel) *launchGroup {
	at := l.classes[class].groups.At(int64(k.Name))
	for *at != 0 {
		if g := &l.groups[*at-1]; g.device == k.Device {
			return g
		}
		at = &l.groups[*at-1].next
	}
	*at = int32(len(l.groups)) + 1
	l.groups = append(l.groups, launchGroup{class: class, device: k.Device, kernel: k.Name})
	return &l.groups[len(l.groups)-1]
}

// A LaunchSum is the time of all kernels of one name that calls of one name launched,
// from the call to the end of the kernel.
type LaunchSum struct {
	Row      profilewalk.Row
	PID      int32 // -1 is unknown, or ranks are pooled
	TID      int64 // as PID
	Device   int32 // as PID; as the process numbers it
	CallName string
	// Whole lasts from the start of the call to the end of the kernel. Queue is the time between the
	// end of the call and the start of the kernel, for kernels that began later than that.
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
func SumLaunches(set *profile.Set, opt profilewalk.Options) *LaunchSums {
	streams := make([]*launcher, len(set.Streams))
	in := opt.Store()
	profilewalk.EachStream(set, func(i int, stream profile.Stream) { streams[i] = joinLaunches(set, stream, &opt, in) })
	s := &LaunchSums{ByRank: opt.ByRank, ranks: len(set.Ranks)}
	var all []profilewalk.Member[launchKey, launchGroup]
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
			all = append(all, profilewalk.Member[launchKey, launchGroup]{Key: key, Rank: rank, Part: g})
		}
	}
	var t distribution.Tally
	for _, p := range profilewalk.Pools(all, launchKey.compare) {
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
func (s *LaunchSums) add(set *profile.Set, p *profilewalk.Pool[launchKey, launchGroup], in *distribution.Store, t *distribution.Tally) {
	row := LaunchSum{
		Row: profilewalk.NewRow(set, profilewalk.Key{Rank: p.Key.thread.rank, Name: p.Key.kernel}, p.Ranks),
		PID: p.Key.thread.pid, TID: p.Key.thread.tid, Device: p.Key.device, CallName: set.Syms.Name(p.Key.call),
	}
	approximate := false
	sum := func(of func(*launchGroup) *distribution.Sample) distribution.Distribution {
		d, a := t.Of(profilewalk.Samples(p.Parts, of, in)...)
		approximate = approximate || a
		return d
	}
	row.Whole = sum(func(g *launchGroup) *distribution.Sample { return &g.whole })
	row.Call = sum(func(g *launchGroup) *distribution.Sample { return &g.call })
	row.Queue = sum(func(g *launchGroup) *distribution.Sample { return &g.queue })
	row.Run = sum(func(g *launchGroup) *distribution.Sample { return &g.run })
	if approximate {
		s.approximate++
	}
	s.Rows = append(s.Rows, row)
}

// Report makes a table of the sums.
func (s *LaunchSums) Report() *table.Table {
	row := func(r *LaunchSum) *profilewalk.Row { return &r.Row }
	fields := profilewalk.RankFields(s.ByRank, row)
	if s.ByRank {
		fields = append(fields, profilewalk.ThreadFields(func(r *LaunchSum) (int32, int64) { return r.PID, r.TID })...)
		fields = append(fields, table.CountColumn("device", "device number within the process", func(r *LaunchSum) int64 { return int64(r.Device) }))
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
	fields = append(fields, profilewalk.RanksFields(s.ByRank, s.ranks, row)...)
	fields = append(fields,
		table.TextColumn("call", "name of the call", func(r *LaunchSum) string { return r.CallName }),
		profilewalk.NameField("kernel", row))
	r := table.New("sgtrace.report.launches/v1", "Kernel launches", s.Rows, fields)
	if s.Orphans > 0 {
		r.Note("kernels left out because the calls that launched them were not recorded: %d", s.Orphans)
	}
	table.NoteFewSamples(r, s.Rows, func(r *LaunchSum) int64 { return r.Whole.N }, func(r *LaunchSum) string { return r.Row.Name })
	table.NoteApproximate(r, s.approximate)
	return r
}
