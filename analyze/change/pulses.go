package change

import (
	"slices"
	"unsafe"

	"github.com/sgtrace/sgtrace/analyze/change/work"
	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/internal/changepoint"
	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/internal/parallel"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// A halt is what a rank does again and again.
type halt uint8

const (
	still   halt = iota // they stand still
	slowed              // they are slow
	unclear             // one of the two: too short to tell
)

// agrees reports whether two ranks may be doing the same.
func (h halt) agrees(o halt) bool { return h == o || h == unclear || o == unclear }

// minPulseFactor is the smallest periodic slowdown worth reporting.
const minPulseFactor = 1.15

// addPulses adds the ranks whose work is slow, or stands still, at equal intervals. It removes that from the pieces of
// work, so that these show how fast the ranks are otherwise. found holds the likeliest pulses of each pace.
func (w *observer) addPulses(out []Stalling, paces []work.Pace, found []changepoint.Pulses, slow, stalls string) []Stalling {
	const surely = 0.001
	is, surest := make([]bool, len(paces)), map[request.Role]int{} // surest: by role, the index of the pace with the lowest P
	for i := range paces {
		pulses, role := &found[i], w.ranks.Places[paces[i].Rank].Role
		if pulses.P *= float64(len(paces)); pulses.P > surely || !w.isPulsed(&paces[i], pulses) {
			continue
		}
		is[i] = true
		if k, ok := surest[role]; !ok || pulses.P < found[k].P {
			surest[role] = i
		}
	}
	for i := range paces {
		p, pulses := &paces[i], &found[i]
		if k, ok := surest[w.ranks.Places[p.Rank].Role]; ok && !is[i] {
			if pulses = w.follows(p, found[k], surely/float64(len(paces))); pulses == nil {
				continue
			}
		} else if !is[i] {
			continue
		}
		s := w.pulsing(p, pulses)
		if s.halt == slowed && stalls == decodeStalls {
			w.addPrefills(&s, p, pulses)
		}
		if s.shift.Stage, s.prefills = stalls, stalls == prefillStalls; s.halt == slowed {
			s.shift.Stage = slow
		}
		out = w.addStalling(out, s)
	}
	return out
}

// pulsesOf returns the likeliest pulses of each pace.
func (w *observer) pulsesOf(paces []work.Pace) []changepoint.Pulses {
	found := make([]changepoint.Pulses, len(paces))
	parallel.Each(len(paces), func(i int) {
		speeds := w.speeds(&paces[i], false)
		found[i] = changepoint.FindPulses(speeds)
		memory.Free(speeds)
	})
	return found
}

// follows returns the given pulses if another rank of the role has them, too, and nil if not.
// It takes less evidence to confirm the times of pulses than to find them.
func (w *observer) follows(p *work.Pace, pulses changepoint.Pulses, level float64) *changepoint.Pulses {
	var inside, outside []float64
	for i := range p.Pieces {
		x := &p.Pieces[i]
		if from, to := w.seconds(x.From), w.seconds(x.To); pulses.Over(from, to) > 0 {
			inside = append(inside, x.Speed())
		} else {
			outside = append(outside, x.Speed())
		}
	}
	if len(inside) == 0 || len(outside) == 0 {
		return nil
	}
	chance, delta := changepoint.Compare(outside, inside)
	if pulses.P = chance; chance > level || delta >= 0 || !w.isPulsed(p, &pulses) {
		return nil
	}
	return &pulses
}

// isPulsed reports whether work slows down by enough in pulses, and not because more of it arrives then.
func (w *observer) isPulsed(p *work.Pace, pulses *changepoint.Pulses) bool {
	by := func(x *work.Piece) float64 { return w.pulsed(x, pulses) }
	least := pulses.Level * (1 - 1/minPulseFactor)
	sideOf := func(at float64) side {
		if pulses.Over(at, at) > 0 {
			return after
		}
		return before
	}
	length := pulses.Length * float64(pulses.Count)
	of := []*work.Pace{p}
	return pulses.Size >= least && w.outweighs(of, by, minPaceFactor) &&
		!w.followsLoad(of, by, sideOf, [...]float64{w.seconds(w.to) - length, length})
}

// pulsed returns the fraction by which pulses slowed down a piece of work, as a negative number.
func (w *observer) pulsed(x *work.Piece, pulses *changepoint.Pulses) float64 {
	const slowest = 0.95
	return -min(pulses.Size/pulses.Level, 1) * min(slowest, pulses.Over(w.seconds(x.From), w.seconds(x.To)))
}

// pulsing describes the pulses of a rank, and removes them from its pieces of work.
func (w *observer) pulsing(p *work.Pace, pulses *changepoint.Pulses) Stalling {
	at := w.ranks.EngineAt(p.Rank)
	s := Stalling{set: w.set, Period: pulses.Every, P: pulses.P, Length: int64(pulses.Length * 1e9), held: map[int]int64{}, behind: map[int]int64{}, waiting: map[int]bool{}, halt: w.haltOf(p, pulses),
		shift: Shift{Location: at, Metric: PaceChanged, Ranks: []int32{p.Rank}, Steps: []PaceStep{{Location: at}}, Before: newLevel(0), After: newLevel(0)}}
	lengths := w.inOne(p, pulses) // of what holds up pieces
	if 2*len(lengths) > len(pulses.Seen) {
		s.halt = still
	}
	s.shift.Name = at.DP()
	s.shift.Before.P50, s.shift.After.P50 = int64(p.Usual/pulses.Level), int64(p.Usual/max(pulses.Level-pulses.Size, 0.05*pulses.Level))
	for _, k := range pulses.Seen {
		s.Times = append(s.Times, w.time(pulses.Begin(k)))
	}
	s.First, s.Last = s.Times[0], s.Times[0]
	for i := range p.Pieces {
		x := &p.Pieces[i]
		by := w.pulsed(x, pulses)
		switch {
		case by == 0:
		case s.halt == slowed:
			s.held[x.Request] += int64((1 - x.Otherwise(1+by)) * x.NS * x.Units)
			x.NS, x.Ratio = x.NS*(1+by), x.Ratio*(1+by)
		case x.Extra() > 0:
			if pulses.Over(w.seconds(x.From), w.seconds(x.To))*float64(x.To-x.From) >= 0.9e9*pulses.Length {
				lengths = append(lengths, int64(x.Extra()))
			}
			s.held[x.Request] += int64(x.Extra())
			x.NS, x.Ratio = x.NS/x.Ratio, 1
		}
	}
	if s.halt != slowed {
		if len(lengths) > 0 {
			s.Length = distribution.LowerMedian(lengths)
		}
		s.addWaiting(w, p, s.meets(w))
	}
	return s
}

// addPrefills adds what prefills cost in pulses in which decoding is slow: prefills that are slower themselves, and those of others that
// hold up decoding. Prompts arrive at their own times, so the less time decoding takes, the fewer prefills hold it up.
func (w *observer) addPrefills(s *Stalling, decode *work.Pace, pulses *changepoint.Pulses) {
	k := slices.IndexFunc(w.paces.Prefill, func(p work.Pace) bool { return p.Rank == decode.Rank })
	if k < 0 || decode.Whole {
		return
	}
	const mostly = 0.5
	prefill, slower := &w.paces.Prefill[k], *pulses
	slower.Level, slower.Size = 1, prefill.SlowerIn(func(x *work.Piece) bool { return pulses.Over(w.seconds(x.From), w.seconds(x.To)) > mostly })
	for i := range prefill.Pieces {
		x := &prefill.Pieces[i]
		by := w.pulsed(x, &slower)
		s.held[x.Request] += int64(-by * x.NS)
		x.NS, x.Ratio = x.NS*(1+by), x.Ratio*(1+by)
	}
	for i := range decode.Pieces {
		x := &decode.Pieces[i]
		if by := w.pulsed(x, pulses); by != 0 {
			others := max(0, float64(x.To-x.From)-x.NS/(1+by)*x.Units) // see pulsing
			s.held[x.Request] += int64((1 - (1+by)*(1+w.pulsed(x, &slower))) * others)
		}
	}
}

// haltOf reports whether a rank stands still in pulses, so that no piece of work begins or ends in them, or is slow, so
// that pieces do so about as often as otherwise, or less often in proportion to the slowdown.
func (w *observer) haltOf(p *work.Pace, pulses *changepoint.Pulses) halt {
	const (
		margin  = 0.2 // of a pulse: how uncertain its beginning and its end are
		enough  = 5   // least number of beginnings and ends that can tell
		hardly  = 0.1 // of the expected number
		several = 0.3
	)
	inner := *pulses
	inner.At, inner.Length = pulses.At+margin*pulses.Length, (1-2*margin)*pulses.Length
	within, all := 0.0, 0.0
	for i := range p.Pieces {
		for _, t := range [...]trace.Time{p.Pieces[i].From, p.Pieces[i].To} {
			at := w.seconds(t)
			if all++; inner.Over(at, at) > 0 {
				within++
			}
		}
	}
	share := distribution.Ratio(inner.Length*float64(inner.Count), float64(w.to-w.from)/1e9)
	switch expected := all * share; {
	case within >= several*expected && within >= enough:
		return slowed
	case within <= hardly*expected && expected >= enough:
		return still
	}
	return unclear
}

// inOne returns how much longer one batch of prefills took in each pulse that is mostly that, while no other prefill began or ended: the
// rank stands still in it, and has a backlog to work off after that.
func (w *observer) inOne(p *work.Pace, pulses *changepoint.Pulses) (lengths []int64) {
	const mostly, margin = 0.6, 0.1
	if !p.Sized {
		return nil
	}
	lost := pulses.Length * min(1, pulses.Size/pulses.Level)
	for _, k := range pulses.Seen {
		begin := pulses.Begin(k)
		within := order.OnlyRows(p.Pieces, func(x *work.Piece) bool { return w.seconds(x.To) > begin && w.seconds(x.From) < begin+pulses.Length })
		alone := func(x work.Piece) bool {
			off := trace.Time(margin * float64(x.To-x.From))
			inside := func(at trace.Time) bool { return at > x.From+off && at < x.To-off }
			return float64(x.To-x.From) >= mostly*lost*1e9 && !slices.ContainsFunc(within, func(o work.Piece) bool { return inside(o.From) || inside(o.To) })
		}
		if i := slices.IndexFunc(within, alone); i >= 0 {
			lengths = append(lengths, int64(within[i].Extra()))
		}
	}
	return lengths
}

// speeds returns the speed of every piece of a rank's work, or, if ofTimes, its time relative to the usual time.
func (w *observer) speeds(p *work.Pace, ofTimes bool) []changepoint.Observation {
	list := memory.Make[changepoint.Observation](len(p.Pieces))
	for k := range memory.Each(len(p.Pieces), int(unsafe.Sizeof(work.Piece{}))) {
		x := &p.Pieces[k]
		value := x.Speed()
		if ofTimes {
			value = x.Ratio
		}
		list[k] = changepoint.Observation{From: w.seconds(x.From), To: w.seconds(x.To), Value: value, Weight: x.Units / (x.Units + fullUnits)}
	}
	return list
}
