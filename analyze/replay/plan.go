package replay

import (
	"slices"

	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// A Plan is what to replay: initially the recorded run.
type Plan struct {
	// With Seed 0, steps and handshakes have their recorded random errors. Other seeds give each step the error of a
	// nearby step, and each decode half the handshake of a nearby one.
	Seed    uint64
	Servers []Server
	// Arrivals are the arrival times of requests, as indexed in Run.Requests.
	Arrivals []trace.Time
	// Sent is the duration of the KV transfer to each decode half, by job, in ns.
	Sent []int64
	// Routes say how requests are spread over a group of servers. Groups without an entry are Recorded.
	Routes map[int32]Routing
}

// A Server is an engine in a replay.
type Server struct {
	Engine int  // index of the engine that it is, or is a copy of
	Off    bool // it gets no requests
	Group  int32
	Role   request.Role
	timing [kinds]timing
	limits limits
	lag    int
}

// A Routing is a way to spread the requests that arrive from Since on.
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

// Plan returns a plan that replays the recorded run.
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

// A Latency is the latencies of a request, in ns.
type Latency struct {
	Request   int // index into Run.Requests
	E2E, TTFT int64
}

// Recorded returns the recorded latencies of the finished requests. TTFT is request.Unknown if it was not recorded.
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

// Play replays a plan and returns the latencies of the same requests as [Run.Recorded], in the same order. ok is
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

// answer returns the job that produces the tokens of a request.
func (r *Run) answer(q *Request) int32 {
	if q.jobs[1] != None {
		return q.jobs[1]
	}
	return q.jobs[0]
}

// Percentile returns a percentile of a latency by nearest rank; request.Unknown without values.
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

// TTFT returns the time to the first token, for [Percentile].
func TTFT(l *Latency) int64 { return l.TTFT }
