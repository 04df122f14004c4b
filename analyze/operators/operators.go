package operators

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/graphs"
	"github.com/sgtrace/sgtrace/analyze/profilewalk"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// A Row is the operators of one name, or of one name and shape. Times are sums over threads
// or devices, ns.
type Row struct {
	Row           profilewalk.Row
	Shapes, Types string // of the inputs; "" is not recorded, or pooled
	Mask          profile.Mask
	Calls         int64
	SelfCPU, CPU  int64 // without and with operators in it; where one is in another of the same row, time counts once
	SelfGPU, GPU  int64 // of kernels and copies that it launched itself, and with those of operators in it
	Work          int64 // kernels and copies that it launched itself
	Working       int64 // calls that launched some, themselves or by operators in them
	Share         float64
}

// Operators sums up operators. Rows with the most GPU time of their own come first, then
// those with the most CPU time.
type Operators struct {
	// Names has a row for every name, and rows for what no operator launched: their self GPU times add
	// up to the time of all kernels and copies.
	Names []Row
	// Shapes divides the rows of operators by the shapes and types of inputs; nil if none
	// were recorded.
	Shapes []Row
	// GEMMs are the rows of Shapes that multiply matrices, those with the most GPU time first.
	GEMMs []GEMM
	// Attention are the rows of Shapes that compute attention, in the same order.
	Attention []Attention
	// Copies divides the copies and fills in the rows of Names by operation, kinds of memory
	// and Python function, those with the most GPU time first.
	Copies []CopyRow
	// Modules has a row for every class of nn.Module, as Names has for operators; nil if no
	// modules were recorded.
	Modules []Row
	ByRank  bool

	ranks    int            // in the set
	frames   int64          // operators that were recorded
	outside  int64          // GPU time of what no operator launched, ns
	gpu      int64          // self GPU time of all rows, ns
	whole    int64          // time of CUDA graphs whose kernels were not recorded, ns
	export   bool           // some inputs are exports of Nsight Systems
	graphs   *graphs.Graphs // nil without captures of graphs
	opt      profilewalk.Options
	replayed bool // some kernels of graphs have no operator
}

// outsideNames name the rows for what no operator launched.
var outsideNames = [numOutside]string{noOperator: "(no operator)", inGraph: "(CUDA graph)", noCall: "(launch not recorded)"}

// Sum sums up operators. The window selects operators, and it selects kernels and copies, whose
// operators may lie before it.
func Sum(set *profile.Set, opt profilewalk.Options) *Operators {
	g := graphs.Collect(set)
	streams := collectAll(set, &opt, selectOperators, g, true)
	o := &Operators{ByRank: opt.ByRank, ranks: len(set.Ranks), export: set.Exports, graphs: g, opt: opt}
	o.Names = o.rows(set, streams, func(c class) class { return class{rank: c.rank, name: c.name} }, false)
	for _, c := range streams {
		o.whole = distribution.AddTimes(o.whole, c.whole)
	}
	outside := o.othersOf(set, streams, outsideNames)
	for i := range outside {
		o.replayed = o.replayed || outside[i].Row.Name == outsideNames[inGraph]
		o.outside = distribution.AddTimes(o.outside, outside[i].SelfGPU)
	}
	o.Names = append(o.Names, outside...)
	hasShapes := func(c *collector) bool {
		return slices.ContainsFunc(c.classes, func(c class) bool { return c.shapes != 0 })
	}
	if slices.ContainsFunc(streams, hasShapes) { // values of inputs have no column: only the roof needs them
		o.Shapes = o.rows(set, streams, func(c class) class { return class{c.rank, c.name, c.shapes, c.types, c.mask, 0} }, true)
	}
	if g != nil || slices.ContainsFunc(streams, func(c *collector) bool { return c.python }) {
		o.sumModules(set, &opt, g)
	}
	for _, rows := range [][]Row{o.Names, o.Shapes, o.Modules} {
		finish(rows)
	}
	for i := range o.Names {
		o.gpu = distribution.AddTimes(o.gpu, o.Names[i].SelfGPU)
		o.frames += o.Names[i].Calls
	}
	o.findComputed(set)
	o.copyRows(set, streams)
	return o
}

// rows makes a row for each key of classes.
func (o *Operators) rows(set *profile.Set, streams []*collector, keyOf func(class) class, shapes bool) []Row {
	var all []profilewalk.Member[class, sum]
	for _, c := range streams {
		for i, of := range c.classes {
			if s := &c.sums[i]; s.calls > 0 || s.gpu.class > 0 {
				all = append(all, profilewalk.Member[class, sum]{Key: o.pooled(keyOf(of)), Rank: of.rank, Part: s})
			}
		}
	}
	var rows []Row
	for _, p := range profilewalk.Pools(all, class.compare) {
		var s sum
		for _, part := range p.Parts {
			s.add(part)
		}
		row := Row{Row: profilewalk.NewRow(set, profilewalk.Key{Rank: p.Key.rank, Name: p.Key.name}, p.Ranks),
			Calls: s.calls, Work: s.work, Working: s.working, SelfCPU: s.cpu.self, CPU: s.cpu.name, SelfGPU: s.gpu.self, GPU: s.gpu.name}
		if shapes {
			row.CPU, row.GPU = s.cpu.class, s.gpu.class
			row.Shapes, row.Types, row.Mask = nameOf(set, p.Key.shapes), nameOf(set, p.Key.types), p.Key.mask
		}
		rows = append(rows, row)
	}
	return rows
}

// othersOf makes the rows for what no operator launched, under names.
func (o *Operators) othersOf(set *profile.Set, streams []*collector, names [numOutside]string) []Row {
	var rows []Row
	for why, name := range names {
		var all []profilewalk.Member[class, sum]
		for _, c := range streams {
			for rank := range c.others {
				if s := &c.others[rank][why]; s.work > 0 {
					all = append(all, profilewalk.Member[class, sum]{Key: o.pooled(class{rank: int32(rank)}), Rank: int32(rank), Part: s})
				}
			}
		}
		for _, p := range profilewalk.Pools(all, class.compare) {
			row := Row{Row: profilewalk.NewRow(set, profilewalk.Key{Rank: p.Key.rank}, p.Ranks)}
			row.Row.Name = name
			for _, s := range p.Parts {
				row.Work += s.work
				row.SelfGPU = distribution.AddTimes(row.SelfGPU, s.gpu.self)
			}
			row.GPU = row.SelfGPU
			rows = append(rows, row)
		}
	}
	return rows
}

// pooled leaves the rank out where ranks are pooled.
func (o *Operators) pooled(c class) class {
	if !o.ByRank {
		c.rank = profilewalk.NoRank
	}
	return c
}

func (c class) compare(o class) int {
	return cmp.Or(cmp.Compare(c.name, o.name), cmp.Compare(c.shapes, o.shapes), cmp.Compare(c.types, o.types), cmp.Compare(c.mask.Causal, o.mask.Causal), cmp.Compare(c.mask.Window, o.mask.Window), cmp.Compare(c.values, o.values), cmp.Compare(c.rank, o.rank))
}

// nameOf returns the text of a symbol; "" if it was not recorded.
func nameOf(set *profile.Set, sym trace.Sym) string {
	if sym == 0 {
		return ""
	}
	return set.Syms.Name(sym)
}

// finish finds the shares of rows and orders them.
func finish(rows []Row) {
	all := distribution.SumTimes(order.EachRow(rows, func(r *Row) int64 { return r.SelfGPU }))
	for i := range rows {
		rows[i].Share = distribution.Fraction(rows[i].SelfGPU, all)
	}
	slices.SortFunc(rows, func(a, b Row) int {
		return cmp.Or(cmp.Compare(b.SelfGPU, a.SelfGPU), a.Row.Compare(&b.Row, a.SelfCPU, b.SelfCPU),
			strings.Compare(a.Shapes, b.Shapes), strings.Compare(a.Types, b.Types), cmp.Compare(a.Mask.Causal, b.Mask.Causal), cmp.Compare(a.Mask.Window, b.Mask.Window))
	})
}

// selectModules selects calls of modules by their class: the numbers of modules do not show which layer
// of a model they are in.
func selectModules(syms *trace.Symbols) selection {
	classes := trace.Renamed(syms, profile.ModuleClass) // "" is no module
	return func(f *profile.Frame) (trace.Sym, bool) {
		if f.Kind != profile.PythonFrame {
			return 0, false
		}
		class := classes.Of(f.Name)
		return class, class != 0
	}
}

// sumModules makes the rows of modules.
func (o *Operators) sumModules(set *profile.Set, opt *profilewalk.Options, g *graphs.Graphs) {
	streams := collectAll(set, opt, selectModules, g, false)
	o.Modules = o.rows(set, streams, func(c class) class { return class{rank: c.rank, name: c.name} }, false)
	if o.Modules != nil {
		names := outsideNames
		names[noOperator] = "(no module)"
		o.Modules = append(o.Modules, o.othersOf(set, streams, names)...)
	}
}

// A Visitor receives what operators of a stream did, one by one.
type Visitor struct {
	// Call takes a call of an operator on a thread of its stream, and how long the thread was in it and in no
	// operator within, in ns.
	Call func(rank, thread int32, name trace.Sym, at trace.Time, self int64)
	// Work takes what a device did, with the operator that launched it itself, or the name of
	// the row of Operators.Names that has it.
	Work func(k *profile.Kernel, name trace.Sym)

	outside [numOutside]trace.Sym
}

// Each passes what operators did to visitors, one for each stream. Several streams are read at once.
func Each(set *profile.Set, opt profilewalk.Options, visitor func(stream int) Visitor) {
	g := graphs.Collect(set)
	profilewalk.EachStream(set, func(i int, s profile.Stream) {
		v := visitor(i)
		for why, name := range outsideNames {
			v.outside[why] = set.Syms.Intern(name)
		}
		collect(set, i, s, &opt, pass{selected: selectOperators(set.Syms), visit: &v, graphs: g})
	})
}

// visitCalls passes the operators of a thread.
func (c *collector) visitCalls(t *thread, number int32) {
	within := make([]int64, len(t.frames)) // ns in operators directly within
	for i := range t.frames {
		if f := &t.frames[i]; f.around != none {
			within[f.around] += int64(min(f.end, t.frames[f.around].end) - f.start)
		}
	}
	for i := range t.frames {
		if f := &t.frames[i]; c.keeps(f) {
			class := c.classes[f.class]
			c.visit.Call(class.rank, number, class.name, f.start, int64(f.end-f.start)-within[i])
		}
	}
}

// Up to fewOperators operators that take half of the time of all, together, are a finding.
const (
	fewOperators = 3
	maxOfAll     = 0.5
	beside       = 0.1 // from here on, the time that ranks spend in no operator is said
)

// An ownTime is how long threads were in an operator itself, ns.
type ownTime struct {
	name string
	time int64
}

// Largest finds the operators that take most of the time of processors. It is for captures in which no
// device ran. Shares are exact, whatever the number of calls.
func Largest(set *profile.Set, opt profilewalk.Options) ([]finding.Finding, finding.Check) {
	list, calls, recorded := ownTimes(set, opt)
	check := finding.Check{What: "operators that take most of the time", Of: "call", N: calls, Needed: 1}
	total := distribution.SumTimes(order.Each(list, func(o ownTime) int64 { return o.time }))
	if total == 0 {
		check.Reason = "no operators were recorded"
		return nil, check
	}
	sum, n := int64(0), 0
	for n < min(fewOperators, len(list)) && distribution.Fraction(sum, total) < maxOfAll {
		sum = distribution.AddTimes(sum, list[n].time)
		n++
	}
	share := distribution.Fraction(sum, total)
	if share < maxOfAll {
		return nil, check
	}
	var parts []string
	for _, o := range list[:n] {
		parts = append(parts, fmt.Sprintf("%s %.0f %%", words.Clean(o.name), 100*distribution.Fraction(o.time, total)))
	}
	takes := "operators take"
	if n == 1 {
		takes = "operator takes"
	}
	ofRanks := min(1, distribution.Fraction(total, recorded)) // threads may be in operators at the same time
	f := finding.Finding{Subkind: "operators", Cost: share * ofRanks,
		Text:   fmt.Sprintf("no device work was recorded; on the CPU, %d %s %.0f %% of all operator time: %s", n, takes, 100*share, strings.Join(parts, ", ")),
		Metric: finding.Metric{Name: "time of operators", Unit: table.Share, Before: math.NaN(), After: share}}
	in := "in total"
	if ofRanks < 1-beside {
		in = fmt.Sprintf("or %.0f %% of the time from the first operator to the last", 100*ofRanks)
	}
	f.Evidence = []finding.Evidence{finding.Sentence("all operators take %s %s, in %s; an operator's time excludes the operators that it calls", words.Nearly(total), in, words.Counted(calls, "call"))}
	return []finding.Finding{f}, check
}

// ownTimes returns the operators of all ranks, the longest time first, the number of their calls, and for how long ranks were recorded:
// from their first operator to their last, in total.
func ownTimes(set *profile.Set, opt profilewalk.Options) (list []ownTime, calls int, recorded int64) {
	type sums struct {
		times map[trace.Sym]int64
		calls int
		spans map[int32][2]trace.Time // by rank
	}
	streams := make([]sums, len(set.Streams))
	Each(set, opt, func(i int) Visitor {
		s := &streams[i]
		s.times, s.spans = map[trace.Sym]int64{}, map[int32][2]trace.Time{}
		return Visitor{
			Call: func(rank, _ int32, name trace.Sym, at trace.Time, self int64) {
				s.times[name] = distribution.AddTimes(s.times[name], self)
				s.calls++
				s.spans[rank] = joined(s.spans, rank, [2]trace.Time{at, at + trace.Time(self)})
			},
			Work: func(*profile.Kernel, trace.Sym) {},
		}
	})
	times, spans := map[trace.Sym]int64{}, map[int32][2]trace.Time{}
	for i := range streams {
		for rank, span := range streams[i].spans {
			spans[rank] = joined(spans, rank, span)
		}
		for name, t := range streams[i].times {
			times[name] = distribution.AddTimes(times[name], t)
		}
		calls += streams[i].calls
	}
	for _, span := range spans {
		recorded = distribution.AddTimes(recorded, distribution.Between(span[0], span[1]))
	}
	for name, t := range times {
		list = append(list, ownTime{set.Syms.Name(name), t})
	}
	slices.SortFunc(list, func(a, b ownTime) int { return cmp.Or(cmp.Compare(b.time, a.time), cmp.Compare(a.name, b.name)) })
	return list, calls, recorded
}

// joined extends the span of a rank, if it has one.
func joined(spans map[int32][2]trace.Time, rank int32, span [2]trace.Time) [2]trace.Time {
	if of, ok := spans[rank]; ok {
		return [2]trace.Time{min(of[0], span[0]), max(of[1], span[1])}
	}
	return span
}
