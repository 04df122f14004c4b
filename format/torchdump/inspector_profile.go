package torchdump

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sgtrace/sgtrace/format"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/profile/recorder"
	"github.com/sgtrace/sgtrace/trace"
	"github.com/sgtrace/sgtrace/trace/naming"
)

// A process is a process in the records. A process with several devices has several ranks in a communicator: each of them
// is a separate one here.
type process struct {
	host string
	pid  int64
	rank int32 // in the communicators; -1 is any
}

// profiles returns a profile for each process, in the order of the file.
func (r *inspectorReader) profiles(name string) []*profile.Profile {
	ranks := map[memberKey]int{} // number of the process's ranks in each communicator
	for _, m := range r.order {
		key := m.memberKey
		key.rank = 0
		ranks[key]++
	}
	several := map[process]bool{}
	for key, n := range ranks {
		if n > 1 {
			several[process{key.host, key.pid, 0}] = true
		}
	}
	var by order.Groups[process, []*member]
	for _, m := range r.order {
		of := process{m.host, m.pid, -1}
		if several[process{m.host, m.pid, 0}] {
			of.rank = m.rank
		}
		order.Add(&by, of, m)
	}
	var list []*profile.Profile
	for i, of := range by.Keys {
		for _, m := range by.List[i] {
			r.place(m)
		}
		list = append(list, newBuilder(r.opt, name, of).record(by.List[i]))
	}
	return list
}

// category is the category of all events. They are not kernels: otherwise devices would seem idle between collectives, when
// they compute.
const category = "nccl_collective"

// A builder makes the profile of a process.
type builder struct {
	p     *profile.Profile
	opt   *format.Options
	put   *trace.ArgsAppender // nil omits arguments
	list  trace.ArgList
	keys  struct{ bytes, bus, peer, seq, group trace.Sym }
	names *trace.PerName[trace.Sym] // of kernels, by operation: the Inspector has no kernel names
	keep  *profile.Keeper
}

func newBuilder(opt *format.Options, name string, of process) *builder {
	r := &builder{opt: opt, put: opt.Filter.Appender(opt.Args), names: trace.Renamed(opt.Syms, func(op string) string { return "nccl:" + op }), keep: profile.NewKeeper(&opt.Filter, opt.Syms)}
	r.p = &profile.Profile{Name: name, First: math.MaxInt64, Last: math.MinInt64,
		Meta: profile.Meta{Origin: profile.OriginUnix, Rank: -1, WorldSize: -1, GPU: -1, Host: of.host, PID: of.pid, Backend: "nccl", OnGPU: true}}
	opt.Syms.InternAll(map[*trace.Sym]string{&r.keys.bytes: "bytes", &r.keys.bus: "bus bandwidth (GB/s)", &r.keys.peer: "peer",
		&r.keys.seq: "Seq", &r.keys.group: "Process Group Name"})
	return r
}

// record adds the process's records in its communicators.
func (r *builder) record(list []*member) *profile.Profile {
	total := 0
	for _, m := range list {
		total += len(m.ops)
		if m.rank < m.size {
			r.p.Meta.Hints = append(r.p.Meta.Hints, naming.Hint{From: "NCCL", Rank: m.rank, Size: m.size})
		}
		r.p.Meta.Blur = max(r.p.Meta.Blur, m.blur)
	}
	slices.SortStableFunc(r.p.Meta.Hints, func(a, b naming.Hint) int { return cmp.Compare(b.Size, a.Size) })
	r.p.Collectives.Grow(total)
	for _, m := range list {
		r.member(m)
	}
	return r.p
}

// member adds a communicator.
func (r *builder) member(m *member) {
	group := profile.CommunicatorPrefix + strings.TrimPrefix(m.id, "0x")
	title := fmt.Sprintf("%s, %d ranks", cmp.Or(m.name, group), m.size)
	if m.size < 0 {
		title = cmp.Or(m.name, group)
	}
	row := int32(len(r.p.Rows))
	pid := strconv.FormatInt(m.pid, 10)
	r.p.Rows = append(r.p.Rows, profile.Row{Kind: profile.RowStream, PID: 0, PIDText: pid, TID: int64(row), TIDText: strconv.Itoa(int(row)), Name: title,
		Process: "rank " + strconv.Itoa(int(m.rank)) + " of NCCL", Folder: "NCCL"})
	// The id of a collective combines its communicator, its kind, and its number.
	base := order.MixText(m.id)
	c := profile.Collective{Row: row, OnGPU: true, Group: r.opt.Syms.Intern(group), Dtype: r.opt.Syms.Intern("bytes"), GroupSize: m.size}
	for i := range m.ops {
		x := &m.ops[i]
		c.Name, c.Op, c.OnGPU = r.names.Of(x.name), x.name, !x.enqueued
		c.Time, c.Dur = x.end-x.took(), int64(x.took())
		c.In, c.Out = x.sizes(r.opt.Syms.Name(x.name), int64(m.size))
		c.Seq, c.CommsID = x.seq, 0
		if !x.p2p && x.seq >= 0 {
			c.CommsID = max(1, order.Mix(base+order.Mix(order.MixText(r.opt.Syms.Name(x.name))+uint64(x.seq))))
		}
		r.p.First, r.p.Last, r.p.Total = min(r.p.First, c.Time), max(r.p.Last, x.end), r.p.Total+1
		c.Event = r.event(&c, x)
		r.p.Collectives.Add(&c)
	}
}

// sizes returns the bytes that a rank contributes and gets, given the number of ranks; -1 is unknown.
func (x *op) sizes(name string, ranks int64) (in, out int64) {
	all := int64(-1)
	if x.bytes >= 0 && ranks > 0 && x.bytes < math.MaxInt64/ranks {
		all = x.bytes * ranks
	}
	switch name {
	case "AllGather", "AllGatherV":
		return x.bytes, all
	case "ReduceScatter":
		return all, x.bytes
	}
	return x.bytes, x.bytes
}

// event adds a slice if the filter keeps it.
func (r *builder) event(c *profile.Collective, x *op) int32 {
	cat := r.opt.Syms.Intern(category)
	if !r.keep.Keeps(cat, c.Name, c.Time, c.Time+trace.Time(c.Dur)) {
		return profile.NoEvent
	}
	s := profile.Slice{Time: c.Time, Dur: c.Dur, Name: c.Name, Cat: cat, Place: profile.SliceKindOf(category).On(c.Row)}
	if r.put != nil {
		l := r.list[:0]
		if x.bytes >= 0 {
			l = l.Int(r.keys.bytes, x.bytes)
		}
		if x.bus > 0 {
			l = l.Float(r.keys.bus, x.bus)
		}
		if x.seq >= 0 && !x.p2p {
			l = l.Int(r.keys.seq, x.seq)
		}
		if x.peer >= 0 {
			l = l.Int(r.keys.peer, int64(x.peer))
		}
		l = l.String(r.keys.group, r.opt.Syms.Name(c.Group))
		s.Args, r.list = r.put.Put(l), l
	}
	r.p.Events = append(r.p.Events, s)
	return int32(len(r.p.Events) - 1)
}

// together is the longest time between the stamps of two records that the Inspector wrote in one go: it reads the clock
// before it prints each one, and printing takes microseconds.
const together = 200 * time.Microsecond

// place estimates the times of the collectives in a communicator that have none. Those that were written in one go ended
// after the previous write, one after another; it spreads them evenly over that time. If all were written in one go, only
// their order is known: it puts them right before the write.
func (r *inspectorReader) place(m *member) {
	before := trace.Time(0) // time of the previous write; 0 is none
	for from := 0; from < len(m.ops); {
		if m.ops[from].timed {
			before = m.ops[from].end
			from++
			continue
		}
		to := from + 1
		for to < len(m.ops) && !m.ops[to].timed && m.ops[to].end-m.ops[to-1].end <= trace.Time(together) {
			to++
		}
		written := m.ops[from].end
		m.ops[from:to].spread(before, written)
		switch {
		case from == 0 && to == len(m.ops) && to > 1:
			m.blur = math.MaxInt64
			r.undated += int64(to)
		case before != 0:
			m.blur = max(m.blur, int64(written-before))
		}
		before, from = written, to
	}
}

// spread puts collectives evenly into a time, one after another. If its beginning is unknown (0), or if it is too short for
// them, there are no gaps between them.
func (list ops) spread(from, to trace.Time) {
	took := trace.Time(0)
	for i := range list {
		took += list[i].took()
	}
	gap := trace.Time(0)
	if from != 0 && to-from > took {
		gap = (to - from - took) / trace.Time(len(list))
	}
	for i := len(list) - 1; i >= 0; i-- {
		list[i].end = to
		to -= list[i].took() + gap
	}
}

func (x *op) took() trace.Time { return trace.Time(x.micros * 1000) }

// ended returns a dump for each process with the last collective of each communicator.
func (r *inspectorReader) ended(file string, profiles []*profile.Profile) (list []*recorder.FlightDump) {
	of := map[process]*recorder.FlightDump{}
	for _, p := range profiles {
		if len(p.Meta.Hints) == 0 {
			continue
		}
		d := &recorder.FlightDump{File: file, By: recorder.Inspector, Rank: p.Meta.Hints[0].Rank, Of: trace.NoRank, Host: p.Meta.Host, PID: p.Meta.PID}
		list = append(list, d)
		of[process{d.Host, d.PID, -1}] = d
		of[process{d.Host, d.PID, d.Rank}] = d
	}
	for _, m := range r.order {
		d := of[process{m.host, m.pid, m.rank}]
		if d == nil {
			d = of[process{m.host, m.pid, -1}]
		}
		if d == nil || len(m.ops) == 0 {
			continue
		}
		g := recorder.NewGroup(m.id, m.name)
		g.Size, g.Member = m.size, m.rank
		x := &m.ops[len(m.ops)-1]
		d.Ops = append(d.Ops, recorder.Op{Group: int32(len(d.Groups)), Seq: x.seq, Record: recorder.Unknown, Name: x.name, Src: -1, Dst: -1, State: recorder.Completed, Stack: recorder.Unknown})
		d.Groups = append(d.Groups, g)
		d.Time = max(d.Time, x.end)
	}
	return list
}
