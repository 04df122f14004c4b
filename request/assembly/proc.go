package assembly

import (
	"cmp"
	"slices"
	"strings"
	"unsafe"

	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/internal/parallel"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/request/spantable"
	"github.com/sgtrace/sgtrace/trace"
)

// procKey is what a thread span says about its proc, verbatim.
type procKey struct {
	attributes string
	resource   *spantable.Resource
	part       request.Role
}

// procKeyOf returns what span i says about its proc. The key is valid only briefly: its text is in the arena.
func (b *builder) procKeyOf(i int, part request.Role) procKey {
	raw := b.dump.Args.Raw(b.Rows[i].Args)
	return procKey{unsafe.String(unsafe.SliceData(raw), len(raw)), b.resource(i), part}
}

// procOf returns the proc described by the attributes of span i.
func (b *builder) procOf(i int, part request.Role) int {
	args, res := b.Rows[i].Args, b.resource(i)
	key := b.procKeyOf(i, part)
	if proc, ok := b.known[key]; ok {
		return proc
	}
	p := request.Proc{Role: part, Rank: trace.NoRank,
		Instance: b.symName(res.Instance), Service: b.symName(res.Service)}
	for a := range b.dump.Args.All(args) {
		switch a.Key {
		case b.keys.label:
			p.Label = string(a.Bytes())
			p.Role = roleOfLabel(p.Label, part)
		case b.keys.hostID:
			p.Host = string(a.Bytes())
		case b.keys.pid:
			p.PID, _ = argInt(a)
		case b.keys.tp:
			p.Rank.TP = argRank(a)
		case b.keys.pp:
			p.Rank.PP = argRank(a)
		case b.keys.dp:
			p.Rank.DP = argRank(a)
		}
	}
	if p.Host == "" {
		p.Host = b.resourceName(res, b.keys.hostName, b.keys.podName)
	} else if name := b.resourceName(res, b.keys.podName, b.keys.hostName); name != "" { // logs and metrics name pods
		b.HostNames.Learn(p.Host, name)
	}
	proc := b.addProc(p)
	b.noteInstance(p.Instance, proc)
	key.attributes = strings.Clone(key.attributes)
	b.known[key] = proc
	return proc
}

// noteInstance records that an instance wrote spans of a proc.
func (b *builder) noteInstance(instance string, proc int) {
	if instance != "" && !slices.Contains(b.instances[instance], proc) {
		b.instances[instance] = append(b.instances[instance], proc)
	}
}

// resourceName returns the value of the first of keys that a resource has; "" is unknown.
func (b *builder) resourceName(res *spantable.Resource, keys ...trace.Sym) string {
	for _, key := range keys {
		if a, ok := b.dump.Args.Find(res.Args, key); ok {
			return string(a.Bytes())
		}
	}
	return ""
}

func (b *builder) addProc(p request.Proc) int {
	p.Schedules = isScheduler(p.Label)
	return order.At(b.procIDs, &b.Procs, p, func() request.Proc { return p })
}

// rootProc returns the proc that emitted the root of p: the tokenizer thread of the same process, or else
// the first thread, or else None.
func (b *builder) rootProc(p *request.Part) int {
	best := request.None
	for _, t := range b.ThreadsOf(p) {
		proc := b.Threads[t].Proc
		if best == request.None || labelRank(b.Procs[proc].Label) < labelRank(b.Procs[best].Label) {
			best = proc
		}
	}
	return best
}

// serviceProc returns the proc of a span that names no thread: the only one of its instance, or else one
// for the service instance.
func (b *builder) serviceProc(i int, role request.Role) int {
	of := b.instances[b.symName(b.resource(i).Instance)]
	if len(of) == 1 {
		return of[0]
	}
	return b.nameless(i, role, of)
}

// nameless returns a proc for a span of which only the service instance is known, and procs that it may be one of, or beside.
// If its resource names no host, it is on the host that all of them share, if they do.
func (b *builder) nameless(i int, role request.Role, of []int) int {
	res := b.resource(i)
	service := b.symName(res.Service)
	p := request.Proc{Label: service, Role: role, Rank: trace.NoRank, Instance: b.symName(res.Instance), Service: service, Host: b.resourceName(res, b.keys.hostName, b.keys.podName)}
	if p.Host == "" && len(of) > 0 && !slices.ContainsFunc(of, func(proc int) bool { return b.Procs[proc].Host != b.Procs[of[0]].Host }) {
		p.Host = b.Procs[of[0]].Host
	}
	for _, key := range [...]trace.Sym{b.keys.processPID, b.keys.vllmPID} {
		if a, ok := b.dump.Args.Find(res.Args, key); ok {
			p.PID, _ = argInt(a)
		}
	}
	return b.addProc(p)
}

// assignProcs sets the proc of spans without a thread or part.
func (b *builder) assignProcs() {
	beside := parallel.Gather(b.Len(), request.RowSize, func(list []int32, from, to int) []int32 {
		for i := from; i < to; i++ {
			switch b.Rows[i].Kind {
			case request.Duplicate, request.Stage, request.ThreadRow, request.Root:
			default:
				list = append(list, int32(i))
			}
		}
		return list
	})
	type emitter struct {
		resource *spantable.Resource
		role     request.Role
	}
	known := map[emitter]int{}
	serviceProc := func(i int, role request.Role) int32 {
		return int32(order.Memo(known, emitter{b.resource(i), role}, func() int { return b.serviceProc(i, role) }))
	}
	for k := range memory.Each(len(beside), request.RequestSize) { // one or two per request
		i := int(beside[k])
		switch b.Rows[i].Kind {
		case request.Envelope:
			b.Rows[i].Proc = int32(b.envelopeProc(i))
		case request.Gateway:
			b.Rows[i].Proc = serviceProc(i, request.Router)
		default:
			b.Rows[i].Proc = serviceProc(i, request.Other)
		}
	}
}

// envelopeProc returns the proc of the first request in an envelope.
func (b *builder) envelopeProc(i int) int {
	for _, c := range b.tree.Children(i) {
		if p := b.Rows[c].Part; p != request.None && b.Parts[p].Proc != request.None {
			return b.Parts[p].Proc
		}
	}
	return b.serviceProc(i, request.Other)
}

// compareProcs orders procs for display: by role, host, position on a request's way through a server, and
// rank.
func compareProcs(x, y *request.Proc) int {
	return cmp.Or(
		cmp.Compare(roleOrder[x.Role], roleOrder[y.Role]), strings.Compare(x.Host, y.Host),
		cmp.Compare(labelRank(x.Label), labelRank(y.Label)), x.Rank.Compare(y.Rank),
		strings.Compare(x.Label, y.Label), cmp.Compare(x.PID, y.PID),
		strings.Compare(x.Service, y.Service), strings.Compare(x.Instance, y.Instance),
	)
}

// roleOrder is the order in which a request passes through a deployment.
var roleOrder = [...]int{request.Router: 0, request.Encoder: 1, request.Prefill: 2, request.Sender: 3, request.Unified: 4, request.Decode: 5, request.Other: 6}

// orderProcs sorts Procs, updates all indexes, and sets the procs of all rows.
func (b *builder) orderProcs() {
	order := make([]int, len(b.Procs))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(x, y int) int { return compareProcs(&b.Procs[x], &b.Procs[y]) })
	sorted := make([]request.Proc, len(order))
	place := make([]int, len(order))
	for i, old := range order {
		sorted[i], place[old] = b.Procs[old], i
	}
	b.Procs = sorted
	for i := range b.AllThreads() {
		b.Threads[i].Proc = place[b.Threads[i].Proc]
	}
	for i := range b.AllParts() {
		if b.Parts[i].Proc != request.None {
			b.Parts[i].Proc = place[b.Parts[i].Proc]
		}
	}
	parallel.Rows(b.Len(), request.RowSize, func(from, to int) {
		for i := from; i < to; i++ {
			switch row := &b.Rows[i]; row.Kind {
			case request.Duplicate:
			case request.Stage, request.ThreadRow:
				row.Proc = int32(b.Threads[row.Thread].Proc)
			case request.Root:
				row.Proc = int32(b.Parts[row.Part].Proc)
			default:
				row.Proc = int32(place[row.Proc])
			}
		}
	})
}
