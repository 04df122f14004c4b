package work

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"unsafe"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/load"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/internal/parallel"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// A workload is what a lead rank did: the pieces that are compared; the others, of requests that are incomplete,
// retracted, or never ended, which only share batches with them; and what all requests asked for.
type workload struct {
	decodes, otherDecodes   []Piece
	prefills, otherPrefills load.Pieces
	batches                 load.Pieces // of prefills
	asked, askedPrefills    []Asked
}

// An observer measures the work that a set's ranks began between two times.
type observer struct {
	set      *request.Set
	ranks    *place.RankSet
	from, to trace.Time
}

func (w *observer) inside(t trace.Time) bool { return t >= w.from && t <= w.to }

// Observe returns the paces of all lead ranks that did enough between two times for the given
// requests, which belong to the ranks' set.
func Observe(ranks *place.RankSet, requests []*request.Request, from, to trace.Time) Paces {
	w := &observer{ranks.Set, ranks, from, to}
	work, endless := make([]workload, len(ranks.Places)), map[int32][]trace.Time{}
	var pieces load.Pieces // scratch: the prefill of one request
	for _, r := range requests {
		compared := r.Complete() && r.Metrics.Retractions == 0
		for _, p := range w.set.PartsOf(r) {
			part := &w.set.Parts[p]
			if engine := w.ranks.Serves(part); r.Status == request.Unfinished && engine != request.None && part.Serves() {
				endless[engine] = memory.Append(endless[engine], part.Start)
			}
			thread, rank := w.ranks.Lead(part)
			if rank == request.None && !compared {
				rank = w.ranks.AnyOf(part) // its work is not compared, but others wait for it
			}
			if rank == request.None || !w.ranks.Leads[rank] || !part.Serves() {
				continue
			}
			x := &work[rank]
			decodes := int64(0) // tokens asked for; 0 (unknown) of requests that were given up, as they got only some of theirs
			if r.Status == request.Finished {
				decodes = max(0, r.Metrics.DecodeTokens())
			}
			x.asked = memory.Append(x.asked, Asked{r.Start, float64(decodes)})
			x.askedPrefills = memory.Append(x.askedPrefills, Asked{r.Start, float64(max(0, r.Metrics.PrefillTokens()))})
			var decode Piece
			pieces, decode = w.workOf(part, thread, pieces[:0])
			if compared {
				x.add(pieces, decode)
				continue
			}
			if r.Metrics.Retractions > 0 { // part of the prompt was computed twice, so the number of tokens is unknown
				pieces.Of(part.Request, &request.Metrics{PromptTokens: request.Unknown})
			}
			x.addOther(pieces, decode)
		}
	}
	engines := make([]engine, len(work)) // by first rank
	for rank := range work {
		first := w.ranks.Engine[rank]
		engines[first] = append(engines[first], &work[rank])
	}
	decode, prefill := make([][]Pace, len(work)), make([][]Pace, len(work)) // by first rank: one pace, or none
	parallel.Each(len(work), func(rank int) { decode[rank], prefill[rank] = w.pacesOf(rank, engines[rank]) })
	return Paces{slices.Concat(decode...), slices.Concat(prefill...), endless}
}

// An engine is the workloads of the ranks that take each step together: a step takes as long as on the rank with the most to do, and
// all decodes wait while any rank prefills.
type engine []*workload

// pacesOf returns the decode pace and the prefill pace of an engine, each if it did enough.
func (w *observer) pacesOf(rank int, e engine) (decode, prefill []Pace) {
	for _, x := range e {
		memory.Touch(len(x.decodes)*int(unsafe.Sizeof(Piece{})) + len(x.prefills)*int(unsafe.Sizeof(load.Prefill{})))
		slices.SortStableFunc(x.decodes, byStart)
		x.batches = load.Batches(x.prefills)
		x.end()
	}
	parallel.All(func() { decode = w.decodePacesOf(rank, e) }, func() { prefill = w.prefillPacesOf(rank, e) })
	return decode, prefill
}

// decodePacesOf returns the decode pace of an engine, if it decoded enough.
func (w *observer) decodePacesOf(rank int, e engine) []Pace {
	list, alone, beside := w.decodeWork(e)
	if len(list) < Fewest {
		return nil
	}
	without, whole := NewPace(rank, list, 0), NewPace(rank, alone, 0)
	whole.Whole = true
	for i := range whole.Pieces { // how long prefills hold up decoding does not depend on how many requests are decoded at a time
		whole.Pieces[i].Shared = without.Pieces[i].Shared
	}
	p := likelier(without, whole)
	if len(beside) >= Fewest {
		if b := NewPace(rank, beside, 0); b.apart() <= p.apart() {
			p = b
		}
	}
	for _, x := range e {
		p.Asked = append(p.Asked, x.asked...)
	}
	return []Pace{p}
}

// prefillPacesOf returns the prefill pace of an engine, if it prefilled enough.
func (w *observer) prefillPacesOf(rank int, e engine) []Pace {
	running := highest(order.Each(e, func(x *workload) *levelOver { return newLevelOver(x.decodes, one) }))
	alone, batches := make([]load.Pieces, len(e)), make([]load.Pieces, len(e))
	singles, several, grouped := 0, 0, false
	for i, x := range e {
		alone[i], batches[i] = x.known(x.batches)
		singles, several = singles+len(alone[i]), several+len(batches[i])
		grouped = grouped || slices.ContainsFunc(batches[i], func(b load.Prefill) bool { return b.Requests > 1 })
	}
	list := w.prefillWork(batches, running)
	if len(list) < Fewest {
		return nil
	}
	p := NewPace(rank, list, 2)
	if singles >= Fewest && (several > singles || grouped) {
		p = likelier(p, NewPace(rank, w.prefillWork(alone, running), 2))
	}
	for _, x := range e {
		p.Asked = append(p.Asked, x.askedPrefills...)
	}
	return []Pace{p}
}

// known returns the prefills that are compared, one by one (alone) and in batches, without those
// that overlap a prefill of unknown size: the prompts of requests that were given up, or never
// ended, take time for an unknown number of tokens. all are the batches of the compared prefills.
func (x *workload) known(all load.Pieces) (alone, batches load.Pieces) {
	if len(x.otherPrefills) == 0 {
		return x.prefills, all
	}
	prefills, unknown := slices.Clone(x.prefills), load.Pieces{}
	for _, p := range x.otherPrefills {
		if p.Tokens > 0 {
			prefills = memory.Append(prefills, p)
		} else {
			unknown = memory.Append(unknown, p)
		}
	}
	slices.SortStableFunc(unknown, func(a, b load.Prefill) int { return cmp.Compare(a.From, b.From) })
	of := union(unknown)
	beside := func(p load.Prefill) bool {
		k, _ := slices.BinarySearchFunc(of, p.From+1, func(u Piece, t trace.Time) int { return cmp.Compare(u.To, t) })
		return k < len(of) && of[k].From < p.To
	}
	return slices.DeleteFunc(slices.Clone(x.prefills), beside), slices.DeleteFunc(load.Batches(prefills), beside)
}

// add records the work for a request that is compared.
func (x *workload) add(prefill load.Pieces, decode Piece) {
	for _, p := range prefill {
		x.prefills = memory.Append(x.prefills, p)
	}
	if decode.To > decode.From && decode.Units > 0 {
		x.decodes = memory.Append(x.decodes, decode)
	}
}

// addOther records the work for a request that is not compared. If the end of its decoding is unknown, To is 0 until end sets it.
func (x *workload) addOther(prefill load.Pieces, decode Piece) {
	prefilled := trace.Time(0)
	for _, p := range prefill {
		x.otherPrefills, prefilled = memory.Append(x.otherPrefills, p), p.To
	}
	decode.Units = 0
	switch {
	case decode.To > decode.From:
		x.otherDecodes = memory.Append(x.otherDecodes, decode)
	case prefilled != 0 || decode.From != 0:
		x.otherDecodes = memory.Append(x.otherDecodes, Piece{Request: decode.Request, From: max(prefilled, decode.From)})
	}
}

// end assumes that requests that never end are decoded, and share steps, for as long as the
// longest compared request, but no longer than until the last compared request ends.
func (x *workload) end() {
	longest, last := trace.Time(0), trace.Time(0)
	for i := range x.decodes {
		longest, last = max(longest, x.decodes[i].To-x.decodes[i].From), max(last, x.decodes[i].To)
	}
	for i := range x.otherDecodes {
		if o := &x.otherDecodes[i]; o.To == 0 {
			o.To = max(o.From, min(o.From+longest, last))
		}
	}
}

func byStart(a, b Piece) int { return cmp.Compare(a.From, b.From) }

// workOf returns what a server did for a request: its prefill, with the number of prompt tokens computed, appended to
// an empty list, and its decoding, with the number of steps, or of tokens if steps are unknown.
func (w *observer) workOf(part *request.Part, thread int, prefill load.Pieces) (_ load.Pieces, decode Piece) {
	r := &w.set.Requests[part.Request]
	m := &r.Metrics
	decode.Request = part.Request
	var batches batches
	if thread == request.None {
		if m.TTFT >= 0 && part.End > part.Start+trace.Time(m.TTFT) {
			decode.From, decode.To = part.Start+trace.Time(m.TTFT), part.End
		}
	} else {
		w.set.EachSelectedStage(w.set.StagesOf(thread), true, func(i int, _ bool) {
			row := w.set.Row(i)
			if w.set.Implausible(i) {
				return
			}
			switch row.Means {
			case request.Prefilling, request.PrefillingChunk:
				prefill.Add(row.Start, row.End)
			case request.Answering:
				decode.From, decode.To = row.Start, row.End
			case request.DecodeQueueing:
				decode.From = max(decode.From, row.End)
			case request.Stepping:
				decode.From, decode.To = order.Earlier(decode.From, row.Start), max(decode.To, row.End)
				batches.add(w.set.InstantsOf(i))
			}
		})
	}
	decode.Batch = batches.mean()
	prefill.Of(part.Request, m)
	if thread != request.None && w.set.Threads[thread].Row == request.None { // durations, placed by when the front end had the first token
		for i := range prefill {
			prefill[i].Off = (prefill[i].To - prefill[i].From) / 4
		}
	}
	decode.Units = float64(m.DecodeTokens())
	if _, steps := m.StepYield(); steps > 0 {
		decode.Units = float64(steps)
	}
	return prefill, decode
}

// allPrefills returns the prefills that hold up decodes, ordered by start.
func (e engine) allPrefills() (all load.Pieces) {
	for _, x := range e {
		all = append(append(all, x.batches...), x.otherPrefills...)
	}
	slices.SortStableFunc(all, func(a, b load.Prefill) int { return cmp.Compare(a.From, b.From) })
	return all
}

// decodeWork returns a piece for every compared request that is decoded: the time per token without prefills of others,
// and, as burdens, how many requests and how many tokens of context are in its steps on average, on the rank that has the
// most. alone has the same pieces, with the time that prefills of others take. beside has them without the tokens that
// requests get in steps in which other ranks prefill; it is nil if there is only one rank.
func (w *observer) decodeWork(e engine) (list, alone, beside []Piece) {
	tokens := func(p *Piece) float64 {
		memory.Touch(request.RequestSize)
		return float64(max(0, w.set.Requests[p.Request].Metrics.PromptTokens)) + p.Units/2
	}
	own, contexts := make([]*levelOver, len(e)), make([]*levelOver, len(e)) // requests, and tokens of context, by rank
	all := order.Each(e, func(x *workload) []Piece { return slices.Concat(x.decodes, x.otherDecodes) })
	prefills := e.allPrefills()
	steps := endsOf(prefills)
	var computing *levelOver
	parallel.All(func() {
		parallel.Each(len(e), func(i int) { own[i] = newLevelOver(all[i], one) })
	}, func() {
		parallel.Each(len(e), func(i int) {
			x := e[i]
			// A piece with an unknown number of tokens counts as an average one.
			usual := order.SumRows(x.decodes, func(p *Piece) float64 { return tokens(p) / float64(len(x.decodes)) })
			contexts[i] = newLevelOver(all[i], func(p *Piece) float64 {
				if p.Units == 0 {
					return usual
				}
				return tokens(p)
			})
		})
	}, func() { computing = newLevelOver(union(prefills), one) })
	running, context := highest(own), highest(contexts)
	for i, x := range e {
		unseen, ownSteps := unseenIn(x.decodes, own[i]), endsOf(x.batches, x.otherPrefills)
		for _, p := range x.decodes {
			if !w.inside(p.From) {
				continue
			}
			held := computing.mean(p.From, p.To)
			if held > load.MaxHeldShare {
				continue
			}
			p.NS, p.Burden = float64(p.To-p.From)/p.Units, Burden{running.mean(p.From, p.To), context.mean(p.From, p.To)}
			if more := p.Batch / own[i].mean(p.From, p.To); unseen && more > 0 {
				p.Burden[0], p.Burden[1] = more*p.Burden[0], more*p.Burden[1]
			}
			alone = memory.Append(alone, p)
			took := (1 - held) * p.NS * p.Units
			p.NS *= 1 - held
			list = memory.Append(list, p)
			if p.Units -= float64(within(steps, p) - within(ownSteps, p)); len(e) > 1 && p.Units >= 1 {
				p.NS = took / p.Units
				beside = memory.Append(beside, p)
			}
		}
	}
	if len(e) > 1 {
		for _, list := range [...][]Piece{list, alone, beside} {
			slices.SortStableFunc(list, byStart)
		}
	}
	return list, alone, beside
}

// endsOf returns when steps that prefill end; those that end together are one.
func endsOf(prefills ...load.Pieces) (ends []trace.Time) {
	const together = 20 * request.SameBatch // on all ranks, whose clocks may differ
	for _, list := range prefills {
		for i := range list {
			ends = memory.Append(ends, list[i].To)
		}
	}
	slices.Sort(ends)
	last := trace.Time(math.MinInt64)
	return slices.DeleteFunc(ends, func(t trace.Time) bool {
		if t <= last+together {
			return true
		}
		last = t
		return false
	})
}

// within returns how many steps end while a piece of work is under way.
func within(ends []trace.Time, p Piece) int {
	from, _ := slices.BinarySearch(ends, p.From+1)
	to, _ := slices.BinarySearch(ends, p.To+1)
	return to - from
}

// batches adds up the sizes of the batches that a request was in.
type batches struct{ sum, n float64 }

func (b *batches) add(list []request.Instant) {
	for i := range list {
		if x := &list[i]; x.Kind == request.Scheduled && x.Batch > 0 {
			b.sum, b.n = b.sum+float64(x.Batch), b.n+1
		}
	}
}

func (b *batches) mean() float64 { return b.sum / max(1, b.n) }

// unseenIn reports whether batches hold more requests than there are: others were not sampled, or were lost.
func unseenIn(decodes []Piece, running *levelOver) bool {
	const about = 1.1
	all, seen := 0.0, 0.0
	for _, p := range decodes {
		if p.Batch > 0 {
			all, seen = all+p.Units*p.Batch, seen+p.Units*running.mean(p.From, p.To)
		}
	}
	return all > about*seen
}

// prefillWork returns a piece for every batch of prefills, which are given by rank. Its burdens are the tokens it computes, the
// pairs of tokens it attends to, and how many requests are decoded meanwhile: on the rank that has the most at each time.
func (w *observer) prefillWork(batches []load.Pieces, running *levelOver) (list []Piece) {
	var levels [2][]*levelOver // tokens and pairs per ns, by rank
	for _, of := range batches {
		first := len(list)
		for _, b := range of {
			if !w.inside(b.From) || b.Tokens <= 0 {
				continue
			}
			list = memory.Append(list, Piece{Request: b.Request, From: b.From, To: b.To, NS: float64(b.To - b.From), Units: 1,
				Burden: Burden{b.Tokens, b.Pairs, running.mean(b.From, b.To)}})
		}
		for k := range levels {
			if len(batches) > 1 {
				levels[k] = append(levels[k], newLevelOver(list[first:], func(p *Piece) float64 { return p.Burden[k] / p.NS }))
			}
		}
	}
	if len(batches) > 1 {
		tokens, pairs := highest(levels[0]), highest(levels[1])
		for i := range list {
			p := &list[i]
			p.Burden[0], p.Burden[1] = p.NS*tokens.mean(p.From, p.To), p.NS*pairs.mean(p.From, p.To)
		}
		slices.SortStableFunc(list, byStart)
	}
	return list
}

// Of returns the kind of work that the metric of a finding about a pace measures: "decode" or "prefill".
func Of(m *finding.Metric) string {
	kind, _, _ := strings.Cut(m.Name, " ")
	return kind
}
