package analyze

import (
	"cmp"
	"fmt"
	"maps"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// A StepTime is how long steps of one kind and about one batch size took on a rank.
type StepTime struct {
	Rank string
	Kind profile.StepKind
	// MinBatch and MaxBatch bound the requests in a batch; -1 is unknown.
	MinBatch, MaxBatch int32
	Host               distribution.Summary // from begin to end of the annotation
	// Device is from the start of the first kernel or copy that was launched by a call in
	// the step, on its thread, to the end of the last one. Steps that launched nothing do not count.
	Device distribution.Summary

	rankIndex int32
}

var stepKinds = [...]string{profile.StepOther: "other", profile.StepPrefill: "prefill", profile.StepDecode: "decode"}

// batchBucket returns the bounds of the batch sizes that are put together: up to a
// power of two, beyond the one before it.
func batchBucket(batch int32) (from, to int32) {
	if batch < 2 {
		return batch, batch
	}
	half := int32(1) << (bits.Len32(uint32(batch-1)) - 1)
	if half > 1<<29 {
		return half + 1, 1<<31 - 1
	}
	return half + 1, 2 * half
}

// batchWords names a bucket of batch sizes by its bounds: "17-32"; "" is unknown.
func batchWords(from, to int32) string {
	switch {
	case from < 0:
		return ""
	case from == to:
		return strconv.Itoa(int(from))
	}
	return fmt.Sprintf("%d-%d", from, to)
}

// A stepLabel is what the name of a step tells.
type stepLabel struct {
	kind  profile.StepKind
	batch int32
	part  bool // see [profile.IsPartOfStep]
}

// ofServer tells whether it is a whole step of a server, and not one of a profiler
// around several.
func (k *stepLabel) ofServer() bool {
	return !k.part && (k.kind != profile.StepOther || k.batch >= 0)
}

// words names a kind of steps: "decode bs=17-32", by the requests in the batch.
func (k *stepLabel) words() string {
	if batches := batchWords(batchBucket(k.batch)); batches != "" {
		return stepKinds[k.kind] + " bs=" + batches
	}
	return stepKinds[k.kind]
}

// tells counts what the name tells of kind and batch.
func (k *stepLabel) tells() int {
	n := 0
	if k.kind != profile.StepOther {
		n++
	}
	if k.batch >= 0 {
		n++
	}
	return n
}

// stepNames know the names of steps. Each name is looked at once.
type stepNames struct {
	syms  *trace.Symbols
	index paged[int32] // by symbol: into kinds plus one, or notStep
	kinds []stepLabel
}

const notStep = -1

// of returns what the name of a range tells of a step, nil if it is none. The name
// may have an NVTX domain before it.
func (n *stepNames) of(name trace.Sym) *stepLabel {
	at := n.index.at(int64(name))
	if *at == 0 {
		*at = notStep
		text := n.syms.Name(name)
		kind, batch, ok := profile.ParseStep(text)
		if _, rest, found := strings.Cut(text, ":"); !ok && found {
			text = rest
			kind, batch, ok = profile.ParseStep(text)
		}
		if ok {
			n.kinds = append(n.kinds, stepLabel{kind, batch, profile.IsPartOfStep(text)})
			*at = int32(len(n.kinds))
		}
	}
	if *at == notStep {
		return nil
	}
	return &n.kinds[*at-1]
}

// A step is one that was annotated.
type step struct {
	stepLabel
	start, end  trace.Time
	around      int32 // index of the step around its start, on the same thread; noStep is none
	again       bool  // it is of a step that another annotation, around or in it, tells of
	projected   bool
	first, last trace.Time // of what it launched
}

const (
	noStep = -1
	// maxNested bounds how many steps lie in each other. Real ones are two deep: a step
	// of a server in one of torch.profiler.
	maxNested = 8
)

// stepThreads are the steps of a rank by thread.
type stepThreads struct {
	threads map[stepThread][]step
	bounds  map[stepThread]stepSpan
	steps   []step // of all threads, each in order; of what settle is called on

	last     stepThread // that at was asked for
	lastSpan stepSpan
}

type stepThread struct {
	pid int32
	tid int64
}

// A stepSpan is where the steps of a thread lie.
type stepSpan struct{ from, to int }

func (t *stepThreads) add(r *profile.Range, kind *stepLabel) {
	if t.threads == nil {
		t.threads = map[stepThread][]step{}
	}
	key := stepThread{r.PID, r.TID}
	t.threads[key] = append(t.threads[key], step{stepLabel: *kind, start: r.Start, end: r.Start + trace.Time(r.Dur()), around: noStep})
}

// settle puts the steps in order and returns them.
func (t *stepThreads) settle() []step {
	t.bounds = map[stepThread]stepSpan{}
	threads := slices.SortedFunc(maps.Keys(t.threads), func(a, b stepThread) int {
		return cmp.Or(cmp.Compare(a.pid, b.pid), cmp.Compare(a.tid, b.tid))
	})
	for _, key := range threads {
		steps := t.threads[key]
		slices.SortFunc(steps, func(a, b step) int {
			return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(b.end, a.end))
		})
		from := len(t.steps)
		t.steps = append(t.steps, steps...)
		t.bounds[key] = stepSpan{from, len(t.steps)}
		var open []int32
		for i := from; i < len(t.steps); i++ {
			s := &t.steps[i]
			for len(open) > 0 && (t.steps[open[len(open)-1]].end <= s.start || len(open) == maxNested) {
				open = open[:len(open)-1]
			}
			if len(open) > 0 {
				s.around = open[len(open)-1]
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
func (t *stepThreads) countOnce(s *step) {
	if !s.ofServer() {
		return
	}
	for i := s.around; i != noStep; i = t.steps[i].around {
		outer := &t.steps[i]
		switch {
		case !outer.ofServer() || outer.again || outer.end < s.end:
		case s.tells() > outer.tells():
			outer.again = true
		default:
			s.again = true
			return
		}
	}
}

// at returns the innermost step that a call lies in, noStep if there is none.
func (t *stepThreads) at(c *profile.Call) int32 {
	if len(t.steps) == 0 {
		return noStep
	}
	if key := (stepThread{c.PID, c.TID}); key != t.last || t.lastSpan.to == 0 {
		t.last, t.lastSpan = key, t.bounds[key]
	}
	steps := t.steps[t.lastSpan.from:t.lastSpan.to]
	n, _ := slices.BinarySearchFunc(steps, c.Start+1, func(s step, at trace.Time) int { return cmp.Compare(s.start, at) })
	i := int32(t.lastSpan.from+n) - 1
	if n == 0 {
		return noStep
	}
	for i != noStep && t.steps[i].end < c.End {
		i = t.steps[i].around
	}
	return i
}

// project adds what call l launched to the steps that it lies in.
func (r *rankWork) project(l *launch, row *gpuRow) {
	for i := l.step(); i != noStep; i = r.steps[i].around {
		s := &r.steps[i]
		if row.launch+trace.Time(row.launched) > s.end {
			continue // the steps cross each other
		}
		if !s.projected {
			s.projected, s.first, s.last = true, row.start, row.end()
		}
		s.first, s.last = min(s.first, row.start), max(s.last, row.end())
	}
}

// groupSteps sums up the steps of a rank, each once. Parts of steps count where there is
// nothing better.
func groupSteps(set *profile.Set, rank int32, steps []step) []StepTime {
	type key struct {
		kind     profile.StepKind
		from, to int32
	}
	host, device := map[key][]int64{}, map[key][]int64{}
	whole := slices.ContainsFunc(steps, func(s step) bool { return s.ofServer() })
	for i := range steps {
		s := &steps[i]
		if s.again || s.part && whole {
			continue
		}
		k := key{kind: s.kind}
		k.from, k.to = batchBucket(s.batch)
		host[k] = append(host[k], distribution.Between(s.start, s.end))
		if s.projected {
			device[k] = append(device[k], distribution.Between(s.first, s.last))
		}
	}
	var out []StepTime
	for k, durations := range host {
		out = append(out, StepTime{Rank: set.Ranks[rank], rankIndex: rank, Kind: k.kind, MinBatch: k.from, MaxBatch: k.to,
			Host: distribution.Summarize(durations), Device: distribution.Summarize(device[k])})
	}
	return out
}

// sortSteps orders steps so that ranks that did the same follow each other.
func sortSteps(steps []StepTime) {
	slices.SortFunc(steps, func(a, b StepTime) int {
		return cmp.Or(cmp.Compare(stepKinds[b.Kind], stepKinds[a.Kind]), cmp.Compare(a.MinBatch, b.MinBatch), cmp.Compare(a.rankIndex, b.rankIndex))
	})
}
