package align

import (
	"unsafe"

	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/internal/parallel"
	"github.com/sgtrace/sgtrace/trace"
)

// Clocks disciplined by NTP are better than the middle of an interval of milliseconds, which is what requests and host collectives
// give. So a clock that claims to show Unix time stays where it is, unless that violates more than a few of the bounds between it
// and others. A few are expected: some requests were joined wrongly, and an effect may come slightly before its cause on any clock.
const (
	fewWrong = 100 // one bound in fewWrong may be violated
	// ClockSlack is how far an effect may come before its cause, in ns: SGLang recalibrates its clocks by about that much.
	ClockSlack = 1000
)

// keepClaims resets the clocks whose claims nothing contradicts. The others keep the fit that was found. All claims are
// judged together first, and then, as one wrong clock contradicts all clocks that share bounds with it, one by one.
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

// A keeper judges claims by the bounds of each clock.
type keeper struct {
	p      *Problem
	fits   []ClockFit
	bounds [][]int32 // by clock: indexes of its bounds
}

// candidates returns the clocks with claims that only requests, or host collectives, relate to the reference.
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

// agrees reports whether the current fits violate no more than a few bounds of a clock.
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

// fails reports whether the current fits violate a bound.
func (k *keeper) fails(b *Bound) bool {
	at := k.fits[b.B].ToReference(b.At)
	offset := sub(k.fits[b.B].ToLocal(at), k.fits[b.A].ToLocal(at))
	return b.Lo != NoLo && offset < sub(b.Lo, ClockSlack) || b.Hi != NoHi && offset > add(b.Hi, ClockSlack)
}

// unchanged returns the fit of a clock that is not moved, with a bound that covers the fit that was found.
func (c ClockFit) unchanged() ClockFit {
	c.BoundAtT0 = add(c.BoundAtT0, max(c.Offset, -c.Offset))
	c.DriftBoundPPB += max(c.DriftPPB, -c.DriftPPB)
	c.Offset, c.DriftPPB = 0, 0
	c.Bound = max(c.BoundAt(c.From), c.BoundAt(c.To))
	return c
}
