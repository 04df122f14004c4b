package overtime

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/load"
	"github.com/sgtrace/sgtrace/internal/order"

	"github.com/sgtrace/sgtrace/analyze/profilewalk"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// A Counter is the samples of one counter of one source.
type Counter struct {
	Rank      string // "" if it belongs to the machine
	RankIndex int32  // -1 if it belongs to the machine
	Source    string // "GPU 0 of node1"
	Name      string // "SMs Active"
	Unit      string // "%", "bytes"; "" is unknown
	Kind      profile.CounterKind
	Points    []CounterPoint // by bucket

	fine []CounterPoint // by bucket of Timeline.fine
}

// A CounterPoint is a counter in one bucket; NaN is unknown. Memory holds its level until the next
// sample, so its mean is over time; all other means are over samples.
type CounterPoint struct {
	Samples    int
	Mean, Most float64

	weight float64 // of Mean: number of samples, or ns
}

// join merges the points of the parts of a bucket.
func join(parts []CounterPoint) CounterPoint {
	out := CounterPoint{Mean: math.NaN(), Most: math.NaN()}
	sum := 0.0
	for i := range parts {
		p := &parts[i]
		out.Samples += p.Samples
		if p.weight == 0 {
			continue
		}
		if out.weight == 0 || p.Most > out.Most {
			out.Most = p.Most
		}
		out.weight += p.weight
		sum += p.Mean * p.weight
	}
	if out.weight > 0 {
		out.Mean = sum / out.weight
	}
	return out
}

// counterKey identifies a counter of a stream.
type counterKey struct {
	stream             int
	rank               int32
	source, name, unit trace.Sym
	kind               profile.CounterKind
}

// A counting accumulates the samples of a counter.
type counting struct {
	points []CounterPoint // Mean is a sum until the end; Most is -Inf before the first sample
	held   []level        // levels of memory
}

func newCounting(buckets int) *counting {
	x := &counting{points: make([]CounterPoint, buckets)}
	for b := range x.points {
		x.points[b].Most = math.Inf(-1)
	}
	return x
}

// A level is a value from a moment on.
type level struct {
	at    trace.Time
	value float64
}

// counters reads the samples of all streams.
func (c *Collector) counters() []Counter {
	read := make([]map[counterKey]*counting, len(c.set.Streams))
	profilewalk.EachStream(c.set, func(i int, s profile.Stream) { read[i] = c.readSamples(i, s) })
	var list []Counter
	for _, of := range read {
		for key, x := range of {
			list = append(list, c.counter(&key, x))
		}
	}
	slices.SortFunc(list, func(a, b Counter) int {
		return cmp.Or(cmp.Compare(a.RankIndex, b.RankIndex), cmp.Compare(a.Kind, b.Kind), strings.Compare(a.Source, b.Source),
			strings.Compare(a.Name, b.Name), strings.Compare(a.Unit, b.Unit))
	})
	return list
}

// readSamples reads the samples of a stream.
func (c *Collector) readSamples(stream int, s profile.Stream) map[counterKey]*counting {
	of := map[counterKey]*counting{}
	clock := int32(-1) // the rank whose clock the machine's counters are on
	s.CounterValues(func(x *profile.CounterValue) bool {
		key := counterKey{stream, x.Rank, x.Source, x.Name, x.Unit, x.Kind}
		at := order.Memo(of, key, func() *counting { return newCounting(c.grid.N()) })
		rank := x.Rank
		if rank < 0 {
			if clock < 0 {
				clock = someRank(s)
			}
			rank = clock
		}
		at.add(c.grid, x, x.Time-trace.Time(c.set.ClockOffsetOf(rank)))
		return true
	})
	return of
}

// someRank returns a rank that has kernels in a stream, -1 if there is none.
func someRank(s profile.Stream) (rank int32) {
	rank = -1
	s.Kernels(func(k *profile.Kernel) bool {
		rank = k.Rank
		return false
	})
	return rank
}

// add adds a sample, at a time on the reference clock.
func (x *counting) add(g *load.Grid, s *profile.CounterValue, at trace.Time) {
	if s.Kind == profile.MemoryCounter {
		x.held = append(x.held, level{at, s.Value})
	}
	b := g.Of(at)
	if b == g.N() || at < g.Start(b) {
		return // outside the recorded time
	}
	p := &x.points[b]
	p.Samples++
	if s.Kind != profile.MemoryCounter {
		p.Mean, p.Most, p.weight = p.Mean+s.Value, max(p.Most, s.Value), p.weight+1
	}
}

// counter names a counter, and averages its samples.
func (c *Collector) counter(key *counterKey, x *counting) Counter {
	syms := c.set.Syms
	out := Counter{RankIndex: key.rank, Source: syms.Name(key.source), Name: syms.Name(key.name), Kind: key.kind, fine: x.points}
	if key.rank >= 0 {
		out.Rank = c.set.Ranks[key.rank]
	}
	if key.unit != 0 {
		out.Unit = syms.Name(key.unit)
	}
	if key.kind == profile.MemoryCounter {
		c.hold(x, key.rank)
	}
	for b := range x.points {
		p := &x.points[b]
		if p.Mean /= p.weight; p.weight == 0 {
			p.Mean, p.Most = math.NaN(), math.NaN()
		}
	}
	for b := 0; b < len(x.points); b += c.parts {
		out.Points = append(out.Points, join(x.points[b:b+c.parts]))
	}
	return out
}

// hold adds levels. Each holds until the next one, and the last until the recording of its rank ends.
func (c *Collector) hold(x *counting, rank int32) {
	slices.SortStableFunc(x.held, func(a, b level) int { return cmp.Compare(a.at, b.at) })
	end := trace.Time(math.MinInt64)
	for b := range x.points {
		if c.recorded[rank][b] > 0 {
			end = c.grid.Start(b) + trace.Time(c.grid.Bucket)
		}
	}
	for i, l := range x.held {
		to := max(end, l.at)
		if i+1 < len(x.held) {
			to = x.held[i+1].at
		}
		c.grid.Each(l.at, to, func(b int, length int64) {
			if c.recorded[rank][b] > 0 {
				p := &x.points[b]
				p.Mean, p.Most, p.weight = p.Mean+l.value*float64(length), max(p.Most, l.value), p.weight+float64(length)
			}
		})
	}
	x.held = nil
}
