package simulator

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
)

const (
	lengthShare = 0.4  // of requests that stop because of max_tokens
	namedShare  = 0.05 // of unified requests whose client chose the id
)

// plan draws the requests: their arrivals, their lengths, and the behavior of their clients. It does not depend on how the
// deployment will cope with them.
func (r *Run) plan(rng *rand.Rand) {
	c := &r.Config
	at := c.Start.UnixNano()
	before := int(c.Incident.Onset * float64(c.Requests))
	for i := range c.Requests {
		if i == before {
			r.Onset = at + 1
		}
		rate := c.Rate
		if i >= before && at+1-r.Onset < int64(c.Incident.BurstLength) {
			rate *= c.Incident.BurstFactor
		}
		at += int64(rng.ExpFloat64() / rate * 1e9)
		r.Requests = append(r.Requests, r.draw(rng, at))
	}
	r.Onset = cmp.Or(r.Onset, at+1)
}

// draw makes the request that arrives at a time.
func (r *Run) draw(rng *rand.Rand, at int64) *Request {
	c := &r.Config
	q := &Request{
		Arrival:     at,
		Prompt:      c.Prompt.Draw(rng),
		output:      c.Output.Draw(rng),
		Temperature: []float64{0, 0.6, 0.7, 1}[rng.IntN(4)],
		stop:        "stop",
	}
	q.MaxTokens = q.output + 1 + rng.IntN(64)
	if rng.Float64() < lengthShare {
		q.stop, q.MaxTokens = "length", q.output
	}
	if rng.Float64() < c.Cancels && q.output > 2 {
		q.cancelAfter = 1 + rng.IntN(q.output-2)
	}
	if rng.Float64() < c.Impatient {
		q.patience = int64(float64(c.Patience) * (0.5 + rng.Float64()))
	}
	q.slowTransfer = rng.Float64() < c.SlowTransfers && (!c.SlowTransfersAtOnset || r.Onset != 0)
	q.failTransfer = rng.Float64() < c.FailedTransfers
	if c.LongPrompts > 0 && rng.Float64() < c.LongPrompts { // without a draw, so that other runs do not change
		q.Prompt = c.LongTokens
	}

	r.drawTraits(rng, q)
	if c.Mode == PDGateway {
		q.ID = "gnt-" + letters(rng, 24)
	}
	if c.Mode != Unified {
		q.Room = 1 + rng.Uint64N(1<<63-1) // 0 would be no room
	}
	for i := range r.Instances {
		h := &Half{Instance: i, ID: HexDigits(rng, 32)}
		if c.Mode == Unified && rng.Float64() < namedShare {
			h.ID = "chat_" + letters(rng, 6) + "_" + h.ID
		}
		h.RID = h.ID[strings.LastIndexByte(h.ID, '_')+1:]
		q.Halves = append(q.Halves, h)
	}
	return q
}

// drawTraits draws the sender of a request, and how much of its prompt is cached. A configuration without these draws
// nothing, so that its runs do not change.
func (r *Run) drawTraits(rng *rand.Rand, q *Request) {
	c := &r.Config
	if c.Tenants > 0 {
		tenant := rng.IntN(c.Tenants)
		q.Tenant, q.held = fmt.Sprintf("tenant-%02d", tenant), tenant == 0
	}
	if c.CachedShare > 0 {
		q.Cached = int(2 * c.CachedShare * rng.Float64() * float64(q.Prompt-1))
		if c.CacheLostAtOnset && r.Onset != 0 {
			q.Cached = 0
		}
	}
}

// Draw returns a length in tokens.
func (l Lengths) Draw(rng *rand.Rand) int {
	n := l.Median * math.Exp(l.Sigma*rng.NormFloat64())
	return int(min(max(n, 1), float64(l.Max)))
}

// letters returns n random letters and digits.
func letters(rng *rand.Rand, n int) string {
	return draw(rng, n, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789")
}
