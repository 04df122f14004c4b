package pace

import (
	"math"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/change/work"
	"github.com/sgtrace/sgtrace/analyze/diff/compare"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/analyze/replay"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/internal/significance"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// A Side holds the steps of one side, grouped by which ones are compared with each other.
type Side map[key]*steps

// A key identifies steps that are compared with each other: those of a kind and role, as seen
// in requests; or those that profilers annotated at a level, on the host or on its device.
type key struct {
	kind     replay.Kind
	role     request.Role
	level    uint8 // of annotations, as defined by whoever adds them; 0: from requests, or from logs and metrics
	onDevice bool
	said     Said
}

// Said is the source of step times that come from neither steps of requests nor profilers.
type Said uint8

const (
	unsaid      Said = iota
	Logged           // log lines of batches
	Scraped          // metrics
	tokens           // requests from their first token to the last, without the prefills between, for dumps that show no steps
	mixedTokens      // the same with the prefills between, where servers compute both in one batch
)

// paced are the words for a source: what is paced, which is a kind of steps if what is "", and what is in it besides.
var paced = [...]struct{ before, what, also string }{unsaid: {}, Logged: {"logged ", "", withPrefills}, Scraped: {"scraped ", "", withPrefills},
	tokens: {what: "output tokens"}, mixedTokens: {what: "output tokens", also: withPrefills}}

// ofTokens reports whether the source is requests as a whole.
func (s Said) ofTokens() bool { return s >= tokens }

// steps are the steps with one key on one side.
type steps struct {
	list []step
	work []significance.Piece // work of the steps, and number of steps, in pieces that are longer than requests
	// tokens is what requests got out of steps, for requests that report both: more than one token per step if drafts are accepted.
	tokens, steps float64
	servers       names
	ranks         names // ranks that ended a step last
}

type step struct {
	replay.Timed
	size   [2]int16 // size class of requests or tokens, and of the tokens attended to; see sizeOf
	piece  int16
	server int16 // index into the side's servers
	last   int16 // index into the side's ranks: the one that ended the step last while others waited; -1 if unknown
	waited int32 // how long others waited for it, ns
}

// steps returns the steps with a key, with the given number of pieces for their work.
func (s Side) steps(of key, pieces int) *steps {
	return order.Memo(s, of, func() *steps { return &steps{work: make([]significance.Piece, pieces)} })
}

// add adds a step; its work goes to a piece of its own.
func (p *steps) add(st *step, work int, amount int64) {
	p.list = append(p.list, *st)
	of := &p.work[work]
	of.Sum, of.Of = of.Sum+float64(amount), of.Of+1
}

// kindsOfWork are the units of work in steps, by kind.
var kindsOfWork = [...]struct {
	unit string
	of   func(*replay.Features) int64
}{replay.Prefill: {"prompt tokens", func(f *replay.Features) int64 { return f.New }}, replay.Decode: {"requests", func(f *replay.Features) int64 { return f.Requests }}}

// sizeOf returns the size class of a step: the number of requests being decoded, or prefilled tokens
// to within a fifth; and the tokens attended to, to within a fifth, or two fifths for decode steps.
func sizeOf(kind replay.Kind, f *replay.Features, attended int64) [2]int16 {
	octaves := func(tokens int64, parts float64) int16 { return int16(parts * math.Log2(float64(max(1, tokens)))) }
	if kind == replay.Decode {
		return [2]int16{int16(min(f.Requests, math.MaxInt16)), octaves(attended, 2)}
	}
	return [2]int16{octaves(f.New, 4), octaves(attended, 4)}
}

// AddServers adds the steps of all servers that began in [from, to), as seen in requests; to is open if 0.
// overlapping are pieces longer than requests, for the work of steps, which is what requests ask for. How
// long a step takes for its work does not depend on how long requests are, so pieces for that may be short.
func (s Side) AddServers(set *request.Set, from, to trace.Time, captures compare.Captures, overlapping *compare.Pieces) {
	type engineStep struct {
		*replay.Step
		of *replay.Engine
	}
	found, groups, mixed := map[key][]engineStep{}, map[key]int32{}, map[key]bool{}
	run := replay.Read(set)
	for i := range run.Engines {
		e := &run.Engines[i]
		if e.Role == request.Unified && !slices.ContainsFunc(e.Steps, func(st replay.Step) bool { return st.Kind == replay.Decode }) {
			continue // it also decoded, invisibly, and its prefills waited for that
		}
		for k := range e.Steps {
			if st := &e.Steps[k]; st.Start >= from && (to == 0 || st.Start < to) {
				at := key{kind: st.Kind, role: e.Role}
				if first := order.Memo(groups, at, func() int32 { return e.Group }); first != e.Group {
					mixed[at] = true
				}
				found[at] = append(found[at], engineStep{st, e})
			}
		}
	}
	tokens, steps := 0.0, 0.0
	for i := range set.AllRequests() {
		t, n := set.Requests[i].Metrics.StepYield()
		tokens, steps = tokens+float64(t), steps+float64(n)
	}
	for at, list := range found {
		if mixed[at] {
			continue // servers of different models, whose shares of requests vary over time
		}
		starts := order.Each(list, func(st engineStep) trace.Time { return st.Start })
		cut := captures.Pieces(compare.CutEvenly(starts, min(compare.MaxPieces, len(starts)/compare.MinRequests)))
		of := s.steps(at, overlapping.N())
		of.tokens, of.steps = of.tokens+tokens, of.steps+steps
		for _, st := range list {
			attended := st.Context
			if st.Kind == replay.Prefill {
				attended = st.New + st.Prefix
			}
			x := step{Timed: run.Computed(st.Step), size: sizeOf(st.Kind, &st.Features, attended), piece: int16(cut.At(st.Start)), server: of.servers.index(st.of.DP()), last: -1}
			if rank, waited, ok := run.Last(st.Step); ok {
				x.last, x.waited = of.ranks.index(rank.String()), int32(min(waited, math.MaxInt32))
			}
			of.add(&x, overlapping.At(st.Start), kindsOfWork[st.Kind].of(&st.Features))
		}
	}
}

// HasSteps reports whether steps are known, and not only how long requests took as a whole.
func (s Side) HasSteps() bool {
	for of := range s {
		if !of.said.ofTokens() {
			return true
		}
	}
	return false
}

// AddTokens adds how long servers took for each output token of the requests that begin in [from, to); to is open if 0. A request is
// one step, of how many it was decoded with on average. Ranks that take steps together are left out: which of them has the most to
// do changes from step to step.
func (s Side) AddTokens(set *request.Set, from, to trace.Time, pieces *compare.Pieces) {
	var all []*request.Request
	for i := range set.AllRequests() {
		all = append(all, &set.Requests[i])
	}
	first, last, _ := set.Bounds()
	if to != 0 {
		last = to - 1
	}
	ranks := place.NewRankSet(set)
	models, found := map[key]string{}, map[key][]*work.Pace{}
	paces := work.Observe(ranks, all, max(first, from), last).Decode
	for i := range paces {
		p := &paces[i]
		of := key{kind: replay.Decode, role: ranks.Places[p.Rank].Role, said: tokens}
		if p.Whole {
			of.said = mixedTokens
		}
		if ranks.EngineRanks(p.Rank) > 1 {
			continue
		}
		found[of] = append(found[of], p)
		for k := range p.Pieces {
			model := set.ModelOf(&set.Requests[p.Pieces[k].Request])
			if first := order.Memo(models, of, func() string { return model }); first != model {
				models[of] = ""
			}
		}
	}
	for of, list := range found {
		for _, p := range list {
			if to := s.steps(of, pieces.N()); models[of] != "" {
				to.addTokens(p, to.servers.index(ranks.Places[p.Rank].DP()), pieces)
			}
		}
	}
}

// addTokens adds the requests of a server.
func (p *steps) addTokens(of *work.Pace, server int16, pieces *compare.Pieces) {
	for i := range of.Pieces {
		x := &of.Pieces[i]
		f := replay.Features{Requests: int64(math.Round(x.Burden[0])), Context: int64(x.Burden[1])}
		piece := pieces.At(x.From)
		p.add(&step{Timed: replay.Timed{Features: f, Took: max(1, int64(x.NS))}, size: sizeOf(replay.Decode, &f, f.Context), piece: int16(piece), server: server, last: -1}, piece, f.Requests)
	}
}

// AddAnnotated adds a step that profilers annotated at a level, if its name gives its work;
// took is its time on the host or on its device, in ns.
func (s Side) AddAnnotated(n *profile.StepName, level uint8, rank string, took int64, onDevice bool, piece, pieces int) {
	f := replay.Features{New: int64(max(0, n.Prefilled)), Requests: int64(n.Batch)}
	kind := replay.Prefill
	switch {
	case n.Kind == profile.StepDecode && n.Batch >= 0:
		kind = replay.Decode
	case n.Kind != profile.StepPrefill || n.Prefilled <= 0 || n.Decoded > 0:
		return
	}
	attended := f.New
	if n.Lengths != nil {
		f.Context = max(0, n.Lengths.ContextKeys) + max(0, n.Lengths.GenerationKeys)
		attended = f.Context
	}
	x := step{Timed: replay.Timed{Features: f, Took: max(1, took)}, size: sizeOf(kind, &f, attended), piece: int16(piece), last: -1}
	of := s.steps(key{kind: kind, level: level, onDevice: onDevice}, pieces)
	x.server = of.servers.index(rank)
	of.add(&x, piece, kindsOfWork[kind].of(&f))
}

// AddSaid adds a decode step from logs or metrics: how many s it took, and how many tokens it gave to each request.
func (s Side) AddSaid(by Said, at *place.Location, took, tokens float64, f replay.Features, piece, pieces int) {
	if f.Requests < 1 {
		return
	}
	of := s.steps(key{kind: replay.Decode, role: at.Role, said: by}, pieces)
	of.tokens, of.steps = of.tokens+tokens, of.steps+1
	of.add(&step{Timed: replay.Timed{Features: f, Took: max(1, int64(1e9*took))}, size: sizeOf(replay.Decode, &f, f.Context),
		piece: int16(piece), server: of.servers.index(at.String()), last: -1}, piece, f.Requests)
}

// fullest returns the largest number of requests in a step, and the share of steps with that many.
func (p *steps) fullest() (most int64, share float64) {
	n := 0
	for i := range p.list {
		switch of := p.list[i].Requests; {
		case of > most:
			most, n = of, 1
		case of == most:
			n++
		}
	}
	return most, float64(n) / float64(len(p.list))
}
