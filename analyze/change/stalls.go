package change

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"sort"

	"github.com/sgtrace/sgtrace/analyze/cause"
	"github.com/sgtrace/sgtrace/analyze/change/work"
	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/internal/changepoint"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/internal/parallel"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// A Stalling is lead ranks that stand still or are slow at equal intervals, because of a cron job, a checkpoint, or
// garbage collection; or that stand still once for long, or now and then.
type Stalling struct {
	set    *request.Set
	shift  Shift   // the ranks; Before and After are times per piece, if they are slow
	Period float64 // s; 0 if not periodic
	Length int64   // of a stall, ns: the median if periodic, otherwise the longest
	Times  []trace.Time
	P      float64 // NaN if not periodic
	halt   halt
	// prefills reports that prefills are held up, not decoding.
	prefills bool
	// First is the earliest beginning of the first stall, Last the latest beginning of the last one; both are Times[0] if periodic.
	First, Last trace.Time
	held        map[int]int64 // requests that were decoded, with how long each was held up, ns
	behind      map[int]int64 // requests that were on the rank while prefills stood still
	waiting     map[int]bool  // requests that arrived at about these times
}

// A single stall is reported if it is long, and if it held up several requests or kept them waiting: every process pauses now
// and then. Shorter stalls, and those with fewer requests, are reported if there are several that have enough requests together.
const (
	longStall  = 1_000_000_000 // ns
	shortStall = longStall / 4
	several    = 3
	heldByOne  = 3 // requests
)

// What stands still, in the words of reports.
const (
	decodeStalls  = "decoding"
	prefillStalls = "prefill"
	allStalls     = "scheduling"
)

// findStallings finds the ranks that are slow periodically, or stand still: periodically, now and then, or once for long. It removes that
// from their pieces of work. Ranks that do so together are one Stalling.
func (w *observer) findStallings() (out []Stalling) {
	var decode, prefill []changepoint.Pulses
	parallel.All(func() { decode = w.pulsesOf(w.paces.Decode) }, func() { prefill = w.pulsesOf(w.paces.Prefill) })
	out = w.addPulses(out, w.paces.Decode, decode, decodePace, decodeStalls)
	out = w.addPulses(out, w.paces.Prefill, prefill, prefillPace, prefillStalls)
	ends := w.paces.EndsByRank()
	for i := range w.paces.Decode {
		p := &w.paces.Decode[i]
		out = w.addStalls(out, p, p.Stalls(), ends[p.Rank], decodeStalls)
	}
	for i := range w.paces.Prefill { // prefills that held up no decoding: there was none, or the server only prefills
		p := &w.paces.Prefill[i]
		stalls := slices.DeleteFunc(p.PrefillStalls(), func(x work.Stall) bool {
			return slices.ContainsFunc(out, func(o Stalling) bool { return o.tells(w, p.Rank, &x) })
		})
		out = w.addStalls(out, p, stalls, ends[p.Rank], prefillStalls)
	}
	w.takeStalls(out)
	out = joinRepeated(out)
	for i := range out {
		out[i].shift.Peers = len(slices.DeleteFunc(slices.Clone(w.paces.Decode), func(p work.Pace) bool { return w.ranks.Places[p.Rank].Role != out[i].shift.Location.Role }))
	}
	return out
}

// addStalls adds the stalls of a rank: each that is long enough alone, and the others as one if they are several.
func (w *observer) addStalls(out []Stalling, p *work.Pace, stalls []work.Stall, ends work.Ends, what string) []Stalling {
	var rest []work.Stall // not reported alone
	for k := range stalls {
		if x := &stalls[k]; x.Length < shortStall || !ends.StandStill(x) {
			continue
		}
		if stalls[k].Length >= longStall {
			if s := w.stalling(p, stalls[k:k+1], what); s.harms() {
				out = w.addStalling(out, s)
				continue
			}
		}
		rest = append(rest, stalls[k])
	}
	if len(rest) >= several {
		if s := w.stalling(p, rest, what); s.harms() {
			out = append(out, s)
		}
	}
	return out
}

// tells reports whether s already has a stall of a rank.
func (s *Stalling) tells(w *observer, rank int32, x *work.Stall) bool {
	times := s.Times
	if s.Period > 0 {
		times = s.expected(w)
	}
	return slices.Contains(s.shift.Ranks, rank) && slices.ContainsFunc(times, func(t trace.Time) bool {
		return t <= x.Last+trace.Time(x.Length) && x.First <= t+trace.Time(s.Length)
	})
}

// harms reports whether enough requests were held up or waited.
func (s *Stalling) harms() bool { return len(s.held)+len(s.behind)+len(s.waiting) >= heldByOne }

// joinRepeated merges the stalls that are not periodic: those of the same ranks, and those that
// several servers of a role had repeatedly during the same time, as they have the same cause.
func joinRepeated(list []Stalling) (out []Stalling) {
	for i := range list {
		s := list[i]
		for {
			k := slices.IndexFunc(out, s.isLike)
			if k < 0 {
				break
			}
			s.repeat(&out[k]) // the merged one may be like others
			out = slices.Delete(out, k, k+1)
		}
		out = append(out, s)
	}
	return out
}

// isLike reports whether two stallings may have the same cause.
func (s *Stalling) isLike(o Stalling) bool {
	if o.Period != 0 || s.Period != 0 || o.shift.Location.Role != s.shift.Location.Role {
		return false
	}
	if slices.ContainsFunc(s.shift.Ranks, func(rank int32) bool { return slices.Contains(o.shift.Ranks, rank) }) {
		return true
	}
	return len(s.Times) > 1 && len(o.Times) > 1 && o.First <= s.Last+trace.Time(s.Length) && s.First <= o.Last+trace.Time(o.Length)
}

// repeat merges o into s, whether its stalls are of the same ranks or of others.
func (s *Stalling) repeat(o *Stalling) {
	s.Times = append(slices.Clone(s.Times), o.Times...)
	slices.Sort(s.Times)
	s.First, s.Last, s.Length = min(s.First, o.First), max(s.Last, o.Last), max(s.Length, o.Length)
	for i, rank := range o.shift.Ranks {
		if !slices.Contains(s.shift.Ranks, rank) {
			s.shift.Ranks = append(slices.Clone(s.shift.Ranks), rank)
			s.shift.Steps = append(slices.Clone(s.shift.Steps), o.shift.Steps[i])
			s.shift.Location = place.Location{Scope: place.WholeRole, Role: s.shift.Location.Role}
		}
	}
	if s.shift.Stage != o.shift.Stage {
		s.shift.Stage = allStalls
	}
	for r, ns := range o.held {
		s.held[r] += ns
	}
	for r, ns := range o.behind {
		s.behind[r] += ns
	}
	maps.Copy(s.waiting, o.waiting)
}

// takeStalls removes stalls from the pieces of work that they held up, so that these show how fast servers are otherwise.
func (w *observer) takeStalls(list []Stalling) {
	const least = 0.01 // of its time is left of a piece: how long it was held up is an estimate
	for i := range list {
		if list[i].Period > 0 {
			continue // addPulses removed these
		}
		paces := w.paces.Decode
		if list[i].prefills {
			paces = w.paces.Prefill
		}
		for k := range paces {
			p := &paces[k]
			if !slices.Contains(list[i].shift.Ranks, p.Rank) {
				continue
			}
			for j := range p.Pieces {
				x := &p.Pieces[j]
				left := max(least, 1-float64(list[i].held[x.Request])/(x.Units*x.NS))
				x.NS, x.Ratio = x.NS*left, x.Ratio*left
			}
		}
	}
}

// addStalling appends s, or joins it with one of the same role, kind, and times.
func (w *observer) addStalling(out []Stalling, s Stalling) []Stalling {
	const same = 0.05 // of the period
	k := slices.IndexFunc(out, func(o Stalling) bool {
		if o.shift.Location.Role != s.shift.Location.Role || o.prefills != s.prefills || o.Period == 0 != (s.Period == 0) || !o.halt.agrees(s.halt) {
			return false
		}
		if s.Period == 0 {
			return o.First <= s.Last+trace.Time(s.Length) && s.First <= o.Last+trace.Time(o.Length) && o.shift.Location != s.shift.Location
		}
		return factor(o.Period, s.Period) <= 1+same
	})
	if k < 0 {
		return append(out, s)
	}
	out[k].join(&s)
	return out
}

// stalling describes some stalls of a rank as one Stalling.
func (w *observer) stalling(p *work.Pace, stalls []work.Stall, what string) Stalling {
	at := w.ranks.EngineAt(p.Rank)
	s := Stalling{set: w.set, P: math.NaN(), First: stalls[0].First, Last: stalls[len(stalls)-1].Last, held: map[int]int64{}, behind: map[int]int64{}, waiting: map[int]bool{},
		prefills: what == prefillStalls, shift: Shift{Location: at, Stage: what, Ranks: []int32{p.Rank}, Steps: []PaceStep{{Location: at}}}}
	s.shift.Name = at.DP()
	lengths := make([]int64, len(stalls))
	for i := range stalls {
		lengths[i] = stalls[i].Length
		s.Times = append(s.Times, stalls[i].At)
		for _, h := range stalls[i].Held {
			s.held[h.Piece.Request] += h.NS
		}
	}
	s.Length = slices.Max(lengths)
	s.addWaiting(w, p, func(t trace.Time) bool {
		k := sort.Search(len(stalls), func(i int) bool { return stalls[i].Last+trace.Time(stalls[i].Length) >= t })
		return k < len(stalls) && t >= stalls[k].First
	})
	if s.prefills {
		s.addBehind(w, p, stalls)
	}
	return s
}

// addBehind adds the requests that were on a rank throughout a stall of its prefills, as decoding waits for prefills.
func (s *Stalling) addBehind(w *observer, p *work.Pace, stalls []work.Stall) {
	for _, r := range w.requests() {
		ns := int64(0)
		k := sort.Search(len(stalls), func(i int) bool { return stalls[i].First >= r.Start })
		for ; k < len(stalls) && stalls[k].Last+trace.Time(stalls[k].Length) <= r.End; k++ {
			ns += stalls[k].Length
		}
		if ns == 0 {
			continue
		}
		for _, part := range w.set.PartsOf(r) {
			if of := &w.set.Parts[part]; w.ranks.Serves(of) == p.Rank && s.held[of.Request] == 0 {
				s.behind[of.Request] = ns
			}
		}
	}
}

// addWaiting adds the requests that were sent to a rank while it stood still, as meets reports for their starts.
func (s *Stalling) addWaiting(w *observer, p *work.Pace, meets func(trace.Time) bool) {
	for _, r := range w.requests() {
		if !meets(r.Start) {
			continue
		}
		for _, part := range w.set.PartsOf(r) {
			if w.ranks.Serves(&w.set.Parts[part]) == p.Rank {
				s.waiting[w.set.Parts[part].Request] = true
			}
		}
	}
}

// meets returns a function that reports whether a request that starts at a time may have waited for a periodic stall.
func (s *Stalling) meets(w *observer) func(trace.Time) bool {
	times := s.expected(w)
	return func(t trace.Time) bool {
		k, _ := slices.BinarySearch(times, t-2*trace.Time(s.Length))
		return k < len(times) && t >= times[k]-trace.Time(s.Length)
	}
}

// expected returns the times of the stalls that were seen, and of those in step with them that were not: where a rank
// decoded nothing, only arriving requests could show them. The times are accurate to about the length of a stall.
func (s *Stalling) expected(w *observer) []trace.Time {
	first, last := s.Times[0], s.Times[len(s.Times)-1]
	n := math.Round(float64(last-first) / 1e9 / s.Period)
	every := trace.Time(distribution.Ratio(float64(last-first), n))
	if n < 1 || every <= 0 {
		return s.Times
	}
	times := slices.Clone(s.Times)
	for t := first - (first-w.from)/every*every; t <= w.to; t += every {
		times = append(times, t)
	}
	slices.Sort(times)
	return times
}

// join adds the same stalls of another rank.
func (s *Stalling) join(o *Stalling) {
	s.shift.Ranks = append(s.shift.Ranks, o.shift.Ranks...)
	s.shift.Steps = append(s.shift.Steps, o.shift.Steps...)
	s.shift.Location = place.Location{Scope: place.WholeRole, Role: s.shift.Location.Role}
	if s.halt == unclear {
		s.halt, s.shift.Stage = o.halt, o.shift.Stage
	}
	if len(o.Times) > len(s.Times) {
		s.Times, s.First, s.Last = o.Times, o.First, o.Last
	}
	s.P, s.Length = min(s.P, o.P), max(s.Length, o.Length)
	maps.Copy(s.held, o.held)
	maps.Copy(s.behind, o.behind)
	maps.Copy(s.waiting, o.waiting)
}

// finding returns a finding about s, with the time of requests that were held up and of those that waited.
func (s *Stalling) finding(b *cause.Costs) finding.Finding {
	requests := order.Distinct(slices.Concat(slices.Collect(maps.Keys(s.held)), slices.Collect(maps.Keys(s.behind)), slices.Collect(maps.Keys(s.waiting))))
	until := trace.Time(0)
	if s.Period == 0 {
		until = s.Last + trace.Time(s.Length)
	}
	metric := finding.Metric{Name: "length of stalls", Unit: table.Duration, Before: math.NaN(), After: float64(s.Length)}
	if s.halt == slowed {
		metric = s.shift.metric()
	}
	return finding.Finding{
		Kind: finding.Change, Subkind: finding.Stalls, Until: until, At: s.shift.Location, Since: s.Times[0], P: finding.Chance(s.P), Text: s.sentence(), Metric: metric,
		Affected: finding.AffectedOf(s.set, requests),
		Claim: b.Amounts(s.held, cause.Decode, cause.Interference, cause.Prefill).And(b.Amounts(s.behind, cause.Prefill, cause.Interference, cause.Queue, cause.Decode)).
			And(b.Beyond(slices.Sorted(maps.Keys(s.waiting)), cause.OverloadCauses...)).
			And(b.Beyond(slices.Sorted(maps.Keys(s.waiting)), cause.Prefill, cause.Dispatch)),
	}
}

// sentence says which ranks stand still or are slow, when, and for how long.
func (s *Stalling) sentence() string {
	if s.Period == 0 {
		text := fmt.Sprintf("%s stood still for %s at %s", s.shift.paceSubject(), words.Nearly(s.Length), words.When(s.Times[0], s.First, s.Last))
		if n := len(s.Times); n > 1 {
			text = fmt.Sprintf("%s stood still %d times for up to %s, first at %s and last at %s", s.shift.paceSubject(), n, words.Nearly(s.Length),
				words.At(s.Times[0], toSecond), words.At(s.Times[n-1], toSecond))
		}
		text += fmt.Sprintf(": it held up %s", words.Counted(len(s.held)+len(s.behind), "request"))
		if n := len(s.waiting); n > 0 {
			text += fmt.Sprintf(" and %d that came meanwhile", n)
		}
		return text
	}
	every, length := words.Nearly(int64(s.Period*1e9)), words.Nearly(s.Length)
	seen := fmt.Sprintf("%d times between %s and %s", len(s.Times), words.At(s.Times[0], toSecond), words.At(s.Times[len(s.Times)-1], toSecond))
	switch s.halt {
	case slowed:
		before, after := s.shift.values()
		return fmt.Sprintf("%s rises by %s %% for about %s every %s, from %s to %s at the same load: %s", s.shift.paceSubject(), words.InPercent(s.shift.relative()), length, every, before, after, seen)
	case unclear:
		return fmt.Sprintf("%s loses about %s every %s: %s; it stands still for that long, or is slow for longer", s.shift.paceSubject(), length, every, seen)
	}
	return fmt.Sprintf("%s stalls every %s for about %s: %s; nothing is done meanwhile", s.shift.paceSubject(), every, length, seen)
}
