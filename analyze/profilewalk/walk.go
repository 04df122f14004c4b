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

// StepKinds are the words that reports have for kinds of steps.
var StepKinds = [...]string{profile.StepOther: "other", profile.StepPrefill: "prefill", profile.StepDecode: "decode"}

// BatchBucket returns the bounds of the batch sizes that are put together: up to a
// power of two, beyond the one before it.
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

// A StepLabel is what the name of a step tells.
type StepLabel struct {
	StepName profile.StepName
	Part     bool // see [profile.IsPartOfStep]
}

// OfServer reports whether it is a whole step of a server, and not one of a profiler
// around several.
func (k *StepLabel) OfServer() bool {
	return !k.Part && (k.StepName.Kind != profile.StepOther || k.StepName.Batch >= 0)
}

// Words names a kind of steps: "decode bs=17-32", by the requests in the batch.
func (k *StepLabel) Words() string {
	if batches := BatchWords(BatchBucket(k.StepName.Batch)); batches != "" {
		return StepKinds[k.StepName.Kind] + " bs=" + batches
	}
	return StepKinds[k.StepName.Kind]
}

// tells counts what the name tells of kind and batch.
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

// StepNames returns what the names of ranges tell of steps, nil of those that are none. A name may have
// an NVTX domain before it.
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

// A Step is one that was annotated.
type Step struct {
	StepLabel
	Start, End  trace.Time
	Around      int32 // index of the step around its start, on the same thread; NoStep is none
	Again       bool  // it is of a step that another annotation, around or in it, tells of
	Projected   bool
	First, Last trace.Time // of what it launched
	Busy        int64      // ns in which some of it ran, added up over devices
	Unseen      int64      // ns from First on in which the only device did what was not recorded
	// Kernels is how many kernels it launched, GraphKernels how many of them by CUDA graphs.
	Kernels, GraphKernels int32
}

// AsGraph reports whether a step that launched kernels ran as a CUDA graph: most of them were
// launched by one. What samples tokens never is.
func (s *Step) AsGraph() bool { return 2*s.GraphKernels >= s.Kernels }

const (
	NoStep = -1
	// maxNested bounds how many steps lie in each other. Real ones are two deep: a step
	// of a server in one of torch.profiler.
	maxNested = 8
)

// StepThreads are the steps of a rank by thread.
type StepThreads struct {
	threads map[stepThread][]Step
	bounds  map[stepThread]stepSpan
	steps   []Step // of all threads, each in order; of what settle is called on

	last     stepThread // that at was asked for
	lastSpan stepSpan
	near     int // what At found last, counted from where the span begins
}

type stepThread struct {
	pid int32
	tid int64
}

// A stepSpan is where the steps of a thread lie.
type stepSpan struct{ from, to int }

// ReadSteps reads the steps of the ranks of a stream within a window, by rank; they are not settled.
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

// Settle puts the steps in order and returns them.
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

// countOnce tells of a whole step in another which of the two counts: the one whose name
// tells more, of equals the outer one. SGLang's step[EXTEND bs=15] lies in an
// execute_..._context_15 in some versions: both are one forward pass.
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

// At returns the innermost step that a call lies in, NoStep if there is none.
func (t *StepThreads) At(c *profile.Call) int32 {
	if len(t.steps) == 0 {
		return NoStep
	}
	if key := (stepThread{c.PID, c.TID}); key != t.last || t.lastSpan.to == 0 {
		t.last, t.lastSpan, t.near = key, t.bounds[key], 0
	}
	steps := t.steps[t.lastSpan.from:t.lastSpan.to]
	n := t.near // calls come in about their order
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

// RankFields name the rank of a row, where rows have one.
func RankFields[T any](byRank bool, of func(*T) *Row) []table.Field[T] {
	if !byRank {
		return nil
	}
	return []table.Field[T]{table.TextColumn("rank", "rank, or process that is none", func(row *T) string { return of(row).Rank })}
}

// RanksFields count the ranks of a row that pools them. Of one rank there is
// nothing to count.
func RanksFields[T any](byRank bool, all int, of func(*T) *Row) []table.Field[T] {
	if byRank {
		return nil
	}
	return []table.Field[T]{table.CountColumn("ranks", "how many ranks have any", func(row *T) int64 { return int64(of(row).Ranks) }).DetailIf(all < 2)}
}

// ShareField returns the column "time": the part of the time of all rows.
func ShareField[T any](doc string, of func(*T) float64) table.Field[T] {
	return table.ShareColumn("time", doc, of)
}

// NameField returns the last column, since names are long.
func NameField[T any](what string, of func(*T) *Row) table.Field[T] {
	return table.TextColumn(what, "name of the "+what, func(row *T) string { return of(row).Name }).AtMost(table.MaxName)
}

// ThreadFields name the thread of a row.
func ThreadFields[T any](of func(*T) (pid int32, tid int64)) []table.Field[T] {
	return []table.Field[T]{
		{Column: table.Column{Name: "pid", Unit: table.Count, Doc: "process"}, Cell: func(row *T) table.Cell {
			pid, _ := of(row)
			return table.NumberCell(int64(pid))
		}},
		{Column: table.Column{Name: "tid", Unit: table.Count, Doc: "thread"}, Cell: func(row *T) table.Cell {
			_, tid := of(row)
			return table.NumberCell(tid)
		}},
	}
}

// StyleField returns the column that says whether ranges nest.
func StyleField[T any](of func(*T) profile.RangeStyle) table.Field[T] {
	return table.TextColumn("style", "PushPop nests, StartEnd need not", func(row *T) string { return of(row).String() })
}

// NoteGraphs says how much GPU time is of CUDA graphs of which only the whole was recorded, ns.
func NoteGraphs(t *table.Table, whole int64) {
	if whole > 0 {
		t.Note("%s of GPU time is of whole CUDA graphs: nsys records their kernels with --cuda-graph-trace=node", table.InWords(whole))
	}
}

// NamesWith tells names that hold a text.
func NamesWith(syms *trace.Symbols, text string) *trace.PerName[bool] {
	return trace.EachName(syms, func(name string) bool { return strings.Contains(name, text) })
}

// GraphLaunches tells calls that launch CUDA graphs: cudaGraphLaunch, cuGraphLaunch,
// hipGraphLaunch.
func GraphLaunches(syms *trace.Symbols) *trace.PerName[bool] { return NamesWith(syms, "GraphLaunch") }
