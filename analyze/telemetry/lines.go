package telemetry

import (
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

// maxStretches are kept of a rank: of longer logs, some that follow each other are one.
const maxStretches = 1 << 16

// stretches are those of a rank, in order, but for those in which it may have had nothing to do: how
// long it did not is part of what its line calls its throughput; n is how many there were.
func (l *Logged) stretches(place int32, opt Options) (list []stretch, n int) {
	out := thinned{each: 1}
	var last, x loggedLine
	var sum, running, prompts, prefills float64
	for lines := l.linesOf(place, opt); lines.next(&x); {
		if x.has(runningOf) {
			sum, running = sum+x.values[runningOf], running+1
		}
		if x.has(newTokensOf) {
			prompts, prefills = prompts+x.values[newTokensOf]/1000, prefills+1
			if x.values[runningOf] == 0 {
				last.at = 0 // it had nothing to decode, for who knows how long
			}
		}
		rate := x.values[rateOf]
		if math.IsNaN(rate) {
			continue
		}
		if before, now := last.values[runningOf], x.values[runningOf]; last.at != 0 && before >= 1 && now >= 1 && rate > 0 {
			n++
			mean := (sum + before) / (running + 1)
			kv := x.values[kvOf] / 1000
			if math.IsNaN(kv) {
				kv = 0
			}
			out.add(stretch{x.at, mean / rate, mean, kv, prompts, prefills})
		}
		last, sum, running, prompts, prefills = x, 0, 0, 0, 0
	}
	return out.list, n
}

// thinned is a list of stretches that does not grow beyond [maxStretches]: then two that follow each other become
// one, their mean, and so do all that come later.
type thinned struct {
	list    []stretch
	each, n int // stretches that one of the list is the mean of, but for the last one, which is of n
}

func (t *thinned) add(x stretch) {
	if t.n > 0 && t.n < t.each {
		t.n++
		t.list[len(t.list)-1].join(&x, 1/float64(t.n))
		return
	}
	if len(t.list) == maxStretches {
		for i := range maxStretches / 2 {
			t.list[i] = t.list[2*i]
			t.list[i].join(&t.list[2*i+1], 0.5)
		}
		t.list, t.each = t.list[:maxStretches/2], 2*t.each
	}
	t.list, t.n = append(t.list, x), 1
}

// join makes a stretch the mean of itself and a later one, which counts as a part of both.
func (x *stretch) join(o *stretch, part float64) {
	x.at = o.at
	for _, v := range [...][2]*float64{{&x.token, &o.token}, {&x.running, &o.running}, {&x.kv, &o.kv}, {&x.prompts, &o.prompts}, {&x.prefills, &o.prefills}} {
		*v[0] += part * (*v[1] - *v[0])
	}
}

// What lines of batches say that stretches are made of.
const (
	runningOf = iota
	rateOf
	kvOf
	newTokensOf
	graphedOf
	valuesOfLine
)

var metricsOfLine = [valuesOfLine]series.MetricID{series.Running, series.Generation, series.KVTokens, series.NewTokens, series.Graphed}

// A loggedLine is what a line says; NaN is what it does not.
type loggedLine struct {
	at     trace.Time
	number uint32
	values [valuesOfLine]float64
}

func (x *loggedLine) has(value int) bool { return !math.IsNaN(x.values[value]) }

// loggedLines goes through the lines of a place, whose values are in several series.
type loggedLines struct {
	opt   Options
	parts []linePart
}

// A linePart is a series, and its next sample.
type linePart struct {
	value int
	rest  series.Cursor
	next  series.Sample
	ok    bool
}

func (l *Logged) linesOf(place int32, opt Options) *loggedLines {
	x := &loggedLines{opt: opt}
	for i := range l.Set.List {
		if value := slices.Index(metricsOfLine[:], l.Set.List[i].Metric); value >= 0 && l.Set.List[i].Place == place {
			p := linePart{value: value, rest: l.Set.Walk(i)}
			x.advance(&p)
			x.parts = append(x.parts, p)
		}
	}
	return x
}

// advance goes to the next sample that a line says and that is looked at.
func (l *loggedLines) advance(p *linePart) {
	for {
		if p.next, p.ok = p.rest.Next(); !p.ok || p.next.Line() != 0 && l.opt.inside(p.next.Time) {
			return
		}
	}
}

// next reads the next line; it returns false behind the last one.
func (l *loggedLines) next(x *loggedLine) bool {
	found := false
	for i := range l.parts {
		p := &l.parts[i]
		if p.ok && (!found || p.next.Time < x.at || p.next.Time == x.at && p.next.Line() < x.number) {
			x.at, x.number, found = p.next.Time, p.next.Line(), true
		}
	}
	for i := range x.values {
		x.values[i] = math.NaN()
	}
	for i := range l.parts {
		if p := &l.parts[i]; found && p.ok && p.next.Time == x.at && p.next.Line() == x.number {
			x.values[p.value] = p.next.Value
			l.advance(p)
		}
	}
	return found
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
