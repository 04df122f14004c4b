package change

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/load"
	"github.com/sgtrace/sgtrace/internal/changepoint"
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
		x.decodes = append(x.decodes, piece{request: i, from: p.To, to: to, units: 50})
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
		mean := func(p *pace, of func(*piece) float64) (before, after float64) {
			var n [2]float64
			var sum [2]float64
			for i := range p.work {
				half := 0
				if p.work[i].request >= 300 {
					half = 1
				}
				sum[half], n[half] = sum[half]+of(&p.work[i]), n[half]+1
			}
			return sum[0] / n[0], sum[1] / n[1]
		}
		before, after := mean(&decode[0], func(x *piece) float64 { return x.ns })
		if math.Abs(before/20e6-1) > 0.02 || math.Abs(after/20e6-1) > 0.02 {
			t.Errorf("holds %v: %.1f and %.1f ms for a token, planted 20", holds, before/1e6, after/1e6)
		}
		if holds {
			continue
		}
		before, after = mean(&prefill[0], func(x *piece) float64 { return x.ratio })
		if math.Abs(after/before-1) > 0.05 {
			t.Errorf("prefills take %.2f times as long as longer prompts explain", after/before)
		}
	}
}

// A rank that is slow when another one stands still again and again does so with it, though its own times would not show when
// that is; one that is not is left out.
func TestFollowsPulses(t *testing.T) {
	for _, slow := range []bool{true, false} {
		r := rand.New(rand.NewPCG(5, 5))
		w := &observer{from: 0, to: 180e9}
		pulses := changepoint.Pulses{Every: 30, At: 10, Length: 1, Size: 0.9, Level: 1, Count: 6}
		var list []piece
		for at := trace.Time(0); at < 175e9; at += trace.Time(2.5e9 + 2e9*r.Float64()) {
			x := piece{from: at, to: at + 4e9, units: 50, ns: 80e6 * math.Exp(0.05*r.NormFloat64()), burden: burden{1, 1}}
			if over := pulses.Over(w.seconds(x.from), w.seconds(x.to)); slow && over > 0 {
				x.ns *= 1.25
			}
			list = append(list, x)
		}
		p := newPace(0, list, 0)
		if got := w.follows(&p, pulses, 0.001); (got != nil) != slow {
			t.Errorf("slow %v: %v", slow, got)
		}
	}
}

// Three burdens are told from each other where they vary, and one that makes nothing longer has no part.
func TestBurdensOfAPace(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	want := burden{20_000, 0.5, 0}
	var p pace
	for i := range 400 {
		tokens, context, running := 100+900*rnd.Float64(), 20_000*rnd.Float64(), 8*rnd.Float64()
		x := piece{from: trace.Time(i) * 1e9, units: 1, burden: burden{tokens, tokens * context, running}}
		x.ns = 5e6 - 1e4*running // more of that takes no time: it is not less
		for k := range want {
			x.ns += want[k] * x.burden[k]
		}
		p.work = append(p.work, x)
	}
	got := p.burdens()
	for k := range want {
		if math.Abs(got[k]-want[k]) > 0.02*want[k] {
			t.Errorf("burden %d costs %v, want %v", k, got[k], want[k])
		}
	}
}
