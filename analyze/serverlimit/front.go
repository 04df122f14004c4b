package serverlimit

import (
	"cmp"
	"math"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/internal/changepoint"
	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// A Front is the processes that handle requests before and after the schedulers of a set.
type Front struct {
	Visits int // the largest number of visits to one process
	Desks  []*FrontProcess

	set   *request.Set
	index map[desk]*FrontProcess
	busy  map[int]*request.Coverage // when procs are busy tokenizing
}

// A duty is what a process outside of the schedulers does for requests.
type duty uint8

const (
	sends     duty = iota // a gateway, until it sends requests to a server
	tokenizes             // a server, until it hands requests to its scheduler
	answers               // a server, from when its scheduler is done until the answer is out
	returns               // a gateway, from when the server has answered until its own span ends
	schedules             // a scheduler, while it has room for a request and does not compute it
	around                // a gateway that does not say when it sends requests: before and after the server's span
)

// A desk is a process in one duty.
type desk struct {
	at   place.Location
	duty duty
}

// A FrontProcess is the visits of requests to a process in one duty: a gateway, or the processes of a server that
// tokenize and answer.
type FrontProcess struct {
	Location place.Location
	duty     duty
	// Usual is how long the process keeps requests when it is fastest, and Limit from when on a visit is longer than
	// that explains; ns.
	Usual, Limit int64
	// Since is when it began to keep requests for so long, with its 95 % bounds; zero if it always did. P is the
	// probability of such a change by chance; NaN if unknown.
	Since, Earliest, Latest trace.Time
	Until                   trace.Time // when that ended; 0 if it did not, or if it comes and goes
	P                       float64
	every                   float64 // time from one spell to the next, s; 0 if it varies

	visits []visit // sorted by time, once judged
	kept   []visit // visits since Since longer than Limit
	// of are the desks that are reported together, out of peers, which are all with this duty and role. A server has
	// several desks if it has several tokenizers or schedulers.
	of, peers []place.Location
	after     int    // number of visits since Since
	toward    string // the server that all kept requests were for, in words
	why       string // what a scheduler may hold requests back for
	always    bool   // a gateway that keeps requests from the beginning to the end
}

// A visit is the time of one request at a desk.
type visit struct {
	at      trace.Time
	request int
	wait    int64 // ns before the process begins; at a gateway around a server, before the server begins
	work    int64 // ns that the process has the request then; at a gateway around a server, after the server
	idle    int64 // ns of wait in which a tokenizer has no other request
}

func (v *visit) ns() int64 { return v.wait + v.work }

// A desk is judged if it has at least fewVisits, in at most blocks periods of equal size. Nobody notices if it keeps
// requests for less than minKept ns more than usual.
const (
	fewVisits = 40
	blocks    = 8
	minKept   = 10_000_000
	deviation = 10 // times the spread of usual visits
	surely    = 0.001
)

// FindFront measures the processes in front of the schedulers of a set.
func FindFront(s *request.Set) *Front {
	f := &Front{set: s, index: map[desk]*FrontProcess{}}
	f.findBusy()
	for i := range s.AllRequests() {
		if r := &s.Requests[i]; r.Status == request.Finished && r.Complete() {
			f.add(i, r)
		}
	}
	for _, d := range f.Desks {
		f.Visits = max(f.Visits, len(d.visits))
		d.judge()
	}
	return f
}

// add records the visits of a request.
func (f *Front) add(i int, r *request.Request) {
	s := f.set
	var sent trace.Time // 0 if unknown
	var atServer int64  // ns that seem to be the gateway's, but are the server's
	outer := r.Gateway
	if outer != request.None && r.Flags&request.SharedGateway == 0 && !s.Implausible(outer) {
		var first trace.Time
		if first, sent = s.HandedOn(outer); sent != 0 {
			f.desk(s.ProcOf(outer), sends).add(visit{at: r.Start, request: i, work: int64(first - s.Row(outer).Start)})
		} else {
			atServer = f.addAround(i, r, outer)
		}
	}
	for _, p := range s.PartsOf(r) {
		part := &s.Parts[p]
		work, ok := f.work(part)
		if !ok {
			continue
		}
		v := visit{at: r.Start, request: i, work: work}
		if sent != 0 {
			v.wait = waited(s, part, outer, sent)
			if busy := f.busy[part.Proc]; busy != nil {
				v.idle = v.wait - busy.Overlap(part.Start-trace.Time(v.wait), part.Start)
			}
		} else if p == s.Answering(r) {
			v.wait = atServer
		}
		f.desk(part.Proc, tokenizes).add(v)
	}
	f.addAnswer(i, r, outer, sent)
}

// addAround records how much longer a gateway's span is than that of the server that answered the request, which does
// not depend on their clocks. It skips requests for which the gateway asked several servers of a role in turn,
// because it waited for those. It returns the ns for which the request waited at the server instead: before the
// server's span, while its only tokenizing process was busy with others.
func (f *Front) addAround(i int, r *request.Request, outer int) (atServer int64) {
	s := f.set
	part := &s.Parts[s.Answering(r)]
	if !part.Serves() || part.Root == request.None || s.Implausible(part.Root) {
		return 0
	}
	for _, p := range s.PartsOf(r) {
		if o := &s.Parts[p]; o != part && o.Role == part.Role {
			return 0
		}
	}
	span := s.Row(outer)
	left := span.Dur() - s.Row(part.Root).Dur()
	if left < 0 {
		return 0
	}
	before := waited(s, part, outer, span.Start)
	busy := f.busy[part.Proc]
	if before >= minKept && busy != nil && float64(busy.Overlap(part.Start-trace.Time(before), part.Start)) >= nearlyAll*float64(before) {
		atServer = before
	}
	f.desk(s.ProcOf(outer), around).add(visit{at: r.Start, request: i, wait: before - atServer, work: left - before})
	return atServer
}

// findBusy records when procs tokenize.
func (f *Front) findBusy() {
	s, times := f.set, map[int][]request.Interval{}
	for p := range s.ServingParts {
		if ns, ok := f.work(p); ok && ns > 0 {
			times[p.Proc] = memory.Append(times[p.Proc], request.Interval{From: p.Start, To: p.Start + trace.Time(ns)})
		}
	}
	f.busy = map[int]*request.Coverage{}
	for proc, list := range times {
		f.busy[proc] = new(request.NewCoverage(list))
	}
}

// addAnswer records how long the answer to a request took to leave: at the server that gave it, and at the gateway,
// whose span lasts that much longer than the server's and what was before it.
func (f *Front) addAnswer(i int, r *request.Request, outer int, sent trace.Time) {
	s := f.set
	part := &s.Parts[s.Answering(r)]
	if !part.Serves() || part.Root == request.None || part.Proc == request.None || s.Implausible(part.Root) {
		return
	}
	root := s.Row(part.Root)
	if lead := s.Lead(part); lead != request.None && s.OnScheduler(lead) {
		th := &s.Threads[lead]
		if one := s.Procs[th.Proc].Host == s.Procs[part.Proc].Host; one && th.Row != request.None && th.Proc != part.Proc && th.End > root.Start {
			f.desk(part.Proc, answers).add(visit{at: th.End, request: i, work: max(0, int64(root.End-th.End))})
		}
	}
	if sent != 0 {
		left := int64(s.Row(outer).End-sent) - root.Dur() - waited(s, part, outer, sent)
		f.desk(s.ProcOf(outer), returns).add(visit{at: root.End, request: i, work: max(0, left)})
	}
}

// waited returns how long a part waited from when it was sent until it began, ns. The clocks may be wrong, so it is
// never more than what the server leaves of the gateway's span.
func waited(s *request.Set, p *request.Part, outer int, sent trace.Time) int64 {
	span, root := s.Row(outer), s.Row(p.Root)
	shift := s.Clocks.Drifted(s.ProcOf(p.Root), s.ProcOf(outer), span.Start)
	left := int64(span.End-sent) - root.Dur()
	return max(0, min(int64(root.Start+shift-sent), left))
}

// work returns how long the tokenizer of a part had the request, ns. ok is false if that is unknown.
func (f *Front) work(p *request.Part) (ns int64, ok bool) {
	s := f.set
	if !p.Serves() || p.Root == request.None || p.Proc == request.None || s.Implausible(p.Root) {
		return 0, false
	}
	for _, t := range s.ThreadsOf(p) {
		if s.OnScheduler(t) || s.Threads[t].Proc != p.Proc {
			continue
		}
		for _, i := range s.StagesOf(t) {
			if row := s.Row(int(i)); row.Phase == request.DispatchPhase && !s.Implausible(int(i)) && row.End > p.Start {
				ns, ok = max(ns, int64(row.End-p.Start)), true
			}
		}
	}
	return ns, ok
}

// desk returns the desk of a proc for a duty, and adds it if it is new.
func (f *Front) desk(proc int, of duty) *FrontProcess {
	at := desk{place.NewLocation(f.set, proc), of}
	d := f.index[at]
	if d == nil {
		d = &FrontProcess{Location: at.at, duty: of}
		f.index[at], f.Desks = d, append(f.Desks, d)
	}
	return d
}

func (d *FrontProcess) add(v visit) { d.visits = memory.Append(d.visits, v) }

// judge sorts the visits, and finds what is usual, and since when some take longer.
func (d *FrontProcess) judge() {
	slices.SortStableFunc(d.visits, func(x, y visit) int { return cmp.Compare(x.at, y.at) })
	n := len(d.visits)
	if n < fewVisits {
		return
	}
	d.findUsual()
	long := memory.Make[bool](n)
	for i := range d.visits {
		long[i] = d.visits[i].ns() >= d.Limit
	}
	at := func(k int) trace.Time { return d.visits[k].at }
	p := findPeriod(long, d.changes(long), at)
	d.Since, d.Earliest, d.Latest, d.P = p.since, p.earliest, p.latest, p.p
	from, to := p.from, p.to
	if from == 0 && (d.duty == sends || d.duty == around) && d.Usual >= minKept {
		d.always, d.Usual, d.Limit = true, 0, minKept // because passing a request on takes next to no time
	}
	if p.over {
		d.Until = d.visits[to-1].at + trace.Time(d.visits[to-1].ns())
		if p.crowd {
			for _, v := range d.visits[from:to] {
				d.Until = max(d.Until, v.at+trace.Time(v.ns()))
			}
		}
	}
	for _, v := range d.visits[from:to] {
		if v.ns() >= d.Limit {
			d.kept = memory.Append(d.kept, v)
		}
	}
	d.after = to - from
	d.findRhythm()
}

// findRhythm finds whether spells come at equal intervals. If so, they began with the first one, if another one would have come before.
func (d *FrontProcess) findRhythm() {
	starts, _ := spellsOf(d.kept)
	every, chance := changepoint.Periodic(order.Each(starts, func(t trace.Time) float64 { return float64(t) / 1e9 }))
	if d.always || chance > surely {
		return
	}
	d.every = every
	if from := starts[0]; d.Since == 0 && float64(from-d.visits[0].at) > 1.5e9*every {
		d.Since, d.Earliest, d.Latest, d.P = from, from, from, chance
		d.after = order.Count(d.visits, func(v visit) bool { return v.at >= from })
	}
}

// changes returns the changes in the share of long visits. Long visits may come in clusters, so that their number
// proves nothing; then it returns changes in the length of all visits.
func (d *FrontProcess) changes(long []bool) []changepoint.Change {
	count := changepoint.Count(long)
	rises := func(_, k, to int) bool { return count.In(k, to) > 0 }
	if found := changepoint.Shares(long, changepoint.Options{Alpha: surely}); len(found) > 0 {
		return found
	}
	values := memory.Make[float64](len(d.visits))
	for i := range d.visits {
		values[i] = float64(d.visits[i].ns())
	}
	if found := changepoint.Levels(values, changepoint.Options{Alpha: surely, Keep: rises}); len(found) > 0 {
		return found
	}
	return d.begins(long)
}

// begins returns the time before which no visit is too long, unless that may be chance. Requests that come while a
// desk is busy also wait, so the spells are taken to be random, not the visits.
func (d *FrontProcess) begins(long []bool) []changepoint.Change {
	var kept []visit
	first, n := 0, len(long)
	for i, is := range long {
		if is {
			kept = memory.Append(kept, d.visits[i])
		}
		if len(kept) == 0 {
			first = i + 1
		}
	}
	starts, _ := spellsOf(kept)
	spells := len(starts)
	p := math.Pow(float64(n-first)/float64(n), float64(spells))
	if first < fewVisits || spells == 0 || p > surely {
		return nil
	}
	const sure = 3 // spells expected in this stretch, but not seen: a chance of one in twenty
	return []changepoint.Change{{At: first, First: max(0, first-sure*(n-first)/spells), Last: first, To: n, P: p}}
}

// findUsual takes the period with the shortest visits as usual.
func (d *FrontProcess) findUsual() {
	n := len(d.visits)
	count := min(blocks, n/(fewVisits/4))
	for b := range count {
		list := order.Each(d.visits[b*n/count:(b+1)*n/count], func(v visit) int64 { return v.ns() })
		slices.Sort(list)
		middle := request.NearestRank(list, 50)
		if b == 0 || middle < d.Usual {
			d.Usual = middle
			d.Limit = middle + max(minKept, deviation*(middle-request.NearestRank(list, 25)))
		}
	}
}
