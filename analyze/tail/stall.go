package tail

import (
	"cmp"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/cause"
	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// Stalls are the times in which the prefill of prompts held up the decoding of others,
// each for far longer than the usual gap between tokens.
type Stalls struct {
	Limit int64   // ns from which on a gap is that long: the least, where servers of several kinds have others
	List  []Stall // the one that costs most first
	Total int64   // ns that decodes were held up, all together
	// Chunk is how many tokens of prompts could be computed between two decode steps, so
	// that no gap is longer than ChunkTakes, in ns; 0 is unknown.
	Chunk, ChunkTakes int64
}

// A Stall is one of them.
type Stall struct {
	Proc     int        // whose decoding it is, an index into Set.Procs
	From, To trace.Time // of the longest gap between tokens
	Held     []int      // the requests that were held up, as indexes into Set.Requests
	HeldFor  []int64    // ns that each of them was
	Longest  int64      // ns that one of them was
	Total    int64      // ns that all of them were
	Prompts  int        // that were prefilled meanwhile
	Tokens   int64      // that were computed for them
	// Culprit is the request that most of these were for, an index into Set.Requests; None
	// is unknown. Share is its part of them, and Chunks in how many pieces its prompt was
	// computed.
	Culprit int
	Prompt  int64 // tokens of its prompt that had to be computed
	Share   float64
	Chunks  int
}

// A gap is a stall if people notice it, and if it is far longer than gaps and prefills usually
// are: where a prompt comes, decoding waits for it.
const (
	noticed        = int64(100_000_000) // ns
	stallsBeyond   = 8                  // times the median gap
	prefillsBeyond = 4                  // times what the median prompt takes
)

// A heldGap is a gap between tokens in which others were prefilled.
type heldGap struct {
	proc, request int
	from, to      trace.Time
	held          int64 // ns
}

// stalls finds the stalls, given the median gap between tokens in ns.
func (t *Tail) stalls(a *cause.Attributor, median int64) *Stalls {
	limits := t.stallLimits(median)
	s := &Stalls{Limit: slices.Min(limits)}
	byRequest := make([][]heldGap, len(t.List))
	a.Parallel(len(t.List), func(w *cause.CauseWalk, i int) {
		r := t.List[i].Request
		w.GapsOf(r, func(g *cause.GapSplit) {
			if g.Interference >= limits[t.List[i].AnswerGroup] {
				byRequest[i] = append(byRequest[i], heldGap{int(t.List[i].Answer), r, g.From, g.To, g.Interference})
			}
		})
	})
	gaps := slices.Concat(byRequest...)
	slices.SortStableFunc(gaps, func(x, y heldGap) int { return cmp.Or(cmp.Compare(x.proc, y.proc), cmp.Compare(x.to, y.to)) })
	prompts := t.prompts()
	for len(gaps) > 0 {
		n := 1 // a batch gives its tokens at one time
		for n < len(gaps) && gaps[n].proc == gaps[0].proc && gaps[n].to-gaps[0].to <= request.SameBatch {
			n++
		}
		x := newStall(gaps[:n], prompts[gaps[0].proc])
		s.List, s.Total = append(s.List, x), s.Total+x.Total
		gaps = gaps[n:]
	}
	slices.SortStableFunc(s.List, func(x, y Stall) int { return cmp.Compare(y.Total, x.Total) })
	if len(s.List) > 0 {
		s.chooseChunk(&t.Sizes.Prompt[t.Peers.GroupOf(int32(s.List[0].Proc))])
	}
	return s
}

// stallLimits returns from how many ns on a gap is a stall, by group of servers; the median is
// that of the gaps of all of them.
func (t *Tail) stallLimits(median int64) []int64 {
	medians, prompts := make([][]int64, t.Peers.Len()), make([][]int64, t.Peers.Len())
	for i := range t.List {
		a := &t.List[i]
		m := &t.set.Requests[a.Request].Metrics
		if len(medians) > 1 && m.ITL.N > 0 {
			medians[a.AnswerGroup] = memory.Append(medians[a.AnswerGroup], m.ITL.P50)
		}
		if n := m.PrefillTokens(); n >= 0 {
			prompts[a.PrefillGroup] = memory.Append(prompts[a.PrefillGroup], n)
		}
	}
	limits := make([]int64, len(medians))
	for group, list := range medians {
		usual := median
		if len(list) > 0 {
			usual = distribution.LowerMedian(list)
		}
		limits[group] = max(noticed, stallsBeyond*usual)
		if prefill := &t.Sizes.Prompt[group]; prefill.N > 0 { // of the median prompt
			limits[group] = max(limits[group], prefillsBeyond*prefill.Expected(distribution.LowerMedian(prompts[group])))
		}
	}
	return limits
}

// chooseChunk finds the largest power of two that takes no more than half of the limit, and
// that nobody notices.
func (s *Stalls) chooseChunk(usual *distribution.SizeFit) {
	const least, most = 256, 1 << 16 // tokens
	enough := min(s.Limit/2, noticed)
	for chunk := int64(least); usual.N > 0 && chunk <= most && usual.Expected(chunk) <= enough; chunk *= 2 {
		s.Chunk, s.ChunkTakes = chunk, usual.Expected(chunk)
	}
}

// A prompt is the prefill of one.
type prompt struct {
	request.Interval
	request int
	tokens  int64 // that were computed
	chunks  int   // in so many pieces
}

// prompts lists the prefills of every proc that leads a unified server, by start.
func (t *Tail) prompts() [][]prompt {
	out := make([][]prompt, len(t.set.Procs))
	for i := range t.set.AllParts() {
		p := &t.set.Parts[i]
		lead := t.set.Lead(p)
		if p.Role != request.Unified || lead == request.None || p.Request == request.None {
			continue
		}
		proc := t.set.Threads[lead].Proc
		t.set.EachStage(t.set.StagesOf(lead), func(i int) {
			row := t.set.Row(i)
			switch list := out[proc]; {
			case row.Means == request.Prefilling && row.Start < row.End && request.Plausible(row.Start, row.End):
				out[proc] = append(list, prompt{request.Interval{From: row.Start, To: row.End}, p.Request, max(0, p.PromptTokens-max(0, p.CachedTokens)), 1})
			case row.Means == request.PrefillingChunk && len(list) > 0 && list[len(list)-1].request == p.Request:
				if list[len(list)-1].chunks++; row.Start <= list[len(list)-1].From+request.SameBatch { // the first one
					list[len(list)-1].chunks = 1
				}
			}
		})
	}
	for proc := range out {
		slices.SortStableFunc(out[proc], func(x, y prompt) int { return cmp.Compare(x.From, y.From) })
	}
	return out
}

// newStall sums up the gaps of one, given the prefills of its rank.
func newStall(gaps []heldGap, prompts []prompt) Stall {
	x := Stall{Proc: gaps[0].proc, From: gaps[0].from, To: gaps[0].to, Culprit: request.None}
	for _, g := range gaps {
		x.Held, x.HeldFor = append(x.Held, g.request), append(x.HeldFor, g.held)
		x.Longest, x.Total = max(x.Longest, g.held), x.Total+g.held
		x.From, x.To = min(x.From, g.from), max(x.To, g.to)
	}
	most := int64(0)
	for i := range prompts {
		p := &prompts[i]
		from, to := max(p.From, x.From), min(p.To, x.To)
		if from >= to {
			continue
		}
		// Of a prefill that is partly outside, as many tokens as of its time count.
		tokens := int64(float64(p.tokens) * float64(to-from) / float64(p.To-p.From))
		x.Prompts++
		if x.Tokens += tokens; tokens > most {
			most, x.Culprit, x.Prompt, x.Chunks = tokens, p.request, p.tokens, p.chunks
		}
	}
	if x.Tokens > 0 {
		x.Share = float64(most) / float64(x.Tokens)
	}
	return x
}
