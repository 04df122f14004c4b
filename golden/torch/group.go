package torch

import (
	"math/rand/v2"
	"time"

	"github.com/sgtrace/sgtrace/golden/simulator"
)

// Profile is a recording of a run: the plan for every scheduler.
type Profile struct {
	Run      *simulator.Run
	config   Config
	from, to int64 // true time
	groups   []*Group
	Captures []*Capture // by scheduler
}

// Group is a TP group: the ranks of one stage of one replica, which meet in collectives.
type Group struct {
	profile     *Profile
	index       int // index in profile.groups
	Instance    int
	Size        simulator.Parallel // of the instance
	DP, PP      int
	layers      int
	straggler   int       // TP rank of the planted straggler, or -1
	forwards    []Forward // the recorded steps
	collectives int       // number of those with metadata
}

// Forward is a step of a group as all its ranks see it.
type Forward struct {
	At       int    // index of the step
	graph    bool   // replayed from a CUDA graph
	begin    int64  // when all ranks can compute
	finish   int64  // by when the last segment must have ended
	tail     int64  // time that remains then for a rank without delay
	seq      uint64 // of the first collective
	segments []segment
}

// segment is a part of the forward pass up to a collective: half a layer, or the head after the last layer. All ranks leave
// the collective together, when the last of them has arrived and the data is transferred.
type segment struct {
	end      int64 // true time, before the jitter of each rank
	room     int64 // time since the end of the previous one
	transfer int64 // part of room for the data, from the arrival of the last rank on
	last     int   // TP rank that arrives last
}

// Durations in a forward pass, in ns.
const (
	kernelLead   = 90 * us // from the step's schedule to its first kernel
	tailLeast    = 80 * us
	tailMost     = 400 * us
	segmentLeast = 64 * us
	transferBare = 15 * us
	linkBytes    = 250 // per ns and link
)

// Sizes of the model, those of Llama 3.3 70B.
const (
	HiddenSize = 8192
	Vocabulary = 128256
	TokenBytes = 8 // of the id of a token
)

// NewProfile plans the recording of all schedulers of a run.
func NewProfile(r *simulator.Run, c Config) (*Profile, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	start := r.Requests[0].Arrival
	p := &Profile{Run: r, config: c, from: start + int64(c.From), to: start + int64(c.To)}
	for i := range r.Instances {
		size := r.Instances[i].Size
		for dp := range size.DP {
			for pp := range size.PP {
				g := p.newGroup(i, dp, pp)
				p.groups = append(p.groups, g)
				for tp := range size.TP {
					p.Captures = append(p.Captures, &Capture{Group: g, TP: tp})
				}
			}
		}
	}
	return p, nil
}

// newGroup finds the recorded steps of a group.
func (p *Profile) newGroup(instance, dp, pp int) *Group {
	in := &p.Run.Instances[instance]
	g := &Group{
		profile: p, index: len(p.groups), Instance: instance, DP: dp, PP: pp, Size: in.Size, straggler: -1,
		layers: (p.config.Layers + in.Size.PP - 1) / in.Size.PP,
	}
	for tp := range in.Size.TP {
		if in.Schedulers[g.scheduler(tp)] == p.Run.Straggler() {
			g.straggler = tp
		}
	}
	seq := uint64(1)
	for i := range p.Run.Steps {
		st := &p.Run.Steps[i]
		if st.Instance != instance || st.DP != dp {
			continue
		}
		f, segments := g.forward(i, seq)
		collectives := 0
		if !f.graph && in.Size.TP > 1 {
			collectives = segments
		}
		seq += uint64(collectives)
		ranks := g.ranks(st)
		if earliest(ranks) < p.from || simulator.Latest(ranks, simulator.Done) > p.to {
			continue
		}
		g.collectives += collectives
		g.divide(&f, segments)
		g.forwards = append(g.forwards, f)
	}
	return g
}

// scheduler returns the index in the instance of a TP rank's scheduler.
func (g *Group) scheduler(tp int) int {
	return (g.DP*g.Size.PP+g.PP)*g.Size.TP + tp
}

// ranks returns the times of a step on the ranks of g.
func (g *Group) ranks(st *simulator.Step) []simulator.RankStep {
	tp := g.Size.TP
	return st.Ranks[g.PP*tp : (g.PP+1)*tp]
}

// forward determines the time available in a step: all segments must end before any rank is done with the step.
func (g *Group) forward(at int, seq uint64) (f Forward, segments int) {
	st := &g.profile.Run.Steps[at]
	f = Forward{At: at, seq: seq, graph: st.Mode == simulator.ModeDecode && g.profile.config.Graphs}
	if st.Mode == simulator.ModePrebuilt {
		return f, 0 // computes nothing
	}
	ranks := g.ranks(st)
	f.begin = simulator.Latest(ranks, scheduled) + kernelLead
	f.finish = ranks[0].Computed
	for i := range ranks {
		f.finish = min(f.finish, ranks[i].Computed)
	}
	f.tail = min(max((f.finish-f.begin)/40, tailLeast), tailMost)
	f.finish -= f.tail
	head := 0
	if g.last() {
		head = 1
	}
	layers := min(g.layers, (int(max(f.finish-f.begin, 0)/segmentLeast)-head)/2)
	if layers < 1 {
		return f, 0 // too short to be filled
	}
	return f, 2*layers + head
}

// last reports whether g is the last stage of its pipeline, which samples.
func (g *Group) last() bool { return g.PP == g.Size.PP-1 }

// divide divides a step into segments.
func (g *Group) divide(f *Forward, segments int) {
	if segments == 0 {
		return
	}
	rng := rand.New(rand.NewPCG(g.profile.config.Seed, simulator.StreamTorchGroup|uint64(f.At)<<24|uint64(g.PP)<<8))
	room := float64(f.finish-f.begin) / float64(segments)
	bytes := int64(g.profile.Run.Steps[f.At].Tokens) * HiddenSize * 2
	previous := f.begin
	f.segments = make([]segment, segments)
	for i := range f.segments {
		s := &f.segments[i]
		s.end = f.begin + int64(room*(float64(i+1)-0.03*rng.Float64()))
		s.room = s.end - previous
		s.transfer = min(max(transferBare, bytes/linkBytes), s.room/4)
		if s.last = g.straggler; s.last < 0 {
			s.last = rng.IntN(g.Size.TP)
		}
		previous = s.end
	}
}

// start returns when a TP rank arrives at the collective that ends a segment. slack is the share of the others' computing
// time that it does not need.
func (s *segment) start(slack float64) int64 {
	return s.end - s.transfer - int64(float64(s.room-s.transfer)*slack)
}

// slack draws how much faster than the last rank of a segment another rank is.
func (g *Group) slack(rng *rand.Rand, s *segment, tp int) float64 {
	if tp == s.last {
		return 0
	}
	if g.straggler >= 0 {
		return min(1-1/g.profile.Run.Config.Straggler.Factor+0.005+0.015*rng.Float64(), 0.5)
	}
	return 0.01 + 0.06*rng.Float64()
}

// jitter draws how much later than the others a rank leaves a collective.
func (p *Profile) jitter(rng *rand.Rand) int64 {
	sigma := float64(p.config.EndJitter / time.Nanosecond)
	return int64(sigma * min(max(rng.NormFloat64(), -3), 3))
}

// earliest returns when the first rank of a group schedules a step.
func earliest(ranks []simulator.RankStep) int64 {
	t := ranks[0].Scheduled
	for i := range ranks[1:] {
		t = min(t, ranks[i+1].Scheduled)
	}
	return t
}

func scheduled(k *simulator.RankStep) int64 { return k.Scheduled }
