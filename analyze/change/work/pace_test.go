package work

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/load"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// slotServer plays a server that works on each request separately: a prefill of 20 ms plus 50 us
// per token, then 50 tokens of 20 ms each. In the second half, prompts have four times as many
// tokens. With holds, decoding stands still during prefills.
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
		if holds { // until it has had its full decoding time
			for k := 0; k < 50; k++ {
				to = p.To + took + trace.Time(covered.Overlap(p.To, to))
			}
		}
		x.decodes = append(x.decodes, Piece{Request: i, From: p.To, To: to, Units: 50})
	}
	return w, x
}

// Where prefills do not hold up decoding, longer prompts do not make decoding seem faster, and concurrent
// prefills are not mistaken for one batch. Where they do hold it up, they do not make decoding seem slower.
func TestPaceOfSlots(t *testing.T) {
	for _, holds := range []bool{false, true} {
		w, x := slotServer(holds)
		decode, prefill := w.pacesOf(0, engine{x})
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

// attending plays three ranks that take each step together, as with DP attention. A step lasts as long as on the rank with the most to
// do: 20 ms to decode, or 20 ms plus 50 us per token to prefill. Ranks that decode get a token in it, whatever others do.
func attending() (*observer, engine) {
	const n = 900
	r := rand.New(rand.NewPCG(9, 9))
	w := &observer{set: &request.Set{Requests: make([]request.Request, n)}, to: math.MaxInt64}
	e := engine{{}, {}, {}}
	type decode struct {
		id, units, left int
		from            trace.Time
	}
	running, waiting := make([][]decode, len(e)), make([][]int, len(e))
	tokens, next, arrival := make([]float64, n), 0, trace.Time(1e9)
	for at := arrival; len(e[0].decodes)+len(e[1].decodes)+len(e[2].decodes) < n; {
		for ; next < n && arrival <= at; next++ {
			k := r.IntN(len(e))
			waiting[k] = append(waiting[k], next)
			tokens[next], arrival = 500+2000*r.Float64(), arrival+trace.Time(r.ExpFloat64()*150e6)
		}
		took := 20e6
		for k := range e {
			if len(waiting[k]) > 0 {
				took = max(took, 20e6+50_000*tokens[waiting[k][0]])
			}
		}
		end := at + trace.Time(took*math.Exp(0.02*r.NormFloat64()))
		for k, x := range e {
			if len(waiting[k]) > 0 {
				id := waiting[k][0]
				x.prefills = append(x.prefills, load.Prefill{Request: id, Requests: 1, From: at, To: end, Tokens: tokens[id]})
				units := 40 + r.IntN(80)
				waiting[k], running[k] = waiting[k][1:], append(running[k], decode{id, units, units, end})
				continue
			}
			still := running[k][:0]
			for _, d := range running[k] {
				if d.left--; d.left > 0 {
					still = append(still, d)
					continue
				}
				x.decodes = append(x.decodes, Piece{Request: d.id, From: d.from, To: end, Units: float64(d.units)})
			}
			running[k] = still
		}
		at = end
	}
	return w, e
}

// Where ranks take each step together, a rank that decodes is held up by the prefills of others, but gets a token in each of their steps.
func TestPaceOfRanksTogether(t *testing.T) {
	w, e := attending()
	decode, prefill := w.pacesOf(0, e)
	if len(decode) != 1 || len(prefill) != 1 || len(decode[0].Pieces) < 800 || len(prefill[0].Pieces) != 900 {
		t.Fatalf("%d and %d paces", len(decode), len(prefill))
	}
	ns, units := 0.0, 0.0
	for _, x := range decode[0].Pieces {
		ns, units = ns+x.NS*x.Units, units+x.Units
		if x.Units > 10 && math.Abs(x.Ratio-1) > 0.1 {
			t.Errorf("request %d: %.2f times the usual time per token, of %.0f", x.Request, x.Ratio, x.Units)
		}
	}
	if math.Abs(ns/units/20e6-1) > 0.02 {
		t.Errorf("a token takes %.1f ms, planted 20", ns/units/1e6)
	}
	for _, x := range prefill[0].Pieces {
		if math.Abs(x.NS/(20e6+50_000*x.Burden[0])-1) > 0.1 {
			t.Errorf("the prefill of request %d takes %.0f ms; %.0f tokens on one rank explain it", x.Request, x.NS/1e6, x.Burden[0])
		}
	}
}

// The costs of three burdens can be separated if they vary, and a burden that makes nothing longer costs nothing.
func TestBurdensOfAPace(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	want := Burden{20_000, 0.5, 0}
	var p Pace
	for i := range 400 {
		tokens, context, running := 100+900*rnd.Float64(), 20_000*rnd.Float64(), 8*rnd.Float64()
		x := Piece{From: trace.Time(i) * 1e9, Units: 1, Burden: Burden{tokens, tokens * context, running}}
		x.NS = 5e6 - 1e4*running // its real cost is negative, which is reported as 0
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

// Full batches all take about equally long. A prompt that continues in the next batch is split in unknown
// proportions, so that the assumed sizes of these batches reveal nothing about the cost of a token.
func TestBurdensWhereBatchesAreFull(t *testing.T) {
	const base, perToken, full, off = 12e6, 170_000, 4096, 1000
	rnd := rand.New(rand.NewPCG(5, 6))
	p := Pace{Sized: true}
	now, too := trace.Time(0), 0.0
	for i := range 300 {
		tokens, known := 200+2000*rnd.Float64(), 0.0
		if known = tokens; i < 100 {
			now += 1e9
		} else {
			next := off * (2*rnd.Float64() - 1) // tokens that the next batch really has and is not credited with
			tokens, known, too = full, full-too+next, next
		}
		ns := (base + perToken*tokens) * (1 + 0.03*rnd.NormFloat64())
		p.Pieces = append(p.Pieces, Piece{From: now, To: now + trace.Time(ns), Units: 1, NS: ns, Burden: Burden{known}})
		now += trace.Time(ns)
	}
	if got := p.Burdens()[0]; math.Abs(got-perToken) > 0.1*perToken {
		t.Errorf("a token costs %.0f ns, want %d", got, perToken)
	}
}

// A batch that contains a prompt of unknown size reveals nothing about the cost of prompts. One with a
// prompt of a request that was given up later does.
func TestKnownPrefills(t *testing.T) {
	const ms = 1_000_000
	x := workload{
		prefills:      load.Pieces{{Request: 0, Requests: 1, To: 10 * ms, Tokens: 5}, {Request: 1, Requests: 1, From: 20 * ms, To: 30 * ms, Tokens: 5}, {Request: 2, Requests: 1, From: 40 * ms, To: 50 * ms, Tokens: 5}},
		otherPrefills: load.Pieces{{Request: 4, Requests: 1, From: 40 * ms, To: 50 * ms, Tokens: 7}, {Request: 3, Requests: 1, From: 20 * ms, To: 30 * ms}},
	}
	alone, batches := x.known(load.Batches(x.prefills))
	if len(alone) != 2 || alone[0].Request != 0 || alone[1].Request != 2 {
		t.Errorf("by themselves: %+v", alone)
	}
	if len(batches) != 2 || batches[0].Tokens != 5 || math.Abs(batches[1].Tokens-12) > 1e-9 || batches[1].Requests != 2 {
		t.Errorf("batches: %+v", batches)
	}
}
