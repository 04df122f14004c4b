package logged

import (
	"cmp"
	"math"
	"slices"

	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
)

// A stretch is what a rank did from one decode line to the next one: as many steps as always.
type stretch struct {
	at trace.Time // of its end
	// token is how long a token of one request took, in s: running requests by tokens per second.
	// It is the time of a step, and of the prefills between two of them.
	token float64
	// running and kv are the requests and the thousands of tokens of its batches, on average.
	running, kv float64
	// prompts are the thousands of prompt tokens that were computed between its steps, and prefills
	// in how many batches.
	prompts, prefills float64
}

// stretches are those of a rank, in order, but for those in which it may have had nothing to do: how
// long it did not is part of what its line calls its throughput.
func (l *Logged) stretches(place int32, opt Options) (list []stretch) {
	type line struct {
		at                       trace.Time
		number                   uint32
		running, rate, kv, token float64
		seqs                     bool
	}
	nan := math.NaN()
	var lines []line
	add := func(i int, set func(x *line, v float64)) {
		for s := range l.Set.Each(i) {
			if !opt.inside(s.Time) || s.Line() == 0 {
				continue
			}
			x := line{at: s.Time, number: s.Line(), running: nan, rate: nan, kv: nan}
			set(&x, s.Value)
			lines = append(lines, x)
		}
	}
	for i := range l.Set.List {
		if l.Set.List[i].Place != place {
			continue
		}
		switch l.Set.List[i].Metric {
		case series.Running:
			add(i, func(x *line, v float64) { x.running = v })
		case series.Generation:
			add(i, func(x *line, v float64) { x.rate = v })
		case series.KVTokens:
			add(i, func(x *line, v float64) { x.kv = v })
		case series.NewTokens:
			add(i, func(x *line, v float64) { x.token, x.seqs = v, true })
		}
	}
	slices.SortStableFunc(lines, func(a, b line) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.number, b.number)) })
	var last *line
	var sum, n, prompts, prefills float64
	for i := 0; i < len(lines); {
		x := lines[i]
		for i++; i < len(lines) && lines[i].at == x.at && lines[i].number == x.number; i++ {
			o := &lines[i]
			if !math.IsNaN(o.running) {
				x.running = o.running
			}
			if !math.IsNaN(o.rate) {
				x.rate = o.rate
			}
			if !math.IsNaN(o.kv) {
				x.kv = o.kv
			}
			if o.seqs {
				x.token, x.seqs = o.token, true
			}
		}
		if !math.IsNaN(x.running) {
			sum, n = sum+x.running, n+1
		}
		if x.seqs {
			prompts, prefills = prompts+x.token/1000, prefills+1
			if x.running == 0 {
				last = nil // it had nothing to decode, for who knows how long
			}
		}
		if math.IsNaN(x.rate) {
			continue
		}
		if last != nil && last.running >= 1 && x.running >= 1 && x.rate > 0 {
			mean := (sum + last.running) / (n + 1)
			kv := x.kv / 1000
			if math.IsNaN(kv) {
				kv = 0
			}
			list = append(list, stretch{x.at, mean / x.rate, mean, kv, prompts, prefills})
		}
		copied := x
		last, sum, n, prompts, prefills = &copied, 0, 0, 0, 0
	}
	return list
}

// A pace is what a token takes by how much there is to do: a + b·running + c·kv + d·prompts +
// e·prefills, in s. All of these only add time.
type pace [5]float64

func (x *stretch) parts() [5]float64 { return [5]float64{1, x.running, x.kv, x.prompts, x.prefills} }

// takes is what a token takes at a pace.
func (p *pace) takes(x *stretch) (s float64) {
	for i, v := range x.parts() {
		s += p[i] * v
	}
	return s
}

// paceOf fits the pace of stretches by least squares, of relative errors, without what is far off; what
// would save time is left out. ok is false of too few.
func paceOf(list []*stretch) (p pace, ok bool) {
	const few, far = 12, 2
	if len(list) < few {
		return p, false
	}
	use := list
	for range 3 {
		p = leastSquares(use)
		var near []*stretch
		for _, x := range list {
			if want := p.takes(x); x.token < far*want && x.token > want/far {
				near = append(near, x)
			}
		}
		if len(near) < few || len(near) == len(use) {
			break
		}
		use = near
	}
	return p, p.takes(list[0]) > 0
}

// leastSquares leaves out one part after another that is negative.
func leastSquares(list []*stretch) (p pace) {
	use := [5]bool{true, true, true, true, true}
	for {
		p = solve(list, use)
		worst := -1
		for i, v := range p {
			if use[i] && (v < 0 || math.IsNaN(v)) && (worst < 0 || v < p[worst]) {
				worst = i
			}
		}
		if worst < 0 {
			return p
		}
		use[worst] = false
	}
}

// solve solves the normal equations of the parts that are used. Each stretch counts by its inverse
// square: slow ones are no more exact than quick ones.
func solve(list []*stretch, use [5]bool) (p pace) {
	var a [5][6]float64
	for _, x := range list {
		parts, w := x.parts(), 1/(x.token*x.token)
		for i := range 5 {
			for k := range 5 {
				a[i][k] += w * parts[i] * parts[k]
			}
			a[i][5] += w * parts[i] * x.token
		}
	}
	for i := range 5 {
		if use[i] && a[i][i] > 0 {
			a[i][i] *= 1 + 1e-9 // where two parts say the same, both get half
			continue
		}
		for k := range 5 {
			a[i][k], a[k][i] = 0, 0
		}
		a[i][i], a[i][5] = 1, 0
	}
	for i := range 5 {
		for k := range 5 {
			if k == i {
				continue
			}
			f := a[k][i] / a[i][i]
			for c := range 6 {
				a[k][c] -= f * a[i][c]
			}
		}
	}
	for i := range 5 {
		p[i] = a[i][5] / a[i][i]
	}
	return p
}
