package cause

import (
	"cmp"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// A tokenTime is when a token came out on the lead rank of the answering part, by
// the same stages as request.Set.TokenTimes.
type tokenTime struct {
	end  trace.Time
	step int32 // how many decode steps precede this one; noLoop of other stages
	// handed tells that nothing was computed: a batch takes over what the prefill
	// server, or the time before a retraction, has left.
	handed bool
}

const noLoop = -1

// readTokens fills w.tokens with those of thread t, in order.
func (w *CauseWalk) readTokens(t int) {
	w.tokens = w.tokens[:0]
	w.set.EachStage(w.set.StagesOf(t), func(i int) {
		span := w.set.Row(i)
		if !request.Plausible(span.End) {
			return
		}
		switch span.Means {
		case request.Stepping:
			w.tokens = append(w.tokens, tokenTime{end: span.End})
		case request.Prefilling:
			w.tokens = append(w.tokens, tokenTime{end: span.End, step: noLoop})
		case request.Prebuilt:
			w.tokens = append(w.tokens, tokenTime{end: span.End, step: noLoop, handed: true})
		}
	})
	slices.SortFunc(w.tokens, func(x, y tokenTime) int { return cmp.Compare(x.end, y.end) })
	steps := int32(0)
	for i := range w.tokens {
		if w.tokens[i].step != noLoop {
			w.tokens[i].step = steps
			steps++
		}
	}
}

// A GapSplit is the time between two consecutive tokens, and what of it has which
// cause, in ns.
type GapSplit struct {
	From, To                                   trace.Time
	Decode, Interference, SlowRank, Retraction int64
}

// eachGap calls f for the gaps between the tokens in w.tokens, which are those of
// thread t, in order. What of a gap is whose:
//
//  1. From a retract event until the next token that is computed, all of it is
//     retraction.
//  2. Of the rest, the time in which the step before, or this one, was over on half
//     of the TP ranks but not on the last one is the slow rank's.
//  3. What then exceeds the usual gap of the rank is interference, as far as
//     requests were being prefilled on the rank meanwhile. Without the limit, the
//     overlap scheduler, which launches a prefill while a step is running, would
//     make interference of the gap before every prefill as well.
//  4. The remainder is decode.
func (w *CauseWalk) eachGap(t int, retractions bool, f func(g *GapSplit)) {
	load := &w.ranks[w.set.Threads[t].Proc]
	w.readPeers(t, request.Stepping)
	w.retracts = w.retracts[:0]
	if retractions {
		w.readRetracts(t)
	}
	out, next := false, 0 // whether it is thrown out; the first retract event to come
	for k := 1; k < len(w.tokens); k++ {
		before, token := &w.tokens[k-1], &w.tokens[k]
		g := GapSplit{From: before.end, To: token.end}
		normal := g.To // where retraction begins
		if out {
			normal = g.From
		}
		for ; next < len(w.retracts) && w.retracts[next] < g.To; next++ {
			normal = max(g.From, min(normal, w.retracts[next]))
			out = true
		}
		g.Retraction = int64(g.To - normal)
		g.SlowRank = w.waited(before.step, token.step, g.From, normal)
		rest := int64(normal-g.From) - g.SlowRank
		g.Interference = min(load.prefills.Overlap(g.From, normal), max(0, rest-load.usual))
		g.Decode = rest - g.Interference
		out = out && token.handed
		f(&g)
	}
}

// readRetracts fills w.retracts with when thread t was thrown out of the batch,
// in order.
func (w *CauseWalk) readRetracts(t int) {
	for i := range w.set.ThreadRows(t) {
		for _, e := range w.set.InstantsOf(i) {
			if e.Kind == request.Retracted {
				w.retracts = append(w.retracts, e.Time)
			}
		}
	}
	slices.Sort(w.retracts)
}

// A tpPeer is a TP rank that takes the same steps as others.
type tpPeer struct {
	proc int
	ends []trace.Time // of the steps, in order
	sum  int64        // for how long the others waited for it, ns
}

// readPeers fills w.peers with when the steps of the given meanings ended on the TP
// ranks that work beside thread t, t first. A step is the same by its number:
// where a rank has more or fewer of them, spans are missing and nothing is
// compared. Ranks of other hosts are left out; their clocks are not good enough.
func (w *CauseWalk) readPeers(t int, means ...request.Meaning) {
	w.peers = w.peers[:0]
	th := &w.set.Threads[t]
	lead := &w.set.Procs[th.Proc]
	w.addPeer(t, means)
	for _, u := range w.set.ThreadsOf(&w.set.Parts[th.Part]) {
		p := &w.set.Procs[w.set.Threads[u].Proc]
		beside := p.Host == lead.Host && p.Label == lead.Label && p.Rank.PP == lead.Rank.PP && p.Rank.DP == lead.Rank.DP
		if u == t || !beside || lead.Rank.TP < 0 || p.Rank.TP < 0 || p.Rank.TP == lead.Rank.TP {
			continue
		}
		w.addPeer(u, means)
		if len(w.peers[len(w.peers)-1].ends) != len(w.peers[0].ends) {
			w.peers = w.peers[:1]
			return
		}
	}
}

// addPeer adds the steps of thread u to w.peers, in space that was used before.
func (w *CauseWalk) addPeer(u int, means []request.Meaning) {
	n := len(w.peers)
	w.peers = slices.Grow(w.peers, 1)[:n+1]
	p := &w.peers[n]
	*p = tpPeer{proc: w.set.Threads[u].Proc, ends: p.ends[:0]}
	w.set.EachStage(w.set.StagesOf(u), func(i int) {
		if span := w.set.Row(i); slices.Contains(means, span.Means) {
			p.ends = append(p.ends, span.End)
		}
	})
	slices.Sort(p.ends)
}

// late returns between which instants step k was over on half of the other ranks,
// but not on the last one, and which of w.peers that is; None without others.
func (w *CauseWalk) late(k int32) (iv request.Interval, last int) {
	if k < 0 || len(w.peers) < 2 || int(k) >= len(w.peers[0].ends) {
		return request.Interval{}, request.None
	}
	for i := range w.peers {
		if w.peers[i].ends[k] > w.peers[last].ends[k] {
			last = i
		}
	}
	w.times = w.times[:0]
	for i := range w.peers {
		if i != last {
			w.times = append(w.times, w.peers[i].ends[k])
		}
	}
	return request.Interval{From: distribution.LowerMedian(w.times), To: w.peers[last].ends[k]}, last
}

// waited returns for how much of [from, to) a rank was late, with the step before
// or with this one, in ns.
func (w *CauseWalk) waited(before, step int32, from, to trace.Time) int64 {
	sum := int64(0)
	for _, k := range [...]int32{before, step} {
		iv, last := w.late(k)
		if last == request.None {
			continue
		}
		if d := within(iv.From, iv.To, from, to); d > 0 {
			sum += d
			w.peers[last].sum += d
			from = min(iv.To, to) // what both steps are late by counts once
		}
	}
	return sum
}

// noteSlowest notes in the result which rank the others waited for the longest.
func (w *CauseWalk) noteSlowest() {
	for i := range w.peers {
		if p := &w.peers[i]; p.sum > w.waitedFor {
			w.out.Slow, w.waitedFor = int32(p.proc), p.sum
		}
	}
}
