package request

import (
	"cmp"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/otlpjson"
	"github.com/sgtrace/sgtrace/trace"
)

// procKey is what a thread span says about its proc, as it says it.
type procKey struct {
	attributes string
	resource   *otlpjson.Resource
	part       Role
}

// procOf returns the proc that the attributes of span i name.
func (b *builder) procOf(i int, label []byte, part Role) int {
	s := b.Dump.Span(i)
	res := b.Dump.Resource(s)
	raw := b.Dump.Args.Raw(s.Args)
	if proc, ok := b.known[procKey{string(raw), res, part}]; ok {
		return proc
	}
	p := Proc{Label: string(label), Role: roleOfLabel(string(label), part), Rank: trace.NoRank,
		Instance: b.symName(res.Instance), Service: b.symName(res.Service)}
	for a := range b.Dump.Args.All(s.Args) {
		switch a.Key {
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
		p.Host = b.resourceHost(res)
	}
	proc := b.addProc(p)
	if other, ok := b.instances[p.Instance]; !ok {
		b.instances[p.Instance] = proc
	} else if other != proc {
		b.instances[p.Instance] = None
	}
	b.known[procKey{string(raw), res, part}] = proc
	return proc
}

// resourceHost reads the host from a resource; "" is unknown.
func (b *builder) resourceHost(res *otlpjson.Resource) string {
	for _, key := range [...]trace.Sym{b.keys.hostName, b.keys.podName} {
		if a, ok := b.Dump.Args.Find(res.Args, key); ok {
			return string(a.Bytes())
		}
	}
	return ""
}

func (b *builder) addProc(p Proc) int {
	id, ok := b.procIDs[p]
	if !ok {
		id = len(b.Procs)
		b.Procs = append(b.Procs, p)
		b.procIDs[p] = id
	}
	return id
}

// rootProc finds the proc that emitted the root of p: the tokenizer thread of
// the same process, else the first thread, else one made up from the resource.
func (b *builder) rootProc(p *Part) int {
	best := None
	for _, t := range p.Threads {
		proc := b.Threads[t].Proc
		if best == None || labelRank(b.Procs[proc].Label) < labelRank(b.Procs[best].Label) {
			best = proc
		}
	}
	if best != None {
		return best
	}
	return b.serviceProc(p.Root, p.Role)
}

// serviceProc returns the proc of a span that names no thread: the only one of
// its instance, else one for the service instance.
func (b *builder) serviceProc(i int, role Role) int {
	s := b.Dump.Span(i)
	res := b.Dump.Resource(s)
	instance := b.symName(res.Instance)
	if known, ok := b.instances[instance]; ok && known != None && instance != "" {
		return known
	}
	service := b.symName(res.Service)
	p := Proc{Label: service, Role: role, Rank: trace.NoRank, Instance: instance, Service: service, Host: b.resourceHost(res)}
	for _, key := range [...]trace.Sym{b.keys.processPID, b.keys.vllmPID} {
		if a, ok := b.Dump.Args.Find(res.Args, key); ok {
			p.PID, _ = argInt(a)
		}
	}
	return b.addProc(p)
}

// assignProcs tells for every span which proc emitted it.
func (b *builder) assignProcs() {
	b.proc = make([]int32, b.Dump.Len())
	for i := range b.proc {
		switch b.kinds[i] {
		case Duplicate:
			b.proc[i] = None
		case Stage, ThreadSpan:
			b.proc[i] = int32(b.Threads[b.thread[i]].Proc)
		case Root:
			b.proc[i] = int32(b.Parts[b.part[i]].Proc)
		case Envelope:
			b.proc[i] = int32(b.envelopeProc(i))
		case Gateway:
			b.proc[i] = int32(b.serviceProc(i, Router))
		default:
			b.proc[i] = int32(b.serviceProc(i, Other))
		}
	}
}

// envelopeProc returns the proc of the first request in an envelope.
func (b *builder) envelopeProc(i int) int {
	for _, c := range b.Tree.Children(i) {
		if p := b.part[c]; p != None && b.Parts[p].Proc != None {
			return b.Parts[p].Proc
		}
	}
	return b.serviceProc(i, Other)
}

// compareProcs orders procs for display: by role, host, the way of a request
// through a server, rank.
func compareProcs(x, y *Proc) int {
	return cmp.Or(
		cmp.Compare(roleOrder[x.Role], roleOrder[y.Role]), strings.Compare(x.Host, y.Host),
		cmp.Compare(labelRank(x.Label), labelRank(y.Label)), x.Rank.Compare(y.Rank),
		strings.Compare(x.Label, y.Label), cmp.Compare(x.PID, y.PID),
		strings.Compare(x.Service, y.Service), strings.Compare(x.Instance, y.Instance),
	)
}

// roleOrder is the way of a request through a deployment.
var roleOrder = [...]int{Router: 0, Encoder: 1, Prefill: 2, Sender: 3, Unified: 4, Decode: 5, Other: 6}

// orderProcs sorts Procs and renames them everywhere.
func (b *builder) orderProcs() {
	order := make([]int, len(b.Procs))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(x, y int) int { return compareProcs(&b.Procs[x], &b.Procs[y]) })
	sorted := make([]Proc, len(order))
	place := make([]int, len(order))
	for i, old := range order {
		sorted[i], place[old] = b.Procs[old], i
	}
	b.Procs = sorted
	for i := range b.Threads {
		b.Threads[i].Proc = place[b.Threads[i].Proc]
	}
	for i := range b.Parts {
		if b.Parts[i].Proc != None {
			b.Parts[i].Proc = place[b.Parts[i].Proc]
		}
	}
	for i, p := range b.proc {
		if p != None {
			b.proc[i] = int32(place[p])
		}
	}
}
