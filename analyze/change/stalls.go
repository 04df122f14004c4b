package change

import (
	"cmp"
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
	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/internal/parallel"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// A Stalling is that lead ranks stand still, or are slow: at equal intervals, for a job that runs every
// minute beside them, a checkpoint, or garbage that is collected; or that they stand still once, for long.
type Stalling struct {
	set    *request.Set
	shift  Shift   // which ranks; Before and After are what their work takes, if they are slow
	Period float64 // s; 0 is none
	Length int64   // of a stall, ns: the median, or the longest without a period
	Times  []trace.Time
	P      float64 // NaN without a period
	halt   halt
	// prefills tells that it is prefills that are held up, and not decoding.
	prefills bool
	// First and Last are between which times the first one began.
	First, Last trace.Time
	held        map[int]int64 // requests that were decoded, with how long each was held up, ns
	waiting     map[int]bool  // requests that came at about these times
}

// A stall is when all requests that a rank decoded got no token for long.
type stall struct {
	at, first, last trace.Time // when it began, and between which times
	length          int64      // ns
	held            []heldUp
}

// A stall that is not one of several is told if it is long, and held up several requests or
// kept them waiting: every process has pauses now and then. Of those that are shorter, or held up fewer, it takes
// several, of all of which that is true.
const (
	longStall  = 1_000_000_000 // ns
	shortStall = longStall / 4
	several    = 3
	heldByOne  = 3 // requests
)

// What stands still, as people call it.
const (
	decodeStalls  = "decoding"
	prefillStalls = "prefill"
)

type heldUp struct {
	piece *work.Piece
	ns    int64
}

// findStallings finds the ranks that are slow periodically, or stand still, periodically or once for long.
// Those that do so together are one.
func (w *observer) findStallings() (out []Stalling) {
	var decode, prefill []changepoint.Pulses
	parallel.All(func() { decode = w.pulsesOf(w.paces.Decode) }, func() { prefill = w.pulsesOf(w.paces.Prefill) })
	out = w.addPulses(out, w.paces.Decode, decode, decodePace, decodeStalls)
	out = w.addPulses(out, w.paces.Prefill, prefill, prefillPace, prefillStalls)
	endsOf := w.endsByRank()
	for i := range w.paces.Decode {
		p := &w.paces.Decode[i]
		stalls, ends := stallsOf(p), endsOf[p.Rank]
		var rest []stall // that are not told by themselves
		for k := range stalls {
			if x := &stalls[k]; x.length < shortStall || !ends.noneIn(x) {
				continue
			}
			if stalls[k].length >= longStall {
				if s := w.stalling(p, stalls[k:k+1]); s.harms() {
					out = w.addStalling(out, s)
					continue
				}
			}
			rest = append(rest, stalls[k])
		}
		if len(rest) >= several {
			if s := w.stalling(p, rest); s.harms() {
				out = append(out, s)
			}
		}
	}
	out = joinRepeated(w.addPrefillStalls(out, endsOf))
	for i := range out {
		out[i].shift.Peers = len(slices.DeleteFunc(slices.Clone(w.paces.Decode), func(p work.Pace) bool { return w.ranks.Places[p.Rank].Role != out[i].shift.Location.Role }))
	}
	return out
}

// harms reports whether requests enough were held up, or waited.
func (s *Stalling) harms() bool { return len(s.held)+len(s.waiting) >= heldByOne }

// joinRepeated makes one of the stalls that the same ranks had now and then.
func joinRepeated(list []Stalling) (out []Stalling) {
	for i := range list {
		s := &list[i]
		k := slices.IndexFunc(out, func(o Stalling) bool {
			return o.Period == 0 && s.Period == 0 && o.prefills == s.prefills && o.shift.Location == s.shift.Location && slices.Equal(o.shift.Ranks, s.shift.Ranks)
		})
		if k < 0 {
			out = append(out, *s)
		} else {
			out[k].repeat(s)
		}
	}
	return out
}

// repeat adds other stalls of the same ranks.
func (s *Stalling) repeat(o *Stalling) {
	s.Times = append(slices.Clone(s.Times), o.Times...)
	slices.Sort(s.Times)
	s.First, s.Last, s.Length = min(s.First, o.First), max(s.Last, o.Last), max(s.Length, o.Length)
	for r, ns := range o.held {
		s.held[r] += ns
	}
	maps.Copy(s.waiting, o.waiting)
}

// addPrefillStalls adds those of prefills that held up no decoding: where there was none, or on
// servers that only prefill.
func (w *observer) addPrefillStalls(out []Stalling, endsOf map[int32]endTimes) []Stalling {
	const beyond = 8 // times what as many tokens take usually: no prompt is long enough for that
	for i := range w.paces.Prefill {
		p := &w.paces.Prefill[i]
		ends := endsOf[p.Rank]
		for k := range p.Pieces {
			x := &p.Pieces[k]
			if x.Ratio < beyond || x.Extra() < longStall {
				continue
			}
			one := stall{at: x.From, first: x.From, last: x.To - trace.Time(x.Extra()), length: int64(x.Extra()), held: []heldUp{{x, int64(x.Extra())}}}
			told := func(o Stalling) bool {
				return slices.Contains(o.shift.Ranks, p.Rank) && slices.ContainsFunc(o.Times, func(t trace.Time) bool { return t <= x.To && x.From <= t+trace.Time(o.Length) })
			}
			if slices.ContainsFunc(out, told) || !ends.noneIn(&one) {
				continue
			}
			s := w.stalling(p, []stall{one})
			if s.shift.Stage, s.prefills = prefillStalls, true; s.harms() {
				out = w.addStalling(out, s)
			}
		}
	}
	return out
}

// endTimes are when the pieces of work of a rank ended, the first one first.
type endTimes []trace.Time

// endsByRank are those of each rank, of what it decodes and of what it prefills: a scheduler that stands still does neither.
func (w *observer) endsByRank() map[int32]endTimes {
	of := map[int32]endTimes{}
	for _, list := range [...][]work.Pace{w.paces.Decode, w.paces.Prefill} {
		for i := range list {
			p := &list[i]
			ends := of[p.Rank]
			for k := range p.Pieces {
				ends = memory.Append(ends, p.Pieces[k].To)
			}
			of[p.Rank] = ends
		}
	}
	for _, ends := range of {
		slices.Sort(ends)
	}
	return of
}

// noneIn reports whether no such work ends in a stall, wherever it lies: what begins there, if it can, is held up, too. Where that is
// open, there is a time as long in which nothing does.
func (e endTimes) noneIn(x *stall) bool {
	from, to := x.last+request.SameBatch, x.first+trace.Time(x.length)-request.SameBatch
	k, _ := slices.BinarySearch(e, from+1)
	return from < to && (k == len(e) || e[k] >= to) && e.haveGap(x.first, x.last+trace.Time(x.length), trace.Time(x.length))
}

// haveGap reports whether nothing ends for about as long as that between two times.
func (e endTimes) haveGap(from, to, length trace.Time) bool {
	const about = 0.8 // the length follows from what is usual
	least := trace.Time(about * float64(length))
	k, _ := slices.BinarySearch(e, from+1)
	for ; k < len(e) && e[k] < to; k++ {
		if e[k]-from >= least {
			return true
		}
		from = e[k]
	}
	return to-from >= least
}

// takeStalls takes stalls out of the pieces of work that they held up: how fast servers are
// otherwise is another question.
func (w *observer) takeStalls(list []Stalling) {
	for i := range list {
		if list[i].Period > 0 {
			continue // see addPulses
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
				if x := &p.Pieces[j]; list[i].held[x.Request] > 0 {
					x.NS, x.Ratio = x.NS/x.Ratio, 1
				}
			}
		}
	}
}

// addStalling adds one to others, as a part of one that is the same.
func (w *observer) addStalling(out []Stalling, s Stalling) []Stalling {
	const same = 0.05 // period
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

// stallsOf finds times at which a rank held up all that it decoded, by far longer than anything
// usually is.
func stallsOf(p *work.Pace) (out []stall) {
	const (
		noticed = 100_000_000 // ns
		beyond  = 8           // times what requests vary by
		alike   = 1.5         // that half of those it holds up are held up
	)
	var slow []heldUp
	off := memory.Make[float64](len(p.Pieces))[:0]
	for i := range p.Pieces {
		off = append(off, math.Abs(p.Pieces[i].Extra()))
	}
	limit := max(noticed, beyond*1.4826*distribution.LowerMedian(off))
	for i := range p.Pieces {
		if x := &p.Pieces[i]; x.Extra() >= limit {
			slow = append(slow, heldUp{x, int64(x.Extra())})
		}
	}
	if 3*len(slow) > len(p.Pieces) {
		return nil // it is slow, and does not stand still
	}
	slices.SortStableFunc(slow, func(a, b heldUp) int { return cmp.Compare(a.piece.To, b.piece.To) })
	for len(slow) > 0 { // all that were under way when the first of them ended
		end := slow[0].piece.To
		var of, rest []heldUp
		for _, h := range slow {
			if h.piece.From < end {
				of = append(of, h)
			} else {
				rest = append(rest, h)
			}
		}
		slow = rest
		lengths, from := make([]int64, len(of)), of[0].piece.From
		for k, h := range of {
			lengths[k], from = h.ns, max(from, h.piece.From)
		}
		if slices.Sort(lengths); float64(lengths[len(of)*3/4]) > alike*float64(lengths[len(of)/4]) {
			continue // who stands still holds up all for as long
		}
		s := stall{length: distribution.LowerMedian(lengths), held: of}
		s.first, s.last = from, max(from, end-trace.Time(s.length)) // between these it began
		s.at = s.first + (s.last-s.first)/2
		out = append(out, s)
	}
	slices.SortStableFunc(out, func(a, b stall) int { return cmp.Compare(a.at, b.at) })
	return out
}

// stalling describes the stalls of a rank.
func (w *observer) stalling(p *work.Pace, stalls []stall) Stalling {
	at := w.ranks.Places[p.Rank]
	s := Stalling{set: w.set, P: math.NaN(), First: stalls[0].first, Last: stalls[len(stalls)-1].last, held: map[int]int64{}, waiting: map[int]bool{},
		shift: Shift{Location: at, Stage: decodeStalls, Ranks: []int32{p.Rank}, Steps: []PaceStep{{Location: at}}}}
	s.shift.Name = at.DP()
	lengths := make([]int64, len(stalls))
	for i := range stalls {
		lengths[i] = stalls[i].length
		s.Times = append(s.Times, stalls[i].at)
		for _, h := range stalls[i].held {
			s.held[h.piece.Request] += h.ns
		}
	}
	s.Length = slices.Max(lengths)
	s.addWaiting(w, p, func(t trace.Time) bool {
		k := sort.Search(len(stalls), func(i int) bool { return stalls[i].last+trace.Time(stalls[i].length) >= t })
		return k < len(stalls) && t >= stalls[k].first
	})
	return s
}

// addWaiting adds the requests that came to a rank while it stood still, as meets tells of their starts.
func (s *Stalling) addWaiting(w *observer, p *work.Pace, meets func(trace.Time) bool) {
	for _, r := range w.requests() {
		if !meets(r.Start) {
			continue
		}
		for _, part := range w.set.PartsOf(r) {
			if w.ranks.Route(&w.set.Parts[part]) == int(p.Rank) {
				s.waiting[w.set.Parts[part].Request] = true
			}
		}
	}
}

// meets tells of the start of a request whether it may have had to wait for a periodic stall.
func (s *Stalling) meets(w *observer) func(trace.Time) bool {
	times := s.expected(w)
	return func(t trace.Time) bool {
		k, _ := slices.BinarySearch(times, t-2*trace.Time(s.Length))
		return k < len(times) && t >= times[k]-trace.Time(s.Length)
	}
}

// expected returns the times of the stalls that were seen, and those in step with them: where a rank
// decoded nothing, only those that came show it. They are known to about the length of a stall.
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

// join adds the stalls of another rank.
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
	maps.Copy(s.waiting, o.waiting)
}

// finding tells of stalls, and what they cost those that were held up and those that waited.
func (s *Stalling) finding(b *cause.Costs) finding.Finding {
	requests := order.Distinct(slices.Concat(slices.Collect(maps.Keys(s.held)), slices.Collect(maps.Keys(s.waiting))))
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
		Claim: b.Amounts(s.held, cause.Decode, cause.Interference, cause.Prefill).
			And(b.Beyond(slices.Sorted(maps.Keys(s.waiting)), cause.OverloadCauses...)).
			And(b.Beyond(slices.Sorted(maps.Keys(s.waiting)), cause.Prefill, cause.Dispatch)),
	}
}

// sentence says who stands still or is slow, when, and for how long.
func (s *Stalling) sentence() string {
	if s.Period == 0 {
		text := fmt.Sprintf("%s stood still for %s at %s", s.shift.paceSubject(), words.Nearly(s.Length), words.When(s.Times[0], s.First, s.Last))
		if n := len(s.Times); n > 1 {
			text = fmt.Sprintf("%s stood still %d times for up to %s, first at %s and last at %s", s.shift.paceSubject(), n, words.Nearly(s.Length),
				words.At(s.Times[0], toSecond), words.At(s.Times[n-1], toSecond))
		}
		text += fmt.Sprintf(": it held up %s", words.Counted(len(s.held), "request"))
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
