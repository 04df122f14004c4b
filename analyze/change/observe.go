package change

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/change/work"
	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/load"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/internal/parallel"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// An observer collects the series that are searched for changes. It holds 16 B for every stage that it looks at.
type observer struct {
	set      *request.Set
	bulk     load.Bulk
	within   []*request.Request // of the bulk
	ranks    *place.RankSet
	from, to trace.Time
	e2e      int64 // 90th percentile of E2E, ns
	lag      int64 // ns within which a change can have consequences

	arrivals []trace.Time
	peers    *place.Groups
	routes   [][]route // by group of peers
	doubt    load.Doubts
	cut      []trace.Time // starts of aborted requests
	savings  [4]savings   // cached tokens, tokens per step, lengths of answers, lengths of prompts
	ends     ends
	paces    work.Paces
	demands  []Shift // changes of load and of lengths
	all      []*durations
	whole    durations                       // E2E, which is compared only where answers changed their length
	answers  map[int32]*durations            // E2E by rank, of requests about which nothing else is known
	byRank   [][]*durations                  // by rank and request.Watched
	late     [][]*durations                  // by rank and request.Watched
	byRole   [request.Other + 1][]*durations // of threads that belong to no rank
}

// A route is a request that arrives at a rank.
type route struct {
	at   trace.Time
	rank int32
}

// durations are how long a stage took at one place.
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

// requests returns the requests that are looked at: those of the bulk.
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
	w.answers = map[int32]*durations{}
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
	parallel.All(func() { w.observeRequests(ttft, tpot) }, w.observeParts, func() { w.paces = work.Observe(w.ranks, w.requests(), w.from, w.to) })
	parallel.All(w.doubt.Sort, w.sortSavings)
	for _, routes := range w.routes {
		slices.SortStableFunc(routes, func(x, y route) int { return cmp.Compare(x.at, y.at) })
	}
	series := append(w.series(), &w.whole)
	parallel.Each(len(series), func(i int) {
		slices.SortStableFunc(series[i].values, func(x, y observed) int { return cmp.Compare(x.at, y.at) })
	})
}

// observeRequests collects the metrics of requests, and where they were sent.
func (w *observer) observeRequests(ttft, tpot *durations) {
	for _, r := range w.requests() {
		w.doubt.Add(w.set, r, func(p *request.Part) bool { return w.ranks.Route(p) != request.None })
		if w.inside(r.Start) && !load.DoubtfulArrival(w.set, r) {
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
			if r.Status == request.Unfinished || r.Status == request.Aborted && !w.set.TurnedAway(r) {
				w.cut = memory.Append(w.cut, r.Start)
			}
		}
		for _, p := range w.set.PartsOf(r) {
			part := &w.set.Parts[p]
			if rank := w.ranks.Route(part); part.Serves() && rank != request.None && w.inside(part.Start) {
				w.observeAnswer(r, int32(rank))
				group := w.peers.Group(int32(rank))
				w.routes[group] = memory.Append(w.routes[group], route{part.Start, int32(rank)})
			}
		}
	}
}

// observeAnswer records the E2E of a request on a rank if nothing else is known about it: otherwise, its stages show what changed.
func (w *observer) observeAnswer(r *request.Request, rank int32) {
	m := &r.Metrics
	if !r.Complete() || r.Status != request.Finished || m.TTFT >= 0 || m.Queue > 0 || m.Prefill >= 0 || m.Decode >= 0 {
		return
	}
	order.Memo(w.answers, rank, func() *durations {
		return &durations{location: w.ranks.Places[rank], metric: MedianChanged, stage: wholeAnswer}
	}).add(r.Start, m.E2E)
}

func (w *observer) inside(t trace.Time) bool { return t >= w.from && t <= w.to }

// add adds a duration, unless it is unknown.
func (d *durations) add(at trace.Time, ns int64) {
	if ns >= 0 {
		d.values = memory.Append(d.values, observed{at, ns})
	}
}

// series returns all series of durations, in a fixed order.
func (w *observer) series() []*durations {
	all := slices.Clone(w.all)
	for _, rank := range slices.Sorted(maps.Keys(w.answers)) {
		all = append(all, w.answers[rank])
	}
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

// observeParts collects how long stages took at each place, and how late ranks were in steps.
func (w *observer) observeParts() {
	var names order.Groups[string, struct{}]
	servers := make([]int32, len(w.ranks.Places))
	for i := range servers {
		servers[i] = int32(names.At(w.ranks.Places[i].ServerName()))
	}
	const atOnce = 1 << 14 // requests at a time, whose samples are held twice for a moment
	for requests := range slices.Chunk(w.requests(), atOnce) {
		list := parallel.Gather(len(requests), request.RequestSize, func(list []sample, from, to int) []sample {
			o := partObserver{observer: w, servers: servers, list: list}
			for _, r := range requests[from:to] {
				for _, p := range w.set.PartsOf(r) {
					o.observe(&w.set.Parts[p])
				}
			}
			return o.list
		})
		for i := range list {
			w.addSample(&list[i])
		}
		memory.Free(list)
	}
}

// A sample is one value of a series of durations.
type sample struct {
	observed
	place int32 // a rank, or a role
	stage int16 // index into request.Watched
	kind  sampleKind
}

// A sampleKind says which series a sample belongs to.
type sampleKind int16

const (
	ofRole sampleKind = iota
	ofRank
	lateness
)

func (w *observer) addSample(x *sample) {
	var of []*durations
	at, metric := place.Location{Scope: place.WholeRole, Role: request.Role(x.place)}, MedianChanged
	switch x.kind {
	case ofRole:
		of = w.byRole[x.place]
	case ofRank:
		of, at = w.byRank[x.place], w.ranks.Places[x.place]
	case lateness:
		of, at, metric = w.late[x.place], w.ranks.Places[x.place], LatenessChanged
	}
	if of[x.stage] == nil {
		means := request.Watched[x.stage]
		of[x.stage] = &durations{location: at, metric: metric, stage: w.set.StageCalled(means), means: means}
	}
	of[x.stage].add(x.at, x.ns)
}

// A partObserver takes samples of parts.
type partObserver struct {
	*observer
	servers []int32 // the server of each place
	list    []sample

	steps   []groupStep // scratch space for one part,
	rowEnds []int64     // and for one step
}

// observe samples the stages of a part: how long they took on the lead rank, as its peers do
// the same at the same time, and how late each rank was compared to the others.
func (o *partObserver) observe(p *request.Part) {
	lead, _ := o.ranks.Lead(p)
	for _, t := range o.set.ThreadsOf(p) {
		th := &o.set.Threads[t]
		switch of := o.ranks.Of[th.Proc]; {
		case of == request.None || !p.Serves():
			o.observeStages(t, ofRole, int32(o.set.Procs[th.Proc].Role))
		case t == lead && o.ranks.Leads[of]:
			o.observeStages(t, ofRank, of)
		}
	}
	if p.Serves() {
		o.observeLateness(p)
	}
}

func (o *partObserver) observeStages(t int, kind sampleKind, place int32) {
	o.set.EachSelectedStage(o.set.StagesOf(t), true, func(i int, _ bool) {
		span := o.set.Row(i)
		if k := request.WatchedIndex(span); k >= 0 && o.inside(span.Start) && !o.set.Implausible(i) {
			o.list = append(o.list, sample{observed{span.Start, span.Dur()}, place, int16(k), kind})
		}
	})
}

// observeLateness samples how much later than the middle rank of its tensor parallel group each rank ended a step, or
// 0. Steps are matched by number. Those without a number are counted, unless spans of the request are missing.
func (o *partObserver) observeLateness(p *request.Part) {
	whole := o.set.Requests[p.Request].HasAllSteps()
	steps := o.steps[:0]
	for _, t := range o.set.ThreadsOf(p) {
		rank := o.ranks.Of[o.set.Threads[t].Proc]
		if rank == request.None {
			continue
		}
		step := groupStep{pp: o.ranks.Places[rank].Rank.PP, server: o.servers[rank]}
		var counts [len(request.Watched)]int
		o.set.EachSelectedStage(o.set.StagesOf(t), true, func(i int, _ bool) {
			row := o.set.Row(i)
			// Ranks compute these side by side: one that ends later keeps the others waiting.
			if row.Means != request.Prefilling && row.Means != request.Stepping {
				return
			}
			step.row, step.stage, step.number = i, request.WatchedIndex(row), int(row.Step)
			if row.Step == request.Unknown {
				if !whole {
					return
				}
				step.number = counts[step.stage]
				counts[step.stage]++
			}
			steps = append(steps, step)
		})
	}
	if o.steps = steps; len(steps) < 2 {
		return
	}
	slices.SortStableFunc(steps, groupStep.compare)
	for from, to := 0, 0; from < len(steps); from = to {
		for to = from + 1; to < len(steps) && steps[to].compare(steps[from]) == 0; to++ {
		}
		o.addLateness(steps[from:to])
	}
}

// A groupStep is one rank's row of a step. Only ranks of the same pipeline stage on the same host are compared: the
// clocks of several hosts may differ by more than ranks do.
type groupStep struct {
	stage  int
	number int
	pp     int16
	server int32
	row    int
}

func (s groupStep) compare(o groupStep) int {
	return cmp.Or(cmp.Compare(s.stage, o.stage), cmp.Compare(s.number, o.number), cmp.Compare(s.pp, o.pp), cmp.Compare(s.server, o.server))
}

// addLateness samples the lateness of each row of one step.
func (o *partObserver) addLateness(rows []groupStep) {
	if len(rows) < 2 {
		return
	}
	ends := o.rowEnds[:0]
	for _, s := range rows {
		ends = append(ends, int64(o.set.Row(s.row).End))
	}
	o.rowEnds = ends
	slices.Sort(ends)
	middle := request.NearestRank(ends, 50)
	for _, s := range rows {
		i, stage := s.row, s.stage
		span := o.set.Row(i)
		if !o.inside(span.Start) {
			continue
		}
		rank := o.ranks.Of[o.set.ProcOf(i)]
		o.list = append(o.list, sample{observed{span.Start, max(0, int64(span.End)-middle)}, rank, int16(stage), lateness})
	}
}

// loads are sums of how long requests were running, in ns, in every stretch between two successive times.
type loads struct {
	all    []int64
	byRank [][]int64
}

// measureLoads sums up how long requests were running between successive times: in total, and on each lead rank.
func (w *observer) measureLoads(times []trace.Time) loads {
	begin := func() *loads {
		return &loads{all: make([]int64, len(times)-1), byRank: make([][]int64, len(w.byRank))}
	}
	sum, requests := begin(), w.requests()
	parallel.Fold(len(requests), request.RequestSize, begin, func(l *loads, from, to int) {
		for _, r := range requests[from:to] {
			l.add(w, times, r)
		}
	}, func(l *loads) {
		work.AddTo(sum.all, l.all)
		for rank, of := range l.byRank {
			if sum.byRank[rank] == nil {
				sum.byRank[rank] = of
				continue
			}
			work.AddTo(sum.byRank[rank], of)
		}
	})
	return *sum
}

// add adds the time that a request was under way, and that it was running on lead ranks.
func (l *loads) add(w *observer, times []trace.Time, r *request.Request) {
	work.AddStretch(l.all, times, r.Start, r.End)
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
				work.AddStretch(l.byRank[rank], times, span.Start, span.End)
			}
		})
	}
}

// addRunning adds how many requests were running before and after the i-th change: everywhere
// if arrivals changed, and on a rank if its share did.
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
