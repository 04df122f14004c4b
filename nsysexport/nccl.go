package nsysexport

import (
	"slices"
	"strconv"
	"strings"

	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/nsysexport/rows"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// nccl reads the calls into NCCL, concurrently with other tables.
func (r *reader) nccl() { r.src.ReadNCCL() }

// findCollectives adds NCCL's information to kernels that communicate, from the calls that launched them.
// Kernels of CUDA graphs were launched by the captured call, if that was recorded; all replays belong to the
// same call.
func (r *profiler) findCollectives(f *process) {
	calls := r.src.NCCLCalls(f.pid)
	if len(calls) == 0 || f.Profile.Collectives.Len() == 0 {
		return
	}
	wanted := map[int64]*rows.NCCLCall{}
	nodes := map[uint64]*rows.NCCLCall{}
	for i := range f.Profile.Collectives.Len() {
		if node := f.nodes[i]; node != 0 {
			nodes[node] = nil
		} else {
			wanted[f.Profile.Collectives.At(i).Correlation] = nil
		}
	}
	for i := range f.launches {
		l := &f.launches[i]
		if _, ok := wanted[l.Correlation]; ok {
			if call := r.src.NCCLAt(calls, int32(f.Profile.Rows[l.Row].TID), l.Time); call != nil {
				wanted[l.Correlation] = call
			}
		}
	}
	r.findCaptured(f.pid, calls, nodes)
	t := ncclTeller{r: r, f: f, put: r.filter.Appender(r.src.Options.Args), groups: map[uint64]trace.Sym{}, ops: trace.Renamed(r.syms, operationOf), dtype: r.syms.Intern("bytes")}
	for i := range f.Profile.Collectives.Len() {
		c := f.Profile.Collectives.At(i)
		if call := nodes[f.nodes[i]]; call != nil {
			t.tell(&c, call, false)
		} else if call := wanted[c.Correlation]; call != nil {
			t.tell(&c, call, true)
		} else {
			continue
		}
		f.Profile.Collectives.Set(i, &c)
	}
}

// findCaptured finds the calls during which the nodes of graphs were created. A node of an instantiated graph
// is a copy of a captured one.
func (r *profiler) findCaptured(pid int32, calls []rows.NCCLCall, nodes map[uint64]*rows.NCCLCall) {
	if len(nodes) == 0 {
		return
	}
	made, original := map[uint64]*rows.NCCLCall{}, map[uint64]uint64{}
	for g := range r.src.GraphNodes {
		if g.PID != pid {
			continue
		}
		if call := r.src.NCCLAt(calls, g.TID, g.Start); call != nil {
			made[g.Node] = call
		}
		if g.Original != 0 && g.Original != g.Node {
			original[g.Node] = g.Original
		}
	}
	const generations = 4
	for node := range nodes {
		at := node
		for range generations {
			if call := made[at]; call != nil {
				nodes[node] = call
				break
			}
			at = original[at]
		}
	}
}

// ncclTeller adds NCCL's information to collectives.
type ncclTeller struct {
	r      *profiler
	f      *process
	put    *trace.ArgsAppender // nil leaves arguments out
	dtype  trace.Sym
	groups map[uint64]trace.Sym
	ops    *trace.PerName[trace.Sym]
	list   trace.ArgList
}

// operationOf returns the operation of a call, "allreduce" of "ncclAllReduce".
func operationOf(call string) string { return strings.ToLower(strings.TrimPrefix(call, "nccl")) }

// tell adds the information about a call to a collective. seq means that the call is the collective's own, not
// a captured one, so that its number applies.
func (t *ncclTeller) tell(c *profile.Collective, call *rows.NCCLCall, seq bool) {
	syms := t.r.syms
	c.Op = t.ops.Of(call.Name)
	if call.Comm != 0 {
		group := order.Memo(t.groups, call.Comm, func() trace.Sym { return syms.Intern(profile.CommunicatorPrefix + strconv.FormatUint(call.Comm, 16)) })
		c.Group = group
		comms := t.r.comms()[t.f.pid]
		if i := slices.IndexFunc(comms, func(x rows.Comm) bool { return x.ID == call.Comm }); i >= 0 {
			c.GroupSize = comms[i].Size
		}
	}
	if call.Bytes >= 0 {
		c.Dtype, c.In = t.dtype, call.Bytes
	}
	if seq {
		c.Seq = call.Seq
	}
	if t.put == nil || c.Event == profile.NoEvent {
		return
	}
	keys := &t.r.keys
	t.list = t.list[:0].String(keys.collective, syms.Name(c.Op))
	if c.Group != 0 {
		t.list = t.list.String(keys.comm, strings.TrimPrefix(syms.Name(c.Group), "NCCL "))
	}
	if c.In >= 0 {
		t.list = t.list.Int(keys.size, c.In)
	}
	if c.Seq >= 0 {
		t.list = t.list.Int(keys.seq, c.Seq)
	}
	e := &t.f.Profile.Events[c.Event]
	e.Args = t.put.Put(t.list.Extend(e.Args))
}
