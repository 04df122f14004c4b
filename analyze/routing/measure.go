package routing

import (
	"cmp"
	"math"
	"slices"

	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/profile/recorder"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
)

// Options are facts from outside of the dumps.
type Options struct {
	// EP is how many GPUs share the experts, if somebody said so; 0 is not known.
	EP       int
	Series   *series.Set  // of logs; nil without
	Profiles *profile.Set // of the same server; nil without
}

// Routing holds the data of dumps and logs.
type Routing struct {
	Sources []*Source
	Hottest []Expert
}

// A Source is what a server counted at one time, or what its log says.
type Source struct {
	Name string // of its first file
	// Recording is nil of a log, which has the numbers of passes alone.
	Recording *recorder.ExpertCounts
	First     trace.Time // of a log; of a dump, when it was written; 0 is unknown
	Passes    int
	Tokens    int64 // choices of an expert: each token chooses several, in each layer
	Layers    int   // with tokens
	Experts   int
	EP        int    // GPUs that share the experts; 0 is not known
	By        string // how that is known
	// Logged is the mean of the balancedness of passes as SGLang's log has it, where a layer without
	// tokens is even. Lowest is that of the least even pass.
	Logged, Lowest float64
	waiting        // of all passes and layers with tokens
	// Placed is how long GPUs would wait if experts were placed by what they got, those with most first,
	// as many on each GPU as now: the part of MoE time.
	Placed float64
	// Single is by how much MoE layers would be shorter if the hottest rank got no more than the one
	// behind it; Hot is that rank, -1 without any.
	Single float64
	Hot    int
	P      float64 // of such a rank by chance

	ByLayer []Layer
	ByRank  []Rank
	ByPass  []Pass
	balance []float64 // of a log, by time
	times   []trace.Time
}

// waiting adds up what GPUs got: the mean, the busiest one, and the busiest one by chance.
type waiting struct{ mean, most, byChance float64 }

func (w *waiting) add(mean, most, byChance float64) {
	w.mean, w.most, w.byChance = w.mean+mean, w.most+most, w.byChance+byChance
}

// waits returns the part of MoE time that the mean GPU waits for the busiest one, if that time grows as tokens
// do; NaN without tokens.
func (w *waiting) waits() float64 { return 1 - w.mean/w.most }

// chance returns the same if each token went to any GPU.
func (w *waiting) chance() float64 { return 1 - w.mean/w.byChance }

// excess returns the part that chance does not explain.
func (w *waiting) excess() float64 { return max(0, w.waits()-w.chance()) }

// A Layer is one with experts.
type Layer struct {
	Of     *Source
	Layer  int
	Tokens int64
	Logged float64 // mean over passes
	waiting
	Hot   int     // the rank that got most; -1 is unknown
	Times float64 // what it got, by the mean of all ranks
	Top   Expert
	place *layout
	total []float64 // by expert
	ranks []float64
}

// A Rank is a GPU, or several that hold the same experts.
type Rank struct {
	Of      *Source
	Rank    int
	Tokens  float64
	Times   float64 // by the mean of all ranks
	Busiest int     // layers
	Top     Expert
	// Kernels is how long the kernels of experts took on it in what a profiler recorded, ns, and Slower
	// by the mean of all ranks that were recorded; 0 is unknown.
	Kernels int64
	Slower  float64
}

// A Pass is a forward pass.
type Pass struct {
	Of     *Source
	Pass   int64
	Tokens int64
	Logged float64
	waiting
}

// An Expert is one of a layer.
type Expert struct {
	Of     *Source
	Layer  int
	Expert int // the logical one, where that is known; -1 is none
	Rank   int // -1 is unknown, or it is on several
	Tokens float64
	Times  float64 // by the mean of all experts of the layer
}

// Measure looks at dumps and logs; set is nil without dumps.
func Measure(set *recorder.Experts, opt Options) *Routing {
	r := &Routing{}
	if set != nil {
		for _, rec := range set.Recordings() {
			s := &Source{Name: rec.File, Recording: rec, First: rec.Time, Passes: len(rec.Passes), Experts: rec.Experts, Hot: -1}
			s.size(opt)
			s.measure()
			r.Sources = append(r.Sources, s)
			r.Hottest = append(r.Hottest, s.hottest()...)
		}
	}
	r.logs(opt.Series)
	if opt.Profiles != nil {
		r.confirm(opt.Profiles)
	}
	return r
}

// size decides how many GPUs share the experts.
func (s *Source) size(opt Options) {
	rec := s.Recording
	set := func(n int, by string) {
		if s.EP == 0 && n > 0 && slots(rec)%n == 0 {
			s.EP, s.By = n, by
		}
	}
	set(opt.EP, "flag")
	set(rec.Local, "each rank counted its own experts")
	if opt.Series != nil {
		set(sizeInLogs(opt.Series), "log")
	}
	if opt.Profiles != nil {
		set(sizeInProfiles(opt.Profiles), "ranks of profiles")
	}
	if n := len(rec.Ranks); n > 1 && int(rec.Ranks[n-1]) == n-1 {
		set(n, assumedSize)
	}
}

// slots returns how many experts all GPUs have together.
func slots(rec *recorder.ExpertCounts) int {
	if !rec.Physical && rec.Map != nil {
		return len(rec.Map[0])
	}
	return rec.Experts
}

// sizeInLogs returns the ep_size that all servers have which logged one; 0 is unknown.
func sizeInLogs(set *series.Set) int {
	n := int32(0)
	for i := range set.Servers {
		switch ep := set.Servers[i].EP; {
		case ep == 0:
		case n != 0 && n != ep:
			return 0
		default:
			n = ep
		}
	}
	return int(n)
}

// measure goes through all passes.
func (s *Source) measure() {
	rec := s.Recording
	byChance := newChance(max(s.EP, 1))
	layers := make([]Layer, rec.Layers)
	for l := range layers {
		layers[l] = Layer{Of: s, Layer: l, Hot: -1, place: newLayout(rec, l, max(s.EP, 1)), total: make([]float64, rec.Experts), ranks: make([]float64, max(s.EP, 1))}
	}
	ahead := make([]float64, max(s.EP, 1)) // by rank
	loads := make([]float64, max(s.EP, 1))
	s.Lowest, s.P = math.Inf(1), 1
	for p, id := range rec.Passes {
		pass := Pass{Of: s, Pass: id}
		for l := range layers {
			pass.add3(layers[l].take(rec.Of(p, l), loads, float64(rec.Times), byChance))
			at, second := top(loads)
			ahead[at] += (loads[at] - second) / float64(rec.Times)
		}
		pass.Logged /= float64(len(layers))
		s.Logged += pass.Logged / float64(len(rec.Passes))
		s.Lowest = min(s.Lowest, pass.Logged)
		s.add(pass.mean, pass.most, pass.byChance)
		s.Tokens += pass.Tokens
		s.ByPass = append(s.ByPass, pass)
	}
	for l := range layers {
		if x := &layers[l]; x.Tokens > 0 {
			x.Logged /= float64(len(rec.Passes))
			x.finish(s.EP)
			s.ByLayer = append(s.ByLayer, *x)
		}
	}
	s.Layers = len(s.ByLayer)
	if s.EP > 0 {
		s.ranks()
		s.count(ahead)
		s.place()
	}
}

// add3 adds a layer to a pass.
func (p *Pass) add3(tokens int64, logged float64, w waiting) {
	p.Tokens += tokens
	p.Logged += logged
	p.add(w.mean, w.most, w.byChance)
}

// take adds the counts of a pass to a layer, and returns how the pass went. Each token was counted so many
// times. loads are of GPUs then.
func (x *Layer) take(counts []uint32, loads []float64, times float64, byChance *chance) (tokens int64, logged float64, w waiting) {
	clear(loads)
	sum := x.place.spread(counts, loads)
	most := 0.0
	for g, v := range loads {
		most = max(most, v)
		x.ranks[g] += v / times
	}
	for e, c := range counts {
		x.total[e] += float64(c) / times
	}
	mean := sum / float64(len(loads))
	const little = 1e-5 // so that a layer without tokens is even, as SGLang has it
	logged = (mean + little) / (most + little)
	x.Logged += logged
	tokens = int64(math.Round(sum / times))
	x.Tokens += tokens
	if tokens > 0 {
		w = waiting{mean / times, most / times, byChance.busiest(tokens)}
		x.add(w.mean, w.most, w.byChance)
	}
	return tokens, logged, w
}

// top returns the place of the largest of some loads, and the one behind it.
func top(loads []float64) (at int, second float64) {
	for i, v := range loads {
		switch {
		case i == 0:
		case v > loads[at]:
			at, second = i, loads[at]
		default:
			second = max(second, v)
		}
	}
	return at, second
}

// finish says what is hot in a layer.
func (x *Layer) finish(ep int) {
	if ep > 0 {
		x.Hot, _ = top(x.ranks)
		x.Times = x.ranks[x.Hot] * float64(ep) / order.Total(x.ranks)
	}
	at, _ := top(x.total)
	x.Top = x.expert(at, ep)
}

// expert describes an expert by its place in the counts.
func (x *Layer) expert(e, ep int) Expert {
	out := Expert{Of: x.Of, Layer: x.Layer, Expert: x.place.logical(e), Rank: -1, Tokens: x.total[e], Times: x.total[e] * float64(len(x.total)) / order.Total(x.total)}
	if ep > 0 {
		out.Rank = x.place.rankOf(e)
	}
	return out
}

// ranks adds up layers by rank.
func (s *Source) ranks() {
	s.ByRank = make([]Rank, s.EP)
	for g := range s.ByRank {
		s.ByRank[g] = Rank{Of: s, Rank: g, Top: Expert{Expert: -1}}
	}
	all := 0.0
	for i := range s.ByLayer {
		x := &s.ByLayer[i]
		for g, v := range x.ranks {
			s.ByRank[g].Tokens += v
			all += v
		}
		s.ByRank[x.Hot].Busiest++
		for e := range x.total {
			if g := x.place.rankOf(e); g >= 0 && x.total[e]*float64(len(x.total)) > s.ByRank[g].Top.Times*order.Total(x.total) {
				s.ByRank[g].Top = x.expert(e, s.EP)
			}
		}
	}
	for g := range s.ByRank {
		s.ByRank[g].Times = s.ByRank[g].Tokens * float64(s.EP) / all
	}
}

// maxHottest is how many experts are listed of a source.
const maxHottest = 100

// hottest returns the experts that got most, by the mean of their layer.
func (s *Source) hottest() (list []Expert) {
	for i := range s.ByLayer {
		x := &s.ByLayer[i]
		for e := range x.total {
			if x.total[e] > 0 {
				list = append(list, x.expert(e, s.EP))
			}
		}
	}
	slices.SortStableFunc(list, func(a, b Expert) int { return cmp.Compare(b.Times, a.Times) })
	return list[:min(len(list), maxHottest)]
}

// assumedSize says that as many GPUs as ranks left files are taken to share the experts.
const assumedSize = "assumed: ranks with files"
