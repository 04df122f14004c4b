package load

import (
	"cmp"
	"slices"

	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// A Prefill is when a server computed the prompt of a request, or those of a batch.
type Prefill struct {
	Request  int // the last one that began
	Requests int
	From, To trace.Time // To is later
	Tokens   float64    // that were computed
}

// perNs is how many tokens were computed in a nanosecond.
func (p *Prefill) perNs() float64 { return p.Tokens / float64(p.To-p.From) }

// Pieces are the prefill of one request: one, or chunks with other work between them.
type Pieces []Prefill

// Add adds the stage of a prefill, or of a chunk, in the order of starts. What lies within the one before is part of that.
func (p *Pieces) Add(from, to trace.Time) {
	if n := len(*p); to > from && (n == 0 || from >= (*p)[n-1].To) {
		*p = append(*p, Prefill{Requests: 1, From: from, To: to})
	}
}

// Of says whose pieces they are: each has as much of the tokens as of the time.
func (p Pieces) Of(request int, tokens int64) {
	took := p.Took()
	for i := range p {
		p[i].Request, p[i].Tokens = request, float64(tokens)*float64(p[i].To-p[i].From)/float64(took)
	}
}

// Took is how long all of them take.
func (p Pieces) Took() (ns trace.Time) {
	for i := range p {
		ns += p[i].To - p[i].From
	}
	return ns
}

// Batches makes batches of the prefills of single requests on one server, and orders both by time. The requests
// of a batch end together. A prompt that does not fit into a batch goes on in the next one, with others: it
// has as much of its tokens in each as of its time.
func Batches(prefills []Prefill) (out []Prefill) {
	slices.SortStableFunc(prefills, func(a, b Prefill) int { return cmp.Compare(a.From, b.From) })
	ends := memory.Make[uint32](len(prefills))
	for i := range ends {
		ends[i] = uint32(i)
	}
	slices.SortFunc(ends, func(a, b uint32) int { return cmp.Or(cmp.Compare(prefills[a].To, prefills[b].To), cmp.Compare(a, b)) })
	var batch Prefill // under way
	var now trace.Time
	started, running, perNs := 0, 0, 0.0
	pass := func(until trace.Time) {
		batch.Tokens += perNs * float64(until-now)
		now = until
	}
	for i, ended := range ends {
		p := &prefills[ended]
		for ; started < len(prefills) && prefills[started].From < p.To; started++ {
			s := &prefills[started]
			if pass(max(now, s.From)); batch.Requests == 0 {
				batch.From = now
			}
			batch.Request, batch.Requests = s.Request, batch.Requests+1
			running, perNs = running+1, perNs+s.perNs()
		}
		pass(p.To)
		if running, perNs = running-1, perNs-p.perNs(); running == 0 {
			perNs = 0 // without what rounding left
		}
		if i+1 < len(ends) && prefills[ends[i+1]].To-p.To <= request.SameBatch {
			continue
		}
		batch.To = p.To
		out = memory.Append(out, batch)
		batch = Prefill{Request: batch.Request, Requests: running, From: p.To}
	}
	memory.Free(ends)
	return out
}
