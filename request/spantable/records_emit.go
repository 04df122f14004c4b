package spantable

import (
	"bytes"
	"cmp"
	"hash/fnv"
	"slices"
	"strconv"

	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
)

// stageOf has the span names of phases, from the table of stages in package assembly.
var stageOf = map[Role][phases]string{
	Unified:     {Prepare: "request_process", Queue: "prefill_waiting", Prefill: "prefill_forward", Decode: "decode_forward"},
	PrefillRole: {Prepare: "prefill_prepare", Bootstrap: "prefill_bootstrap", Queue: "prefill_waiting", Prefill: "prefill_forward", Transfer: "prefill_transfer_kv_cache"},
	DecodeRole:  {Prepare: "decode_prepare", Bootstrap: "decode_bootstrap", Transfer: "decode_transferred", Queue: "decode_waiting", Decode: "decode_forward"},
}

// rootOf has the prefixes of request span names, and labelOf the labels of the schedulers.
var (
	rootOf  = map[Role]string{Unified: " Req ", PrefillRole: "prefill Req ", DecodeRole: "decode Req "}
	labelOf = map[Role]string{Unified: "Scheduler", PrefillRole: "Prefill Scheduler", DecodeRole: "Decode Scheduler"}
)

// Emit adds the requests to a table of spans, except for those that it already has, and returns how many it
// added. The series must be finished, so that zones and roles of servers are decided.
func (t *RequestRecords) Emit(spans *Table) (made int) {
	if len(t.rows) == 0 {
		return 0
	}
	traced := false // some requests have spans already
	t.settle()
	ids := tracedIDs(spans)
	order := memory.Make[uint32](len(t.rows))
	for i := range order {
		order[i] = uint32(i)
	}
	slices.SortFunc(order, func(a, b uint32) int { return t.compare(int(a), int(b)) })
	e := t.emitter(spans)
	var id []byte
	var roots []int // the spans that were added for id
	for i := 0; i < len(order); {
		r := t.rows[order[i]]
		k := i + 1
		for k < len(order) && t.same(&r, &t.rows[order[k]]) {
			join(&r, &t.rows[order[k]])
			k++
		}
		if !bytes.Equal(id, t.text(r.ID)) {
			id, roots = t.text(r.ID), roots[:0]
		}
		root, known := ids[string(id)]
		if r.Who == Client && !known {
			root, known = e.during(&r, roots)
		}
		switch {
		case r.Start <= 0 || r.Start > r.End:
		case known && r.Who == Client:
			e.emitAround(&r, root)
			traced = true
		case known:
			traced = true
		default:
			roots = append(roots, e.emit(&r))
			made++
		}
		i = k
	}
	if !traced { // otherwise, latencies are those of the spans
		t.judgeSamples()
	}
	t.rows, t.texts = nil, nil
	return made
}

// settle converts rows to Unix time, and sets their roles.
func (t *RequestRecords) settle() {
	roles := t.roles()
	for i := range memory.Each(len(t.rows), 256) {
		r := &t.rows[i]
		if r.Local {
			east := trace.Time(t.Series.Sources[t.sources[r.source].series].Zone.East)
			shift(&r.Start, east)
			shift(&r.End, east)
			shift(&r.First, east)
			for p := range r.Phases {
				shift(&r.Phases[p].From, east)
				shift(&r.Phases[p].To, east)
			}
		}
		if r.Role == NoRole && r.Server >= 0 {
			r.Role = RoleOf(t.Series.Servers[r.Server].Role)
		}
		if r.Role == NoRole {
			r.Role = roles[r.source]
		}
		if r.End == 0 && r.E2E > 0 {
			r.End = r.Start + trace.Time(r.E2E)
		}
		if r.Start == 0 && r.E2E >= 0 {
			r.Start = r.End - trace.Time(r.E2E)
		}
	}
}

func shift(t *trace.Time, east trace.Time) {
	if *t != 0 {
		*t -= east
	}
}

// roles returns the role of each source whose rows name none. If its requests have rooms, a server whose
// answers have at most one token prefills; otherwise, it decodes.
func (t *RequestRecords) roles() []Role {
	type count struct{ rooms, long int }
	counts := make([]count, len(t.sources))
	for i := range memory.Each(len(t.rows), 256) {
		r := &t.rows[i]
		if r.Room.n > 0 {
			counts[r.source].rooms++
			if r.Completion > 1 {
				counts[r.source].long++
			}
		}
	}
	roles := make([]Role, len(counts))
	for i, c := range counts {
		switch {
		case c.rooms == 0:
			roles[i] = Unified
		case c.long == 0:
			roles[i] = PrefillRole
		default:
			roles[i] = DecodeRole
		}
	}
	return roles
}

// compare orders rows so that those of one request are adjacent: by ID, then role, then end. Client rows
// come last.
func (t *RequestRecords) compare(i, k int) int {
	a, b := &t.rows[i], &t.rows[k]
	return cmp.Or(bytes.Compare(t.text(a.ID), t.text(b.ID)), cmp.Compare(a.Who/Client, b.Who/Client), cmp.Compare(a.Role, b.Role), cmp.Compare(a.End, b.End), cmp.Compare(a.Who, b.Who),
		cmp.Compare(a.source, b.source), cmp.Compare(a.Line, b.Line))
}

// same reports whether two rows are about one request on one server: clients may reuse an ID, but not
// before the previous request has ended.
func (t *RequestRecords) same(a, b *RequestRecord) bool {
	return a.Role == b.Role && a.Who/Client == b.Who/Client && a.Start <= b.End && b.Start <= a.End && bytes.Equal(t.text(a.ID), t.text(b.ID))
}

// join adds the information of another row about the same request to r.
func join(r, o *RequestRecord) {
	if o.Who < r.Who {
		other := *r
		*r, o = *o, &other
	}
	for _, x := range [...][2]*int64{{&r.TTFT, &o.TTFT}, {&r.Prompt, &o.Prompt}, {&r.Completion, &o.Completion}, {&r.Cached, &o.Cached}, {&r.Retracted, &o.Retracted}} {
		if *x[0] == Unknown {
			*x[0] = *x[1]
		}
	}
	if r.Room.n == 0 {
		r.Room = o.Room
	}
	r.Model, r.Reason, r.Finish = cmp.Or(r.Model, o.Model), cmp.Or(r.Reason, o.Reason), cmp.Or(r.Finish, o.Finish)
	if r.Server == Unknown {
		r.Server = o.Server
	}
	if r.DP == Unknown {
		r.DP = o.DP
	}
	for p := range r.Phases {
		if r.Phases[p].From == 0 {
			r.Phases[p] = o.Phases[p]
		}
	}
}

// tracedIDs returns the IDs of requests that have spans, each with its first span: the IDs assigned by
// servers, and by gateways in front of them.
func tracedIDs(spans *Table) map[string]int {
	ids := map[string]int{}
	if spans.Len() == 0 {
		return ids
	}
	keys := [...]trace.Sym{spans.Syms.Intern("gen_ai.request.id"), spans.Syms.Intern("request_id")}
	for i := range spans.Numbers() {
		args := spans.Span(i).Args
		for _, key := range keys {
			if a, ok := spans.Args.Find(args, key); ok {
				if _, there := ids[string(a.Bytes())]; !there {
					ids[string(a.Bytes())] = i
				}
			}
		}
	}
	return ids
}

// An emitter makes spans from rows.
type emitter struct {
	t       *RequestRecords
	fillers []*Filler
	names   map[string]trace.Sym
	spans   *Table
	byID    map[spanKey]int // spans of the dump, built on first use
}

// A spanKey identifies a span.
type spanKey struct {
	trace uint32
	id    uint64
}

func (t *RequestRecords) emitter(spans *Table) *emitter {
	e := &emitter{t: t, spans: spans, names: map[string]trace.Sym{}}
	for i := range t.sources {
		f := spans.Fill(t.sources[i].name, t.sources[i].encoding)
		f.File().Bytes = t.Series.Sources[t.sources[i].series].Bytes
		e.fillers = append(e.fillers, f)
	}
	return e
}

// during returns the last of some spans that overlaps with what a client saw: with separate prefill and
// decode servers, that is the decode server's, which answers.
func (e *emitter) during(r *RequestRecord, roots []int) (root int, ok bool) {
	for _, i := range slices.Backward(roots) {
		if s := e.spans.Span(i); s.Start <= r.End && r.Start <= s.End {
			return i, true
		}
	}
	return 0, false
}

// emitAround adds what a client saw of a request as a span around everything that servers and gateways have
// of it, like a gateway's span: the difference is the network.
func (e *emitter) emitAround(r *RequestRecord, root int) {
	if e.byID == nil {
		e.byID = map[spanKey]int{}
		for i := range e.spans.Numbers() {
			x := e.spans.Identity(i)
			e.byID[spanKey{x.Trace, x.ID}] = i
		}
	}
	const maxAbove = 64 // in case spans form a cycle
	for range maxAbove {
		x := e.spans.Identity(root)
		above, ok := e.byID[spanKey{x.Trace, x.Parent}]
		if x.Parent == 0 || !ok {
			break
		}
		root = above
	}
	top := e.spans.Span(root)
	f := e.fillers[r.source]
	s := Record{Resource: f.Attribute(nil, "service.name", "aiperf", 0), Attrs: e.seen(f, r)}
	s.TraceHi, s.TraceLo, s.ID = top.TraceHi, top.TraceLo, order.Mix(top.ID+uint64(r.Line))
	s.Start, s.End, s.Name, s.Kind, s.Line = r.Start, r.End, e.spans.Syms.Intern("POST"), 3, r.Line
	if r.Reason != 0 {
		s.Status = StatusError
	}
	f.Add(&s, int64(r.Line))
	e.spans.Identity(root).Parent = s.ID
}

// emit adds the spans of a request: its own, its scheduler's, and one for each phase. It returns the first
// one.
func (e *emitter) emit(r *RequestRecord) (root int) {
	t, f := e.t, e.fillers[r.source]
	first := e.spans.Len()
	h := fnv.New128a()
	h.Write(t.text(r.ID))
	h.Write([]byte{byte(r.Role)})
	h.Write(strconv.AppendInt(nil, int64(r.Start), 10))
	id := h.Sum(nil)
	var hi, lo uint64
	for i := range 8 {
		hi, lo = hi<<8|uint64(id[i]), lo<<8|uint64(id[8+i])
	}
	hi |= 1 // 0 is not a valid trace
	next := uint64(1)
	add := func(name string, from, to trace.Time, parent uint64, attrs trace.ArgList, failed bool) uint64 {
		sym := order.Memo(e.names, name, func() trace.Sym { return e.spans.Syms.Intern(name) })
		s := Record{Resource: e.resource(f, r), Attrs: attrs}
		s.TraceHi, s.TraceLo, s.ID, s.Parent = hi, lo, next, parent
		s.Start, s.End, s.Name, s.Kind, s.Line = from, to, sym, 1, r.Line
		if failed {
			s.Status = StatusError
		}
		next++
		f.Add(&s, int64(r.Line))
		return s.ID
	}
	r.complete()
	top := add(rootOf[r.Role]+short(string(t.text(r.ID))), r.Start, r.End, 0, e.request(f, r), false)
	thread := add(labelOf[r.Role], e.from(r), r.End, top, e.thread(f, r), r.Reason != 0)
	stages := stageOf[r.Role]
	for p, x := range r.Phases {
		if stages[p] != "" && x.From > 0 && x.From <= x.To {
			add(stages[p], x.From, x.To, thread, nil, false)
		}
	}
	return first
}

// complete adds phases that follow from the known ones: a busy scheduler receives a request late; a prefill
// server has it until its KV cache is sent; and a decode server that says when a request was in its queue
// had been waiting for the KV cache until then.
func (r *RequestRecord) complete() {
	p := &r.Phases
	if r.Role == PrefillRole && p[Transfer].From == 0 && p[Prefill].To > 0 && p[Prefill].To < r.End {
		p[Transfer] = Phase{p[Prefill].To, r.End}
	}
	if r.Role == DecodeRole && p[Queue].To > 0 {
		if p[Decode].From == 0 && p[Queue].To < r.End {
			p[Decode] = Phase{p[Queue].To, r.End}
		}
		p[Decode].From = min(p[Decode].From, max(p[Queue].To, r.Start))
		if p[Bootstrap].From == 0 && p[Transfer].From == 0 && r.Start < p[Queue].From {
			p[Transfer] = Phase{r.Start, p[Queue].From}
		}
	}
	first := trace.Time(0)
	for _, x := range p {
		if x.From > 0 && (first == 0 || x.From < first) {
			first = x.From
		}
	}
	if first > r.Start {
		p[Prepare] = Phase{r.Start, first}
	}
}

// from returns when the scheduler received a request, as far as that is known.
func (e *emitter) from(r *RequestRecord) trace.Time {
	for _, x := range r.Phases {
		if x.From > 0 {
			return max(r.Start, min(x.From, r.End))
		}
	}
	return r.Start
}

// short returns the beginning of an ID, for the name of a request's span.
func short(id string) string {
	if len(id) > 8 {
		return id[:8]
	}
	return id
}

func (e *emitter) resource(f *Filler, r *RequestRecord) trace.ArgList {
	list := f.Attribute(nil, "service.name", "sglang", 0)
	if r.Who == Client {
		return f.Attribute(list, "host.name", "client", 0)
	}
	if s := e.server(r); s != nil {
		list = f.Attribute(list, "host.name", s.Called(), 0)
	}
	if r.Fronted {
		list = f.Attribute(list, "service.instance.id", trace.ByFrontend, 0)
	}
	return list
}

func (e *emitter) server(r *RequestRecord) *series.Server {
	if r.Server == Unknown {
		return nil
	}
	return &e.t.Series.Servers[r.Server]
}

// seen returns the attributes of what a client saw, in a gateway's form.
func (e *emitter) seen(f *Filler, r *RequestRecord) trace.ArgList {
	at := int64(r.Line)
	list := f.Attribute(f.Attribute(nil, "request_id", string(e.t.text(r.ID)), at), "method", "POST", at)
	if r.Reason != 0 {
		list = f.Attribute(list, "status_code", "500", at)
	}
	if r.TTFT >= 0 {
		list = f.Attribute(list, "gen_ai.latency.time_to_first_token", float64(r.TTFT)/1e9, at)
	}
	return list
}

// request returns the attributes of a request.
func (e *emitter) request(f *Filler, r *RequestRecord) trace.ArgList {
	at, t := int64(r.Line), e.t
	id := string(t.text(r.ID))
	var list trace.ArgList
	add := func(key string, value any) { list = f.Attribute(list, key, value, at) }
	count := func(key string, n int64) {
		if n >= 0 {
			add(key, n)
		}
	}
	add("module", "sglang::record")
	add("rid", id)
	add("gen_ai.request.id", id)
	if r.Room.n > 0 {
		add("bootstrap_room", string(t.text(r.Room)))
	}
	if r.TTFT >= 0 {
		add("gen_ai.latency.time_to_first_token", float64(r.TTFT)/1e9)
	}
	count("gen_ai.usage.prompt_tokens", r.Prompt)
	count("gen_ai.usage.completion_tokens", r.Completion)
	count("gen_ai.usage.cached_tokens", r.Cached)
	count("num_retractions", r.Retracted)
	if r.Model != 0 {
		add("gen_ai.response.model", f.Table.Syms.Name(r.Model))
	}
	if r.Finish != 0 {
		add("gen_ai.response.finish_reasons", `["`+f.Table.Syms.Name(r.Finish)+`"]`)
	}
	return list
}

// thread returns the attributes of a scheduler's span.
func (e *emitter) thread(f *Filler, r *RequestRecord) trace.ArgList {
	at := int64(r.Line)
	list := f.Attribute(nil, "thread_label", labelOf[r.Role], at)
	if s := e.server(r); s != nil {
		list = f.Attribute(list, "host_id", s.Called(), at)
	}
	if r.DP >= 0 {
		list = f.Attribute(list, "dp_rank", int64(r.DP), at)
	}
	if r.Reason != 0 {
		list = f.Attribute(list, "reason", f.Table.Syms.Name(r.Reason), at)
	}
	return list
}
