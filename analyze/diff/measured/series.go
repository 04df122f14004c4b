package measured

import (
	"cmp"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/diff/compare"
	"github.com/sgtrace/sgtrace/analyze/diff/pace"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/internal/significance"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
)

// longestHold is how long a level is assumed to hold without a new sample: idle servers log
// nothing, and metrics are scraped more often than that.
const longestHold = trace.Time(60e9)

// instants are the kinds of instants that are counted, as a rate.
var instants = []series.InstantKind{series.Retraction, series.OutOfMemory, series.PeerLost, series.TransferFailed, series.Timeout, series.Unhealthy, series.Exception, series.Crash}

// Loads are the measurements in logs and metrics of one side.
type Loads struct {
	loads      map[string]*compare.Amount
	order      map[string]int // the order in which they are reported
	histograms map[string]*histogramSum
}

// A histogramSum is what a histogram family counted on one side, by bucket bound.
type histogramSum struct {
	bounds []float64
	counts []float64
	pieces [][]float64 // counts by piece
}

// Add adds what logs and metrics say in [from, to): the levels of each rank for as long as they hold, and
// the rates of all ranks together, in pieces of equal length. It adds what servers report about their
// steps to paces, and returns how many servers of each role log batches or are scraped; "" if none.
func (m *Loads) Add(s *series.Set, from, to trace.Time, pieces *compare.Pieces, paces pace.Side) (servers string) {
	c := &adder{loads: m, paces: paces, set: s, from: from, to: to, pieces: pieces, length: float64(to-from) / 1e9 / float64(pieces.Own()), roles: rolesOf(s), timed: map[string]bool{}}
	for i := range s.List {
		if id := s.List[i].Metric; id < series.KnownMetrics && id != series.Throttling && id != series.Xid {
			c.add(i, id)
		}
	}
	servers = c.addRanks()
	c.addInstants()
	for _, h := range s.Histograms() {
		if s.InSeconds(h.Metric) {
			c.addHistogram(&h)
		}
	}
	return servers
}

// rolesOf returns the roles that servers have.
func rolesOf(s *series.Set) map[string]bool {
	roles := map[string]bool{}
	for i := range s.Servers {
		if role := s.Servers[i].Role; role != "" {
			roles[role] = true
		}
	}
	return roles
}

// An adder adds the measurements of a capture to the pieces of its time.
type adder struct {
	loads    *Loads
	paces    pace.Side
	set      *series.Set
	from, to trace.Time
	pieces   *compare.Pieces
	length   float64 // of a piece, s
	roles    map[string]bool
	timed    map[string]bool // rates whose pieces have their length already
}

func (c *adder) inside(t trace.Time) bool { return t >= c.from && t < c.to }

// named returns the load with a name, and reports loads in order of rank.
func (c *adder) named(name string, rank int) *compare.Amount {
	m := c.loads
	if m.loads == nil {
		m.loads, m.order, m.histograms = map[string]*compare.Amount{}, map[string]int{}, map[string]*histogramSum{}
	}
	return order.Memo(m.loads, name, func() *compare.Amount {
		m.order[name] = rank
		return &compare.Amount{Name: name, Pieces: make([]significance.Piece, c.pieces.N())}
	})
}

// rate returns the load of something that is counted per so many seconds, and gives its pieces their length once per capture.
func (c *adder) rate(name string, rank int, seconds float64) *compare.Amount {
	l := c.named(name, rank)
	if !c.timed[name] {
		c.timed[name] = true
		for k := range c.pieces.Own() {
			l.Pieces[c.pieces.First+k].Of += c.length / seconds
		}
	}
	return l
}

// add adds a series.
func (c *adder) add(i int, id series.MetricID) {
	x, m := &c.set.List[i], c.set.Metric(id)
	name := c.set.Labeled(m.Name, x.Label)
	if role := c.set.Servers[c.set.Places[x.Place].Server].Role; len(c.roles) > 1 && role != "" {
		name += " of " + role + " servers"
	}
	var last series.Sample
	hold := func(until trace.Time) {
		until = min(until, last.Time+longestHold)
		if last.Time != 0 && until > last.Time && c.inside(last.Time) {
			p := &c.named(withUnit(name, m.Unit), int(id)).Pieces[c.pieces.At(last.Time)]
			seconds := float64(until-last.Time) / 1e9
			p.Sum, p.Of = p.Sum+last.Value*seconds, p.Of+seconds
		}
	}
	for v := range c.set.Each(i) {
		switch m.Kind {
		case series.Gauge:
			hold(v.Time)
		case series.Mean: // mean over the time since the previous sample
			if last.Time != 0 && v.Time > last.Time && v.Time-last.Time <= longestHold && c.inside(v.Time) {
				p := &c.named(withUnit(name, m.Unit), int(id)).Pieces[c.pieces.At(v.Time)]
				seconds := float64(v.Time-last.Time) / 1e9
				p.Sum, p.Of = p.Sum+v.Value*seconds, p.Of+seconds
			}
		case series.Amount:
			if c.inside(v.Time) {
				c.rate(withUnit(name, cmp.Or(m.Unit, "number")+"/s"), int(id), 1).Pieces[c.pieces.At(v.Time)].Sum += v.Value
			}
		}
		last = v
	}
	if m.Kind == series.Gauge {
		hold(c.to)
	}
}

func withUnit(name, unit string) string {
	if unit == "" {
		return name
	}
	return name + ", " + unit
}

// addInstants counts instants, such as crashes, by kind.
func (c *adder) addInstants() {
	for i := range c.set.Instants {
		x := &c.set.Instants[i]
		k := slices.Index(instants, x.Kind)
		if k < 0 || !c.inside(x.Time) {
			continue
		}
		c.rate(x.Kind.String()+" lines, number/min", int(series.KnownMetrics)+k, 60).Pieces[c.pieces.At(x.Time)].Sum += float64(max(1, x.Count))
	}
}

// addHistogram adds the counts of a histogram family.
func (c *adder) addHistogram(h *series.Histogram) {
	name := c.set.Labeled(c.set.HistogramName(h.Metric), h.Label)
	c.named("", 0) // allocates the maps
	sum := order.Memo(c.loads.histograms, name, func() *histogramSum {
		return &histogramSum{bounds: h.Bounds, counts: make([]float64, len(h.Bounds)), pieces: make([][]float64, c.pieces.N())}
	})
	if !slices.Equal(sum.bounds, h.Bounds) {
		return
	}
	c.set.Grown(h, func(from, to trace.Time, counts []float64) {
		if from != 0 && !c.inside(from) || to > c.to {
			return
		}
		at := c.pieces.At(to)
		if sum.pieces[at] == nil {
			sum.pieces[at] = make([]float64, len(counts))
		}
		for k, n := range counts {
			sum.counts[k] += n
			sum.pieces[at][k] += n
		}
	})
}
