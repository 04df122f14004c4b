package serverlimit

import (
	"cmp"
	"maps"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/load"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// A state is what a request is doing on a server.
type state uint8

const (
	queued        state = iota // waits for a batch
	awaitingCache              // waits for room in the KV cache of a decode server
	running                    // is prefilled or decoded
	transferring               // its KV cache is being transferred
	prefilling                 // its prompt is being computed; it counts as running, too
	numStates
)

// A stateInterval is a period in which a request was in one state.
type stateInterval struct {
	time    request.Interval
	request int32 // index into Set.Requests
	tokens  int64 // of the prompt; in a prefill, the tokens that it computes; 0 is unknown
}

// A server is the lead rank of ranks that schedule together, with what requests did on it.
type server struct {
	location  place.Location
	intervals [numStates][]stateInterval // sorted by start
	retracts  []trace.Time               // when requests were thrown out of the batch, sorted
	served    []int                      // requests that it worked for, as indexes into Set.Requests, sorted
	open      int64                      // ns that unfinished requests have taken so far
}

// serversOf collects what requests did on lead ranks, in the order of display.
func serversOf(ranks *place.RankSet) []*server {
	s := ranks.Set
	servers := make([]*server, len(ranks.Places)) // nil for ranks that don't lead
	bulk, open := load.BulkOf(s), s.OpenFinder()
	for i := range s.AllRequests() {
		if !bulk.Holds(&s.Requests[i]) {
			continue
		}
		for _, p := range s.PartsOf(&s.Requests[i]) {
			part := &s.Parts[p]
			thread, rank := ranks.Lead(part)
			if !part.Serves() || thread == request.None || rank == request.None || !ranks.Leads[rank] {
				continue
			}
			if servers[rank] == nil {
				servers[rank] = &server{location: ranks.Places[rank]}
			}
			servers[rank].add(s, part, thread)
			if o, ok := open.Of(part); ok && s.Window.Has(o.From, o.To) && s.Requests[i].Status != request.Failed { // a failed one waited for what failed
				servers[rank].addOpen(s, part, &o)
			}
		}
	}
	servers = slices.DeleteFunc(servers, func(v *server) bool { return v == nil })
	for _, v := range servers {
		for of := range v.intervals {
			slices.SortStableFunc(v.intervals[of], func(x, y stateInterval) int { return cmp.Compare(x.time.From, y.time.From) })
		}
		slices.Sort(v.retracts)
	}
	return servers
}

// stateOf returns the state of a request in a stage of a server. ok is false for stages that no limit affects.
func stateOf(means request.Meaning, role request.Role) (of state, ok bool) {
	switch means {
	case request.Queueing:
		return queued, true
	case request.DecodeQueueing:
		if role == request.Unified {
			return running, true // it already has its place in the batch
		}
		return queued, true
	case request.ReceivePreparing, request.ReceiveConnecting:
		return awaitingCache, true
	case request.Prefilling, request.Answering, request.Stepping:
		return running, true
	case request.Sending, request.Receiving:
		return transferring, true
	}
	return 0, false
}

// add adds the stages on the lead thread of a part.
func (v *server) add(s *request.Set, p *request.Part, thread int) {
	if n := len(v.served); n == 0 || v.served[n-1] != p.Request {
		v.served = memory.Append(v.served, p.Request)
	}
	s.EachSelectedStage(s.StagesOf(thread), true, func(i int, outermost bool) {
		row := s.Row(i)
		of, ok := stateOf(row.Means, p.Role)
		if !ok || s.Implausible(i) || row.Start >= row.End || !request.Plausible(row.Start, row.End) {
			return
		}
		h := stateInterval{time: request.Interval{From: row.Start, To: row.End}, request: int32(p.Request), tokens: max(0, p.PromptTokens)}
		if row.Means == request.Prefilling {
			of := h
			of.tokens = max(0, s.Requests[p.Request].Metrics.PrefillTokens())
			v.intervals[prefilling] = memory.Append(v.intervals[prefilling], of)
		}
		if outermost {
			v.intervals[of] = memory.Append(v.intervals[of], h)
		}
	})
	for i := range s.ThreadRows(thread) {
		for _, e := range s.InstantsOf(i) {
			if e.Kind == request.Retracted {
				v.retracts = append(v.retracts, e.Time)
			}
		}
	}
}

// addOpen adds the stage in which a part was abandoned, or was at the end of the dump.
func (v *server) addOpen(s *request.Set, p *request.Part, o *request.Open) {
	if s.Requests[p.Request].Metrics.E2E < 0 {
		v.open += int64(o.To - p.Start)
	}
	if of, ok := stateOf(o.Means, p.Role); ok {
		v.intervals[of] = memory.Append(v.intervals[of], stateInterval{time: o.Interval, request: int32(p.Request), tokens: max(0, p.PromptTokens)})
	}
}

// A Kind is the resource of a server that is exhausted.
type Kind uint8

const (
	Running   Kind = iota // places in the batch
	Slots                 // places for all requests that a decode server has made room for
	Room                  // room in the KV cache
	Prefills              // time to compute prompts
	Transfers             // bandwidth for KV transfers
	Preempted             // places in the batch, taken by requests of higher priority
)

// Subkinds are the subkinds of findings about limits.
var Subkinds = append(slices.Clone(OfServers), Transfers.String(), Held)

// OfServers are the subkinds of limits that a faster server would relieve.
var OfServers = []string{Running.String(), Slots.String(), Room.String(), Prefills.String(), Preempted.String()}

// String returns the word that reports print.
func (k Kind) String() string {
	return [...]string{"running requests", "requests", "KV cache", "prefill", "KV transfer", "priority"}[k]
}

// A Limit is a resource of a server that requests wait for.
type Limit struct {
	Location place.Location // the lead rank of the server
	Kind     Kind
	Spells   int        // number of periods in which requests waited
	From, To trace.Time // start of the first and end of the last of them
	Always   bool       // it holds from about the beginning of the dump
	Open     bool       // and until about its end
	Length   int64      // ns: total length of the spells
	Waited   int64      // ns that requests waited in the spells, in all
	Requests []int      // requests that waited, as indexes into Set.Requests, sorted by start
	Most     int        // most requests that waited at a time, first at the instant At
	At       trace.Time
	// StuckAt is the number of places taken for most of the waiting; 0 for other limits.
	StuckAt int
	// Running is the mean number of running requests while others waited; Fewest and Greatest bound it for nine
	// tenths of the waiting.
	Running          float64
	Fewest, Greatest int
	Prefilling       float64 // share of the waiting in which prompts were computed
	Retracted        int     // number of requests thrown out meanwhile
	// Share is Waited as a share of the E2E of all requests that the server worked for.
	Share float64
	// Slowdown is how many times as long as alone a KV transfer takes; 0 for other limits.
	Slowdown float64

	waits map[int]int64 // ns, by request
	// shared is how long other prompts in their batches were computed during prefills, ns, by request.
	shared map[int]int64
}

// Limits are the limits that keep requests waiting.
type Limits struct {
	Requests int     // number of requests in the set
	List     []Limit // the costliest first

	set     *request.Set
	ranks   *place.RankSet
	servers []*server
	holds   []*FrontProcess
}

// Find finds the limits of all servers with the given ranks.
func Find(ranks *place.RankSet) *Limits {
	s := ranks.Set
	l := &Limits{Requests: len(s.Requests), set: s, ranks: ranks}
	during := arrivals(s)
	l.servers = serversOf(ranks)
	for _, v := range l.servers {
		whole := v.e2e(s)
		if whole == 0 {
			continue
		}
		holds := v.holding(s)
		l.holds = append(l.holds, holds)
		for _, limit := range v.limits(whole) {
			if limit.dateWithin(during); !holds.explains(&limit) {
				l.List = append(l.List, limit)
			}
		}
	}
	slices.SortStableFunc(l.List, func(x, y Limit) int { return cmp.Compare(y.Waited, x.Waited) })
	return l
}

// weights maps a number of requests to the amount of waiting while it held, in request ns: each ns counts once per
// waiting request.
type weights map[int]float64

// weigh returns the amount of waiting in a spell, by a number of requests.
func (p *spell) weigh(of func(s *segment) int32) weights {
	w := weights{}
	for i := range p.segments {
		s := &p.segments[i]
		w[int(of(s))] += float64(s.to-s.from) * float64(s.n[p.wait])
	}
	return w
}

// numbers returns the keys, sorted because sums of floats depend on the order.
func (w weights) numbers() []int { return slices.Sorted(maps.Keys(w)) }

// beyond returns the share, 0 to 1, of the weight at numbers larger than n.
func (w weights) beyond(n int) float64 {
	sum := 0.0
	for _, k := range w.numbers() {
		if k > n {
			sum += w[k]
		}
	}
	return sum / w.whole()
}

// whole returns the total weight.
func (w weights) whole() float64 {
	return order.Sum(w.numbers(), func(n int) float64 { return w[n] })
}

// mean returns the weighted mean of the numbers.
func (w weights) mean() float64 {
	sum := order.Sum(w.numbers(), func(n int) float64 { return float64(n) * w[n] })
	return sum / w.whole()
}

// usual returns the number with the most weight; the smaller one of equals.
func (w weights) usual() int {
	return slices.MaxFunc(w.numbers(), func(x, y int) int {
		if w[x] > w[y] || w[x] == w[y] && x < y {
			return 1
		}
		return -1
	})
}

// isStuck reports whether the number is nearly always the same, and hardly ever larger.
func (w weights) isStuck() bool {
	n := w.usual()
	return w[n] >= nearlyAll*w.whole() && w.beyond(n) <= rarely
}

// bounds returns the numbers between which nine tenths of the weight lie.
func (w weights) bounds() (fewest, greatest int) {
	const tail = 0.05 // of the weight, at either end
	numbers, whole := w.numbers(), w.whole()
	fewest, sum := numbers[0], 0.0
	for _, n := range numbers {
		if sum <= tail*whole {
			fewest = n
		}
		if sum < (1-tail)*whole {
			greatest = n
		}
		sum += w[n]
	}
	return fewest, greatest
}
