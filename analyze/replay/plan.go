package replay

import (
	"slices"

	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// A Plan is what is played: the recorded run, until something of it is changed.
type Plan struct {
	// Seed 0 plays with the luck that was recorded; others give each step the error of one nearby, and each
	// decode half the handshake of one.
	Seed    uint64
	Servers []Server
	// Arrivals are when requests arrive, by Run.Requests.
	Arrivals []trace.Time
	// Sent is the duration of the KV transfer to a decode half, by job, in ns.
	Sent []int64
	// Routes say how requests of a group of servers are spread; Recorded where nothing is said.
	Routes map[int32]Routing
}

// A Server is an engine that is played.
type Server struct {
	Engine int  // that it is, or is like
	Off    bool // it gets nothing
	Group  int32
	Role   request.Role
	timing [kinds]timing
	limits limits
	lag    int
}

// Routing is a way to spread requests, for those that arrive from a time on.
type Routing struct {
	How   Route
	Since trace.Time
}

// Route is how requests are spread over the servers of a group.
type Route uint8

const (
	Recorded Route = iota
	RoundRobin
	MinLoaded
	Random
)

// String returns the word that reports print.
func (r Route) String() string {
	return [...]string{"as recorded", "round robin", "least loaded", "random"}[r]
}

// Plan returns the recorded run.
func (r *Run) Plan(seed uint64) *Plan {
	p := &Plan{Seed: seed, Routes: map[int32]Routing{}, Sent: make([]int64, len(r.jobs)), Arrivals: make([]trace.Time, len(r.Requests))}
	for i := range r.Engines {
		e := &r.Engines[i]
		p.Servers = append(p.Servers, Server{Engine: i, Group: e.Group, Role: e.Role, timing: e.timing, limits: e.limits, lag: e.lag})
	}
	for i := range r.allJobs() {
		p.Sent[i] = r.jobs[i].sent
	}
	for i := range r.allRequests() {
		p.Arrivals[i] = r.Requests[i].Arrival
	}
	return p
}

// A Latency is what became of a request, in ns.
type Latency struct {
	Request   int // in Run.Requests
	E2E, TTFT int64
}

// Recorded returns the latencies of the requests that finished, as recorded; TTFT is
// request.Unknown where nothing tells it.
func (r *Run) Recorded() []Latency {
	var out []Latency
	for i := range r.allRequests() {
		if q := &r.Requests[i]; q.Measured {
			m := &r.set.Requests[q.Index].Metrics
			out = append(out, Latency{i, m.E2E, m.UserTTFT})
		}
	}
	return out
}

// Play plays a plan and returns the latencies of the same requests, in the same order; ok is
// false if some of them never end.
func (r *Run) Play(plan *Plan) (out []Latency, ok bool) {
	p := newPlayer(r, plan)
	p.run()
	for i := range r.allRequests() {
		q := &r.Requests[i]
		if !q.Measured {
			continue
		}
		m, x := &r.set.Requests[q.Index].Metrics, &p.jobs[r.answer(q)]
		if x.last == 0 {
			return nil, false
		}
		moved := int64(plan.Arrivals[i] - q.Arrival)
		l := Latency{i, max(0, m.E2E+int64(x.last-q.last)-moved), request.Unknown}
		if m.UserTTFT >= 0 {
			l.TTFT = max(0, m.UserTTFT+int64(x.first-q.first)-moved)
		}
		out = append(out, l)
	}
	return out, true
}

// answer returns the job that gives the tokens of a request.
func (r *Run) answer(q *Request) int32 {
	if q.jobs[1] != None {
		return q.jobs[1]
	}
	return q.jobs[0]
}

// Percentile returns a percentile by nearest rank of a latency; request.Unknown of none.
func Percentile(list []Latency, of func(*Latency) int64, percent int) int64 {
	var values []int64
	for i := range list {
		if v := of(&list[i]); v >= 0 {
			values = append(values, v)
		}
	}
	if len(values) == 0 {
		return request.Unknown
	}
	slices.Sort(values)
	return request.NearestRank(values, percent)
}

// E2E returns the latency of the whole request, for [Percentile].
func E2E(l *Latency) int64 { return l.E2E }

// TTFT returns the time to its first token, for [Percentile].
func TTFT(l *Latency) int64 { return l.TTFT }
