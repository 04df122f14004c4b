package operators

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/graphs"
	"github.com/sgtrace/sgtrace/analyze/roof"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/walk"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// A Roofed is the operators of one name and shape whose longest kernel has one name, and how near
// these come to what the GPU can do.
type Roofed struct {
	Row           walk.Row // Name is the operator; "" is unknown
	Kernel        string   // the longest of an operator
	Shapes, Types string
	Instances     int64
	Time          int64     // ns of their kernels, each from when the one before it on its stream ended
	Work          roof.Work // of all; NaN is unknown
	Roof          float64   // ns in which the GPU can do it; NaN is unknown
	Bound         roof.Bound
	Share         float64 // of the time of all rows
}

// Of is the roof as part of the time; NaN is unknown. Above 1, the work is not what the formula says.
func (r *Roofed) Of() float64 { return r.Roof / float64(r.Time) }

// Known reports whether the roof is known, and not beaten.
func (r *Roofed) Known() bool { return r.Of() <= 1 }

// Rooflines are how near kernels come to what their GPUs can do.
type Rooflines struct {
	Rows   []Roofed // the longest time first
	ByRank bool
	gpus   []string // that are known, by rank; "" is unknown
	ranks  int
}

// A roofKey says what a row is of.
type roofKey struct {
	class
	kernel trace.Sym
}

func (k roofKey) compare(o roofKey) int {
	return cmp.Or(k.class.compare(o.class), cmp.Compare(k.kernel, o.kernel))
}

// A roofSum is what instances of one row did.
type roofSum struct {
	n       int64
	time    int64
	work    roof.Work // of the instances of which it is known
	unknown int64     // instances
	rank    int32
}

// An instance is a call of an operator, or one of a replay, with the kernels that count for it.
type instance struct {
	key     roofKey
	time    int64 // ns
	longest int64
	lengths *profile.Lengths
}

// roofs collect the instances of a stream.
type roofs struct {
	syms   *trace.Symbols
	sums   map[roofKey]*roofSum
	inputs map[class]roof.Inputs
	model  map[class]bool // whether a formula may be known
	eager  map[[2]int32]*instance
	ends   map[laneID]trace.Time // of the last kernel of each stream
}

type laneID struct {
	rank, device int32
	stream       uint32
}

func newRoofs(syms *trace.Symbols) *roofs {
	return &roofs{syms, map[roofKey]*roofSum{}, map[class]roof.Inputs{}, map[class]bool{}, map[[2]int32]*instance{}, map[laneID]trace.Time{}}
}

// alone returns how long a kernel ran after the one before it on its stream had ended: programmatic
// dependent launch starts kernels early, to wait.
func (r *roofs) alone(k *profile.Kernel) int64 {
	lane := laneID{k.Rank, k.Device, k.Stream}
	start := k.Start
	if last := r.ends[lane]; last > start && last < k.End {
		start = last
	}
	r.ends[lane] = max(r.ends[lane], k.End)
	return max(0, int64(k.End-start))
}

// of returns the inputs of operators of a class.
func (r *roofs) of(c class) roof.Inputs {
	in, ok := r.inputs[c]
	if !ok {
		text := func(sym trace.Sym) string {
			if sym == 0 {
				return ""
			}
			return r.syms.Name(sym)
		}
		in = roof.ParseInputs(text(c.shapes), text(c.types))
		r.inputs[c] = in
	}
	return in
}

// work returns what an operator has to do; ok is false if that is not known.
func (r *roofs) work(c class, lengths *profile.Lengths) (roof.Work, bool) {
	if c.name == 0 {
		return roof.Work{}, false
	}
	name := r.syms.Name(c.name)
	if w, ok := roof.WorkOf(name, r.of(c)); ok {
		return w, true
	}
	if lengths == nil {
		return roof.Work{}, false
	}
	return roof.AttentionOf(name, r.of(c), *lengths)
}

// hasModel reports whether a formula may be known for operators of a class.
func (r *roofs) hasModel(c class) bool {
	known, ok := r.model[c]
	if !ok {
		_, known = r.work(c, &profile.Lengths{})
		r.model[c] = known
	}
	return known
}

// add counts a kernel for an instance.
func (i *instance) add(k *profile.Kernel, time int64) {
	i.time += time
	if dur := k.Dur(); dur >= i.longest {
		i.longest, i.key.kernel = dur, k.Name
	}
}

// finish counts an instance for its row.
func (r *roofs) finish(i *instance) {
	s := r.sums[i.key]
	if s == nil {
		s = &roofSum{rank: i.key.rank}
		r.sums[i.key] = s
	}
	s.n++
	s.time = distribution.AddTimes(s.time, i.time)
	if w, ok := r.work(i.key.class, i.lengths); ok {
		s.work.Add(w)
	} else {
		s.unknown++
	}
}

// countEager counts a kernel for the innermost operator around its call of which a formula is known, or
// else the innermost one.
func (c *collector) countEager(k *profile.Kernel, p *place) {
	time := c.roofs.alone(k)
	if p == nil || p.frame == none {
		i := instance{key: roofKey{class: class{rank: k.Rank}}}
		i.add(k, time)
		c.roofs.finish(&i)
		return
	}
	t := c.list[p.thread-1]
	chosen := p.frame
	for at := p.frame; at != none; at = t.frames[at].around {
		if c.roofs.hasModel(c.threads.classes[t.frames[at].class]) {
			chosen = at
			break
		}
	}
	key := [2]int32{p.thread, chosen}
	i := c.roofs.eager[key]
	if i == nil {
		i = &instance{key: roofKey{class: c.threads.classes[t.frames[chosen].class]}}
		c.roofs.eager[key] = i
	}
	i.add(k, time)
}

// countCaptured does the same for the kernels of a replay whose capture is known.
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
		chosen := int32(none)
		for at := range l.Around(node) {
			if of.class[at] == none {
				continue
			}
			if chosen == none {
				chosen = at
			}
			if c.roofs.hasModel(c.threads.classes[of.class[at]]) {
				chosen = at
				break
			}
		}
		i := byFrame[chosen]
		if i == nil || chosen == none {
			i = &instance{key: roofKey{class: class{rank: l.Rank}}, lengths: l.Lengths}
			if chosen != none {
				i.key.class = c.threads.classes[of.class[chosen]]
			}
			byFrame[chosen] = i
		}
		i.add(&k, time)
		if chosen == none {
			c.roofs.finish(i)
		}
	}
	for at, i := range byFrame {
		if at != none {
			c.roofs.finish(i)
		}
	}
}

// SumRooflines finds how near kernels come to what their GPUs can do.
func SumRooflines(set *profile.Set, g *graphs.Graphs, opt walk.Options) *Rooflines {
	streams := make([]map[roofKey]*roofSum, len(set.Streams))
	walk.EachStream(set, func(i int, s profile.Stream) {
		r := newRoofs(set.Syms)
		collect(set, i, s, &opt, pass{selected: selectOperators(set.Syms), graphs: g, roofs: r})
		for _, x := range r.eager {
			r.finish(x)
		}
		streams[i] = r.sums
	})
	o := &Rooflines{ByRank: opt.ByRank, ranks: len(set.Ranks), gpus: set.GPUs}
	var all []walk.Member[roofKey, roofSum]
	for _, sums := range streams {
		for key, s := range sums {
			m := walk.Member[roofKey, roofSum]{Key: key, Rank: key.rank, Part: s}
			if !opt.ByRank {
				m.Key.rank = walk.NoRank
			}
			all = append(all, m)
		}
	}
	total := int64(0)
	for _, p := range walk.Pools(all, roofKey.compare) {
		row := Roofed{Row: walk.NewRow(set, walk.Key{Rank: p.Key.rank, Name: p.Key.name}, p.Ranks), Kernel: nameOf(set, p.Key.kernel),
			Shapes: nameOf(set, p.Key.shapes), Types: nameOf(set, p.Key.types)}
		if p.Key.name == 0 {
			row.Row.Name = ""
		}
		for _, s := range p.Parts {
			row.add(s, set.GPU(s.rank))
		}
		total = distribution.AddTimes(total, row.Time)
		o.Rows = append(o.Rows, row)
	}
	for i := range o.Rows {
		o.Rows[i].Share = distribution.Fraction(o.Rows[i].Time, total)
	}
	slices.SortFunc(o.Rows, func(a, b Roofed) int {
		return cmp.Or(cmp.Compare(b.Time, a.Time), strings.Compare(a.Kernel, b.Kernel), strings.Compare(a.Row.Name, b.Row.Name), strings.Compare(a.Shapes, b.Shapes),
			strings.Compare(a.Types, b.Types), strings.Compare(a.Row.Rank, b.Row.Rank))
	})
	return o
}

// add adds what instances on a GPU did.
func (r *Roofed) add(s *roofSum, gpu string) {
	r.Instances += s.n
	r.Time = distribution.AddTimes(r.Time, s.time)
	if s.unknown > 0 {
		r.Work.FLOPs, r.Work.Bytes, r.Roof, r.Bound = math.NaN(), math.NaN(), math.NaN(), ""
		return
	}
	r.Work.Add(s.work)
	g, ok := roof.GPUOf(gpu)
	if !ok {
		r.Roof = math.NaN()
		return
	}
	ns, by := s.work.Roof(&g)
	if r.Roof += ns; !math.IsNaN(r.Roof) {
		r.Bound = by
	}
}

// Report returns the table.
func (o *Rooflines) Report() *table.Table {
	row := func(r *Roofed) *walk.Row { return &r.Row }
	number := func(name, doc string, of func(*Roofed) float64) table.Field[Roofed] {
		return table.NumberColumn(name, doc, of)
	}
	shapes := table.TextColumn("shapes", "shapes of the inputs of the operator", func(r *Roofed) string { return r.Shapes })
	types := table.TextColumn("types", "types of these", func(r *Roofed) string { return r.Types })
	operator := table.TextColumn("operator", "operator that launched it: the innermost one of which a formula is known", func(r *Roofed) string { return r.Row.Name })
	kernel := table.TextColumn("kernel", "name of the longest kernel of the operator", func(r *Roofed) string { return r.Kernel })
	kernel.Most, shapes.Most, types.Most, types.Detail = table.MostName, mostShapes, mostTypes, true
	fields := append(walk.RankFields(o.ByRank, row),
		walk.ShareField("part of the time of all rows", func(r *Roofed) float64 { return r.Share }),
		table.NsColumn("total", "of its kernels, each from when the one before it on its stream ended", func(r *Roofed) int64 { return r.Time }),
		table.CountColumn("instances", "how many calls of the operator", func(r *Roofed) int64 { return r.Instances }),
		number("flops", "floating-point operations of all", func(r *Roofed) float64 { return r.Work.FLOPs }),
		number("bytes", "that these have to move at least", func(r *Roofed) float64 { return r.Work.Bytes }),
		number("tflops", "10^12 operations per second", func(r *Roofed) float64 { return r.Work.FLOPs / float64(r.Time) / 1e3 }),
		number("tb per s", "10^12 bytes per second", func(r *Roofed) float64 { return r.Work.Bytes / float64(r.Time) / 1e3 }),
		number("intensity", "operations per byte", func(r *Roofed) float64 { return r.Work.FLOPs / r.Work.Bytes }),
		table.TextColumn("bound", "which takes the GPU longer: computing, or moving bytes to and from its memory", func(r *Roofed) string { return string(r.Bound) }),
		table.ShareColumn("roof share", "time in which the GPU can do it at best, as part of the total; above 100 %, the work is not what the formula says", func(r *Roofed) float64 { return r.Of() }),
	)
	fields = append(fields, walk.RanksFields(o.ByRank, o.ranks, row)...)
	t := table.New("sgtrace.report.kernels.roof/v1", "Kernels and what the GPU can do", o.Rows, append(fields, operator, shapes, types, kernel))
	o.note(t)
	return t
}

// Any tells whether the work of any row is known, and so its roof.
func (o *Rooflines) Any() bool {
	return slices.ContainsFunc(o.Rows, func(r Roofed) bool { return !math.IsNaN(r.Of()) })
}

// farFromRoof is from where on kernels are said to be far from the roof. Large kernels that are written
// well reach 75 to 95 %.
const farFromRoof = 0.4

// note says how much of the time is far from the roof, and of how much it is not known.
func (o *Rooflines) note(t *table.Table) {
	if len(o.Rows) == 0 {
		return
	}
	far, unknown, over := 0.0, 0.0, 0
	for i := range o.Rows {
		switch r := &o.Rows[i]; {
		case math.IsNaN(r.Of()):
			unknown += r.Share
		case r.Of() > 1:
			over++
			unknown += r.Share
		case r.Of() < farFromRoof:
			far += r.Share
		}
	}
	names := map[string]bool{}
	for _, name := range o.gpus {
		names[name] = true
	}
	for name := range names {
		if g, ok := roof.GPUOf(name); ok {
			t.Note("%s: %g TFLOP/s of 16-bit numbers, %g TB/s, by its data sheet (%s)", name, g.Half, g.Bandwidth, g.Source)
		} else if name == "" {
			t.Note("no roof: the files do not name the GPU")
		} else {
			t.Note("no roof: nothing is known of %s", name)
		}
	}
	t.Note("%.0f %% of the time is in kernels below %.0f %% of their roof; of %.0f %% it is not known", 100*far, 100*farFromRoof, 100*unknown)
	if over > 0 {
		t.Note("rows faster than their roof: %d. They have less to do than the formula says, such as attention to a window, or read from a cache, and count as not known", over)
	}
}
