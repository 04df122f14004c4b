package cause

import (
	"slices"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// A GapSplit is the time between two consecutive tokens, in ns by cause.
type GapSplit struct {
	From, To                                   trace.Time
	Lost                                       int32 // missing steps in between
	Decode, Interference, SlowRank, Retraction int64
}

// eachGap calls f for the gaps between the tokens in w.tokens, which are those of thread t, in order. A gap is
// divided as follows:
//
//  1. From a retract event until the next token that is computed, all of it is retraction.
//  2. Of the rest, the time in which the previous step, or this one, had ended on half of the TP ranks but not on
//     the last one is the slow rank's.
//  3. What then exceeds the usual gap of the rank is interference, up to the time in which requests were being
//     prefilled on the rank. Without the usual gap as a baseline, the overlap scheduler, which launches a prefill
//     while a step is running, would turn the gap before every prefill into interference as well.
//  4. The remainder is decode.
func (w *Walk) eachGap(t int, retractions bool, f func(g *GapSplit)) {
	load := &w.ranks[w.set.Threads[t].Proc]
	w.readPeers(t, request.Stepping)
	w.retracts = w.retracts[:0]
	if retractions {
		w.readRetracts(t)
	}
	out, next := false, 0 // out: whether the request is retracted; next: index of the next retract event
	for k := 1; k < len(w.tokens); k++ {
		before, token := &w.tokens[k-1], &w.tokens[k]
		g := GapSplit{From: before.End, To: token.End, Lost: token.Lost}
		normal := g.To // start of retraction
		if out {
			normal = g.From
		}
		for ; next < len(w.retracts) && w.retracts[next] < g.To; next++ {
			normal = max(g.From, min(normal, w.retracts[next]))
			out = true
		}
		g.Retraction = int64(g.To - normal)
		g.SlowRank = w.waited(before, token, g.From, normal)
		rest := int64(normal-g.From) - g.SlowRank
		g.Interference = min(load.prefills.Overlap(g.From, normal), max(0, rest-load.usual*int64(1+g.Lost)))
		g.Decode = rest - g.Interference
		out = out && token.Handed
		f(&g)
	}
}

// readRetracts fills w.retracts with the times at which thread t's request was retracted from the batch, sorted.
func (w *Walk) readRetracts(t int) {
	for i := range w.set.ThreadRows(t) {
		for _, e := range w.set.InstantsOf(i) {
			if e.Kind == request.Retracted {
				w.retracts = append(w.retracts, e.Time)
			}
		}
	}
	slices.Sort(w.retracts)
}

// A tpPeer is one of the TP ranks that take the same steps.
type tpPeer struct {
	proc int
	ends []trace.Time // ends of steps, by step number; 0 if missing
	sum  int64        // how long the others waited for it, ns
	// numbered reports that its steps have numbers; otherwise they are counted.
	numbered bool
}

// readPeers fills w.peers with the ends of steps of the given meanings on the TP ranks that work beside thread t, t
// first. Steps are matched by number. Steps without numbers are counted; if a rank has more or fewer of them, spans
// are missing, and nothing is compared. Ranks on other hosts are left out, as clocks are not accurate enough.
func (w *Walk) readPeers(t int, means ...request.Meaning) {
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
		if x, lead := &w.peers[len(w.peers)-1], &w.peers[0]; x.numbered != lead.numbered || !x.numbered && len(x.ends) != len(lead.ends) {
			w.peers = w.peers[:1]
			return
		}
	}
}

// addPeer adds the steps of thread u to w.peers, reusing space.
func (w *Walk) addPeer(u int, means []request.Meaning) {
	n := len(w.peers)
	w.peers = slices.Grow(w.peers, 1)[:n+1]
	p := &w.peers[n]
	*p = tpPeer{proc: w.set.Threads[u].Proc, ends: p.ends[:0], numbered: true}
	most := int32(0)
	w.set.EachStage(w.set.StagesOf(u), func(i int) {
		if span := w.set.Row(i); slices.Contains(means, span.Means) {
			p.ends = append(p.ends, span.End)
			p.numbered, most = p.numbered && span.Step != request.Unknown, max(most, span.Step)
		}
	})
	const believable = 1 << 20 // steps; larger numbers are forged
	if p.numbered = p.numbered && len(p.ends) > 0 && most < believable; !p.numbered {
		slices.Sort(p.ends)
		return
	}
	p.ends = slices.Grow(p.ends[:0], int(most)+1)[:most+1]
	clear(p.ends)
	w.set.EachStage(w.set.StagesOf(u), func(i int) {
		if span := w.set.Row(i); slices.Contains(means, span.Means) {
			p.ends[span.Step] = span.End
		}
	})
}

// late returns the interval between the end of step k on half of the other ranks and its end
// on the last one, and the index of that rank in w.peers; None without others.
func (w *Walk) late(k int32) (iv request.Interval, last int) {
	if k < 0 || len(w.peers) < 2 {
		return request.Interval{}, request.None
	}
	last = request.None
	w.times = w.times[:0]
	for i := range w.peers {
		ends := w.peers[i].ends
		if int(k) >= len(ends) || ends[k] == 0 {
			continue
		}
		if w.times = append(w.times, ends[k]); last == request.None || ends[k] > w.peers[last].ends[k] {
			last = i
		}
	}
	if len(w.times) < 2 {
		return request.Interval{}, request.None
	}
	slices.Sort(w.times)
	others := w.times[:len(w.times)-1]
	return request.Interval{From: distribution.LowerMedian(others), To: w.peers[last].ends[k]}, last
}

// waited returns for how much of [from, to) a rank was late, in ns: with the previous step,
// with this one, or with one in between that the lead does not show.
func (w *Walk) waited(before, token *request.Token, from, to trace.Time) int64 {
	sum := int64(0)
	add := func(k int32) {
		iv, last := w.late(k)
		if last == request.None {
			return
		}
		if d := within(iv.From, iv.To, from, to); d > 0 {
			sum += d
			w.peers[last].sum += d
			from = min(iv.To, to) // time that overlaps counts once
		}
	}
	add(before.Step)
	for k := token.Step - token.Lost; k < token.Step; k++ {
		add(k)
	}
	add(token.Step)
	return sum
}

// noteSlowest records in the result the rank that the others waited for the longest.
func (w *Walk) noteSlowest() {
	for i := range w.peers {
		if p := &w.peers[i]; p.sum > w.waitedFor {
			w.out.Slow, w.waitedFor = int32(p.proc), p.sum
		}
	}
}
