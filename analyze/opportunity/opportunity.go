package opportunity

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/graphs"
	"github.com/sgtrace/sgtrace/analyze/operators"
	"github.com/sgtrace/sgtrace/analyze/roof"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/walk"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/profile"
)

// An Opportunity is something that could be faster.
type Opportunity struct {
	What, Where string
	Instances   int64
	Total       int64 // ns that it takes
	Saves       int64 // ns, at most
	How, Source string
}

// Opportunities are what could be faster, that which saves most first.
type Opportunities struct {
	List  []Opportunity
	all   int64 // ns of all kernels
	steps int64 // of all ranks; 0 is not known
}

// small parts are not worth a row: of the time of all kernels, the part that something could save.
const leastSaved = 0.005

// Find finds what could be faster. g is nil without captures of graphs.
func Find(set *profile.Set, g *graphs.Graphs, roofs *operators.Rooflines, fills *Fills, opt walk.Options) *Opportunities {
	o := &Opportunities{all: fills.All, steps: countSteps(set, &opt)}
	o.neighbors(set, &opt)
	o.padding(g)
	far := o.farFromRoof(roofs)
	o.fewBlocks(fills, far)
	o.List = slices.DeleteFunc(o.List, func(x Opportunity) bool { return distribution.Fraction(x.Saves, o.all) < leastSaved })
	slices.SortFunc(o.List, func(a, b Opportunity) int {
		return cmp.Or(cmp.Compare(b.Saves, a.Saves), strings.Compare(a.What, b.What), strings.Compare(a.Where, b.Where))
	})
	return o
}

// neighbors adds what one kernel could do instead of several.
func (o *Opportunities) neighbors(set *profile.Set, opt *walk.Options) {
	streams := make([]map[string]*found, len(set.Streams))
	walk.EachStream(set, func(i int, s profile.Stream) { streams[i] = findNeighbors(set, s, opt) })
	all := map[string]*found{}
	for _, some := range streams {
		for _, f := range some {
			sum := all[f.whole()]
			if sum == nil {
				sum = &found{what: f.what, how: f.how, source: f.source}
				all[f.whole()] = sum
			}
			if f.n > sum.most || f.n == sum.most && f.kernels < sum.kernels {
				sum.kernels, sum.most = f.kernels, f.n
			}
			sum.n += f.n
			sum.total, sum.saves = distribution.AddTimes(sum.total, f.total), distribution.AddTimes(sum.saves, f.saves)
		}
	}
	for _, f := range all {
		o.List = append(o.List, Opportunity{f.what, f.kernels, f.n, f.total, f.saves, f.how, f.source})
	}
}

// countSteps counts the steps of servers.
func countSteps(set *profile.Set, opt *walk.Options) (n int64) {
	counts := make([]int64, len(set.Streams))
	walk.EachStream(set, func(i int, s profile.Stream) {
		names := walk.StepNames{Syms: set.Syms}
		threads := make([]walk.StepThreads, len(set.Ranks))
		for r := range s.Ranges {
			if label := names.Of(r.Name); label != nil && !r.Open && opt.Keeps(&r.Event) {
				threads[r.Rank].Add(r, label)
			}
		}
		for rank := range threads {
			for _, step := range threads[rank].Settle() {
				if step.OfServer() && !step.Again {
					counts[i]++
				}
			}
		}
	})
	for _, c := range counts {
		n += c
	}
	return n
}

// muchPadding is the part of the tokens of a captured graph that a step does not have, from where on that
// is worth a row.
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
			x := all[key]
			if x == nil {
				x = &Opportunity{What: fmt.Sprintf("steps of %s run the graph for %d", words.Counted(int(key.tokens), "token"), key.captured), Where: l.Capture.String(),
					How: "capture a size between: --cuda-graph-bs of SGLang, cudagraph_capture_sizes of vLLM", Source: sglangServer}
				all[key] = x
			}
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

// farFromRoof adds the operators that take more than twice as long as the GPU needs, and returns the names
// of their kernels.
func (o *Opportunities) farFromRoof(roofs *operators.Rooflines) map[string]bool {
	far := map[string]bool{}
	for i := range roofs.Rows {
		r := &roofs.Rows[i]
		if !r.Known() || r.Of() >= farOff {
			continue
		}
		far[r.Kernel] = true
		how := "a kernel, or a setting of it, for these sizes: tiles, split-K"
		if r.Bound == roof.ByMemory {
			how += "; weights or caches of fewer bits lower the roof itself"
		}
		what := fmt.Sprintf("at %.0f %% of the %s roof", 100*r.Of(), r.Bound)
		if each := r.Time / max(1, r.Instances); each < launchSized {
			what = fmt.Sprintf("%s each, for work of %s", words.Nearly(each), words.Nearly(int64(r.Roof)/max(1, r.Instances)))
			how = "one kernel with a neighbor: to start it takes longer than its work"
		}
		where := words.JoinNonEmpty(" ", r.Row.Name, r.Shapes)
		o.List = append(o.List, Opportunity{what, where, r.Instances, r.Time, r.Time - int64(r.Roof), how, ""})
	}
	return far
}

// launchSized is about how long a kernel takes, in ns, that has next to nothing to do: to start, to read, and
// to write each take microseconds.
const launchSized = 10_000

// farOff is from where on a kernel is far from its roof.
const farOff = 0.5

// fewBlocks adds kernels that leave multiprocessors without work, are far from their roof, and are not made
// to start few blocks.
func (o *Opportunities) fewBlocks(fills *Fills, far map[string]bool) {
	for i := range fills.Rows {
		f := &fills.Rows[i]
		if f.Persistent || !far[f.Kernel] {
			continue
		}
		what := fmt.Sprintf("%s for %d multiprocessors", words.Counted(int(f.Shape.Blocks), "block"), f.Units)
		if f.Shape.Blocks == 1 && f.Shape.Threads == 1 {
			what = "one thread"
		}
		saves := int64(float64(f.Total) * (1 - float64(f.Shape.Blocks)/float64(f.Units)))
		how := fmt.Sprintf("smaller tiles or split-K; it fills the GPU with %.1f times the blocks, such as of larger batches", float64(f.Units)/float64(f.Shape.Blocks))
		o.List = append(o.List, Opportunity{what, profile.BareName(f.Kernel), f.Instances, f.Total, saves, how, ""})
	}
}

// Report returns the table.
func (o *Opportunities) Report() *table.Table {
	text := func(name, doc string, of func(*Opportunity) string) table.Field[Opportunity] {
		return table.TextColumn(name, doc, of)
	}
	where := text("where", "the operator and its shapes, or the names of the kernels", func(x *Opportunity) string { return x.Where })
	how := text("how", "what would make it faster", func(x *Opportunity) string { return x.How })
	source := text("source", "where that is written", func(x *Opportunity) string { return x.Source })
	where.Most, how.Most, source.Detail = 80, 80, true
	t := table.New("sgtrace.report.kernels.opportunities/v1", "What could be faster", o.List, []table.Field[Opportunity]{
		table.ShareColumn("saves", "at most, as part of the time of all kernels", func(x *Opportunity) float64 { return distribution.Fraction(x.Saves, o.all) }),
		table.NsColumn("saves at most", "upper bound: the time above the roof, or of all but the longest of some neighbors", func(x *Opportunity) int64 { return x.Saves }),
		table.NumberColumn("ms per step", "the same, per step of a server, in ms", func(x *Opportunity) float64 {
			if o.steps == 0 {
				return math.NaN()
			}
			return float64(x.Saves) / float64(o.steps) / 1e6
		}),
		table.NsColumn("total", "what it takes", func(x *Opportunity) int64 { return x.Total }),
		table.CountColumn("instances", "how many there are", func(x *Opportunity) int64 { return x.Instances }),
		text("what", "what was seen", func(x *Opportunity) string { return x.What }),
		where, how, source,
	})
	if len(o.List) > 0 {
		t.Note("each is an upper bound by itself: they overlap, and do not add up")
	}
	return t
}
