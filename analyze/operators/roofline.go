package operators

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/graphs"
	"github.com/sgtrace/sgtrace/analyze/profilewalk"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/profile/kernelname"
	"github.com/sgtrace/sgtrace/trace"
)

// A Roofed is the operators of one name and shape, in steps of one kind, whose longest kernel has one
// name, and how close they come to the limits of the GPU.
type Roofed struct {
	Row           profilewalk.Row // Name is the operator; "" is unknown
	Kernel        string          // the longest kernel of an operator
	Shapes, Types string
	Mask          profile.Mask     // of attention
	Step          profile.StepKind // StepOther is unknown, or both
	Instances     int64
	Time          int64   // ns of their kernels, each counted from the end of the one before it on its stream
	Work          Work    // of all; NaN is unknown
	Roof          float64 // ns that the GPU needs at least; NaN is unknown
	Bound         Bound
	Share         float64 // of the time of all rows
	Reached       float64 // share of the roof that the best kernels reach
}

// Of returns the roof as a share of the time; NaN is unknown. Above 1, the work is not what the formula says.
func (r *Roofed) Of() float64 { return r.Roof / float64(r.Time) }

// Known reports whether the roof is known, and no kernel is faster.
func (r *Roofed) Known() bool { return r.Of() <= 1 }

// Rooflines are how close kernels come to the limits of their GPUs.
type Rooflines struct {
	Rows   []Roofed // the longest time first
	ByRank bool
	gpus   []string  // names of the GPUs, by rank; "" is unknown
	clocks []float64 // of their units, MHz; 0 is unknown
	ranks  int
}

// A roofKey identifies a row.
type roofKey struct {
	class
	kernel trace.Sym
	step   profile.StepKind
}

func (k roofKey) compare(o roofKey) int {
	return cmp.Or(k.class.compare(o.class), cmp.Compare(k.kernel, o.kernel), cmp.Compare(k.step, o.step))
}

// A roofSum is what instances of one row did.
type roofSum struct {
	n     int64
	time  int64
	work  Work
	roof  float64           // ns; NaN if that of some instance is unknown
	bound map[Bound]float64 // roof of the instances that each bounds, ns
}

// An instance is a call of an operator, or of a captured one in a replay, with the kernels that count for it.
type instance struct {
	key     roofKey
	time    int64 // ns
	longest int64
	lengths *profile.Lengths
}

// A modelKey is everything that the work of an instance follows from.
type modelKey struct {
	class
	lengths profile.Lengths
	among   int       // number of GPUs that an all-reduce adds up over; 0 is unknown
	kernel  trace.Sym // 0 if its name does not matter
}

// A modeled is the work of an operator, and the shortest time in which its GPU can do it.
type modeled struct {
	work  Work
	roof  float64
	bound Bound
}

// roofs collect the instances of a stream.
type roofs struct {
	set    *profile.Set
	routed *RoutedTokens
	clocks []float64 // of the GPU of each rank, MHz; 0 is unknown
	steps  *profilewalk.KernelSteps
	sums   map[roofKey]*roofSum
	inputs map[class]inputs
	known  map[modelKey]modeled
	model  map[class]bool // whether there may be a formula
	names  *trace.PerName[kernelFacts]
	eager  map[[2]int32]*instance // by thread and frame of the operator
	ends   map[laneID]trace.Time  // end of the last kernel of each stream
	parts  *graphs.Parts
	part   map[launchID]class // part of an operator, by the call that launched it
}

// kernelFacts are what the name of a kernel says of it.
type kernelFacts struct {
	among   int  // GPUs over which it adds up; 0 is unknown
	units   bool // it shows which units multiply, so the work may depend on it
	product bool // it multiplies matrices
}

func factsOf(kernel string) kernelFacts {
	kind := kernelname.KindOf(kernel)
	return kernelFacts{gpusOf(kernel), unitsOf(kernel) != "", kind == kernelname.KindExperts || kind == kernelname.KindGEMM}
}

// A launchID identifies a call that launched something.
type launchID struct {
	rank        int32
	correlation int64
}

type laneID struct {
	rank, device int32
	stream       uint32
}

func newRoofs(set *profile.Set, steps *profilewalk.KernelSteps, routed *RoutedTokens, clocks []float64) *roofs {
	return &roofs{set: set, routed: routed, clocks: clocks, steps: steps, sums: map[roofKey]*roofSum{}, inputs: map[class]inputs{}, known: map[modelKey]modeled{}, model: map[class]bool{},
		names: trace.EachName(set.Syms, factsOf), eager: map[[2]int32]*instance{}, ends: map[laneID]trace.Time{}, parts: graphs.NewParts(set.Syms), part: map[launchID]class{}}
}

// alone returns how long a kernel ran after the one before it on its stream had ended: programmatic
// dependent launch starts kernels early, and they wait.
func (r *roofs) alone(k *profile.Kernel) int64 {
	lane := laneID{k.Rank, k.Device, k.Stream}
	start := k.Start
	if last := r.ends[lane]; last > start && last < k.End {
		start = last
	}
	r.ends[lane] = max(r.ends[lane], k.End)
	return max(0, int64(k.End-start))
}

// inputsOf returns the inputs of operators of a class.
func (r *roofs) inputsOf(c class) inputs {
	return order.Memo(r.inputs, c, func() inputs { return parseInputs(nameOf(r.set, c.shapes), nameOf(r.set, c.types)) })
}

// hasModel reports whether there may be a formula for operators of a class.
func (r *roofs) hasModel(c class) bool {
	return c.name != 0 && order.Memo(r.model, c, func() bool {
		_, known := workOf(r.set.Syms.Name(c.name), r.inputsOf(c), setting{Lengths: &someLengths, Mask: c.mask, Values: nameOf(r.set, c.values)})
		return known
	})
}

// someLengths stand for the lengths of any step.
var someLengths = profile.Lengths{GenerationTokens: 1, GenerationKeys: 1, GenerationSquares: 1, GenerationPairs: 1}

// modeled returns the work of an instance, and how fast its GPU can do it. NaN is unknown.
func (r *roofs) modeled(i *instance) modeled {
	key := modelKey{class: i.key.class}
	if i.lengths != nil {
		key.lengths = *i.lengths
	}
	if i.key.kernel != 0 {
		facts := r.names.Of(i.key.kernel)
		key.among = facts.among
		if facts.units {
			key.kernel = i.key.kernel
		}
	}
	m, ok := r.known[key]
	if ok {
		return m
	}
	nan := math.NaN()
	m = modeled{work: Work{FLOPs: nan, Bytes: nan}, roof: nan}
	if key.name != 0 {
		if w, ok := workOf(r.set.Syms.Name(key.name), r.inputsOf(key.class), setting{Lengths: i.lengths, Mask: key.mask, Values: nameOf(r.set, key.values), Routed: r.routed}); ok {
			if key.among > 0 {
				w = w.amongGPUs(key.among)
			}
			if key.kernel != 0 {
				w = w.on(r.set.Syms.Name(key.kernel))
			}
			m.work = w
			if g, ok := GPUOf(r.set.GPU(key.rank)); ok {
				g = g.atClock(r.clocks[key.rank])
				m.roof, m.bound = w.roof(&g)
			}
		}
	}
	r.known[key] = m
	return m
}

// begin begins an instance with its first kernel.
func (r *roofs) begin(k *profile.Kernel, c class) *instance {
	kind, _ := r.steps.Kind(&k.Event)
	return &instance{key: roofKey{class: c, step: kind}, lengths: r.steps.Lengths(&k.Event)}
}

// add adds a kernel to an instance.
func (i *instance) add(k *profile.Kernel, time int64) {
	i.time += time
	if dur := k.Dur(); dur >= i.longest {
		i.longest, i.key.kernel = dur, k.Name
	}
}

// finish adds an instance to its row.
func (r *roofs) finish(i *instance) {
	s := order.Memo(r.sums, i.key, func() *roofSum { return &roofSum{bound: map[Bound]float64{}} })
	s.n++
	s.time = distribution.AddTimes(s.time, i.time)
	m := r.modeled(i)
	s.work.add(m.work)
	s.roof += m.roof
	s.bound[m.bound] += m.roof
}

// notePart notes which part of its operator a call launches.
func (c *collector) notePart(call *profile.Call, thread, at int32) {
	t := c.list[thread]
	operator := c.threads.classes[t.frames[at].class]
	since := t.launched
	t.launched = call.Start
	if !c.roofs.parts.Has(operator.name) {
		return
	}
	in := [][2]trace.Sym{{operator.shapes, operator.types}}
	for i := t.before(call.Start); i > int(at) && t.frames[i].start > since; i-- {
		if of := &c.threads.classes[t.frames[i].class]; of.shapes != 0 {
			in = append(in, [2]trace.Sym{of.shapes, of.types})
		}
	}
	if len(in) == 1 {
		return
	}
	part := class{rank: operator.rank, name: operator.name}
	if part.shapes, part.types = c.roofs.parts.Inputs(in); c.roofs.hasModel(part) {
		c.roofs.part[launchID{call.Rank, call.Correlation}] = part
	}
}

// countEager counts a kernel for the innermost operator around its call that has a formula. If there is
// none, it is an instance of its own, for the innermost operator.
func (c *collector) countEager(k *profile.Kernel, p *place) {
	time := c.roofs.alone(k)
	if p == nil || p.frame == none {
		c.roofs.single(k, time, class{rank: k.Rank})
		return
	}
	if part, ok := c.roofs.part[launchID{k.Rank, k.Correlation}]; ok && c.roofs.names.Of(k.Name).product {
		c.roofs.single(k, time, part)
		return
	}
	t := c.list[p.thread-1]
	chosen := p.frame
	for chosen != none && !c.roofs.hasModel(c.threads.classes[t.frames[chosen].class]) {
		chosen = t.frames[chosen].around
	}
	if chosen == none {
		c.roofs.single(k, time, c.threads.classes[t.frames[p.frame].class])
		return
	}
	key := [2]int32{p.thread, chosen}
	i := order.Memo(c.roofs.eager, key, func() *instance { return c.roofs.begin(k, c.threads.classes[t.frames[chosen].class]) })
	i.add(k, time)
}

// single counts a kernel as an instance of its own.
func (r *roofs) single(k *profile.Kernel, time int64, of class) {
	i := r.begin(k, of)
	i.add(k, time)
	r.finish(i)
}

// countCaptured is countEager for the kernels of a replay whose capture is known.
func (c *collector) countCaptured(l *graphs.Launch) {
	of := c.classesOf(l.Capture, l.Rank)
	byFrame := map[int32]*instance{}
	for node := range l.Nodes {
		n := &l.Nodes[node]
		if n.Work != graphs.KernelWork {
			continue
		}
		k := profile.Kernel{Event: l.Event(node), Device: n.Device, Stream: n.Stream}
		time := c.roofs.alone(&k)
		if !c.opt.Keeps(&k.Event) {
			continue
		}
		chosen, inner := int32(none), class{rank: l.Rank}
		for at := range l.Around(node) {
			if of.class[at] == none {
				continue
			}
			of := c.threads.classes[of.class[at]]
			if inner.name == 0 {
				inner = of
			}
			if c.roofs.hasModel(of) {
				chosen, inner = at, of
				break
			}
		}
		if chosen == none {
			if at := l.Part(node); at > 0 && of.class[at] != none && c.roofs.names.Of(n.Name).product {
				if part := c.threads.classes[of.class[at]]; c.roofs.hasModel(part) {
					inner = part
				}
			}
			c.roofs.single(&k, time, inner)
			continue
		}
		i := order.Memo(byFrame, chosen, func() *instance { return c.roofs.begin(&k, inner) })
		i.add(&k, time)
	}
	for _, i := range byFrame {
		c.roofs.finish(i)
	}
}

// A RooflineSum sums up how close kernels come to the limits of their GPUs, stream by stream.
type RooflineSum struct {
	set     *profile.Set
	graphs  *graphs.Graphs
	routed  *RoutedTokens
	clocks  []float64 // of the GPU of each rank, MHz; 0 is unknown
	opt     profilewalk.Options
	streams []map[roofKey]*roofSum
}

// NewRooflineSum begins a sum. g is nil without captures of graphs.
func NewRooflineSum(set *profile.Set, g *graphs.Graphs, beside Beside, opt profilewalk.Options) *RooflineSum {
	return &RooflineSum{set, g, beside.Routed, clocksOf(set, beside.Clocks, &opt), opt, make([]map[roofKey]*roofSum, len(set.Streams))}
}

// Add adds stream i, whose steps are given. Several may be added at once.
func (x *RooflineSum) Add(i int, s profile.Stream, steps *profilewalk.KernelSteps) {
	r := newRoofs(x.set, steps, x.routed, x.clocks)
	collect(x.set, i, s, &x.opt, pass{selected: selectOperators(x.set.Syms), graphs: x.graphs, roofs: r})
	for _, instance := range r.eager {
		r.finish(instance)
	}
	x.streams[i] = r.sums
}

// Rooflines returns the rooflines of all streams that were added.
func (x *RooflineSum) Rooflines() *Rooflines {
	set, clocks, opt := x.set, x.clocks, &x.opt
	o := &Rooflines{ByRank: opt.ByRank, ranks: len(set.Ranks), gpus: set.GPUs, clocks: clocks}
	var all []profilewalk.Member[roofKey, roofSum]
	for _, sums := range x.streams {
		for key, s := range sums {
			m := profilewalk.Member[roofKey, roofSum]{Key: key, Rank: key.rank, Part: s}
			if !opt.ByRank {
				m.Key.rank = profilewalk.NoRank
			}
			all = append(all, m)
		}
	}
	total := int64(0)
	for _, p := range profilewalk.Pools(all, roofKey.compare) {
		row := Roofed{Row: profilewalk.NewRow(set, profilewalk.Key{Rank: p.Key.rank, Name: p.Key.name}, p.Ranks), Kernel: nameOf(set, p.Key.kernel),
			Shapes: nameOf(set, p.Key.shapes), Types: nameOf(set, p.Key.types), Mask: p.Key.mask, Step: p.Key.step}
		if p.Key.name == 0 {
			row.Row.Name = ""
		}
		row.sum(p.Parts)
		row.Reached = 1
		if g, ok := GPUOf(set.GPU(p.Key.rank)); ok {
			row.Reached = g.reached(row.Bound)
			if row.Bound == ByCompute && slices.Max(clocks) > 0 { // the roof is already at the measured clock, which is the one that power allows
				row.Reached = 1
			}
		}
		total = distribution.AddTimes(total, row.Time)
		o.Rows = append(o.Rows, row)
	}
	for i := range o.Rows {
		o.Rows[i].Share = distribution.Fraction(o.Rows[i].Time, total)
	}
	slices.SortFunc(o.Rows, func(a, b Roofed) int {
		return cmp.Or(cmp.Compare(b.Time, a.Time), cmp.Compare(a.Step, b.Step), strings.Compare(a.Kernel, b.Kernel), strings.Compare(a.Row.Name, b.Row.Name), strings.Compare(a.Shapes, b.Shapes),
			strings.Compare(a.Types, b.Types), cmp.Compare(a.Mask.Window, b.Mask.Window), strings.Compare(a.Row.Rank, b.Row.Rank))
	})
	return o
}

// sum adds up what instances did, of all ranks.
func (r *Roofed) sum(parts []*roofSum) {
	bound := map[Bound]float64{}
	for _, s := range parts {
		r.Instances += s.n
		r.Time = distribution.AddTimes(r.Time, s.time)
		r.Work.add(s.work)
		r.Roof += s.roof
		for by, ns := range s.bound {
			bound[by] += ns
		}
	}
	if math.IsNaN(r.Roof) {
		return
	}
	for _, by := range [...]Bound{ByMemory, ByCompute, ByLink} {
		if bound[by] > bound[r.Bound] {
			r.Bound = by
		}
	}
}
