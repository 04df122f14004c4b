package work

import (
	"cmp"
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
			if rank := w.ranks.Route(part); r.Status == request.Unfinished && rank != request.None && part.Serves() {
				endless[int32(rank)] = memory.Append(endless[int32(rank)], part.Start)
			}
			thread, rank := w.ranks.Lead(part)
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
	decode, prefill := make([][]Pace, len(work)), make([][]Pace, len(work)) // by rank: one pace, or none
	parallel.Each(len(work), func(rank int) { decode[rank], prefill[rank] = w.pacesOf(rank, &work[rank]) })
	return Paces{slices.Concat(decode...), slices.Concat(prefill...), endless}
}

// pacesOf returns the decode pace and the prefill pace of a rank, each if it did enough.
func (w *observer) pacesOf(rank int, x *workload) (decode, prefill []Pace) {
	memory.Touch(len(x.decodes)*int(unsafe.Sizeof(Piece{})) + len(x.prefills)*int(unsafe.Sizeof(load.Prefill{})))
	slices.SortStableFunc(x.decodes, byStart)
	batches := load.Batches(x.prefills)
	x.end()
	parallel.All(func() { decode = w.decodePacesOf(rank, x, batches) }, func() { prefill = w.prefillPacesOf(rank, x, batches) })
	return decode, prefill
}

// decodePacesOf returns the decode pace of a rank, if it decoded enough.
func (w *observer) decodePacesOf(rank int, x *workload, batches load.Pieces) []Pace {
	all := slices.Concat(batches, x.otherPrefills)
	slices.SortStableFunc(all, func(a, b load.Prefill) int { return cmp.Compare(a.From, b.From) })
	list, alone := w.decodeWork(x.decodes, x.otherDecodes, all)
	if len(list) < Fewest {
		return nil
	}
	without, whole := NewPace(rank, list, 0), NewPace(rank, alone, 0)
	whole.Whole = true
	for i := range whole.Pieces { // how long prefills hold up decoding does not depend on how many requests are decoded at a time
		whole.Pieces[i].Shared = without.Pieces[i].Shared
	}
	p := likelier(without, whole)
	p.Asked = x.asked
	return []Pace{p}
}

// prefillPacesOf returns the prefill pace of a rank, if it prefilled enough.
func (w *observer) prefillPacesOf(rank int, x *workload, batches load.Pieces) []Pace {
	running := newLevelOver(x.decodes, one)
	alone, batches := x.known(batches)
	list := w.prefillWork(batches, running)
	if len(list) < Fewest {
		return nil
	}
	p := NewPace(rank, list, 2)
	if len(alone) >= Fewest && (len(batches) > len(alone) || slices.ContainsFunc(batches, func(b load.Prefill) bool { return b.Requests > 1 })) {
		p = likelier(p, NewPace(rank, w.prefillWork(alone, running), 2))
	}
	p.Asked = x.askedPrefills
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

// decodeWork returns a piece for every compared request that is decoded: the time per token without others' prefills,
// and, as burdens, how many requests and how many tokens of context are in its steps on average. others are not
// compared, but are in the steps, too. alone has the same pieces, with the time that others' prefills take.
func (w *observer) decodeWork(decodes, others []Piece, prefills []load.Prefill) (list, alone []Piece) {
	tokens := func(p *Piece) float64 {
		memory.Touch(request.RequestSize)
		return float64(max(0, w.set.Requests[p.Request].Metrics.PromptTokens)) + p.Units/2
	}
	// A piece with an unknown number of tokens counts as an average one.
	usual := order.SumRows(decodes, func(p *Piece) float64 { return tokens(p) / float64(len(decodes)) })
	all := slices.Concat(decodes, others)
	var running, context, computing *levelOver
	parallel.All(func() { running = newLevelOver(all, one) }, func() {
		context = newLevelOver(all, func(p *Piece) float64 {
			if p.Units == 0 {
				return usual
			}
			return tokens(p)
		})
	}, func() { computing = newLevelOver(union(prefills), one) })
	unseen := unseenIn(decodes, running)
	for _, p := range decodes {
		if !w.inside(p.From) {
			continue
		}
		held := computing.mean(p.From, p.To)
		if held > load.MaxHeldShare {
			continue
		}
		p.NS, p.Burden = float64(p.To-p.From)/p.Units, Burden{running.mean(p.From, p.To), context.mean(p.From, p.To)}
		if more := p.Batch / p.Burden[0]; unseen && more > 0 {
			p.Burden[0], p.Burden[1] = p.Batch, more*p.Burden[1]
		}
		alone = memory.Append(alone, p)
		p.NS *= 1 - held
		list = memory.Append(list, p)
	}
	return list, alone
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

// prefillWork returns a piece for every batch of prefills. Its burdens are the tokens it
// computes, the pairs of tokens it attends to, and how many requests are decoded meanwhile.
func (w *observer) prefillWork(batches []load.Prefill, running *levelOver) (list []Piece) {
	for _, b := range batches {
		if !w.inside(b.From) || b.Tokens <= 0 {
			continue
		}
		list = memory.Append(list, Piece{Request: b.Request, From: b.From, To: b.To, NS: float64(b.To - b.From), Units: 1,
			Burden: Burden{b.Tokens, b.Pairs, running.mean(b.From, b.To)}})
	}
	return list
}

// Of returns the kind of work that the metric of a finding about a pace measures: "decode" or "prefill".
func Of(m *finding.Metric) string {
	kind, _, _ := strings.Cut(m.Name, " ")
	return kind
}
