package changepoint

import (
	"cmp"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/combin"
)

// Pulses are times of equal length, at equal intervals, at which a level is lower.
type Pulses struct {
	At, Length, Every float64
	Count             int
	// Size is how much lower the level is, and Level the level otherwise.
	Size, Level float64
	// Seen are the numbers of the pulses whose observations show a lower level.
	Seen []int
	// P bounds the probability that a steady level seems to have such pulses.
	P float64
}

const (
	// There are at least fewestPulses and at most mostPulses: pulses of less than half a percent of the time cannot
	// be told from noise.
	fewestPulses, mostPulses = 4, 128
	// longestPulse is the largest share of an interval that a pulse may take: the normal level is the more common
	// one.
	longestPulse = 0.4
	// pulseBins is the most bins into which the whole time is divided, pulseCells the most cells of an interval.
	pulseBins, pulseCells = 2048, 64
	// perPulse is the smallest number of observations per interval, on average.
	perPulse = 4
	// leastExplained is the smallest share of the sum of squares that pulses explain.
	leastExplained = 0.1
	// pulseLengths is the number of lengths tried that differ by half or more.
	pulseLengths = 5
	// periodSteps is the number of intervals tried between one count of pulses and the next. Each moves the last
	// pulse by 1/periodSteps of an interval.
	periodSteps = 12
	// steadyPart is the smallest share of the pulses, and of the gaps between them, that must be like the others.
	steadyPart = 0.75
	// therePart is the smallest share of the pulses that must show a lower level.
	therePart = 0.6
	// smooth bounds what a wave explains, relative to the pulses: three quarters for the longest pulses, and more
	// only where the level is itself a wave.
	smooth = 0.9
)

// Over returns the share of [from, to] that lies in pulses.
func (p *Pulses) Over(from, to float64) float64 {
	const instant = 1e-9 // in intervals
	to = max(to, from+instant*p.Every)
	return (p.until(to) - p.until(from)) / (to - from)
}

// until returns the total length of the pulses before a time.
func (p *Pulses) until(t float64) float64 {
	t = min(max(t-p.At, 0), float64(p.Count)*p.Every)
	k := math.Floor(t / p.Every)
	return k*p.Length + min(t-k*p.Every, p.Length)
}

// Begin returns when pulse k begins.
func (p *Pulses) Begin(k int) float64 { return p.At + float64(k)*p.Every }

// FindPulses finds the pulses that best explain a level in addition to its best other shape; P is 1 if there
// are none. It rejects pulses if a wave explains nearly as much or more. Of the pulses and gaps that have
// observations, most must be like the others.
func FindPulses(list []Observation) Pulses {
	none := Pulses{P: 1}
	if len(list) < fewestObserved {
		return none
	}
	s := newPulseSearch(list)
	best := none
	most := 0.0
	for _, p := range s.candidates() {
		p, _ = s.refine(p)
		p, gain := s.refine(s.trimmed(p))
		if gain > most && p.Count >= fewestPulses && s.wave(&p) < smooth*gain && s.returns(&p) {
			best, most = p, gain
		}
	}
	if most > 0 {
		best.P = s.chance(&best)
		best.Level += s.mean
	}
	return best
}

// A pulseSearch is a series in which pulses are searched for.
type pulseSearch struct {
	list         []Observation
	values       []float64 // residuals of the best other shape
	weight       []float64
	mean         float64
	from, to     float64
	sum, squares float64 // of the weights; of the weighted squares of values
}

func newPulseSearch(list []Observation) *pulseSearch {
	t := newTrack(list)
	s := &pulseSearch{list: list, values: make([]float64, len(list)), weight: make([]float64, len(list)), from: math.Inf(1), to: math.Inf(-1)}
	levels := make([]float64, len(list))
	if t.best != Waving && t.score(t.best) > 0 {
		levels = t.levels(list)
	}
	weights, squares := 0.0, 0.0
	for _, o := range list {
		weights, squares = weights+o.Weight, squares+o.Weight*o.Weight
	}
	base := 0.0
	for i, o := range list {
		w := o.Weight * weights / squares
		s.values[i], s.weight[i] = o.Value-levels[i], w
		s.sum, s.mean, base = s.sum+w, s.mean+w*o.Value, base+w*s.values[i]
		s.from, s.to = min(s.from, o.From), max(s.to, o.To)
	}
	s.mean /= s.sum
	for i := range s.values {
		s.values[i] -= base / s.sum
		s.squares += s.weight[i] * s.values[i] * s.values[i]
	}
	return s
}

// A weighed is a weighted value, or a sum of some, with its weight.
type weighed struct{ value, weight float64 }

// candidates folds the series by every interval, and returns the best pulses of the best intervals.
func (s *pulseSearch) candidates() []Pulses {
	const few, apart = 6, 1.0 / 16
	series, least := s.spread(), leastExplained*s.squares
	type candidate struct {
		Pulses
		gain float64
	}
	var list []candidate
	span, bins := s.to-s.from, float64(len(series))
	for k := fewestPulses * periodSteps; k <= min(mostPulses, len(s.list)/perPulse)*periodSteps; k++ {
		every := bins * periodSteps / float64(k)
		cells := min(pulseCells, int(every))
		at, length, gain := s.fold(series, every, cells, least)
		if length == 0 {
			continue
		}
		every *= span / bins
		list = append(list, candidate{Pulses{At: s.from + float64(at)/float64(cells)*every, Length: float64(length) / float64(cells) * every, Every: every}, gain})
	}
	slices.SortStableFunc(list, func(a, b candidate) int { return cmp.Compare(b.gain, a.gain) })
	var out []Pulses
	for _, c := range list {
		if len(out) < few && !slices.ContainsFunc(out, func(p Pulses) bool { return math.Abs(p.Every/c.Every-1) < apart }) {
			c.At -= math.Floor((c.At-s.from)/c.Every) * c.Every
			c.Count = int(math.Ceil((s.to - c.At) / c.Every))
			out = append(out, c.Pulses)
		}
	}
	return out
}

// fold folds a series into one interval of the given number of bins, divided into cells. It returns the run of
// cells whose lower level explains the most variance, and how much; length is 0 if no run explains more than least.
func (s *pulseSearch) fold(series []weighed, every float64, cells int, least float64) (at, length int, gain float64) {
	var sums [2*pulseCells + 1]weighed // prefix sums over two intervals
	step := uint32(math.Exp2(32) / every)
	phase := step / 2 // of 2^32: it wraps around at the end of the interval
	for _, x := range series {
		sum := &sums[uint64(phase)*uint64(cells)>>32+1]
		sum.value += x.value
		sum.weight += x.weight
		phase += step
	}
	copy(sums[cells+1:], sums[1:cells+1])
	for i := 1; i <= 2*cells; i++ {
		sums[i].value += sums[i-1].value
		sums[i].weight += sums[i-1].weight
	}
	gain = least
	for n := 1; float64(n) <= longestPulse*float64(cells); n += max(1, n/3) {
		for from := range cells {
			v, w := sums[from+n].value-sums[from].value, sums[from+n].weight-sums[from].weight
			if square := w * (s.sum - w); v < 0 && v*v*s.sum > gain*square && square > 0 {
				at, length, gain = from, n, v*v*s.sum/square
			}
		}
	}
	return at, length, gain
}

// spread distributes the weighted values over the bins that observations overlap.
func (s *pulseSearch) spread() []weighed {
	const perObservation = 2
	out := make([]weighed, min(pulseBins, perObservation*len(s.list)))
	bins := len(out)
	scale := float64(bins) / (s.to - s.from)
	for i, o := range s.list {
		from, to := (o.From-s.from)*scale, (o.To-s.from)*scale
		first, last := min(bins-1, int(from)), min(bins-1, int(to))
		for b := first; b <= last; b++ {
			part := 1.0
			if last > first {
				part = (min(to, float64(b+1)) - max(from, float64(b))) / (to - from)
			}
			out[b].value += part * s.weight[i] * s.values[i]
			out[b].weight += part * s.weight[i]
		}
	}
	return out
}

// fit returns how much pulses reduce the sum of squares, and sets their size and the level between them.
func (s *pulseSearch) fit(p *Pulses) float64 {
	product, square, mean := 0.0, 0.0, 0.0
	for i := range s.list {
		if x := p.Over(s.list[i].From, s.list[i].To); x > 0 {
			wx := s.weight[i] * x
			product, square, mean = product+wx*s.values[i], square+wx*x, mean+wx
		}
	}
	if square -= mean * mean / s.sum; square <= 1e-9 || product >= 0 {
		return 0
	}
	p.Size = -product / square
	p.Level = p.Size * mean / s.sum
	return product * product / square
}

// refine moves the times of pulses to where they explain most.
func (s *pulseSearch) refine(p Pulses) (Pulses, float64) {
	best := s.fit(&p)
	step := [3]float64{p.Every / pulseCells, p.Every / pulseCells, p.Every / float64(max(1, p.Count)*periodSteps)}
	for range 14 {
		moved := false
		for k := range step {
			for _, by := range [...]float64{-step[k], step[k]} {
				q := p
				switch k {
				case 0:
					q.At += by
				case 1:
					q.Length += by
				default: // keep the middle of all pulses in place
					q.Every += by
					q.At -= by * float64(q.Count-1) / 2
				}
				if q.Length <= 0 || q.Length > longestPulse*q.Every {
					continue
				}
				if gain := s.fit(&q); gain > best {
					p, best, moved = q, gain, true
				}
			}
		}
		if !moved {
			for k := range step {
				step[k] /= 2
			}
		}
	}
	return p, best
}

// each returns two sums for every pulse, whose quotient is the pulse's own size: the first is the product with
// the pulse, the second its weight. It returns the same for every gap between two pulses.
func (s *pulseSearch) each(p *Pulses) (inside, between [][2]float64) {
	inside, between = make([][2]float64, p.Count), make([][2]float64, max(0, p.Count-1))
	one := Pulses{Length: p.Length, Every: p.Every, Count: 1}
	for i, o := range s.list {
		first, last := int(math.Floor((o.From-p.At)/p.Every)), int(math.Floor((o.To-p.At)/p.Every))
		value := s.values[i] - p.Level
		in := false
		for k := max(0, first); k <= min(last, p.Count-1); k++ {
			one.At = p.Begin(k)
			if x := one.Over(o.From, o.To); x > 0 {
				in = true
				inside[k][0] -= s.weight[i] * x * value
				inside[k][1] += s.weight[i] * x * x
			}
		}
		if !in && first >= 0 && first < len(between) {
			between[first][0] -= s.weight[i] * value
			between[first][1] += s.weight[i]
		}
	}
	return inside, between
}

// trimmed drops the pulses at the beginning and at the end that do not lower the level.
func (s *pulseSearch) trimmed(p Pulses) Pulses {
	inside, _ := s.each(&p)
	best, sum, from, first, last := 0.0, 0.0, 0, 0, -1
	for k, x := range inside {
		if sum += 2*p.Size*x[0] - p.Size*p.Size*x[1]; sum <= 0 {
			sum, from = 0, k+1
		} else if sum > best {
			best, first, last = sum, from, k
		}
	}
	p.At, p.Count = p.Begin(first), last-first+1
	return p
}

// returns reports whether most pulses, and most gaps between them, are like the others, and whether the pulses
// are deeper than the scatter of other times of this length. It sets Seen.
func (s *pulseSearch) returns(p *Pulses) bool {
	const clearly = 4 // standard deviations
	inside, between := s.each(p)
	low, seen := lowOf(inside, p.Size)
	slow, gaps := lowOf(between, p.Size)
	var off []float64
	outside := s.outside(p)
	least := enoughOf(outside)
	for _, x := range outside {
		if x[1] >= least {
			off = append(off, math.Abs(x[0]/x[1]))
		}
	}
	if slices.Sort(off); len(off) == 0 || p.Size < clearly*1.4826*off[len(off)/2] {
		return false
	}
	p.Seen = nil
	least = enoughOf(inside)
	for k, x := range inside {
		if x[1] >= least && x[0]/x[1] > p.Size/2 {
			p.Seen = append(p.Seen, k)
		}
	}
	return low >= fewestPulses && gaps-slow >= fewestPulses-1 && float64(low) >= therePart*float64(p.Count) &&
		float64(low) >= steadyPart*float64(seen) && float64(gaps-slow) >= steadyPart*float64(gaps)
}

// wave returns how much a wave of the same period reduces the sum of squares.
func (s *pulseSearch) wave(p *Pulses) float64 {
	gain := 0.0
	for _, phase := range [...]float64{0, math.Pi / 2} {
		product, square := 0.0, 0.0
		for i := range s.list {
			m := s.list[i].middle()
			if m < p.At || m > p.Begin(p.Count) {
				continue
			}
			x := math.Cos(2*math.Pi*(m-p.At)/p.Every - phase)
			product, square = product+s.weight[i]*x*s.values[i], square+s.weight[i]*x*x
		}
		if square > 0 {
			gain += product * product / square
		}
	}
	return gain
}

// chance bounds the probability that slow times at random look like pulses: that this number of pulses is low,
// given the share of low times of the same length elsewhere. How low they are does not count: single times at
// which everything is slow are not chance either, but they do not come at equal intervals.
func (s *pulseSearch) chance(p *Pulses) float64 {
	inside, _ := s.each(p)
	low, seen := lowOf(inside, p.Size)
	elsewhere, all := lowOf(s.outside(p), p.Size)
	often := float64(elsewhere+1) / float64(all+2)
	chance := 0.0
	for k := low; k <= seen; k++ {
		chance += math.Exp(combin.LogGeneralizedBinomial(float64(seen), float64(k)) + float64(k)*math.Log(often) + float64(seen-k)*math.Log1p(-often))
	}
	// Account for the other pulses that could have been found: with other starts, intervals, and lengths, and with
	// an earlier or later first pulse. The more pulses, the more choices; the sum of 1/n² is π²/6.
	places, first := p.Every/p.Length, 1+max(0, math.Floor((s.to-s.from)/p.Every)-float64(p.Count))
	return min(1, chance*places*places*pulseLengths*first*float64(p.Count*p.Count)*math.Pi*math.Pi/6)
}

// lowOf returns the number of times with enough weight (seen), and of those at which the level is lower by more
// than half of size.
func lowOf(list [][2]float64, size float64) (low, seen int) {
	least := enoughOf(list)
	for _, x := range list {
		if x[1] < least {
			continue
		}
		if seen++; x[0]/x[1] > size/2 {
			low++
		}
	}
	return low, seen
}

// outside divides all time into slices as long as a pulse, and returns the sums of those outside pulses, as in
// each.
func (s *pulseSearch) outside(p *Pulses) [][2]float64 {
	list := make([][2]float64, int((s.to-s.from)/p.Length)+1)
	for i, o := range s.list {
		from, to := o.From-s.from, max(o.To-s.from, o.From-s.from+1e-9*p.Every)
		value := s.values[i] - p.Level + p.Size*p.Over(o.From, o.To)
		for k := int(from / p.Length); k <= int(to/p.Length) && k < len(list); k++ {
			x := (min(to, float64(k+1)*p.Length) - max(from, float64(k)*p.Length)) / (to - from)
			list[k][0] -= s.weight[i] * x * value
			list[k][1] += s.weight[i] * x * x
		}
	}
	out := list[:0]
	for k, x := range list {
		if at := s.from + float64(k)*p.Length; p.Over(at, at+p.Length) == 0 {
			out = append(out, x)
		}
	}
	return out
}

// enoughOf returns the weight that an entry of list needs to count.
func enoughOf(list [][2]float64) (least float64) {
	const part = 0.2 // of the average weight
	for _, x := range list {
		least += part * x[1] / float64(len(list))
	}
	return max(least, math.SmallestNonzeroFloat64)
}

// Periodic returns the period of events, in order of time, that come at equal intervals; some events may be
// missing. p bounds the probability that events at random times seem periodic; it is 1 if the events are not.
func Periodic(times []float64) (period, p float64) {
	const (
		fewest = 4
		most   = 0.1 // distance of an event from its place, in periods
		there  = 0.6 // smallest share of intervals with an event
	)
	p = 1
	if len(times) < fewest {
		return 0, p
	}
	tried := 0.0
	for i := range times[1:] {
		gap := times[i+1] - times[i]
		if gap <= 0 {
			continue
		}
		tried++
		length, off, intervals := lineUp(times, gap)
		if off > most*length || float64(len(times)) < there*(intervals+1) {
			continue
		}
		// Two events are used up by the fit: one for the start, one for the period.
		chance := math.Pow(2*max(off/length, 1e-3), float64(len(times)-2))
		if chance < p {
			period, p = length, chance
		}
	}
	return period, min(1, p*max(1, tried))
}

// lineUp fits events to multiples of about length, by least squares. It returns the fitted length, the distance
// of the worst event from its place, and the number of intervals.
func lineUp(times []float64, length float64) (fit, off, intervals float64) {
	n := float64(len(times))
	number := make([]float64, len(times))
	sumX, sumY := 0.0, 0.0
	for i, t := range times {
		if i > 0 {
			number[i] = number[i-1] + max(1, math.Round((t-times[i-1])/length))
		}
		sumX, sumY = sumX+number[i], sumY+t
	}
	product, square := 0.0, 0.0
	for i, t := range times {
		product += (number[i] - sumX/n) * (t - sumY/n)
		square += (number[i] - sumX/n) * (number[i] - sumX/n)
	}
	fit = product / square
	for i, t := range times {
		off = max(off, math.Abs(t-sumY/n-fit*(number[i]-sumX/n)))
	}
	return fit, off, number[len(number)-1]
}
