package replay

import (
	"math"

	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// A walk goes through the steps of an engine.
type walk struct {
	*Run
	*Engine
	done map[int32]int32 // tokens produced by the jobs in progress
	left map[int32]int32 // prompt tokens still to compute
	out  map[int32]bool  // jobs thrown out of the batch
	back map[int32]bool  // jobs that came back into a batch: their last token is in the KV cache, too
	// The decode batch.
	running int64
	context float64
}

// walk determines when the steps of an engine began, and what was in them.
func (r *Run) walk(e *Engine) {
	w := &walk{Run: r, Engine: e, done: map[int32]int32{}, left: map[int32]int32{}, out: map[int32]bool{}, back: map[int32]bool{}}
	before := trace.Time(math.MinInt64)
	i := e.marks[0]
	for k := range e.Steps {
		st := &e.Steps[k]
		wake := trace.Time(math.MaxInt64)
		if w.running > 0 || len(w.left) > 0 {
			wake = before
		}
		for ; i < int(st.marks[0]); i++ {
			w.change(&r.marks[i], st)
		}
		for _, m := range r.marksOf(st) {
			if j := &r.jobs[m.job]; m.kind.computed() && j.from == int32(k) {
				wake = min(wake, j.enter)
			}
			if m.kind == decodeEnd && w.out[m.job] {
				st.Joined++
				w.comeBack(m.job)
			}
		}
		st.Start = max(before, wake)
		if st.Start >= st.Done {
			st.Start = max(before, st.Done-1)
		}
		for m := st.marks[0]; m < st.marks[1]; m++ { // jobs that arrived while the loop was waking up
			if j := &r.jobs[r.marks[m].job]; r.marks[m].kind.computed() && j.from == int32(k) && j.enter > st.Start {
				j.enter = st.Start
			}
		}
		st.Context, st.running, st.out = int64(w.context), w.running, len(w.out)
		st.held = st.Context - w.running + int64(len(w.back))
		for job := range w.left {
			st.held += int64(r.jobs[job].prompt)
		}
		w.count(st)
		i = int(st.marks[1])
		before = st.Done
	}
}

// size returns the number of tokens that a decoding job has in the KV cache.
func (w *walk) size(i int32) float64 {
	j := &w.jobs[i]
	return float64(j.prompt) + 1 + float64(w.done[i]-1)*j.yield
}

// comeBack puts a job that was thrown out into the batch again.
func (w *walk) comeBack(i int32) {
	delete(w.out, i)
	delete(w.left, i)
	w.back[i] = true
	w.running++
	w.context += w.size(i)
}

// change applies a mark of a decode half that joins a batch, or of a job that is thrown out.
func (w *walk) change(m *mark, st *Step) {
	switch m.kind {
	case joinEnd:
		st.Joined++
		if w.done[m.job]++; w.done[m.job] < w.jobs[m.job].tokens {
			w.running++
			w.context += w.size(m.job)
		}
	case thrownOut:
		if n := w.done[m.job]; n > 0 && n < w.jobs[m.job].tokens && !w.out[m.job] {
			w.out[m.job] = true
			w.running--
			w.context -= w.size(m.job)
			if st.lost = int64(w.size(m.job)); !w.back[m.job] {
				st.lost-- // its last token is not in the KV cache yet
			}
			delete(w.back, m.job)
		}
	}
}

// count sums up a step: its requests and tokens, and what is running after it.
func (w *walk) count(st *Step) {
	partly, budget := int32(None), int64(0)
	for m := st.marks[0]; m < st.marks[1]; m++ {
		k := &w.Run.marks[m]
		if !k.kind.computed() {
			w.change(k, st)
			continue
		}
		j := &w.jobs[k.job]
		st.Requests++
		switch k.kind {
		case chunkEnd:
			partly = k.job
			continue
		case prefillEnd:
			budget += w.tokensLeft(k.job)
			st.Prefix += max(0, int64(j.prompt)-w.tokensLeft(k.job))
			delete(w.left, k.job)
		}
		was := w.done[k.job]
		w.done[k.job]++
		switch {
		case was == 0 && j.tokens > 1 && j.role != request.Prefill:
			w.running++
			w.context += w.size(k.job)
			if j.role == request.Decode { // its join was not recorded
				st.Joined++
			}
		case w.out[k.job]: // its prompt was computed again
			w.comeBack(k.job)
		case was > 0:
			w.context += j.yield
		}
		if w.done[k.job] == j.tokens && was > 0 {
			w.running--
			w.context -= w.size(k.job)
			delete(w.done, k.job)
			delete(w.back, k.job)
		}
	}
	if partly != None {
		n := w.tokensLeft(partly)
		st.Prefix += max(0, int64(w.jobs[partly].prompt)-n)
		part := max(1, min(n-1, w.limits.chunk-budget))
		w.left[partly] = int32(n - part)
		budget += part
	}
	if st.Kind == Prefill {
		st.New = budget
	}
}

// tokensLeft returns the number of prompt tokens still to compute: after a retraction, the whole prompt and the
// tokens that had come out.
func (w *walk) tokensLeft(i int32) int64 {
	if n, ok := w.left[i]; ok {
		return int64(max(1, n))
	}
	if w.out[i] {
		return int64(w.size(i))
	}
	return int64(w.jobs[i].fresh)
}
