package golden

import (
	"math/rand/v2"
	"time"
)

// profile is a recording of a run: what was planned for every scheduler.
type profile struct {
	run      *Run
	config   TorchConfig
	from, to int64 // true time
	groups   []*torchGroup
	captures []*capture // by scheduler
}

// torchGroup is a TP group: the ranks of one stage of one replica, which meet in
// collectives.
type torchGroup struct {
	profile     *profile
	index       int // in profile.groups
	instance    int
	size        Parallel // of the instance
	dp, pp      int
	layers      int
	straggler   int       // TP rank of the planted straggler, or -1
	forwards    []forward // the recorded steps
	collectives int       // in them, with metadata
}

// forward is a step of a group as all its ranks see it.
type forward struct {
	at       int    // index of the step
	graph    bool   // replayed from a CUDA graph
	begin    int64  // all ranks can compute
	finish   int64  // the last segment must have ended
	tail     int64  // what remains then for a rank without delay
	seq      uint64 // of the first collective
	segments []segment
}

// segment is a part of the forward pass up to a collective: half a layer, or the
// head after the last layer. All ranks leave the collective together, when the
// last of them has come and the data is through.
type segment struct {
	end      int64 // true time, but for the jitter of each rank
	room     int64 // time since the end of the one before
	transfer int64 // of which the data takes, from the start of the last rank on
	last     int   // TP rank that comes last
}

// What a forward pass consists of, in ns.
const (
	torchLead    = 90 * us // from the step's schedule to its first kernel
	tailLeast    = 80 * us
	tailMost     = 400 * us
	segmentLeast = 64 * us
	transferBare = 15 * us
	linkBytes    = 250 // per ns and link
)

// Sizes of the model, those of Llama 3.3 70B.
const (
	hiddenSize = 8192
	vocabulary = 128256
	tokenBytes = 8 // of the id of a token
)

// newProfile plans the recording of all schedulers of a run.
func newProfile(r *Run, c TorchConfig) (*profile, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	start := r.requests[0].arrival
	p := &profile{run: r, config: c, from: start + int64(c.From), to: start + int64(c.To)}
	for i := range r.instances {
		size := r.instances[i].size
		for dp := range size.DP {
			for pp := range size.PP {
				g := p.newGroup(i, dp, pp)
				p.groups = append(p.groups, g)
				for tp := range size.TP {
					p.captures = append(p.captures, &capture{group: g, tp: tp})
				}
			}
		}
	}
	return p, nil
}

// newGroup finds the steps of a group that are recorded.
func (p *profile) newGroup(instance, dp, pp int) *torchGroup {
	in := &p.run.instances[instance]
	g := &torchGroup{
		profile: p, index: len(p.groups), instance: instance, dp: dp, pp: pp, size: in.size, straggler: -1,
		layers: (p.config.Layers + in.size.PP - 1) / in.size.PP,
	}
	for tp := range in.size.TP {
		if in.schedulers[g.scheduler(tp)] == p.run.straggler() {
			g.straggler = tp
		}
	}
	seq := uint64(1)
	for i := range p.run.steps {
		st := &p.run.steps[i]
		if st.instance != instance || st.dp != dp {
			continue
		}
		f, segments := g.forward(i, seq)
		collectives := 0
		if !f.graph && in.size.TP > 1 {
			collectives = segments
		}
		seq += uint64(collectives)
		ranks := g.ranks(st)
		if earliest(ranks) < p.from || latest(ranks, done) > p.to {
			continue
		}
		g.collectives += collectives
		g.divide(&f, segments)
		g.forwards = append(g.forwards, f)
	}
	return g
}

// scheduler returns which of the instance's schedulers a TP rank is.
func (g *torchGroup) scheduler(tp int) int {
	return (g.dp*g.size.PP+g.pp)*g.size.TP + tp
}

// ranks returns the times of a step on the ranks of g.
func (g *torchGroup) ranks(st *step) []rankStep {
	tp := g.size.TP
	return st.ranks[g.pp*tp : (g.pp+1)*tp]
}

// forward finds out what a step leaves room for: all segments must end before any
// rank is done with the step.
func (g *torchGroup) forward(at int, seq uint64) (f forward, segments int) {
	st := &g.profile.run.steps[at]
	f = forward{at: at, seq: seq, graph: st.mode == modeDecode && g.profile.config.Graphs}
	if st.mode == modePrebuilt {
		return f, 0 // computes nothing
	}
	ranks := g.ranks(st)
	f.begin = latest(ranks, scheduled) + torchLead
	f.finish = ranks[0].computed
	for i := range ranks {
		f.finish = min(f.finish, ranks[i].computed)
	}
	f.tail = min(max((f.finish-f.begin)/40, tailLeast), tailMost)
	f.finish -= f.tail
	head := 0
	if g.last() {
		head = 1
	}
	layers := min(g.layers, (int(max(f.finish-f.begin, 0)/segmentLeast)-head)/2)
	if layers < 1 {
		return f, 0 // too short to be looked into
	}
	return f, 2*layers + head
}

// last reports whether g is the last stage of its pipeline, which samples.
func (g *torchGroup) last() bool { return g.pp == g.size.PP-1 }

// divide divides a step into segments.
func (g *torchGroup) divide(f *forward, segments int) {
	if segments == 0 {
		return
	}
	rng := rand.New(rand.NewPCG(g.profile.config.Seed, streamTorchGroup|uint64(f.at)<<24|uint64(g.pp)<<8))
	room := float64(f.finish-f.begin) / float64(segments)
	bytes := int64(g.profile.run.steps[f.at].tokens) * hiddenSize * 2
	previous := f.begin
	f.segments = make([]segment, segments)
	for i := range f.segments {
		s := &f.segments[i]
		s.end = f.begin + int64(room*(float64(i+1)-0.03*rng.Float64()))
		s.room = s.end - previous
		s.transfer = min(max(transferBare, bytes/linkBytes), s.room/4)
		if s.last = g.straggler; s.last < 0 {
			s.last = rng.IntN(g.size.TP)
		}
		previous = s.end
	}
}

// start returns when a TP rank comes to the collective that ends a segment. slack
// is the part of the others' time for computing that it does not need.
func (s *segment) start(slack float64) int64 {
	return s.end - s.transfer - int64(float64(s.room-s.transfer)*slack)
}

// slack draws how much faster than the last rank of a segment another one is.
func (g *torchGroup) slack(rng *rand.Rand, s *segment, tp int) float64 {
	if tp == s.last {
		return 0
	}
	if g.straggler >= 0 {
		return min(1-1/g.profile.run.config.Straggler.Factor+0.005+0.015*rng.Float64(), 0.5)
	}
	return 0.01 + 0.06*rng.Float64()
}

// jitter draws by how much a rank leaves a collective after the others.
func (p *profile) jitter(rng *rand.Rand) int64 {
	sigma := float64(p.config.EndJitter / time.Nanosecond)
	return int64(sigma * min(max(rng.NormFloat64(), -3), 3))
}

// earliest returns when the first rank of a group schedules a step.
func earliest(ranks []rankStep) int64 {
	t := ranks[0].scheduled
	for i := range ranks[1:] {
		t = min(t, ranks[i+1].scheduled)
	}
	return t
}

func scheduled(k *rankStep) int64 { return k.scheduled }
