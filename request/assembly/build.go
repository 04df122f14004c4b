package assembly

import (
	"bytes"
	"cmp"
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/internal/parallel"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/request/spantable"
	"github.com/sgtrace/sgtrace/trace"
	"github.com/sgtrace/sgtrace/trace/naming"
)

// A builder builds a Set. Its steps, in order:
//
//  1. roots: every span that is a request, an envelope, or a gateway.
//  2. threads: every span that names a thread; its part is the nearest root
//     above it, or a part without a root if that is missing.
//  3. stages: everything below a thread.
//  4. stages of vLLM, which names no threads.
//  5. orphans: stages whose thread is missing, placed by what their names say.
//  6. join: parts become requests.
type builder struct {
	*request.Set
	dump  *spantable.Table
	tree  *spantable.Tree
	names []string // of all symbols in the dump
	keys  attrKeys
	class []nameClass // by symbol of the span name

	procIDs   map[request.Proc]int
	known     map[procKey]int
	instances map[string][]int // procs by instance: several if one process exports the spans of others
	headless  map[spanKey]int
	gateways  []int32 // spans of gateways

	miscounts struct { // requests with impossible counts of tokens, found on all cores
		sync.Mutex
		rows []int32
	}
}

// spanKey identifies a span that may be missing.
type spanKey struct {
	trace spantable.TraceID
	id    uint64
}

// nameClass says what a span can be judging by its name, which makes it unnecessary to read the attributes
// of nearly all spans.
type nameClass uint8

const (
	stageName   nameClass = iota
	requestName           // "prefill Req e1cca7b0"
	envelopeName
	vllmName
	otherName // threads, gateways, foreign spans
)

// classOf returns the class of span i's name.
func (b *builder) classOf(i int) nameClass { return b.class[b.Rows[i].Name] }

func classify(name string) nameClass {
	if _, ok := stageByName[name]; ok {
		return stageName
	}
	if _, ok := roleOfRoot(name); ok {
		return requestName
	}
	switch {
	case strings.HasPrefix(name, envelopePrefix):
		return envelopeName
	case name == vllmRequest:
		return vllmName
	}
	return otherName
}

// IsStage reports whether spans with a name are stages of requests.
func IsStage(name string) bool { return stageByName[name] != nil }

// OfRequest reports whether spans with a name are about one request as a whole.
func OfRequest(name string) bool {
	class := classify(name)
	return class == requestName || class == envelopeName
}

// Build builds requests from a finished dump. It reports problems to the dump's diagnostics.
func Build(d *spantable.Table) *Assembly {
	a := assemble(d, false)
	a.Measure()
	return a
}

// Consume is Build for a dump whose spans are not needed afterward: it releases them. Its requests are
// measured on release, since their times may be moved before: see [Assembly.Measure].
func Consume(d *spantable.Table) *Assembly { return assemble(d, true) }

// assemble makes rows from spans, and requests from rows.
func assemble(d *spantable.Table, giveUp bool) *Assembly {
	addVLLMStages(d)
	a := &Assembly{dump: d, tree: spantable.NewTree(d)}
	rows, maker := memory.Make[request.Row](d.Len()), newRowMaker(d)
	d.Each(giveUp, func(i int, s *spantable.Body) {
		row := &rows[i]
		row.Start, row.End, row.Name, row.Args, row.Source, row.Place = s.Start, s.End, s.Name, s.Args, uint32(s.Origin), s.Place
		maker.fill(i, row)
	})
	a.tree.Sort(func(i, j uint32) int {
		x, y := &rows[i], &rows[j]
		return cmp.Or(cmp.Compare(x.Start, y.Start), cmp.Compare(y.End, x.End), a.tree.CompareIDs(int(i), int(j)))
	})
	a.build(rows, nil, nil)
	return a
}

// build fills the tables, from rows made by a rowMaker. Links and instants are those of the previous tables; nil if
// there are none.
func (a *Assembly) build(rows []request.Row, links []request.Link, instants []request.Instant) {
	keys := newAttrKeys(a.dump.Syms)
	b := &builder{
		Set:  request.NewSet(a.dump.Syms, a.dump.Args, a.dump.Diags),
		dump: a.dump, tree: a.tree,
		keys:      keys,
		names:     a.dump.Syms.Names(),
		procIDs:   map[request.Proc]int{},
		known:     map[procKey]int{},
		instances: map[string][]int{},
		headless:  map[spanKey]int{},
	}
	a.Set = b.Set
	a.Set.Steps = a.steps
	b.class = make([]nameClass, len(b.names))
	parallel.Rows(len(b.names), nameSize, func(from, to int) {
		for sym := from; sym < to; sym++ {
			b.class[sym] = classify(b.names[sym])
		}
	})
	b.Stages, b.Results = slices.Concat(stageTable, vllmStageTable), resultKeys
	b.Tree.Above, b.Tree.First, b.Tree.Below = b.tree.Lists()
	b.addSources()
	b.Rows, b.Links, b.Instants = rows, links, instants
	filled := make(chan struct{})
	go func() {
		if instants == nil {
			b.fillLinks()
			b.fillInstants()
		}
		close(filled)
	}()
	b.findThreads(b.findRoots())
	b.findStages()
	b.findVLLMStages()
	b.resolveStrays() // finds the owners of orphans
	b.adoptOrphans()
	b.resolveStrays() // orphans may have named new procs
	b.findGatewaysOfHeadless()
	b.addRejected()
	b.finishParts()
	b.assignProcs()
	b.describe()
	<-filled
	b.reportGaps()
	b.orderProcs()
	b.FindLeads()
	b.findServers()
	b.Names = naming.New(b.Places(), b.HostNames)
	b.join()
	a.unmeasured = b
}

// measureRequests measures each request, and finds those with missing rows.
func (b *builder) measureRequests() {
	var missing, stepless, derived []int32
	parallel.All(func() { missing, stepless = b.findMissing() }, func() { derived = b.measureAll() })
	b.flag(missing, request.MissingRows)
	b.flag(stepless, request.MissingSteps)
	b.flag(derived, request.DerivedTTFT)
}

// flag sets a flag of some requests.
func (b *builder) flag(requests []int32, flag request.Flags) {
	for _, r := range requests {
		b.Requests[r].Flags |= flag
	}
}

// resource returns the process that wrote span i.
func (b *builder) resource(i int) *spantable.Resource {
	return &b.dump.Resources[b.dump.Origins[b.Rows[i].Source].Resource]
}

// compare orders spans by start, then longest first, then identity, which does not depend on their
// positions in the input.
func (b *builder) compare(i, j int) int {
	return cmp.Or(b.Set.Compare(i, j), b.tree.CompareIDs(i, j))
}

// symName returns the string of a symbol of the dump.
func (b *builder) symName(sym trace.Sym) string { return b.names[sym] }

func (b *builder) report(m *trace.Message, span int, values ...any) {
	pos := trace.Pos{Offset: -1}
	if span != request.None {
		pos = b.Pos(span)
	}
	b.dump.Diags.Add(m.At(pos, values...))
}

// nameSize is roughly the length of a name in bytes.
const nameSize = 32

// findRoots marks requests, envelopes, and gateways. It returns all other spans except stages.
func (b *builder) findRoots() (others []int32) {
	type found struct {
		row  int32
		kind request.Kind
	}
	all := parallel.Gather(b.Len(), request.RowSize, func(all []found, from, to int) []found {
		for i := from; i < to; i++ {
			switch class := b.classOf(i); {
			case b.tree.Duplicate(i):
				b.Rows[i].Kind = request.Duplicate
			case class == stageName:
			case class == requestName && b.hasRID(i), class == vllmName:
				all = append(all, found{int32(i), request.Root})
			case class == envelopeName:
				b.Rows[i].Kind = request.Envelope
			case isGateway(b.symName(b.resource(i).Service)):
				b.Rows[i].Kind = request.Gateway
				all = append(all, found{int32(i), request.Gateway})
			default:
				all = append(all, found{int32(i), request.Generic})
			}
		}
		return all
	})
	var roots []int32 // collected first, since parts are large
	for _, f := range all {
		switch f.kind {
		case request.Root:
			roots = append(roots, f.row)
		case request.Gateway:
			b.gateways = append(b.gateways, f.row)
		default:
			others = append(others, f.row)
		}
	}
	b.Parts = memory.Make[request.Part](len(roots))
	b.eachPart(func(p int, texts request.TextKeeper) {
		i, role := int(roots[p]), request.Unified
		if b.classOf(i) == requestName {
			role, _ = roleOfRoot(b.Name(i))
		}
		b.Parts[p] = b.readPart(i, role, texts)
		b.Rows[i].Kind, b.Rows[i].Part = request.Root, int32(p)
	})
	b.eachPart(b.lookAbove)
	return others
}

// eachPart calls f for all parts, on all cores.
func (b *builder) eachPart(f func(p int, texts request.TextKeeper)) {
	parallel.Rows(len(b.Parts), threadSize, func(from, to int) {
		texts := b.KeepTexts()
		defer texts.Release()
		for p := from; p < to; p++ {
			f(p, texts)
		}
	})
}

// hasRID reports whether span i declares itself a request: by a rid or, as some requests do, only by an
// SGLang module.
func (b *builder) hasRID(i int) bool {
	for a := range b.dump.Args.All(b.Rows[i].Args) {
		if a.Key == b.keys.rid || a.Key == b.keys.module && strings.HasPrefix(string(a.Bytes()), "sglang::") {
			return true
		}
	}
	return false
}

// lookAbove finds the outermost gateway span and the envelope around the root of a part.
func (b *builder) lookAbove(part int, texts request.TextKeeper) {
	p := &b.Parts[part]
	for i := b.tree.Parent(p.Root); i != request.None; i = b.tree.Parent(i) {
		switch b.Rows[i].Kind {
		case request.Envelope:
			if a, ok := b.dump.Args.Find(b.Rows[i].Args, b.keys.room); ok && p.Room == 0 {
				p.Room = texts.Keep(roomOf(a))
			}
		case request.Gateway:
			p.Gateway = i // the topmost one wins
		}
	}
}

// mostTokens is more than any request has: sums of counts up to it do not overflow.
const mostTokens = 1e9

// readPart makes a part from request span i and its attributes.
func (b *builder) readPart(i int, role request.Role, texts request.TextKeeper) request.Part {
	s := b.Row(i)
	var rid []byte
	p := request.Part{
		Root: i, Role: role, Start: s.Start, End: s.End, Gateway: request.None, Proc: request.None,
		TTFT: request.Unknown, E2E: request.Unknown, PromptTokens: request.Unknown, CompletionTokens: request.Unknown, CachedTokens: request.Unknown,
	}
	count := func(dst *int64, a trace.Arg) {
		switch n, ok := argInt(a); {
		case ok && n > mostTokens:
			b.miscounts.Lock()
			b.miscounts.rows = append(b.miscounts.rows, int32(i))
			b.miscounts.Unlock()
		case ok && n >= 0:
			*dst = n
		}
	}
	k := &b.keys
	for a := range b.dump.Args.All(s.Args) {
		switch a.Key {
		case k.rid:
			rid = a.Bytes()
		case k.room:
			p.Room = texts.Keep(roomOf(a))
		case k.requestID:
			p.FullID = texts.Keep(a.Bytes())
		case k.ttft:
			p.TTFT = argSeconds(a)
		case k.e2e:
			p.E2E = argSeconds(a)
		case k.prompt:
			count(&p.PromptTokens, a)
		case k.completion:
			count(&p.CompletionTokens, a)
		case k.cached:
			count(&p.CachedTokens, a)
		case k.retractions:
			if n, ok := argInt(a); ok && n >= 0 && n <= math.MaxInt32 {
				p.Retractions = int32(n)
			}
		case k.model:
			p.Model = b.Syms.Intern(string(a.Bytes()))
		case k.finish:
			p.FinishReason = b.Syms.Intern(finishOf(a))
		}
	}
	p.RID = texts.Keep(rid)
	if role == request.Sender && p.Room == 0 && bytes.HasPrefix(rid, []byte("0x")) {
		p.Room = p.RID
	}
	return p
}

// findStages assigns the stages below threads to the threads. No stage is below two threads.
func (b *builder) findStages() {
	apart := parallel.Gather(len(b.Threads), threadSize, func(list []int32, from, to int) []int32 {
		for t := from; t < to; t++ {
			below := b.tree.Children(b.Threads[t].Row)
			stages, end := 0, 0
			for k, c := range below {
				if b.markStages(int(c), t) {
					stages, end = stages+1, k+1
				}
			}
			if stages < end {
				list = append(list, int32(t))
				continue
			}
			b.SetStages(t, below[:end:end]) // a prefix of the children, which needs no memory of its own
		}
		return list
	})
	for _, t := range apart {
		stages := order.Only(b.tree.Children(b.Threads[t].Row), func(c uint32) bool { return b.Rows[c].Kind == request.Stage })
		b.SetStages(int(t), stages)
	}
}

// markStages marks span i and everything below it as stages of thread t.
func (b *builder) markStages(i, t int) bool {
	if b.Rows[i].Kind != request.Generic {
		return false
	}
	b.Rows[i].Kind = request.Stage
	b.Rows[i].Thread, b.Rows[i].Part = int32(t), int32(b.Threads[t].Part)
	for _, c := range b.tree.Children(i) {
		if b.markStages(int(c), t) && b.Rows[c].Means == request.ReceiveConnecting {
			b.Rows[c].Means = request.Reconnecting // the first connection is in no other stage
		}
	}
	return true
}
