package golden

import "math/rand/v2"

// capture is the recording of one scheduler.
type capture struct {
	group *torchGroup
	tp    int
}

// pass is a step as the profiler of one rank saw it. Times are true time.
type pass struct {
	*forward
	st   *step
	rank rankStep

	picking, picked int64 // scheduler.get_next_batch_to_run, if any
	begin, end      int64 // step[...], if it computes something
	settled         int64 // end of scheduler.process_batch_result, if any

	calls       []call
	work        []work
	external    int // id of the first annotation; the others follow
	correlation int // of the first call of the runtime
}

// call is an operator that the CPU runs, and the call of CUDA in it.
type call struct {
	op         opKind
	layer      int16 // -1 outside of layers
	start, end int64
	external   int // id of the outer operator, 0 for none
	// correlation is that of the call that launches. Those of the calls for events
	// before it, which only collectives have, are one and two less.
	correlation int
	seq         uint64 // of a collective with metadata, else 0
}

// work is something that runs on the GPU.
type work struct {
	op         opKind
	call       int32 // index of what launched it
	node       int32 // of a CUDA graph, from 1 on, else 0
	segment    int16 // of the step, -1 outside
	start, end int64
}

// Ids: every operator takes as many External ids, of itself, the operator in it
// and an annotation, and every call as many correlations.
const (
	externalStep     = 3
	correlationStep  = 3
	correlationShift = 101 // from one TP rank to the next
	annotations      = 4   // of a step
)

// Where inside the time of a call its parts are, in percent: frames of Python, the
// operators in the innermost of them, and the calls of CUDA in these.
const (
	partModule     = 1
	partFrame      = 2
	partSmall      = 3 // frames before the innermost
	partSmallEnd   = 27
	partBuiltin    = 28
	partOuter      = 30
	partInner      = 33
	partRecord     = 36
	partWait       = 41
	partLaunch     = 45
	partLaunched   = 65
	partNCCLEnd    = 75
	partInnerEnd   = 90
	partOuterEnd   = 93
	partBuiltinEnd = 95
	partFrameEnd   = 97
	partModuleEnd  = 98
)

// at returns the time of a part of c. What waits for the GPU lasts until the end,
// with little around it.
func (c *call) at(percent int64) int64 {
	switch {
	case c.op != opSync:
		return c.start + (c.end-c.start)*percent/100
	case percent < 50:
		return c.start + 10*percent
	}
	return c.end - 10*(100-percent)
}

// Durations on the CPU, in ns. A call takes the time of callMost unless that is too
// long for the CPU to stay ahead of the GPU.
const (
	callMost  = 18 * us
	graphTime = 20 * us
	copyTime  = 13 * us
	copyLead  = 14 * us
	gap       = 500 // between kernels
	kernelMin = 1500
)

// passes lays out what a scheduler did in the recorded steps.
//
//  1. The group has fixed when every collective ends. Each rank comes to it at a
//     time of its own, and computes in between.
//  2. A kernel is launched as soon as the CPU can, but at least 2 to 10 µs before
//     it starts. The CPU runs ahead of the GPU, and waits for it in the end.
//  3. A rank that takes longer than its peers for the whole step samples later:
//     the rest of its step lies before the sampler, and there the CPU is late.
func (c *capture) passes() []pass {
	g := c.group
	skip := min(c.tp%(g.profile.config.Ragged+1), len(g.forwards))
	forwards := g.forwards[skip:]
	passes := make([]pass, 0, len(forwards))
	external, correlation := 1000+c.tp*37, 5000+c.tp*correlationShift
	for i := range forwards {
		f := &forwards[i]
		st := &g.profile.run.steps[f.at]
		p := pass{forward: f, st: st, rank: g.ranks(st)[c.tp], external: external, correlation: correlation}
		c.lay(&p)
		external += annotations + externalStep*len(p.calls)
		correlation += correlationStep * len(p.calls)
		passes = append(passes, p)
	}
	settle(passes)
	return passes
}

// settle gives the time between two steps to the annotations of the scheduler.
func settle(passes []pass) {
	for i := range passes {
		p := &passes[i]
		free := p.rank.formed - 30*us
		if i > 0 {
			previous := &passes[i-1]
			idle := p.rank.scheduled - previous.rank.computed
			if took := min(60*us, idle/2); took > 4*us {
				previous.settled = previous.rank.computed + took
			}
			free = max(free, max(previous.settled, previous.rank.computed)+us)
		}
		if p.rank.scheduled-free > 4*us {
			p.picking, p.picked = free, p.rank.scheduled-100
		}
	}
	if n := len(passes); n > 0 {
		last := &passes[n-1]
		last.settled = last.rank.computed + 60*us
	}
}

// lay fills in what happens inside a step.
func (c *capture) lay(p *pass) {
	if p.st.mode == modePrebuilt {
		return
	}
	p.begin, p.end = p.rank.scheduled+10*us, p.rank.computed-us
	if len(p.segments) == 0 {
		return
	}
	config := &c.group.profile.config
	rng := rand.New(rand.NewPCG(config.Seed, streamTorch|uint64(p.at)<<24|uint64(c.scheduler())<<8))
	l := layout{pass: p, group: c.group, tp: c.tp, rng: rng, delay: 2*us + rng.Int64N(8*us)}
	l.inputs()
	l.kernels()
	l.tokens()
	p.number()
}

// layout lays out one step on one rank.
type layout struct {
	*pass
	group *torchGroup
	tp    int
	rng   *rand.Rand
	delay int64 // from a launch to the start of what it launches, at least
}

// inputs brings the inputs of the batch to the GPU.
func (l *layout) inputs() {
	for i := range int64(3) {
		at := l.rank.scheduled + copyLead*(i+1) + copyTime*partLaunch/100 + l.delay
		l.launch(opCopyIn, copyTime, at, at+us+l.rng.Int64N(us))
	}
}

// kernels lays out the segments: first on the GPU, then the calls for it.
func (l *layout) kernels() {
	first := len(l.work)
	free := l.rank.scheduled + torchLead
	for i := range l.segments {
		free = l.segment(i, free)
	}
	kernels := l.work[first:]
	if l.graph {
		at := kernels[0].start - l.delay - graphTime*partLaunch/100
		for i := range kernels {
			kernels[i].call, kernels[i].node = int32(len(l.calls)), int32(i+1)
		}
		l.calls = append(l.calls, call{op: opGraph, layer: -1, start: at, end: at + graphTime})
		return
	}
	// Both what the CPU wants and what the GPU needs go up by 2 µs or more from one
	// call to the next, and so does the smaller of the two.
	length := min(callMost, (l.finish-l.begin)*7/10/int64(len(kernels)))
	lead := l.delay + length*partLaunch/100
	wanted := kernels[0].start - lead
	for i := range kernels {
		k := &kernels[i]
		at := min(wanted+int64(i)*length, k.start-lead)
		if i > 0 {
			previous := &l.calls[len(l.calls)-1]
			previous.end = min(previous.end, at)
		}
		k.call = int32(len(l.calls))
		next := call{op: k.op, layer: l.layer(int(k.segment)), start: at, end: at + length}
		if k.op == opAllReduce || k.op == opAllGather {
			next.seq = l.seq + uint64(k.segment)
		}
		l.calls = append(l.calls, next)
	}
}

// layer returns the layer of the model that a segment belongs to, -1 for its head.
func (l *layout) layer(segment int) int16 {
	if l.isHead(segment) {
		return -1
	}
	return int16(l.group.pp*l.group.layers + segment/2)
}

// isHead reports whether a segment is what follows the last layer.
func (l *layout) isHead(segment int) bool {
	return l.group.last() && segment == len(l.segments)-1
}

// segment puts the kernels of a segment on the GPU, which is free from a time on,
// and returns from when on it is free again.
func (l *layout) segment(i int, free int64) int64 {
	s := &l.segments[i]
	ops, meet := attentionHalf, opAllReduce
	switch {
	case l.isHead(i):
		ops, meet = modelHead, opAllGather
	case i%2 == 1:
		ops = mlpHalf
	}
	alone := l.group.size.TP == 1
	to := s.end
	if !alone {
		to = s.start(l.group.slack(l.rng, s, l.tp))
	}
	n := int64(len(ops))
	spare := to - free - n*(gap+kernelMin)
	for _, op := range ops {
		end := free + kernelMin + spare*int64(opTable[op].share)/100
		l.work = append(l.work, work{op: op, segment: int16(i), start: free, end: end})
		free = end + gap
	}
	if alone {
		return free
	}
	end := s.end + l.group.profile.jitter(l.rng)
	l.work = append(l.work, work{op: meet, segment: int16(i), start: to, end: end})
	return end + gap
}

// tokens lays out what follows: the CPU waits for the segments, samples on the last
// stage of a pipeline, and waits for the tokens.
func (l *layout) tokens() {
	ready := l.work[len(l.work)-1].end + 3*us
	l.wait(l.calls[len(l.calls)-1].end+us, ready)
	if !l.group.last() {
		return
	}
	from := l.rank.computed - l.tail
	length := min(callMost, l.tail*15/100)
	for _, step := range []struct {
		op       opKind
		from, to int64 // percent
	}{{opSoftmax, 35, 52}, {opSample, 57, 74}, {opCopyOut, 80, 82}} {
		l.launch(step.op, length, from+l.tail*step.from/100, from+l.tail*step.to/100)
	}
	l.wait(l.calls[len(l.calls)-1].end+gap, l.work[len(l.work)-1].end+2*us)
}

// launch adds work outside of segments, and the call for it, which lies before.
func (l *layout) launch(op opKind, length, start, end int64) {
	at := start - l.delay - length*partLaunch/100
	l.work = append(l.work, work{op: op, call: int32(len(l.calls)), segment: -1, start: start, end: end})
	l.calls = append(l.calls, call{op: op, layer: -1, start: at, end: at + length})
}

// wait adds a call that waits for the GPU, if the CPU is so early.
func (l *layout) wait(from, to int64) {
	if to-from >= us {
		l.calls = append(l.calls, call{op: opSync, layer: -1, start: from, end: to})
	}
}

// number gives ids to the calls of a step.
func (p *pass) number() {
	for i := range p.calls {
		c := &p.calls[i]
		c.correlation = p.correlation + i*correlationStep + correlationStep - 1
		if opTable[c.op].outer != "" {
			c.external = p.external + annotations + i*externalStep
		}
	}
}
