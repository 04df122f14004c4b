package change

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"unsafe"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/load"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/internal/parallel"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// An observer collects what is searched for changes. It holds 16 B for every
// stage that is looked at.
type observer struct {
	set      *request.Set
	bulk     load.Bulk
	within   []*request.Request // of the bulk
	ranks    *place.RankSet
	from, to trace.Time
	e2e      int64 // ns that nine of ten requests take at most
	lag      int64 // ns within which a change can have consequences

	arrivals []trace.Time
	peers    *place.Groups
	routes   [][]route // by group of peers
	doubt    doubts
	savings  [4]savings // what is cached, what comes out of steps, and how long prompts and answers are
	ends     ends
	paces    paces
	all      []*durations
	whole    durations                       // E2E, which is compared where something else changed
	byRank   [][]*durations                  // by rank and request.Watched
	late     [][]*durations                  // by rank and request.Watched
	byRole   [request.Other + 1][]*durations // of threads that are no rank

	steps   []groupStep // scratch space for one part,
	rowEnds []int64     // and for one step
}

// A route is a request that arrives at a rank.
type route struct {
	at   trace.Time
	rank int32
}

// durations are how long a stage took on one place.
type durations struct {
	location place.Location
	metric   Metric // MedianChanged, or LatenessChanged
	stage    string
	means    request.Meaning // of the stage
	values   []observed      // by start
}

// observed is a duration with its start.
type observed struct {
	at trace.Time
	ns int64
}

func newObserver(peers *place.Groups) *observer {
	return &observer{set: peers.Ranks.Set, ranks: peers.Ranks, peers: peers, bulk: load.BulkOf(peers.Ranks.Set)}
}

// requests returns those that are looked at.
func (w *observer) requests() []*request.Request {
	if w.within == nil {
		for i := range w.set.AllRequests() {
			if r := &w.set.Requests[i]; w.bulk.Holds(r) {
				w.within = append(w.within, r)
			}
		}
	}
	return w.within
}

// observe collects what began in [from, to].
func (w *observer) observe(from, to trace.Time) {
	w.from, w.to = from, to
	w.routes = make([][]route, w.peers.Len())
	w.byRank = make([][]*durations, len(w.ranks.Places))
	w.late = make([][]*durations, len(w.ranks.Places))
	for i := range w.byRank {
		w.byRank[i], w.late[i] = make([]*durations, len(request.Watched)), make([]*durations, len(request.Watched))
	}
	for i := range w.byRole {
		w.byRole[i] = make([]*durations, len(request.Watched))
	}
	ttft := &durations{location: place.Location{Scope: place.Everywhere}, metric: MedianChanged, stage: "ttft"}
	tpot := &durations{location: place.Location{Scope: place.Everywhere}, metric: MedianChanged, stage: "tpot"}
	w.all = []*durations{ttft, tpot}
	w.whole = durations{location: place.Location{Scope: place.Everywhere}, metric: MedianChanged, stage: "e2e"}
	parallel.All(func() { w.observeRequests(ttft, tpot) }, w.observeLateness, w.observePaces)
	parallel.All(w.doubt.sort, w.sortSavings)
	for _, routes := range w.routes {
		slices.SortStableFunc(routes, func(x, y route) int { return cmp.Compare(x.at, y.at) })
	}
	series := append(w.series(), &w.whole)
	parallel.Each(len(series), func(i int) {
		slices.SortStableFunc(series[i].values, func(x, y observed) int { return cmp.Compare(x.at, y.at) })
	})
}

// observeRequests collects what requests say, and how long their stages took.
func (w *observer) observeRequests(ttft, tpot *durations) {
	for _, r := range w.requests() {
		w.doubt.add(w, r)
		if w.inside(r.Start) && !arrivalDoubtful(r) {
			w.arrivals = memory.Append(w.arrivals, r.Start)
		}
		if w.inside(r.Start) && r.Complete() {
			ttft.add(r.Start, r.Metrics.TTFT)
			tpot.add(r.Start, r.Metrics.TPOT)
			w.whole.add(r.Start, r.Metrics.E2E)
			w.observeSavings(r)
		}
		if w.inside(r.Start) {
			w.ends.add(w.set, r)
		}
		for _, p := range w.set.PartsOf(r) {
			w.observePart(&w.set.Parts[p])
		}
	}
}

func (w *observer) inside(t trace.Time) bool { return t >= w.from && t <= w.to }

// add adds a duration, unless it is unknown.
func (d *durations) add(at trace.Time, ns int64) {
	if ns >= 0 {
		d.values = memory.Append(d.values, observed{at, ns})
	}
}

// series returns all durations that there are, in a fixed order.
func (w *observer) series() []*durations {
	all := slices.Clone(w.all)
	for role := range w.byRole {
		all = append(all, w.byRole[role]...)
	}
	for rank := range w.byRank {
		all = append(all, w.byRank[rank]...)
	}
	for rank := range w.late {
		all = append(all, w.late[rank]...)
	}
	return slices.DeleteFunc(all, func(d *durations) bool { return d == nil })
}

// observePart looks at where a part was routed to and what its stages took: those
// of the lead rank, as its peers do the same beside it.
func (w *observer) observePart(p *request.Part) {
	lead, _ := w.ranks.Lead(p)
	if rank := w.ranks.Route(p); p.Serves() && rank != request.None && w.inside(p.Start) {
		group := w.peers.Group(int32(rank))
		w.routes[group] = memory.Append(w.routes[group], route{p.Start, int32(rank)})
	}
	for _, t := range w.set.ThreadsOf(p) {
		th := &w.set.Threads[t]
		switch of := w.ranks.Of[th.Proc]; {
		case of == request.None || !p.Serves():
			role := w.set.Procs[th.Proc].Role
			w.observeStages(t, w.byRole[role], place.Location{Scope: place.WholeRole, Role: role})
		case t == lead && w.ranks.Leads[of]:
			w.observeStages(t, w.byRank[of], w.ranks.Places[of])
		}
	}
}

func (w *observer) observeStages(t int, of []*durations, at place.Location) {
	w.set.EachSelectedStage(w.set.StagesOf(t), true, func(i int, _ bool) {
		span := w.set.Row(i)
		k := request.WatchedIndex(span)
		if k < 0 || !w.inside(span.Start) || w.set.Implausible(i) {
			return
		}
		if of[k] == nil {
			of[k] = &durations{location: at, metric: MedianChanged, stage: w.set.StageCalled(request.Watched[k]), means: request.Watched[k]}
		}
		of[k].add(span.Start, span.Dur())
	})
}

// stepStages are computed by the ranks of a group side by side: one that ends
// later than the others keeps them waiting.
var stepStages = []request.Meaning{request.Prefilling, request.Stepping}

// observeLateness notes by how much every rank ended a step after the middle one
// of its tensor parallel group, or not.
func (w *observer) observeLateness() {
	for _, r := range w.requests() {
		for _, p := range w.set.PartsOf(r) {
			if part := &w.set.Parts[p]; part.Serves() {
				w.findSteps(part)
			}
		}
	}
}

// findSteps looks for steps that several ranks took for a part. They are the same by their number.
// Those without one are counted, which goes wrong where spans are missing.
func (w *observer) findSteps(p *request.Part) {
	whole := w.set.Requests[p.Request].Complete()
	steps := w.steps[:0]
	for _, t := range w.set.ThreadsOf(p) {
		rank := w.ranks.Of[w.set.Threads[t].Proc]
		if rank == request.None {
			continue
		}
		place := &w.ranks.Places[rank]
		server := place.ServerName()
		var counts [len(request.Watched)]int
		w.set.EachSelectedStage(w.set.StagesOf(t), true, func(i int, _ bool) {
			row := w.set.Row(i)
			if !slices.Contains(stepStages, row.Means) {
				return
			}
			k := request.WatchedIndex(row)
			number := int(row.Step)
			if row.Step == request.Unknown {
				if !whole {
					return
				}
				number = counts[k]
				counts[k]++
			}
			steps = append(steps, groupStep{stage: k, number: number, pp: place.Rank.PP, server: server, row: i})
		})
	}
	if w.steps = steps; len(steps) < 2 {
		return
	}
	slices.SortStableFunc(steps, groupStep.compare)
	for from, to := 0, 0; from < len(steps); from = to {
		for to = from + 1; to < len(steps) && steps[to].compare(steps[from]) == 0; to++ {
		}
		w.addLateness(steps[from:to])
	}
}

// A groupStep is a row of a step of the ranks of one pipeline stage on one host: clocks of
// several may differ by more than ranks do.
type groupStep struct {
	stage  int
	number int
	pp     int16
	server string
	row    int
}

func (s groupStep) compare(o groupStep) int {
	return cmp.Or(cmp.Compare(s.stage, o.stage), cmp.Compare(s.number, o.number), cmp.Compare(s.pp, o.pp), strings.Compare(s.server, o.server))
}

// addLateness notes that for the rows of one step.
func (w *observer) addLateness(rows []groupStep) {
	if len(rows) < 2 {
		return
	}
	ends := w.rowEnds[:0]
	for _, s := range rows {
		ends = append(ends, int64(w.set.Row(s.row).End))
	}
	w.rowEnds = ends
	slices.Sort(ends)
	middle := request.NearestRank(ends, 50)
	for _, s := range rows {
		i, stage := s.row, s.stage
		span := w.set.Row(i)
		if !w.inside(span.Start) {
			continue
		}
		rank := w.ranks.Of[w.set.ProcOf(i)]
		d := &w.late[rank][stage]
		if *d == nil {
			*d = &durations{location: w.ranks.Places[rank], metric: LatenessChanged, stage: w.set.StageCalled(request.Watched[stage]), means: request.Watched[stage]}
		}
		(*d).add(span.Start, max(0, int64(span.End)-middle))
	}
}

// loads is how long requests were running between moments: in request ns, of
// every stretch between two of them.
type loads struct {
	all    []int64
	byRank [][]int64
}

// measureLoads sums up for everything, and for the lead ranks, how long requests
// were running between each two of the times.
func (w *observer) measureLoads(times []trace.Time) loads {
	begin := func() *loads {
		return &loads{all: make([]int64, len(times)-1), byRank: make([][]int64, len(w.byRank))}
	}
	sum, requests := begin(), w.requests()
	parallel.Fold(len(requests), int(unsafe.Sizeof(request.Request{})), begin, func(l *loads, from, to int) {
		for _, r := range requests[from:to] {
			l.add(w, times, r)
		}
	}, func(l *loads) {
		addTo(sum.all, l.all)
		for rank, of := range l.byRank {
			if sum.byRank[rank] == nil {
				sum.byRank[rank] = of
				continue
			}
			addTo(sum.byRank[rank], of)
		}
	})
	return *sum
}

// add adds a request, and what lead ranks do for it.
func (l *loads) add(w *observer, times []trace.Time, r *request.Request) {
	addStretch(l.all, times, r.Start, r.End)
	for _, p := range w.set.PartsOf(r) {
		part := &w.set.Parts[p]
		thread, rank := w.ranks.Lead(part)
		if thread == request.None || rank == request.None || !part.Serves() {
			continue
		}
		if l.byRank[rank] == nil {
			l.byRank[rank] = make([]int64, len(times)-1)
		}
		w.set.EachSelectedStage(w.set.StagesOf(thread), true, func(i int, outermost bool) {
			if span := w.set.Row(i); outermost && load.StateOf(span, part.Role) == load.StateRunning {
				addStretch(l.byRank[rank], times, span.Start, span.End)
			}
		})
	}
}

func addTo(sum, more []int64) {
	for i, v := range more {
		sum[i] += v
	}
}

// addStretch adds an interval to the stretches that it covers.
func addStretch(to []int64, times []trace.Time, from, end trace.Time) {
	for i := range to {
		to[i] += int64(max(0, min(end, times[i+1])-max(from, times[i])))
	}
}

// addRunning says how many requests were running before and after the i-th change
// of load: everywhere if it was that of all, and on the ranks that got another
// share.
func (c *Change) addRunning(w *observer, l loads, times []trace.Time, i int) {
	level := func(of []int64, k int) Level {
		mean := distribution.Ratio(float64(of[k]), float64(times[k+1]-times[k]))
		l := newLevel(0)
		l.Rate = mean
		return l
	}
	for _, f := range slices.Clone(c.Shifts) {
		var of []int64
		switch f.Metric {
		case ArrivalsChanged:
			of = l.all
		case ShareChanged:
			rank := slices.Index(w.ranks.Places, f.Location)
			of = l.byRank[rank]
		}
		if of == nil {
			continue
		}
		r := Shift{Location: f.Location, Name: f.Name, Metric: RunningChanged, Time: c.Time, First: c.Time, Last: c.Time, P: math.NaN(),
			Before: level(of, i), After: level(of, i+1)}
		if factor(r.Before.Rate, r.After.Rate) >= minRateFactor {
			c.Shifts = append(c.Shifts, r)
		}
	}
}
