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

// Options are facts that the dumps do not contain.
type Options struct {
	// EP is the number of GPUs that share the experts if the user gave it; 0 is unknown.
	EP       int
	Series   *series.Set  // from logs; nil without
	Profiles *profile.Set // from the same server; nil without
}

// Routing holds the results for dumps and logs.
type Routing struct {
	Sources []*Source
	Hottest []Expert
}

// A Source is the counts of a server in one dump, or the values in its log.
type Source struct {
	Name string // name of its first file
	// Recording is nil for a log, which has only numbers per pass.
	Recording *recorder.ExpertCounts
	First     trace.Time // of the first pass in a log; of a dump, when it was written; 0 is unknown
	Passes    int
	Tokens    int64 // choices of an expert: each token chooses several experts in each layer
	Layers    int   // layers with tokens
	Experts   int
	EP        int    // GPUs that share the experts; 0 is unknown
	By        string // how EP is known
	// Logged is the mean balancedness of passes, as in SGLang's log, where a layer without tokens counts as even.
	// Lowest is that of the least even pass.
	Logged, Lowest float64
	waiting        // over all passes and layers with tokens
	// Placed is the share of MoE time that GPUs would wait if experts were placed by their tokens, those with the
	// most first, with the same number on each GPU.
	Placed float64
	// Single is the share of MoE time that would be saved if the hottest rank got no more than the second hottest.
	// Hot is that rank, or -1.
	Single float64
	Hot    int
	P      float64 // p-value of such a rank

	ByLayer []Layer
	ByRank  []Rank
	ByPass  []Pass
	balance []float64 // of a log, sorted by time
	times   []trace.Time
}

// waiting sums up the tokens of the mean GPU, of the busiest one, and of the busiest one by chance, over passes and
// layers.
type waiting struct{ mean, most, byChance float64 }

func (w *waiting) add(mean, most, byChance float64) {
	w.mean, w.most, w.byChance = w.mean+mean, w.most+most, w.byChance+byChance
}

// waits returns the share of MoE time that the mean GPU waits for the busiest one, if that time is proportional to
// tokens; NaN without tokens.
func (w *waiting) waits() float64 { return 1 - w.mean/w.most }

// chance returns the same share if each token went to a random GPU.
func (w *waiting) chance() float64 { return 1 - w.mean/w.byChance }

// excess returns the part of waits that chance does not explain.
func (w *waiting) excess() float64 { return max(0, w.waits()-w.chance()) }

// A Layer is a layer with experts.
type Layer struct {
	Of     *Source
	Layer  int
	Tokens int64
	Logged float64 // balancedness, mean over passes
	waiting
	Hot   int     // the rank with the most tokens; -1 is unknown
	Times float64 // tokens of Hot divided by the mean of all ranks
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
	Times   float64 // tokens divided by the mean of all ranks
	Busiest int     // number of layers in which it is the busiest
	Top     Expert
	// Kernels is how long the kernels of experts took on it in profiles, ns, and Slower is that time divided by the
	// mean of all recorded ranks; 0 is unknown.
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

// An Expert is an expert of a layer.
type Expert struct {
	Of     *Source
	Layer  int
	Expert int // its logical number if known; -1 is none
	Rank   int // -1 if it is unknown, or on several
	Tokens float64
	Times  float64 // tokens divided by the mean of all experts of the layer
}

// Measure measures dumps and logs. set is nil without dumps.
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

// slots returns the number of expert slots on all GPUs together.
func slots(rec *recorder.ExpertCounts) int {
	if !rec.Physical && rec.Map != nil {
		return len(rec.Map[0])
	}
	return rec.Experts
}

// sizeInLogs returns the ep_size of all servers that logged one; 0 if there is none, or they differ.
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

// measure measures all passes.
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

// take adds the counts of a pass to a layer, and returns the numbers of the pass. Each token was counted times times.
// loads is scratch space for the load of each GPU in this pass.
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
	const little = 1e-5 // so that a layer without tokens is even, as in SGLang
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

// top returns the index of the largest load, and the second largest load.
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

// finish finds the hottest rank and expert of a layer.
func (x *Layer) finish(ep int) {
	if ep > 0 {
		x.Hot, _ = top(x.ranks)
		x.Times = x.ranks[x.Hot] * float64(ep) / order.Total(x.ranks)
	}
	at, _ := top(x.total)
	x.Top = x.expert(at, ep)
}

// expert describes an expert, given its index in the counts.
func (x *Layer) expert(e, ep int) Expert {
	out := Expert{Of: x.Of, Layer: x.Layer, Expert: x.place.logical(e), Rank: -1, Tokens: x.total[e], Times: x.total[e] * float64(len(x.total)) / order.Total(x.total)}
	if ep > 0 {
		out.Rank = x.place.rankOf(e)
	}
	return out
}

// ranks sums up layers by rank.
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

// maxHottest is the number of experts listed per source.
const maxHottest = 100

// hottest returns the experts with the most tokens relative to the mean of their layer.
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

// assumedSize means that the number of GPUs that share the experts is assumed to be the number of ranks with files.
const assumedSize = "assumed: ranks with files"
