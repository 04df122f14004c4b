package rank

import (
	"cmp"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/load"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/internal/parallel"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// A paced is a step on a lead rank: of a batch that is decoded or prefilled.
type paced struct {
	at    trace.Time
	ns    int64
	cost  int64 // ns: total time of its requests
	held  int64 // ns, not in cost: how long the answer waited for prefills on its rank; only for whole answers
	size  int64 // tokens computed by a prefill, or requests decoded
	rank  int32 // index among the ranks compared
	of    int32 // the request; only for whole answers and prefills, the last one of a batch
	whole bool  // the average step of an answer whose steps are not traced
}

// gross returns how long a step takes including prefills meanwhile, in ns.
func (x *paced) gross() int64 {
	return int64(float64(x.ns) * (1 + distribution.Fraction(x.held, x.cost)))
}

func (x *paced) end() trace.Time { return x.at + trace.Time(x.ns) }

// collectPaces returns the steps of the lead threads, by kind and place. If the trace level does not include decode
// steps, they are the average steps of whole answers.
func collectPaces(of *place.RankSet, all load.Bulk) (steps [timed][][]paced) {
	n := len(of.Places)
	c := &paceCollector{set: of.Set, all: all, steps: make([][]paced, n), answers: make([][]paced, n), prefills: make([][]load.Prefill, n), computing: make([][]request.Interval, n)}
	for p := range of.Set.ServingParts {
		if thread, rank := of.Lead(p); thread != request.None && rank != request.None {
			c.add(p, thread, rank)
		}
	}
	steps[DecodeStep], steps[PrefillStep] = make([][]paced, n), make([][]paced, n)
	parallel.Each(n, func(i int) {
		list := c.steps[i]
		if steps[DecodeStep][i] = batches(list); len(list) == 0 {
			steps[DecodeStep][i] = withoutPrefills(c.answers[i], c.computing[i])
		}
		memory.Free(list)
		memory.Free(c.computing[i])
		steps[PrefillStep][i] = prefillSteps(c.prefills[i])
		memory.Free(c.prefills[i])
	})
	return steps
}

// A paceCollector collects the steps of each rank from parts of requests.
type paceCollector struct {
	set       *request.Set
	all       load.Bulk
	steps     [][]paced // decode steps, one for each request in the batch
	answers   [][]paced // of requests without traced steps
	prefills  [][]load.Prefill
	computing [][]request.Interval // when prefills ran
	pieces    load.Pieces          // pieces of the prefill of the current request
}

// add adds the stages of a part on the lead thread of a rank.
func (c *paceCollector) add(p *request.Part, thread, rank int) {
	req := &c.set.Requests[p.Request]
	counts := c.all.Holds(req)
	c.pieces = c.pieces[:0]
	var answer paced
	stepped := false
	c.set.EachSelectedStage(c.set.StagesOf(thread), true, func(i int, _ bool) {
		span := c.set.Row(i)
		if span.End <= span.Start || !request.Plausible(span.Start, span.End) {
			return
		}
		switch span.Means {
		case request.Stepping:
			if counts {
				ns := int64(span.End - span.Start)
				c.steps[rank] = memory.Append(c.steps[rank], paced{at: span.Start, ns: ns, cost: ns, size: 1})
				stepped = true
			}
		case request.Answering:
			answer = answerOf(span.Start, span.End, &req.Metrics)
		case request.Prefilling, request.PrefillingChunk:
			c.pieces.Add(span.Start, span.End)
			c.computing[rank] = memory.Append(c.computing[rank], request.Interval{From: span.Start, To: span.End})
		}
	})
	if !counts || req.Metrics.Retractions > 0 {
		return
	}
	if !stepped && answer.ns > 0 {
		answer.of = int32(p.Request)
		c.answers[rank] = memory.Append(c.answers[rank], answer)
	}
	if req.Metrics.PrefillTokens() > 0 {
		c.pieces.Of(p.Request, &req.Metrics)
		for _, x := range c.pieces {
			c.prefills[rank] = memory.Append(c.prefills[rank], x)
		}
	}
}

// withoutPrefills subtracts the prefills of their server from the steps of answers, because longer prefills don't
// make decoding slower. It leaves out answers that consist of little else.
func withoutPrefills(answers []paced, prefills []request.Interval) []paced {
	covered := request.NewCoverage(prefills)
	kept := answers[:0]
	for _, x := range answers {
		held := covered.Overlap(x.at, x.at+trace.Time(x.cost))
		part := distribution.Fraction(held, x.cost)
		if part > load.MaxHeldShare {
			continue
		}
		x.ns, x.cost, x.held = int64((1-part)*float64(x.ns)), x.cost-held, held
		kept = append(kept, x)
	}
	return kept
}

// prefillSteps turns the prefills of requests into steps, one for each batch.
func prefillSteps(prefills []load.Prefill) (steps []paced) {
	batches := load.Batches(prefills)
	defer memory.Free(batches)
	for _, b := range batches {
		ns := int64(b.To - b.From)
		steps = memory.Append(steps, paced{at: b.From, ns: ns, cost: ns * int64(b.Requests), size: max(1, int64(b.Tokens)), of: int32(b.Request)})
	}
	return steps
}

// answerOf returns the average step of a whole answer; 0 ns without steps.
func answerOf(from, to trace.Time, m *request.Metrics) paced {
	n := int64(m.DecodeTokens())
	if _, steps := m.StepYield(); steps > 0 {
		n = steps
	}
	if n <= 0 {
		return paced{}
	}
	return paced{at: from, ns: int64(to-from) / n, cost: int64(to - from), whole: true}
}

// batches merges the decode steps of requests that end together into one. It takes as long as the shortest, because
// others include the prefill of a request that joined.
func batches(steps []paced) []paced {
	slices.SortFunc(steps, func(x, y paced) int { return cmp.Compare(x.end(), y.end()) })
	var out []paced
	for i, x := range steps {
		if i == 0 || x.end()-steps[i-1].end() > request.SameBatch {
			out = memory.Append(out, x)
			continue
		}
		last := &out[len(out)-1]
		last.cost, last.size = last.cost+x.cost, last.size+x.size
		if x.ns < last.ns {
			last.at, last.ns = x.at, x.ns
		}
	}
	return out
}
