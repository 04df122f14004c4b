package request

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/otlpjson"
	"github.com/sgtrace/sgtrace/trace"
)

// A builder makes a Set. Its steps, in order:
//
//  1. roots: every span that is a request, an envelope or a gateway.
//  2. threads: every span that names a thread; its part is the nearest root
//     above it, or a part without a root when that is missing.
//  3. stages: everything below a thread.
//  4. orphans: stages whose thread is missing, by what their names tell.
//  5. join: parts become requests.
type builder struct {
	*Set
	keys  attrKeys
	class []nameClass // by symbol of the span's name

	procIDs   map[Proc]int
	known     map[procKey]int
	instances map[string]int // proc of an instance; None if it has several
	headless  map[spanKey]int
}

// spanKey names a span that may be missing.
type spanKey struct{ hi, lo, id uint64 }

// nameClass tells by the name alone what a span can be, which saves looking at
// the attributes of nearly every span of a dump.
type nameClass uint8

const (
	unclassified nameClass = iota
	stageName
	requestName // "prefill Req e1cca7b0"
	envelopeName
	vllmName
	otherName // threads, gateways, foreign spans
)

// classOf returns the class of the name of span i.
func (b *builder) classOf(i int) nameClass {
	sym := b.Dump.Span(i).Name
	if b.class[sym] == unclassified {
		b.class[sym] = classify(b.symName(sym))
	}
	return b.class[sym]
}

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

// Build makes requests of a finished dump. What it finds wrong goes to the
// dump's diagnostics.
func Build(d *otlpjson.Dump) *Set {
	n := d.Len()
	b := &builder{
		Set: &Set{
			Dump: d, Tree: otlpjson.NewTree(d),
			kinds: make([]SpanKind, n), thread: make([]int32, n), part: make([]int32, n),
			gatewayOf: map[int]int{},
		},
		keys:      newAttrKeys(d.Syms),
		procIDs:   map[Proc]int{},
		known:     map[procKey]int{},
		instances: map[string]int{},
		headless:  map[spanKey]int{},
	}
	b.names = d.Syms.Names()
	b.class = make([]nameClass, len(b.names))
	for i := range n {
		b.thread[i], b.part[i] = None, None
	}
	linked := make(chan struct{})
	go func() {
		b.resolveLinks()
		close(linked)
	}()
	b.findRoots()
	b.findThreads()
	b.findStages()
	b.adoptOrphans()
	b.addRejected()
	b.finishParts()
	b.assignProcs()
	<-linked
	b.reportGaps()
	b.orderProcs()
	b.findServers()
	b.join()
	b.measureAll()
	return b.Set
}

// symName returns the string of a symbol that the dump came with.
func (b *builder) symName(sym trace.Sym) string { return b.names[sym] }

func (b *builder) report(s trace.Severity, code string, span int, msg string) {
	pos := trace.Pos{Offset: -1}
	if span != None {
		pos = b.Dump.Pos(span)
	}
	b.Dump.Diags.Add(trace.Diag{Severity: s, Code: code, Pos: pos, Msg: msg})
}

func (b *builder) findRoots() {
	for i := range b.Dump.Len() {
		switch class := b.classOf(i); {
		case b.Tree.Duplicate(i):
			b.kinds[i] = Duplicate
		case class == stageName:
		case class == requestName && b.hasRID(i):
			role, _ := roleOfRoot(b.Name(i))
			b.addPart(i, role)
		case class == envelopeName:
			b.kinds[i] = Envelope
		case class == vllmName:
			b.addPart(i, Unified)
		case isGateway(b.symName(b.Dump.Resource(b.Dump.Span(i)).Service)):
			b.kinds[i] = Gateway
		}
	}
	for p := range b.Parts {
		b.lookAbove(&b.Parts[p])
	}
}

// hasRID tells whether span i says that it is a request: by a rid, or by a
// module of SGLang's, which some requests have alone.
func (b *builder) hasRID(i int) bool {
	for a := range b.Dump.Args.All(b.Dump.Span(i).Args) {
		if a.Key == b.keys.rid || a.Key == b.keys.module && strings.HasPrefix(string(a.Bytes()), "sglang::") {
			return true
		}
	}
	return false
}

// lookAbove finds the outermost gateway span and the envelope around the root of p.
func (b *builder) lookAbove(p *Part) {
	for i := b.Tree.Parent(p.Root); i != None; i = b.Tree.Parent(i) {
		switch b.kinds[i] {
		case Envelope:
			if a, ok := b.Dump.Args.Find(b.Dump.Span(i).Args, b.keys.room); ok && p.Room == "" {
				p.Room = roomOf(a)
			}
		case Gateway:
			p.Gateway = i // the topmost one counts
		}
	}
}

// addPart makes a part of the request span i and reads its attributes.
func (b *builder) addPart(i int, role Role) {
	s := b.Dump.Span(i)
	p := Part{
		Root: i, Role: role, Start: s.Start, End: s.End, Gateway: None, Proc: None,
		TTFT: Unknown, E2E: Unknown, PromptTokens: Unknown, CompletionTokens: Unknown, CachedTokens: Unknown,
	}
	count := func(dst *int64, a trace.Arg) {
		if n, ok := argInt(a); ok {
			*dst = n
		}
	}
	k := &b.keys
	for a := range b.Dump.Args.All(s.Args) {
		switch a.Key {
		case k.rid:
			p.RID = string(a.Bytes())
		case k.room:
			p.Room = roomOf(a)
		case k.requestID:
			p.FullID = string(a.Bytes())
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
		case k.model:
			p.Model = string(a.Bytes())
		case k.finish:
			p.FinishReason = finishOf(a)
		}
	}
	if role == Sender && p.Room == "" && strings.HasPrefix(p.RID, "0x") {
		p.Room = p.RID
	}
	b.kinds[i] = Root
	b.part[i] = int32(len(b.Parts))
	b.Parts = append(b.Parts, p)
}

func (b *builder) findThreads() {
	for i := range b.Dump.Len() {
		if b.kinds[i] != Generic || b.classOf(i) == stageName {
			continue
		}
		label, ok := b.threadLabel(i)
		if !ok {
			continue
		}
		part := b.partAbove(i)
		if part == None {
			part = b.headlessPart(i)
		}
		b.addThread(i, part, label)
	}
}

// threadLabel returns the label of span i if it is a thread. A span with a
// module besides is a stage that carries its own identity (hicache).
func (b *builder) threadLabel(i int) (label []byte, ok bool) {
	for a := range b.Dump.Args.All(b.Dump.Span(i).Args) {
		switch a.Key {
		case b.keys.label:
			label, ok = a.Bytes(), true
		case b.keys.module:
			return nil, false
		}
	}
	return label, ok
}

// partAbove returns the part that span i lies in, or None.
func (b *builder) partAbove(i int) int {
	for j := b.Tree.Parent(i); j != None; j = b.Tree.Parent(j) {
		if b.part[j] != None {
			return int(b.part[j])
		}
	}
	return None
}

// headlessPart returns the part of the missing request span above thread i.
func (b *builder) headlessPart(i int) int {
	s := b.Dump.Span(i)
	key := spanKey{s.TraceHi, s.TraceLo, s.Parent}
	part, ok := b.headless[key]
	if !ok {
		part = b.newHeadless()
		b.headless[key] = part
		b.report(trace.DataLoss, "request-root-missing", i,
			fmt.Sprintf("thread span %q belongs to a request whose own span is not in the dump; shown without it", b.Name(i)))
	}
	return part
}

func (b *builder) newHeadless() int {
	b.Parts = append(b.Parts, Part{
		Root: None, Role: Other, Gateway: None, Proc: None,
		TTFT: Unknown, E2E: Unknown, PromptTokens: Unknown, CompletionTokens: Unknown, CachedTokens: Unknown,
	})
	return len(b.Parts) - 1
}

// addThread makes a thread of span i.
func (b *builder) addThread(i, part int, label []byte) {
	t := Thread{Span: i, Part: part, Proc: b.procOf(i, label, b.Parts[part].Role)}
	if s := b.Dump.Span(i); s.Status == otlpjson.StatusError {
		t.Failed, t.Reason = true, "error"
		for a := range b.Dump.Args.All(s.Args) {
			if a.Key == b.keys.reason || a.Key == b.keys.message {
				t.Reason = string(a.Bytes())
			}
		}
	}
	b.kinds[i] = ThreadSpan
	b.thread[i], b.part[i] = int32(len(b.Threads)), int32(part)
	b.Threads = append(b.Threads, t)
}

func (b *builder) findStages() {
	for t := range b.Threads {
		for _, c := range b.Tree.Children(b.Threads[t].Span) {
			if b.markStages(int(c), t) {
				b.Threads[t].Stages = append(b.Threads[t].Stages, c)
			}
		}
	}
}

// markStages marks span i and everything below as stages of thread t.
func (b *builder) markStages(i, t int) bool {
	if b.kinds[i] != Generic {
		return false
	}
	b.kinds[i] = Stage
	b.thread[i], b.part[i] = int32(t), int32(b.Threads[t].Part)
	for _, c := range b.Tree.Children(i) {
		b.markStages(int(c), t)
	}
	return true
}

// finishParts derives what the threads of a part tell about it.
func (b *builder) finishParts() {
	for t := range b.Threads {
		p := &b.Parts[b.Threads[t].Part]
		p.Threads = append(p.Threads, t)
	}
	for i := range b.Parts {
		p := &b.Parts[i]
		slices.SortFunc(p.Threads, b.compareThreads)
		if p.Role == Unified {
			p.Role = b.roleOfThreads(p)
		}
		if p.Root == None {
			b.finishHeadless(p)
			continue
		}
		if b.Implausible(p.Root) && len(p.Threads) > 0 {
			b.boundByThreads(p)
		}
		p.Proc = b.rootProc(p)
	}
}

// roleOfThreads returns the role that the threads of a part tell, for roots that
// do not: in the v1a layout all of them are called "Req".
func (b *builder) roleOfThreads(p *Part) Role {
	for _, t := range p.Threads {
		if role := b.Procs[b.Threads[t].Proc].Role; role == Prefill || role == Decode {
			return role
		}
	}
	return p.Role
}

// compareThreads orders threads by start and proc.
func (b *builder) compareThreads(x, y int) int {
	fx, _ := b.threadBounds(x)
	fy, _ := b.threadBounds(y)
	return cmp.Or(cmp.Compare(fx, fy), compareProcs(&b.Procs[b.Threads[x].Proc], &b.Procs[b.Threads[y].Proc]), cmp.Compare(x, y))
}

// threadBounds returns the interval of a thread, by its stages if its own span
// is missing, or says what cannot be.
func (s *Set) threadBounds(t int) (from, to trace.Time) {
	th := &s.Threads[t]
	if th.Span != None && (!s.Implausible(th.Span) || len(th.Stages) == 0) {
		span := s.Dump.Span(th.Span)
		return span.Start, span.End
	}
	for k, i := range th.Stages {
		span := s.Dump.Span(int(i))
		if k == 0 || span.Start < from {
			from = span.Start
		}
		if k == 0 || span.End > to {
			to = span.End
		}
	}
	return from, to
}

// boundByThreads takes the bounds of a part from its threads.
func (b *builder) boundByThreads(p *Part) {
	for k, t := range p.Threads {
		from, to := b.threadBounds(t)
		if k == 0 || from < p.Start {
			p.Start = from
		}
		if k == 0 || to > p.End {
			p.End = to
		}
	}
}

// finishHeadless takes bounds and role of a part without root from its threads.
func (b *builder) finishHeadless(p *Part) {
	b.boundByThreads(p)
	for _, t := range p.Threads {
		if role := b.Procs[b.Threads[t].Proc].Role; role != Other {
			p.Role = role
		}
	}
	if p.Role == Other && slices.ContainsFunc(p.Threads, func(t int) bool { return isScheduler(b.Procs[b.Threads[t].Proc].Label) }) {
		p.Role = Unified
	}
	if len(p.Threads) > 0 {
		p.Proc = b.Threads[p.Threads[0]].Proc
	}
}
