package align

import (
	"unsafe"

	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/internal/parallel"
	"github.com/sgtrace/sgtrace/trace"
)

// Clocks that NTP keeps are better than the middle of an interval of milliseconds, which
// is what requests and collectives of hosts leave. So a clock that claims to show Unix time stays where it is,
// unless more than a few of the bounds between it and others do not hold then. A few are
// of requests that were joined wrongly, and an effect may come a little before its cause
// on any clock.
const (
	fewWrong = 100 // one bound in so many
	// ClockSlack is how far an effect may come before its cause, in ns: SGLang
	// recalibrates its clocks by about as much.
	ClockSlack = 1000
)

// keepClaims leaves the clocks where they are whose claims nothing contradicts. The
// others keep what was found: they are judged together first, and then one by one, since
// one that is wrong contradicts all that have bounds with it.
func (sol *Solution) keepClaims(p *Problem) {
	k := keeper{p: p, fits: sol.Clocks, bounds: make([][]int32, p.Clocks)}
	candidates := k.candidates(sol.Reference)
	if len(candidates) == 0 {
		return
	}
	for i, b := range p.Bounds {
		if b.A != b.B && b.sound() {
			k.bounds[b.A], k.bounds[b.B] = append(k.bounds[b.A], int32(i)), append(k.bounds[b.B], int32(i))
		}
	}
	found := make([]ClockFit, len(candidates))
	for i, c := range candidates {
		found[i] = k.fits[c]
		k.fits[c] = found[i].unchanged()
	}
	agree := order.Each(candidates, k.agrees)
	for i, c := range candidates {
		if !agree[i] {
			k.fits[c] = found[i]
		}
	}
	for i, c := range candidates {
		if k.fits[c] = found[i].unchanged(); !k.agrees(c) {
			k.fits[c] = found[i]
		}
	}
}

// A keeper knows which bounds each clock is in.
type keeper struct {
	p      *Problem
	fits   []ClockFit
	bounds [][]int32 // by clock
}

// candidates returns the clocks that only requests, or collectives of hosts, relate to the reference.
func (k *keeper) candidates(reference int) (list []int) {
	hasRanks := make([]bool, k.p.Clocks)
	for i := range k.p.Ranks {
		hasRanks[k.p.Ranks[i].Clock] = true
	}
	for c := range k.p.Claims {
		f := &k.fits[c]
		if k.p.Claims[c] && c != reference && (!hasRanks[c] && f.By == ByRequests || f.By == ByHosts) && f.Why == trace.SyncMatched {
			list = append(list, c)
		}
	}
	return list
}

// agrees reports whether no more than a few bounds of a clock fail as the clocks are now.
func (k *keeper) agrees(clock int) bool {
	wrong, list := 0, k.bounds[clock]
	parallel.Fold(len(list), int(unsafe.Sizeof(Bound{})), func() *int { return new(int) }, func(n *int, from, to int) {
		for _, i := range list[from:to] {
			if k.fails(&k.p.Bounds[i]) {
				*n++
			}
		}
	}, func(n *int) { wrong += *n })
	return wrong*fewWrong <= len(list)
}

// fails reports whether a bound does not hold.
func (k *keeper) fails(b *Bound) bool {
	at := k.fits[b.B].ToReference(b.At)
	offset := sub(k.fits[b.B].ToLocal(at), k.fits[b.A].ToLocal(at))
	return b.Lo != NoLo && offset < sub(b.Lo, ClockSlack) || b.Hi != NoHi && offset > add(b.Hi, ClockSlack)
}

// unchanged returns the fit of a clock that stays, as exact as what was found allows.
func (c ClockFit) unchanged() ClockFit {
	c.BoundAtT0 = add(c.BoundAtT0, max(c.Offset, -c.Offset))
	c.DriftBoundPPB += max(c.DriftPPB, -c.DriftPPB)
	c.Offset, c.DriftPPB = 0, 0
	c.Bound = max(c.BoundAt(c.From), c.BoundAt(c.To))
	return c
}
