package work

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/load"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// slotServer plays a server that works at each request by itself: a prefill of 20 ms and 50 us for each token, then 20 ms
// for each of 50 tokens. From half of the time on prompts have four times as many tokens. If it holds, decoding
// stands still while prompts are computed.
func slotServer(holds bool) (*observer, *workload) {
	const n = 600
	r := rand.New(rand.NewPCG(3, 3))
	w := &observer{set: &request.Set{Requests: make([]request.Request, n)}, to: math.MaxInt64}
	x := &workload{}
	at := trace.Time(1e9)
	var covered request.Coverage
	var busy []request.Interval
	for i := range n {
		at += trace.Time(r.ExpFloat64() * 400e6)
		tokens := 1000 + 1000*r.Float64()
		if i >= n/2 {
			tokens *= 4
		}
		noise := math.Exp(0.03 * r.NormFloat64())
		end := at + trace.Time((20e6+tokens*50_000)*noise)
		busy = append(busy, request.Interval{From: at, To: end})
		x.prefills = append(x.prefills, load.Prefill{Request: i, Requests: 1, From: at, To: end, Tokens: tokens})
	}
	covered = request.NewCoverage(busy)
	for i, p := range x.prefills {
		took := trace.Time(1e9 * math.Exp(0.03*r.NormFloat64()))
		to := p.To + took
		if holds { // until it has had as much time of its own
			for k := 0; k < 50; k++ {
				to = p.To + took + trace.Time(covered.Overlap(p.To, to))
			}
		}
		x.decodes = append(x.decodes, Piece{Request: i, From: p.To, To: to, Units: 50})
	}
	return w, x
}

// Where prefills hold up nothing, longer prompts do not seem to make decoding faster, nor do prompts that are computed
// side by side seem to be those of one batch; where they hold decoding up, they do not seem to make it slower.
func TestPaceOfSlots(t *testing.T) {
	for _, holds := range []bool{false, true} {
		w, x := slotServer(holds)
		decode, prefill := w.pacesOf(0, x)
		if len(decode) != 1 || len(prefill) != 1 {
			t.Fatal("too little work")
		}
		mean := func(p *Pace, of func(*Piece) float64) (before, after float64) {
			var n [2]float64
			var sum [2]float64
			for i := range p.Pieces {
				half := 0
				if p.Pieces[i].Request >= 300 {
					half = 1
				}
				sum[half], n[half] = sum[half]+of(&p.Pieces[i]), n[half]+1
			}
			return sum[0] / n[0], sum[1] / n[1]
		}
		before, after := mean(&decode[0], func(x *Piece) float64 { return x.NS })
		if math.Abs(before/20e6-1) > 0.02 || math.Abs(after/20e6-1) > 0.02 {
			t.Errorf("holds %v: %.1f and %.1f ms for a token, planted 20", holds, before/1e6, after/1e6)
		}
		if holds {
			continue
		}
		before, after = mean(&prefill[0], func(x *Piece) float64 { return x.Ratio })
		if math.Abs(after/before-1) > 0.05 {
			t.Errorf("prefills take %.2f times as long as longer prompts explain", after/before)
		}
	}
}

// Three burdens are told from each other where they vary, and one that makes nothing longer has no part.
func TestBurdensOfAPace(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	want := Burden{20_000, 0.5, 0}
	var p Pace
	for i := range 400 {
		tokens, context, running := 100+900*rnd.Float64(), 20_000*rnd.Float64(), 8*rnd.Float64()
		x := Piece{From: trace.Time(i) * 1e9, Units: 1, Burden: Burden{tokens, tokens * context, running}}
		x.NS = 5e6 - 1e4*running // more of that takes no time: it is not less
		for k := range want {
			x.NS += want[k] * x.Burden[k]
		}
		p.Pieces = append(p.Pieces, x)
	}
	got := p.Burdens()
	for k := range want {
		if math.Abs(got[k]-want[k]) > 0.02*want[k] {
			t.Errorf("burden %d costs %v, want %v", k, got[k], want[k])
		}
	}
}
