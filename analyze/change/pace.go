package change

import (
	"cmp"
	"slices"
	"unsafe"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/load"
	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/internal/parallel"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// A pace is how long a lead rank takes for a piece of work of one kind, whatever there is to
// do beside it: for a token of a request, or for the prefill of a prompt.
type pace struct {
	rank int32
	work []piece // by start
	// usual is how long a piece of usual work takes, ns.
	usual float64
	asked []asked
	// whole tells that what prefills hold up is part of its pieces: servers compute both in one batch.
	whole bool
	// sized tells that the first burden of a piece is its own size, and not what others have there.
	sized bool
}

// Asked is how many tokens a request asks a rank for, whether or not its pieces are looked at.
type asked struct {
	at     trace.Time
	tokens float64 // 0 is unknown
}

// meanAsked is how many tokens a request asks for, of those that it is known of.
func meanAsked(list []asked) float64 {
	sum, n := 0.0, 0.0
	for _, a := range list {
		if a.tokens > 0 {
			sum, n = sum+a.tokens, n+1
		}
	}
	return distribution.Ratio(sum, n)
}

// A piece of work is what a rank did for a request.
type piece struct {
	request  int
	from, to trace.Time
	ns       float64 // of a token, or of the prefill; without the prefills of others
	units    float64 // how many tokens
	burden   burden  // what makes it longer; see decodeWork and prefillWork
	ratio    float64 // to what such work takes usually
	shared   float64 // the part of what it takes usually that is for what others have there
}

// minPieces is how many pieces of work a pace has that is looked at.
const minPieces = Fewest

// paces are searched, by what a piece is of.
type paces struct {
	decode, prefill []pace
	// endless are when requests that never end came to a rank.
	endless map[int32][]trace.Time
}

// A workload is what a lead rank did: the pieces that are compared, and those of requests of
// which too little is known, or that never ended, which are only in the way of others.
type workload struct {
	decodes, otherDecodes   []piece
	prefills, otherPrefills load.Pieces
	asked, askedPrefills    []asked
}

// observePaces collects the work of all lead ranks.
func (w *observer) observePaces() {
	work := make([]workload, len(w.ranks.Places))
	var pieces load.Pieces // of the prefill of a request
	w.paces.endless = map[int32][]trace.Time{}
	for _, r := range w.requests() {
		compared := r.Complete() && r.Metrics.Retractions == 0
		for _, p := range w.set.PartsOf(r) {
			part := &w.set.Parts[p]
			if rank := w.ranks.Route(part); r.Status == request.Unfinished && rank != request.None && part.Serves() {
				w.paces.endless[int32(rank)] = memory.Append(w.paces.endless[int32(rank)], part.Start)
			}
			thread, rank := w.ranks.Lead(part)
			if rank == request.None || !w.ranks.Leads[rank] || !part.Serves() {
				continue
			}
			x := &work[rank]
			decodes := int64(0) // that it asks for; those that were given up, got only a part of that
			if r.Status == request.Finished {
				decodes = max(0, r.Metrics.DecodeTokens())
			}
			x.asked = memory.Append(x.asked, asked{r.Start, float64(decodes)})
			x.askedPrefills = memory.Append(x.askedPrefills, asked{r.Start, float64(max(0, r.Metrics.PrefillTokens()))})
			var decode piece
			pieces, decode = w.workOf(part, thread, pieces[:0])
			if compared {
				x.add(pieces, decode)
			} else {
				x.addOther(pieces, decode)
			}
		}
	}
	decode, prefill := make([][]pace, len(work)), make([][]pace, len(work)) // one of each rank, or none
	parallel.Each(len(work), func(rank int) { decode[rank], prefill[rank] = w.pacesOf(rank, &work[rank]) })
	w.paces.decode, w.paces.prefill = slices.Concat(decode...), slices.Concat(prefill...)
}

// pacesOf returns how fast a rank worked, if it did enough.
func (w *observer) pacesOf(rank int, x *workload) (decode, prefill []pace) {
	memory.Touch(len(x.decodes)*int(unsafe.Sizeof(piece{})) + len(x.prefills)*int(unsafe.Sizeof(load.Prefill{})))
	slices.SortStableFunc(x.decodes, byStart)
	batches := load.Batches(x.prefills)
	x.end()
	parallel.All(func() { decode = w.decodePacesOf(rank, x, batches) }, func() { prefill = w.prefillPacesOf(rank, x, batches) })
	return decode, prefill
}

// decodePacesOf returns how fast a rank decoded.
func (w *observer) decodePacesOf(rank int, x *workload, batches load.Pieces) []pace {
	all := slices.Concat(batches, x.otherPrefills)
	slices.SortStableFunc(all, func(a, b load.Prefill) int { return cmp.Compare(a.From, b.From) })
	list, alone := w.decodeWork(x.decodes, x.otherDecodes, all)
	if len(list) < minPieces {
		return nil
	}
	without, whole := newPace(rank, list, 0), newPace(rank, alone, 0)
	whole.whole = true
	for i := range whole.work { // prefills are as many, however many requests are there at a time
		whole.work[i].shared = without.work[i].shared
	}
	p := likelier(without, whole)
	p.asked = x.asked
	return []pace{p}
}

// prefillPacesOf returns how fast a rank prefilled.
func (w *observer) prefillPacesOf(rank int, x *workload, batches load.Pieces) []pace {
	running := newLevelOver(x.decodes, one)
	list := w.prefillWork(batches, running)
	if len(list) < minPieces {
		return nil
	}
	p := newPace(rank, list, 2)
	if len(batches) > len(x.prefills) || slices.ContainsFunc(batches, func(b load.Prefill) bool { return b.Requests > 1 }) {
		p = likelier(p, newPace(rank, w.prefillWork(x.prefills, running), 2))
	}
	p.asked = x.askedPrefills
	return []pace{p}
}

// likelier returns p, unless other describes what pieces take with clearly less scatter. Servers compute prompts in
// batches, and decode nothing meanwhile; those that do not are seen by that.
func likelier(p, other pace) pace {
	const clearly = 0.9
	if other.scatter() < clearly*p.scatter() {
		return other
	}
	return p
}

// scatter is the variance of what pieces take, in comparison to what such work takes usually, between pieces
// at about the same time.
func (p *pace) scatter() float64 {
	sum, n := 0.0, 0.0
	for i := 1; i < len(p.work); i++ {
		x, y := &p.work[i-1], &p.work[i]
		units := min(x.units, y.units)
		sum, n = sum+units*(x.ratio-y.ratio)*(x.ratio-y.ratio), n+units
	}
	return sum / max(1, n)
}

// add adds what was done for a request that is compared.
func (x *workload) add(prefill load.Pieces, decode piece) {
	for _, p := range prefill {
		x.prefills = memory.Append(x.prefills, p)
	}
	if decode.to > decode.from && decode.units > 0 {
		x.decodes = memory.Append(x.decodes, decode)
	}
}

// addOther adds what was done for another one. Where nobody knows until when it was decoded,
// to is 0: see end.
func (x *workload) addOther(prefill load.Pieces, decode piece) {
	prefilled := trace.Time(0)
	for _, p := range prefill {
		x.otherPrefills, prefilled = memory.Append(x.otherPrefills, p), p.To
	}
	decode.units = 0
	switch {
	case decode.to > decode.from:
		x.otherDecodes = memory.Append(x.otherDecodes, decode)
	case prefilled != 0 || decode.from != 0:
		x.otherDecodes = memory.Append(x.otherDecodes, piece{request: decode.request, from: max(prefilled, decode.from)})
	}
}

// end makes the decoding of requests that never end as long as the longest of others is, or
// until the last of these ends: they share its steps.
func (x *workload) end() {
	longest, last := trace.Time(0), trace.Time(0)
	for i := range x.decodes {
		longest, last = max(longest, x.decodes[i].to-x.decodes[i].from), max(last, x.decodes[i].to)
	}
	for i := range x.otherDecodes {
		if o := &x.otherDecodes[i]; o.to == 0 {
			o.to = max(o.from, min(o.from+longest, last))
		}
	}
}

func byStart(a, b piece) int { return cmp.Compare(a.from, b.from) }

// workOf returns what a server did for a request: the prefill, with the tokens of the prompt
// that were computed, which it adds to an empty list, and the decoding, with its steps.
func (w *observer) workOf(part *request.Part, thread int, prefill load.Pieces) (_ load.Pieces, decode piece) {
	r := &w.set.Requests[part.Request]
	m := &r.Metrics
	decode.request = part.Request
	if thread == request.None {
		if m.TTFT >= 0 && part.End > part.Start+trace.Time(m.TTFT) {
			decode.from, decode.to = part.Start+trace.Time(m.TTFT), part.End
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
				decode.from, decode.to = row.Start, row.End
			case request.DecodeQueueing:
				decode.from = max(decode.from, row.End)
			case request.Stepping:
				decode.from, decode.to = order.Earlier(decode.from, row.Start), max(decode.to, row.End)
			}
		})
	}
	prefill.Of(part.Request, m)
	decode.units = float64(m.DecodeTokens())
	if _, steps := m.StepYield(); steps > 0 {
		decode.units = float64(steps)
	}
	return prefill, decode
}

// decodeWork says of every request that is decoded how long a token takes, without the
// prefills of others, and with how many requests, and how many tokens of context, it shares
// the steps on average. Others that are not compared are in the steps, too. alone is the same, as if
// prefills held up nothing.
func (w *observer) decodeWork(decodes, others []piece, prefills []load.Prefill) (list, alone []piece) {
	tokens := func(p *piece) float64 {
		memory.Touch(request.RequestSize)
		return float64(max(0, w.set.Requests[p.request].Metrics.PromptTokens)) + p.units/2
	}
	// The mean stands for pieces of which nobody knows how many tokens they have.
	usual := order.SumRows(decodes, func(p *piece) float64 { return tokens(p) / float64(len(decodes)) })
	all := slices.Concat(decodes, others)
	var running, context, computing *levelOver
	parallel.All(func() { running = newLevelOver(all, one) }, func() {
		context = newLevelOver(all, func(p *piece) float64 {
			if p.units == 0 {
				return usual
			}
			return tokens(p)
		})
	}, func() { computing = newLevelOver(union(prefills), one) })
	for _, p := range decodes {
		if !w.inside(p.from) {
			continue
		}
		held := computing.mean(p.from, p.to)
		if held > load.MaxHeld {
			continue
		}
		p.ns, p.burden = float64(p.to-p.from)/p.units, burden{running.mean(p.from, p.to), context.mean(p.from, p.to)}
		alone = memory.Append(alone, p)
		p.ns *= 1 - held
		list = memory.Append(list, p)
	}
	return list, alone
}

// prefillWork says of every batch of prefills how many tokens it computes, to how many pairs of tokens it attends, and how
// many requests are running meanwhile, which are decoded.
func (w *observer) prefillWork(batches []load.Prefill, running *levelOver) (list []piece) {
	for _, b := range batches {
		if !w.inside(b.From) || b.Tokens <= 0 {
			continue
		}
		list = memory.Append(list, piece{request: b.Request, from: b.From, to: b.To, ns: float64(b.To - b.From), units: 1,
			burden: burden{b.Tokens, b.Pairs, running.mean(b.From, b.To)}})
	}
	return list
}

// one is the weight of a piece where pieces are counted.
func one(*piece) float64 { return 1 }

// union returns the times that some prefills, ordered by start, cover.
func union(list []load.Prefill) (out []piece) {
	for _, p := range list {
		if n := len(out); n > 0 && p.From <= out[n-1].to {
			out[n-1].to = max(out[n-1].to, p.To)
		} else {
			out = memory.Append(out, piece{from: p.From, to: p.To})
		}
	}
	return out
}

// A levelOver is a number that changes at instants, summed up over time.
type levelOver struct {
	at    []trace.Time
	level []float64 // from at on
	area  []float64 // until at
}

// newLevelOver sums up weights of pieces while they last.
func newLevelOver(list []piece, weight func(*piece) float64) *levelOver {
	type edge struct {
		at trace.Time
		by float64
	}
	edges := memory.Make[edge](2 * len(list))[:0]
	for i := range memory.Each(len(list), int(unsafe.Sizeof(piece{})+2*unsafe.Sizeof(edge{}))) {
		by := weight(&list[i])
		edges = append(edges, edge{list[i].from, by}, edge{list[i].to, -by})
	}
	slices.SortFunc(edges, func(a, b edge) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.by, b.by)) })
	n := len(edges)
	l := &levelOver{memory.Make[trace.Time](n)[:0], memory.Make[float64](n)[:0], memory.Make[float64](n)[:0]}
	level, area := 0.0, 0.0
	for i := range memory.Each(n, 3*int(unsafe.Sizeof(edge{}))) {
		e := edges[i]
		if i > 0 {
			area += level * float64(e.at-edges[i-1].at)
		}
		level += e.by
		l.at, l.level, l.area = append(l.at, e.at), append(l.level, level), append(l.area, area)
	}
	return l
}

// until returns the area before a time.
func (l *levelOver) until(t trace.Time) float64 {
	i, found := slices.BinarySearch(l.at, t)
	if found {
		return l.area[i]
	}
	if i == 0 {
		return 0
	}
	return l.area[i-1] + l.level[i-1]*float64(t-l.at[i-1])
}

// mean returns the average over a time.
func (l *levelOver) mean(from, to trace.Time) float64 {
	return distribution.Ratio(l.until(to)-l.until(from), float64(to-from))
}

// newPace compares pieces with what such work takes usually. The burdens from others on are
// what others have there.
func newPace(rank int, list []piece, others int) pace {
	p := pace{rank: int32(rank), work: list, sized: others > 0}
	by := p.burdens()
	sum, mean, n := 0.0, burden{}, 0.0
	for _, x := range list {
		sum, n = sum+x.units*x.ns, n+x.units
		for k, v := range x.burden {
			mean[k] += x.units * v
		}
	}
	p.usual = sum / n
	// What more work costs is what is beyond a part that is there anyway.
	const part = 0.05
	extra := 0.0
	for k := range by {
		extra += by[k] * mean[k] / n
	}
	if most := (1 - part) * p.usual; extra > most {
		for k := range by {
			by[k] *= most / extra
		}
		extra = most
	}
	for i := range list {
		x := &p.work[i]
		usual, shared := p.usual-extra, 0.0
		for k, v := range x.burden {
			if usual += by[k] * v; k >= others {
				shared += by[k] * v
			}
		}
		x.ratio, x.shared = x.ns/usual, shared/usual
	}
	return p
}

// speed returns how much faster than usual a piece went. It is what averages over time: a request
// that was decoded half of the time at half the speed went at three quarters of it.
func (x *piece) speed() float64 { return 1 / max(x.ratio, 1e-3) }
