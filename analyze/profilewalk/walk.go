package profilewalk

import (
	"cmp"
	"fmt"
	"maps"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// StepKinds are the words for kinds of steps in reports.
var StepKinds = [...]string{profile.StepOther: "other", profile.StepPrefill: "prefill", profile.StepDecode: "decode"}

// BatchBucket returns the bounds of the bucket of a batch size: more than one power of two, up to the next.
func BatchBucket(batch int32) (from, to int32) {
	if batch < 2 {
		return batch, batch
	}
	half := int32(1) << (bits.Len32(uint32(batch-1)) - 1)
	if half > 1<<29 {
		return half + 1, 1<<31 - 1
	}
	return half + 1, 2 * half
}

// BatchWords names a bucket of batch sizes by its bounds: "17-32"; "" is unknown.
func BatchWords(from, to int32) string {
	switch {
	case from < 0:
		return ""
	case from == to:
		return strconv.Itoa(int(from))
	}
	return fmt.Sprintf("%d-%d", from, to)
}

// A StepLabel is the information in the name of a step.
type StepLabel struct {
	StepName profile.StepName
	Part     bool // see [profile.IsPartOfStep]
}

// OfServer reports whether it is a whole step of a server, not one of a profiler around several.
func (k *StepLabel) OfServer() bool {
	return !k.Part && (k.StepName.Kind != profile.StepOther || k.StepName.Batch >= 0)
}

// Words names a kind of steps, with the size of the batch: "decode bs=17-32".
func (k *StepLabel) Words() string {
	if batches := BatchWords(BatchBucket(k.StepName.Batch)); batches != "" {
		return StepKinds[k.StepName.Kind] + " bs=" + batches
	}
	return StepKinds[k.StepName.Kind]
}

// tells counts how many of kind and batch the name contains.
func (k *StepLabel) tells() int {
	n := 0
	if k.StepName.Kind != profile.StepOther {
		n++
	}
	if k.StepName.Batch >= 0 {
		n++
	}
	return n
}

// StepNames parses the names of ranges as steps; nil for others. A name may be prefixed by an NVTX domain.
func StepNames(syms *trace.Symbols) *trace.PerName[*StepLabel] {
	return trace.EachName(syms, func(name string) *StepLabel {
		label, ok := profile.ParseStep(name)
		if _, rest, found := strings.Cut(name, ":"); !ok && found {
			name = rest
			label, ok = profile.ParseStep(name)
		}
		if !ok {
			return nil
		}
		return &StepLabel{label, profile.IsPartOfStep(name)}
	})
}

// A Step is an annotated step.
type Step struct {
	StepLabel
	Start, End  trace.Time
	Around      int32 // index of the step around its start on the same thread; NoStep
	Again       bool  // another annotation, around it or in it, is of the same step
	Projected   bool
	First, Last trace.Time // first start and last end of the work that it launched
	Busy        int64      // ns in which some of its work ran, summed over devices
	Unseen      int64      // ns since First in which the only device ran unrecorded work
	// Kernels is the number of kernels that it launched, and GraphKernels how many of them were launched by CUDA
	// graphs.
	Kernels, GraphKernels int32
}

// AsGraph reports whether a step that launched kernels ran as a CUDA graph: at least half of them were launched by
// one. Sampling of tokens is never in the graph.
func (s *Step) AsGraph() bool { return 2*s.GraphKernels >= s.Kernels }

const (
	NoStep = -1
	// maxNested bounds the nesting of steps. Real ones are two deep: a step of a server in one of torch.profiler.
	maxNested = 8
)

// StepThreads holds the steps of a rank by thread.
type StepThreads struct {
	threads map[stepThread][]Step
	bounds  map[stepThread]stepSpan
	steps   []Step // all threads, each in order; set by Settle

	last     stepThread // thread of the last call of At
	lastSpan stepSpan
	near     int // index of the last step that At found, relative to its span
}

type stepThread struct {
	pid int32
	tid int64
}

// A stepSpan is the range of a thread's steps.
type stepSpan struct{ from, to int }

// ReadSteps reads the steps of the ranks of a stream within a window, by rank. They are not settled.
func ReadSteps(set *profile.Set, s profile.Stream, within *Options) []StepThreads {
	names, ranks := StepNames(set.Syms), make([]StepThreads, len(set.Ranks))
	for r := range s.Ranges {
		if label := names.Of(r.Name); label != nil && !r.Open && within.Keeps(&r.Event) {
			ranks[r.Rank].Add(r, label)
		}
	}
	return ranks
}

func (t *StepThreads) Add(r *profile.Range, kind *StepLabel) {
	if t.threads == nil {
		t.threads = map[stepThread][]Step{}
	}
	key := stepThread{r.PID, r.TID}
	t.threads[key] = append(t.threads[key], Step{StepLabel: *kind, Start: r.Start, End: r.Start + trace.Time(r.Dur()), Around: NoStep})
}

// Settle sorts the steps and returns them.
func (t *StepThreads) Settle() []Step {
	t.bounds = map[stepThread]stepSpan{}
	threads := slices.SortedFunc(maps.Keys(t.threads), func(a, b stepThread) int {
		return cmp.Or(cmp.Compare(a.pid, b.pid), cmp.Compare(a.tid, b.tid))
	})
	for _, key := range threads {
		steps := t.threads[key]
		slices.SortFunc(steps, func(a, b Step) int {
			return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(b.End, a.End))
		})
		from := len(t.steps)
		t.steps = append(t.steps, steps...)
		t.bounds[key] = stepSpan{from, len(t.steps)}
		var open []int32
		for i := from; i < len(t.steps); i++ {
			s := &t.steps[i]
			for len(open) > 0 && (t.steps[open[len(open)-1]].End <= s.Start || len(open) == maxNested) {
				open = open[:len(open)-1]
			}
			if len(open) > 0 {
				s.Around = open[len(open)-1]
			}
			open = append(open, int32(i))
			t.countOnce(s)
		}
	}
	t.threads = nil
	return t.steps
}

// countOnce decides which of two nested whole steps counts: the one whose name says more, or else the outer one. In
// some versions, SGLang's step[EXTEND bs=15] is in an execute_..._context_15, and both are one forward pass.
func (t *StepThreads) countOnce(s *Step) {
	if !s.OfServer() {
		return
	}
	for i := s.Around; i != NoStep; i = t.steps[i].Around {
		outer := &t.steps[i]
		switch {
		case !outer.OfServer() || outer.Again || outer.End < s.End:
		case s.tells() > outer.tells():
			outer.Again = true
		default:
			s.Again = true
			return
		}
	}
}

// At returns the innermost step that a call is in, or NoStep.
func (t *StepThreads) At(c *profile.Call) int32 {
	if len(t.steps) == 0 {
		return NoStep
	}
	if key := (stepThread{c.PID, c.TID}); key != t.last || t.lastSpan.to == 0 {
		t.last, t.lastSpan, t.near = key, t.bounds[key], 0
	}
	steps := t.steps[t.lastSpan.from:t.lastSpan.to]
	n := t.near // calls come roughly in order
	if n > 0 && steps[n-1].Start > c.Start || n < len(steps) && steps[n].Start <= c.Start {
		n, _ = slices.BinarySearchFunc(steps, c.Start+1, func(s Step, at trace.Time) int { return cmp.Compare(s.Start, at) })
		t.near = n
	}
	i := int32(t.lastSpan.from+n) - 1
	if n == 0 {
		return NoStep
	}
	for i != NoStep && t.steps[i].End < c.End {
		i = t.steps[i].Around
	}
	return i
}

// RankFields returns the column of a row's rank, if rows have one.
func RankFields[T any](byRank bool, of func(*T) *Row) []table.Field[T] {
	if !byRank {
		return nil
	}
	return []table.Field[T]{table.TextColumn("rank", "rank, or name of a process that is not a rank", func(row *T) string { return of(row).Rank })}
}

// RanksFields returns the column with the number of ranks that a row pools, hidden if there is only one rank.
func RanksFields[T any](byRank bool, all int, of func(*T) *Row) []table.Field[T] {
	if byRank {
		return nil
	}
	return []table.Field[T]{table.CountColumn("ranks", "number of ranks with at least one", func(row *T) int64 { return int64(of(row).Ranks) }).DetailIf(all < 2)}
}

// ShareField returns the column "time", the share of the time of all rows.
func ShareField[T any](doc string, of func(*T) float64) table.Field[T] {
	return table.ShareColumn("time", doc, of)
}

// NameField returns the column of the name, which comes last because names are long.
func NameField[T any](what string, of func(*T) *Row) table.Field[T] {
	return table.TextColumn(what, "name of the "+what, func(row *T) string { return of(row).Name }).AtMost(table.MaxName)
}

// ThreadFields returns the columns of a row's thread.
func ThreadFields[T any](of func(*T) (pid int32, tid int64)) []table.Field[T] {
	return []table.Field[T]{
		{Column: table.Column{Name: "pid", Unit: table.Count, Doc: "process ID"}, Cell: func(row *T) table.Cell {
			pid, _ := of(row)
			return table.NumberCell(int64(pid))
		}},
		{Column: table.Column{Name: "tid", Unit: table.Count, Doc: "thread ID"}, Cell: func(row *T) table.Cell {
			_, tid := of(row)
			return table.NumberCell(tid)
		}},
	}
}

// StyleField returns the column that says whether ranges nest.
func StyleField[T any](of func(*T) profile.RangeStyle) table.Field[T] {
	return table.TextColumn("style", "PushPop (ranges nest) or StartEnd (ranges may overlap)", func(row *T) string { return of(row).String() })
}

// NoteGraphs notes how much GPU time, in ns, is of CUDA graphs that were only recorded as a whole.
func NoteGraphs(t *table.Table, whole int64) {
	if whole > 0 {
		t.Note("%s of GPU time is of whole CUDA graphs: nsys records their kernels with --cuda-graph-trace=node", table.InWords(whole))
	}
}

// NamesWith finds names that contain a text.
func NamesWith(syms *trace.Symbols, text string) *trace.PerName[bool] {
	return trace.EachName(syms, func(name string) bool { return strings.Contains(name, text) })
}

// GraphLaunches finds calls that launch CUDA graphs: cudaGraphLaunch, cuGraphLaunch, hipGraphLaunch.
func GraphLaunches(syms *trace.Symbols) *trace.PerName[bool] { return NamesWith(syms, "GraphLaunch") }
