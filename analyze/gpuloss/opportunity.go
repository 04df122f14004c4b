package gpuloss

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/graphs"
	"github.com/sgtrace/sgtrace/analyze/operators"
	"github.com/sgtrace/sgtrace/analyze/profilewalk"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/internal/parallel"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/profile/kernelname"
)

// An Opportunity is something that could be faster.
type Opportunity struct {
	What, Where string
	Step        profile.StepKind // StepOther is unknown, or both
	Instances   int64
	Total       int64 // ns that it takes
	Saves       int64 // ns, at most
	How, Source string
}

// Opportunities lists what could be faster, the largest saving first.
type Opportunities struct {
	List   []Opportunity
	all    int64 // ns of all kernels
	steps  int64 // of all ranks; 0 is unknown
	layers int64 // how often attention was computed
	// pieces are names of kernels that compute attention in pieces.
	pieces map[string]bool
}

// minSaved is the least share of kernel time that an opportunity must save for a row.
const minSaved = 0.005

func newOpportunities() *Opportunities { return &Opportunities{pieces: map[string]bool{}} }

// finish drops small opportunities, and sorts the others.
func (o *Opportunities) finish() {
	o.List = slices.DeleteFunc(o.List, func(x Opportunity) bool { return !(distribution.Fraction(x.Saves, o.all) >= minSaved) })
	slices.SortFunc(o.List, func(a, b Opportunity) int {
		return cmp.Or(cmp.Compare(b.Saves, a.Saves), strings.Compare(a.What, b.What), strings.Compare(a.Where, b.Where), cmp.Compare(a.Step, b.Step))
	})
}

// operatorsOf are operators that only one server has, in layers of all models.
var operatorsOf = map[server][]string{
	sglang: {"sglang::unified_attention_with_output", "sglang::inplace_all_reduce", "sgl_kernel::rmsnorm", "sgl_kernel::fused_add_rmsnorm", "sgl_kernel::silu_and_mul", "sgl_kernel::rotary_embedding"},
	vllm:   {"vllm::unified_attention_with_output", "vllm::unified_attention", "vllm::all_reduce", "_C::rotary_embedding", "_C::silu_and_mul", "_C_cache_ops::reshape_and_cache_flash"},
}

// serverOf returns which server was traced, by the names of its operators and steps.
func serverOf(set *profile.Set) server {
	for _, of := range []server{sglang, vllm} { // SGLang may call operators of vLLM
		for _, name := range operatorsOf[of] {
			if _, any := set.Syms.Lookup(name); any {
				return of
			}
		}
	}
	found := make([]server, len(set.Streams))
	profilewalk.EachStream(set, func(i int, s profile.Stream) {
		for r := range s.Ranges {
			switch name := set.Syms.Name(r.Name); {
			case strings.HasPrefix(name, "step["):
				found[i] = sglang
				return
			case strings.HasPrefix(name, "execute_") || strings.HasPrefix(name, "gpu_model_runner:"):
				found[i] = vllm
				return
			}
		}
	})
	for _, of := range found {
		if of != anyServer {
			return of
		}
	}
	return anyServer
}

// neighbors adds what the order of kernels shows: what could run at the same time, and several kernels
// that one could replace, whose names it returns.
func (o *Opportunities) neighbors(streams []*seeker) map[string]bool {
	o.overlaps(streams)
	all, kernels := map[string]*occurrence{}, map[string]bool{}
	for _, x := range streams {
		o.steps += x.steps
		o.all = distribution.AddTimes(o.all, x.time)
		for _, n := range x.blocks {
			o.layers += n
		}
		for _, f := range x.all {
			for name := range strings.SplitSeq(f.kernels, ", ") {
				kernels[name] = true
				if f.what == inPieces {
					o.pieces[name] = true
				}
			}
			sum := order.Memo(all, f.whole(), func() *occurrence { return &occurrence{what: f.what, how: f.how, source: f.source, step: f.step} })
			if f.n > sum.most || f.n == sum.most && f.kernels < sum.kernels {
				sum.kernels, sum.most = f.kernels, f.n
			}
			sum.n += f.n
			sum.total, sum.saves = distribution.AddTimes(sum.total, f.total), distribution.AddTimes(sum.saves, f.saves)
		}
	}
	for _, f := range all {
		o.List = append(o.List, Opportunity{f.what, f.kernels, f.step, f.n, f.total, f.saves, f.how, f.source})
	}
	return kernels
}

// overlaps adds layers whose shared experts could run while tokens are exchanged.
func (o *Opportunities) overlaps(streams []*seeker) {
	for kind := range numSteps {
		sum := overlap{}
		for _, s := range streams {
			if x := s.overlaps[kind]; x != nil && x.layers > 0 {
				sum.layers += x.layers
				sum.total, sum.saves = distribution.AddTimes(sum.total, x.total), distribution.AddTimes(sum.saves, x.saves)
				sum.other, sum.shared = x.other, x.shared
			}
		}
		if sum.layers > 0 {
			o.List = append(o.List, Opportunity{"exchange of tokens and shared experts, one after the other", sum.other + ", " + sum.shared, kind, sum.layers, sum.total, sum.saves,
				"run shared experts on another stream: SGLang: --enable-single-batch-overlap", sglangServer})
		}
	}
}

// muchPadding is the share of a captured graph's tokens that a step must lack to be worth a row.
const muchPadding = 0.25

// padding adds the replays of graphs that were captured for many more tokens than the step has.
func (o *Opportunities) padding(g *graphs.Graphs) {
	if g == nil {
		return
	}
	type sizes struct{ tokens, captured int64 }
	all := map[sizes]*Opportunity{}
	for _, s := range g.Streams {
		for i := range s.Launches {
			l := &s.Launches[i]
			if l.Capture == nil || l.Tokens <= 0 || l.Capture.Tokens <= l.Tokens {
				continue
			}
			key := sizes{l.Tokens, l.Capture.Tokens}
			pad := 1 - float64(key.tokens)/float64(key.captured)
			if pad < muchPadding {
				continue
			}
			x := order.Memo(all, key, func() *Opportunity {
				return &Opportunity{What: fmt.Sprintf("steps of %s run the graph for %d", words.Counted(int(key.tokens), "token"), key.captured), Where: l.Capture.String(),
					How: "capture a size between: --cuda-graph-bs of SGLang, cudagraph_capture_sizes of vLLM", Source: sglangServer}
			})
			x.Instances++
			for node := range l.Nodes {
				x.Total = distribution.AddTimes(x.Total, l.Nodes[node].Dur)
			}
			x.Saves = int64(float64(x.Total) * pad)
		}
	}
	for _, x := range all {
		o.List = append(o.List, *x)
	}
}

// farFromRoof adds the operators that take more than twice as long as a GPU of that kind needs at best.
// inPattern are kernels that a pattern already replaces: they are not listed twice.
func (o *Opportunities) farFromRoof(roofs *operators.Rooflines, fills *Fills, inPattern map[string]bool) {
	few := map[string]*Fill{}
	for i := range fills.Rows {
		if f := &fills.Rows[i]; !f.Persistent && f.few() && len(fills.shapes[f.Kernel]) == 1 {
			few[f.Kernel] = f
		}
	}
	for i := range roofs.Rows {
		r := &roofs.Rows[i]
		if !r.Known() || r.Of() >= farOff*r.Reached {
			continue
		}
		kind := kernelname.KindOf(r.Kernel)
		if o.pieces[profile.BareName(r.Kernel)] && (kind == kernelname.KindSoftmax || strings.HasSuffix(r.Row.Name, "bmm")) {
			continue // part of attention that one kernel could do
		}
		what, how := fmt.Sprintf("at %.0f %% of the %s roof", 100*r.Of(), r.Bound), howOf(r)
		if r.Work.Type == "" && r.Bound == operators.ByMemory {
			each := r.Time / r.Instances
			plain := kind == kernelname.KindElementwise || kind == kernelname.KindCopy || kind == kernelname.KindReduction
			if r.Instances == 1 || inPattern[profile.BareName(r.Kernel)] && (each < launchSized || plain) {
				continue
			}
			how = "one kernel with a neighbor, or one that reads and writes in larger pieces"
			if each < launchSized {
				what = fmt.Sprintf("%s each, for work of %s", words.Nearly(each), words.Nearly(int64(r.Roof)/r.Instances))
				how = "one kernel with a neighbor: to start it takes longer than its work"
			} else if strings.HasPrefix(r.Kernel, "triton_") {
				how = "torch.compile with max-autotune, or a kernel written for it"
			}
		}
		if f := few[r.Kernel]; f != nil {
			units := "multiprocessors"
			if f.amd {
				units = "compute units"
			}
			what += fmt.Sprintf(", %s for %d %s", words.Counted(int(f.Shape.Blocks), "block"), f.Units, units)
		}
		where := words.JoinNonEmpty(" ", r.Row.Name, r.Shapes)
		o.List = append(o.List, Opportunity{what, where, r.Step, r.Instances, r.Time, r.Time - int64(r.Roof), how, ""})
	}
}

// howOf says what brings operators that multiply matrices, or that send, closer to their roof.
func howOf(r *operators.Roofed) string {
	attention, attends := profile.AttentionOf(r.Row.Name)
	switch {
	case r.Bound == operators.ByLink:
		return "waits for other ranks count: see --by-rank; else another algorithm for this size"
	case r.Row.Name == "aten::convolution":
		return "another algorithm: torch.backends.cudnn.benchmark tries them, also those of MIOpen"
	case attends && attention.Paged && r.Bound == operators.ByMemory && !strings.Contains(r.Types, "Float8"):
		return "another kernel of attention, or more parts of the keys at once; a cache of 8 bits lowers the roof itself"
	case attends:
		return "another kernel of attention, or more parts of the keys at once"
	case r.Bound == operators.ByMemory && !strings.HasSuffix(r.Row.Name, "bmm") && !strings.Contains(r.Types, "Float4") && !strings.Contains(r.Types, "unsigned char"):
		return "a kernel, or a setting of it, for these sizes: tiles, split-K; weights of fewer bits lower the roof itself"
	}
	return "a kernel, or a setting of it, for these sizes: tiles, split-K"
}

// launchSized is about how long a kernel with almost nothing to do takes, in ns: starting, reading, and
// writing each take microseconds.
const launchSized = 10_000

// farOff is the share of the reachable roof below which a kernel is far from it.
const farOff = 0.5

// waits are texts in the names of kernels that wait on purpose.
var waits = []string{"spin", "sleep", "wait", "barrier"}

// singleThreads adds kernels of one thread: loops in them are as slow as can be.
func (o *Opportunities) singleThreads(fills *Fills) {
	for i := range fills.Rows {
		f := &fills.Rows[i]
		wait := slices.ContainsFunc(waits, func(text string) bool { return strings.Contains(strings.ToLower(f.Kernel), text) })
		if f.Shape.Blocks == 1 && f.Shape.Threads == 1 && !wait {
			o.List = append(o.List, Opportunity{"one thread", profile.BareName(f.Kernel), f.Step, f.Instances, f.Total, f.Total, "a kernel with more threads, or another one that does this, too", ""})
		}
	}
}

// Lead says in a sentence what would save most; "" if there is nothing.
func (o *Opportunities) Lead() string {
	if len(o.List) == 0 {
		return ""
	}
	x := &o.List[0]
	return fmt.Sprintf("The most, at most %.1f %% of the time of kernels: %s (%s).", 100*distribution.Fraction(x.Saves, o.all), x.title(), table.Shorten([]string{x.Where}, maxWhere)[0])
}

// maxWhere is the most letters that a sentence has for where something is.
const maxWhere = 70

// title says what was seen, in which steps.
func (x *Opportunity) title() string {
	if x.Step == profile.StepOther {
		return x.What
	}
	return x.What + ", in " + profilewalk.StepKinds[x.Step] + " steps"
}

// OpportunitiesFromKernels finds what could be faster from the kernels alone: several that one could
// replace, and what could run at the same time. It needs neither shapes nor captures.
func OpportunitiesFromKernels(set *profile.Set, opt profilewalk.Options) *Opportunities {
	o, found, of := newOpportunities(), make([]*seeker, len(set.Streams)), serverOf(set)
	profilewalk.EachStream(set, func(i int, s profile.Stream) {
		found[i] = seek(set, s, profilewalk.ReadKernelSteps(set, s), of, &opt)
	})
	o.neighbors(found)
	o.finish()
	return o
}

// muchSaved is the least share of kernel time that is worth a finding.
const muchSaved = 0.05

// Finding returns a finding about the largest saving, if that is much. It does not say that nothing
// could be saved, as it does not know what the kernels of layers could be.
func (o *Opportunities) Finding() ([]finding.Finding, finding.Check) {
	check := finding.Check{What: "kernels that one could do together", Of: "layer", N: int(o.layers), Needed: minBlocks}
	share := 0.0
	if len(o.List) > 0 {
		share = distribution.Fraction(o.List[0].Saves, o.all)
	}
	if check.State() != finding.LookedAt || !(share >= muchSaved) {
		check.Reason = "no kernels that follow each other in layers take much time"
		return nil, check
	}
	x := &o.List[0]
	text := fmt.Sprintf("up to %.0f %% of kernel time could be saved, in every layer: %s. %s", 100*share, x.title(), x.How)
	f := finding.Finding{Subkind: "faster", Text: text, Metric: finding.Metric{Name: "time of kernels that could be saved", Unit: table.Share, Before: math.NaN(), After: share}}
	f.Evidence = []finding.Evidence{finding.Sentence("%s, %s in all: %s", words.Counted(int(x.Instances), "time"), words.Nearly(x.Total), table.Shorten([]string{x.Where}, maxWhere)[0])}
	return []finding.Finding{f}, check
}

// minBlocks is the fewest layers that must be seen before anything is said about each.
const minBlocks = 8

// Report returns the table.
func (o *Opportunities) Report() *table.Table {
	where := table.TextColumn("where", "operator and its shapes, or names of the kernels", func(x *Opportunity) string { return x.Where })
	how := table.TextColumn("how", "how to make it faster", func(x *Opportunity) string { return x.How })
	source := table.TextColumn("source", "source of this advice", func(x *Opportunity) string { return x.Source })
	where.Most, how.Most, source.Detail = 80, 80, true
	t := table.New("sgtrace.report.kernels.opportunities/v1", "What could be faster", o.List, []table.Field[Opportunity]{
		table.ShareColumn("saves", "saves at most, as a share of the time of all kernels", func(x *Opportunity) float64 { return distribution.Fraction(x.Saves, o.all) }),
		table.NsColumn("saves at most", "upper bound of the saving: time above the roof, or time of all but the longest of adjacent kernels", func(x *Opportunity) int64 { return x.Saves }),
		table.NumberColumn("ms per step", "saves at most, in ms per server step", func(x *Opportunity) float64 {
			if o.steps == 0 {
				return math.NaN()
			}
			return float64(x.Saves) / float64(o.steps) / 1e6
		}),
		table.NsColumn("total", "total time now", func(x *Opportunity) int64 { return x.Total }),
		table.CountColumn("instances", "number of occurrences", func(x *Opportunity) int64 { return x.Instances }),
		table.TextColumn("step", "kind of step: prefill, decode, or other (unknown or both)", func(x *Opportunity) string { return profilewalk.StepKinds[x.Step] }),
		table.TextColumn("what", "what was found", func(x *Opportunity) string { return x.What }),
		where, how, source,
	})
	if len(o.List) > 0 {
		t.Note("each is an upper bound by itself: they overlap, and do not add up")
	}
	return t
}

// Faster is what of the work of GPUs could be faster, and the tables that show it.
type Faster struct {
	*Opportunities
	Fills *Fills
	Roofs *operators.Rooflines
}

// FindFaster finds what could be faster.
func FindFaster(set *profile.Set, replays *graphs.Graphs, beside operators.Beside, opt profilewalk.Options) *Faster {
	f, captured := &Faster{Opportunities: newOpportunities()}, replays.Captured()
	roofs := operators.NewRooflineSum(set, captured, beside, opt)
	found, fills, of := make([]*seeker, len(set.Streams)), make([]fillSums, len(set.Streams)), serverOf(set)
	profilewalk.EachStream(set, func(i int, s profile.Stream) {
		steps := profilewalk.ReadKernelSteps(set, s)
		parallel.All(
			func() { roofs.Add(i, s, steps) },
			func() { found[i] = seek(set, s, steps, of, &opt) },
			func() { fills[i] = sumFills(set, s, steps, &opt) },
		)
	})
	f.Roofs, f.Fills = roofs.Rooflines(), fillsOf(set, fills)
	inPattern := f.neighbors(found)
	f.padding(captured)
	f.farFromRoof(f.Roofs, f.Fills, inPattern)
	f.singleThreads(f.Fills)
	f.finish()
	return f
}
