package torch

import (
	"math/rand/v2"

	"github.com/sgtrace/sgtrace/golden/simulator"
)

// Capture is the recording of one scheduler.
type Capture struct {
	Group *Group
	TP    int
}

// Pass is a step as seen by the profiler of one rank. Times are true time.
type Pass struct {
	*Forward
	Step *simulator.Step
	Rank simulator.RankStep

	Picking, Picked int64 // scheduler.get_next_batch_to_run, if any
	Begin, End      int64 // step[...], if it computes something
	Settled         int64 // end of scheduler.process_batch_result, if any

	Calls       []Call
	Work        []Work
	external    int // id of the first annotation; the others follow
	correlation int // of the first call of the runtime
}

// Call is an operator on the CPU, and the call of CUDA in it.
type Call struct {
	Op         OpKind
	Layer      int16 // -1 outside of layers
	Start, End int64
	external   int // id of the outer operator, 0 for none
	// Correlation is that of the call that launches. Those of the preceding calls for events, which only collectives have, are
	// one and two less.
	Correlation int
	Seq         uint64 // of a collective with metadata, else 0
}

// Work is a piece of work on the GPU.
type Work struct {
	Op         OpKind
	Call       int32 // index of the call that launched it
	Node       int32 // in a CUDA graph, from 1 on, else 0
	segment    int16 // of the step, -1 outside
	Start, End int64
}

// Ids: every operator takes the same number of External ids, for itself, the operator in it, and an annotation, and every
// call the same number of correlations.
const (
	externalStep     = 3
	correlationStep  = 3
	CorrelationShift = 101 // from one TP rank to the next
	annotations      = 4   // of a step
)

// The positions of the parts within the time of a call, in percent: Python frames, the operators in the innermost of them,
// and the calls of CUDA in these.
const (
	partModule     = 1
	partFrame      = 2
	partSmall      = 3 // frames before the innermost
	partSmallEnd   = 27
	partBuiltin    = 28
	partOuter      = 30
	partInner      = 33
	PartRecord     = 36
	PartWait       = 41
	PartLaunch     = 45
	PartLaunched   = 65
	PartNCCLEnd    = 75
	partInnerEnd   = 90
	partOuterEnd   = 93
	partBuiltinEnd = 95
	partFrameEnd   = 97
	partModuleEnd  = 98
)

// At returns the time of a part of c. A call that waits for the GPU lasts until the end, with little around it.
func (c *Call) At(percent int64) int64 {
	switch {
	case c.Op != OpSync:
		return c.Start + (c.End-c.Start)*percent/100
	case percent < 50:
		return c.Start + 10*percent
	}
	return c.End - 10*(100-percent)
}

// Durations on the CPU, in ns. A call takes callMost unless that is too long for the CPU to stay ahead of the GPU.
const (
	callMost  = 18 * us
	graphTime = 20 * us
	copyTime  = 13 * us
	copyLead  = 14 * us
	gap       = 500 // between kernels
	kernelMin = 1500
)

// Passes lays out the activity of a scheduler in the recorded steps.
//
//  1. The group has fixed the end of every collective. Each rank arrives at it at a
//     time of its own, and computes in between.
//  2. A kernel is launched as soon as the CPU can, but at least 2 to 10 µs before
//     it starts. The CPU runs ahead of the GPU, and waits for it in the end.
//  3. A rank that takes longer than its peers for the whole step samples later:
//     the rest of its step is before the sampler, and there the CPU is late.
func (c *Capture) Passes() []Pass {
	g := c.Group
	skip := min(c.TP%(g.profile.config.Ragged+1), len(g.forwards))
	forwards := g.forwards[skip:]
	passes := make([]Pass, 0, len(forwards))
	external, correlation := 1000+c.TP*37, 5000+c.TP*CorrelationShift
	for i := range forwards {
		f := &forwards[i]
		st := &g.profile.Run.Steps[f.At]
		p := Pass{Forward: f, Step: st, Rank: g.ranks(st)[c.TP], external: external, correlation: correlation}
		c.lay(&p)
		external += annotations + externalStep*len(p.Calls)
		correlation += correlationStep * len(p.Calls)
		passes = append(passes, p)
	}
	settle(passes)
	return passes
}

// settle gives the time between two steps to the annotations of the scheduler.
func settle(passes []Pass) {
	for i := range passes {
		p := &passes[i]
		free := p.Rank.Formed - 30*us
		if i > 0 {
			previous := &passes[i-1]
			idle := p.Rank.Scheduled - previous.Rank.Computed
			if took := min(60*us, idle/2); took > 4*us {
				previous.Settled = previous.Rank.Computed + took
			}
			free = max(free, max(previous.Settled, previous.Rank.Computed)+us)
		}
		if p.Rank.Scheduled-free > 4*us {
			p.Picking, p.Picked = free, p.Rank.Scheduled-100
		}
	}
	if n := len(passes); n > 0 {
		last := &passes[n-1]
		last.Settled = last.Rank.Computed + 60*us
	}
}

// lay fills in the inside of a step.
func (c *Capture) lay(p *Pass) {
	if p.Step.Mode == simulator.ModePrebuilt {
		return
	}
	p.Begin, p.End = p.Rank.Scheduled+10*us, p.Rank.Computed-us
	if len(p.segments) == 0 {
		return
	}
	config := &c.Group.profile.config
	rng := rand.New(rand.NewPCG(config.Seed, simulator.StreamTorch|uint64(p.At)<<24|uint64(c.scheduler())<<8))
	l := layout{Pass: p, group: c.Group, tp: c.TP, rng: rng, delay: 2*us + rng.Int64N(8*us)}
	l.inputs()
	l.kernels()
	l.tokens()
	p.number()
}

// layout lays out one step on one rank.
type layout struct {
	*Pass
	group *Group
	tp    int
	rng   *rand.Rand
	delay int64 // shortest time from a launch to the start of its work
}

// inputs copies the inputs of the batch to the GPU.
func (l *layout) inputs() {
	for i := range int64(3) {
		at := l.Rank.Scheduled + copyLead*(i+1) + copyTime*PartLaunch/100 + l.delay
		l.launch(OpCopyIn, copyTime, at, at+us+l.rng.Int64N(us))
	}
}

// kernels lays out the segments: first on the GPU, then the calls for it.
func (l *layout) kernels() {
	first := len(l.Work)
	free := l.Rank.Scheduled + kernelLead
	for i := range l.segments {
		free = l.segment(i, free)
	}
	kernels := l.Work[first:]
	if l.graph {
		at := kernels[0].Start - l.delay - graphTime*PartLaunch/100
		for i := range kernels {
			kernels[i].Call, kernels[i].Node = int32(len(l.Calls)), int32(i+1)
		}
		l.Calls = append(l.Calls, Call{Op: OpGraph, Layer: -1, Start: at, End: at + graphTime})
		return
	}
	// Both the CPU's preferred time and the GPU's latest time increase by at least 2 µs from one call to the next, and so does
	// the smaller of the two.
	length := min(callMost, (l.finish-l.Begin)*7/10/int64(len(kernels)))
	lead := l.delay + length*PartLaunch/100
	wanted := kernels[0].Start - lead
	for i := range kernels {
		k := &kernels[i]
		at := min(wanted+int64(i)*length, k.Start-lead)
		if i > 0 {
			previous := &l.Calls[len(l.Calls)-1]
			previous.End = min(previous.End, at)
		}
		k.Call = int32(len(l.Calls))
		next := Call{Op: k.Op, Layer: l.layer(int(k.segment)), Start: at, End: at + length}
		if k.Op == opAllReduce || k.Op == OpAllGather {
			next.Seq = l.seq + uint64(k.segment)
		}
		l.Calls = append(l.Calls, next)
	}
}

// layer returns the layer of the model that a segment belongs to, -1 for its head.
func (l *layout) layer(segment int) int16 {
	if l.isHead(segment) {
		return -1
	}
	return int16(l.group.PP*l.group.layers + segment/2)
}

// isHead reports whether a segment is the head, after the last layer.
func (l *layout) isHead(segment int) bool {
	return l.group.last() && segment == len(l.segments)-1
}

// segment puts the kernels of a segment on the GPU, which is free from a time on, and returns the time from which it is
// free again.
func (l *layout) segment(i int, free int64) int64 {
	s := &l.segments[i]
	ops, meet := attentionHalf, opAllReduce
	switch {
	case l.isHead(i):
		ops, meet = modelHead, OpAllGather
	case i%2 == 1:
		ops = mlpHalf
	}
	alone := l.group.Size.TP == 1
	to := s.end
	if !alone {
		to = s.start(l.group.slack(l.rng, s, l.tp))
	}
	n := int64(len(ops))
	spare := to - free - n*(gap+kernelMin)
	for _, op := range ops {
		end := free + kernelMin + spare*int64(OpTable[op].share)/100
		l.Work = append(l.Work, Work{Op: op, segment: int16(i), Start: free, End: end})
		free = end + gap
	}
	if alone {
		return free
	}
	end := s.end + l.group.profile.jitter(l.rng)
	l.Work = append(l.Work, Work{Op: meet, segment: int16(i), Start: to, End: end})
	return end + gap
}

// tokens lays out the end of a step: the CPU waits for the segments, samples on the last stage of a pipeline, and waits for
// the tokens.
func (l *layout) tokens() {
	ready := l.Work[len(l.Work)-1].End + 3*us
	l.wait(l.Calls[len(l.Calls)-1].End+us, ready)
	if !l.group.last() {
		return
	}
	from := l.Rank.Computed - l.tail
	length := min(callMost, l.tail*15/100)
	for _, step := range []struct {
		op       OpKind
		from, to int64 // percent
	}{{opSoftmax, 35, 52}, {opSample, 57, 74}, {OpCopyOut, 80, 82}} {
		l.launch(step.op, length, from+l.tail*step.from/100, from+l.tail*step.to/100)
	}
	l.wait(l.Calls[len(l.Calls)-1].End+gap, l.Work[len(l.Work)-1].End+2*us)
}

// launch adds work outside of segments, and the call for it, which comes before.
func (l *layout) launch(op OpKind, length, start, end int64) {
	at := start - l.delay - length*PartLaunch/100
	l.Work = append(l.Work, Work{Op: op, Call: int32(len(l.Calls)), segment: -1, Start: start, End: end})
	l.Calls = append(l.Calls, Call{Op: op, Layer: -1, Start: at, End: at + length})
}

// wait adds a call that waits for the GPU, if the CPU is that early.
func (l *layout) wait(from, to int64) {
	if to-from >= us {
		l.Calls = append(l.Calls, Call{Op: OpSync, Layer: -1, Start: from, End: to})
	}
}

// number gives ids to the calls of a step.
func (p *Pass) number() {
	for i := range p.Calls {
		c := &p.Calls[i]
		c.Correlation = p.correlation + i*correlationStep + correlationStep - 1
		if OpTable[c.Op].outer != "" {
			c.external = p.external + annotations + i*externalStep
		}
	}
}
