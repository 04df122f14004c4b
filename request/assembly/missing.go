package assembly

import (
	"cmp"
	"math"
	"slices"

	"github.com/sgtrace/sgtrace/internal/parallel"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/request/spantable"
	"github.com/sgtrace/sgtrace/trace"
)

// A lossFinder finds rows that others prove to be missing: the parent of a row, the row that one follows
// from, or a step between two others. Nothing else proves a loss. A rank without any row of a request does
// not: ranks of one server may have different work, such as KV senders, and a restarted server has new
// ranks.
type lossFinder struct {
	*builder
	known     map[spanKey]bool // missing spans already counted
	cut       trace.Time       // the first row of the input ends here
	last      []trace.Time     // last sign of life by proc: its end, or the end of the input
	answered  []trace.Time     // by proc, the end of the last part
	lag       []trace.Time     // by proc, the longest time between the end of the schedulers' work and of the answer
	gateways  map[int]bool     // procs with requests that came through a gateway
	joined    bool             // some prefill and decode parts are joined
	served    bool             // there are parts of servers, not only of routers
	scheduled [request.Other + 1]bool
	ends      roleMeanings // stages that occur
	broken    []int32      // requests with missing rows
	stepless  []int32      // requests with missing steps, or missing rows of ranks other than the lead
	losses    []loss
}

// A lossCount collects what some requests prove: the number of existing rows, and the missing ones.
type lossCount struct {
	*lossFinder
	request    int32 // the current one
	shown      []int // number of existing rows, by proc
	losses     []loss
	broken     []int32
	stepless   []int32
	stepNumber map[int32]bool // scratch space
}

// A loss is n rows of a proc that a request proves to be missing.
type loss struct {
	request int32
	at      trace.Time
	proc, n int
	key     spanKey // of the missing span; zero if unknown
	answers bool    // the missing span ends when the answer is out
}

// roleMeanings is a set of stages, by role of the server.
type roleMeanings [request.Other + 1][request.Caching + 1]bool

// findMissing lists the missing rows. It returns the requests with missing rows, and those where only steps are
// missing, or rows of ranks that compute the same as the lead.
func (b *builder) findMissing() (broken, stepless []int32) {
	f := &lossFinder{builder: b, known: map[spanKey]bool{}, gateways: map[int]bool{}, last: make([]trace.Time, len(b.Procs)), answered: make([]trace.Time, len(b.Procs)), lag: make([]trace.Time, len(b.Procs))}
	b.Shown = make([]int, len(b.Procs))
	f.look()
	f.checkRequests()
	f.checkLinks()
	f.countLosses()
	if len(f.Missing) > 0 && !f.joined && f.scheduled[request.Prefill] && f.scheduled[request.Decode] {
		f.addPrefillHalves()
	}
	return f.broken, f.stepless
}

// checkRequests finds rows that parts, threads, and stages of requests prove to be missing.
func (f *lossFinder) checkRequests() {
	var losses []loss
	parallel.Fold(len(f.Requests), threadSize, func() *lossCount {
		return &lossCount{lossFinder: f, shown: make([]int, len(f.Procs)), stepNumber: map[int32]bool{}}
	}, func(c *lossCount, from, to int) {
		for r := from; r < to; r++ {
			c.request = int32(r)
			whole, steps := c.isComplete(&f.Requests[r])
			if !whole {
				c.broken = append(c.broken, c.request)
			}
			if !steps {
				c.stepless = append(c.stepless, c.request)
			}
		}
	}, func(c *lossCount) {
		losses, f.broken, f.stepless = append(losses, c.losses...), append(f.broken, c.broken...), append(f.stepless, c.stepless...)
		for p, n := range c.shown {
			f.Shown[p] += n
		}
	})
	slices.Sort(f.broken)
	slices.SortStableFunc(losses, func(x, y loss) int { return cmp.Compare(x.request, y.request) })
	for _, x := range losses {
		if x.key == (spanKey{}) {
			f.losses = append(f.losses, x)
		} else {
			f.add(x.key, x.at, x.proc)
		}
	}
}

// addPrefillHalves adds the prefill parts without a decode part if no request has both: what joins them was
// lost, and with it how the request ended.
func (f *lossFinder) addPrefillHalves() {
	for i := range f.AllRequests() {
		r := &f.Requests[i]
		if r.Flags&request.Unjoined != 0 && f.count(f.PartsOf(r), request.Prefill) > 0 {
			f.broken = append(f.broken, int32(i))
		}
	}
}

// look collects what can be expected.
func (f *lossFinder) look() {
	type sum struct {
		cut  trace.Time
		last []trace.Time
		ends roleMeanings
	}
	f.cut = math.MaxInt64
	parallel.Fold(f.Len(), request.RowSize, func() *sum { return &sum{cut: math.MaxInt64, last: make([]trace.Time, len(f.last))} }, func(x *sum, from, to int) {
		for i := from; i < to; i++ {
			row := &f.Rows[i]
			if row.Kind == request.Duplicate {
				continue
			}
			x.cut = min(x.cut, row.End)
			if row.Proc != request.None {
				x.last[row.Proc] = max(x.last[row.Proc], row.End)
			}
			if row.Kind == request.Stage {
				x.ends[f.Parts[row.Part].Role][row.Means] = true
			}
		}
	}, func(x *sum) {
		f.cut = min(f.cut, x.cut)
		for p := range x.last {
			f.last[p] = max(f.last[p], x.last[p])
		}
		for role := range x.ends {
			for means, there := range x.ends[role] {
				f.ends[role][means] = f.ends[role][means] || there
			}
		}
	})
	f.served = slices.ContainsFunc(f.Parts, func(p request.Part) bool { return p.Serves() })
	for r := range f.AllRequests() {
		parts := f.PartsOf(&f.Requests[r])
		f.joined = f.joined || f.count(parts, request.Prefill) > 0 && f.count(parts, request.Decode) > 0
		for _, p := range parts {
			if f.Parts[p].Gateway != request.None {
				f.gateways[f.Parts[p].Proc] = true
			}
			part := &f.Parts[p]
			if part.Root != request.None && part.Proc != request.None {
				f.answered[part.Proc] = max(f.answered[part.Proc], part.End)
			}
			if f.Lead(part) != request.None {
				f.scheduled[part.Role] = true
				if part.Root != request.None {
					f.lag[part.Proc] = max(f.lag[part.Proc], part.End-f.lastThread(part))
				}
			}
		}
	}
}

// add records that a span is missing, once even if several rows prove it.
func (f *lossFinder) add(key spanKey, at trace.Time, proc int) {
	if f.known[key] {
		return
	}
	f.known[key] = true
	f.losses = append(f.losses, loss{at: at, proc: proc, n: 1})
}

// countLosses lists the missing rows, except near the head of the input and near the end of their proc: what a process
// still holds when it dies, or when the input ends, was not lost on the way, nor was a span that ends with an answer
// that may not have been out. A process that wrote later had exported what it held. If anything from before the head is
// missing, the file was cut there, and processes exported what they held at different times.
func (f *lossFinder) countLosses() {
	from := f.cut
	if slices.ContainsFunc(f.losses, func(x loss) bool { return x.at <= f.cut }) {
		from += request.ExportDelay
	}
	for _, x := range f.losses {
		until := f.last[x.proc] - request.ExportDelay
		if x.answers {
			until -= f.lag[x.proc]
		}
		if x.at <= from || x.at > until {
			continue
		}
		f.Shown[x.proc] += x.n
		for range x.n {
			f.Missing = append(f.Missing, request.Missing{Time: x.at, Proc: int32(x.proc)})
		}
	}
}

// lost records n missing rows of a proc.
func (c *lossCount) lost(at trace.Time, proc, n int, key spanKey) {
	c.losses = append(c.losses, loss{request: c.request, at: at, proc: proc, n: n, key: key})
}

// isComplete reports whether the parts of a request prove no loss except of steps, and of ranks that
// compute the same as the lead (whole), and whether these are complete, too (steps). What had not ended at
// the end of the input is not missing.
func (c *lossCount) isComplete(r *request.Request) (whole, steps bool) {
	whole, steps = true, true
	for _, p := range c.PartsOf(r) {
		part := &c.Parts[p]
		whole = c.checkRoot(r, part) && whole
		most := c.lastStep(part)
		for _, t := range c.ThreadsOf(part) {
			if is := c.checkThread(r, part, t); c.isBeside(t) {
				steps = steps && is
			} else {
				whole = whole && is
			}
			steps = c.checkSteps(r, t, most) && steps
		}
		if r.Status == request.Finished && part.Serves() {
			whole = whole && c.isWhole(part)
		}
	}
	if r.Status == request.Finished {
		whole = whole && !(r.Flags&request.Unjoined != 0 && c.joined) && (c.Parts[c.Answering(r)].Serves() || !c.served)
	}
	return whole, steps
}

// isBeside reports whether thread t belongs to a rank that computes the same as the lead of its part.
func (f *lossFinder) isBeside(t int) bool {
	return f.OnScheduler(t) && f.Lead(&f.Parts[f.Threads[t].Part]) != t
}

// checkRoot reports whether the span of a part exists, and the gateway's span around it.
func (c *lossCount) checkRoot(r *request.Request, p *request.Part) bool {
	if p.Root != request.None {
		c.shown[p.Proc]++
		return !(c.gateways[p.Proc] && p.Gateway == request.None && c.tree.Orphan(p.Root))
	}
	if p.Proc == request.None {
		return false
	}
	// It has ended if the user was answered, or a scheduler's work has ended. A server that no longer answers anybody
	// may hang: its clients leave, and the gateway's spans end.
	answered, ended := r.Status == request.Finished && !c.mayHang(r, p), false
	for _, t := range c.ThreadsOf(p) {
		ended = ended || c.Threads[t].Row != request.None && c.OnScheduler(t)
	}
	if answered || ended {
		c.losses = append(c.losses, loss{request: c.request, at: max(p.End, c.lastThread(p)), proc: p.Proc, n: 1, answers: !answered})
	}
	return false
}

// mayHang reports whether the server of a part went on after a gateway ended the request around it, without ending any part.
func (f *lossFinder) mayHang(r *request.Request, p *request.Part) bool {
	if r.Gateway == request.None {
		return false
	}
	end := p.Start + trace.Time(f.Rows[r.Gateway].Dur())
	return f.answered[p.Proc] < end && f.last[p.Proc] >= end
}

// lastThread returns when the last thread of a part ended.
func (f *lossFinder) lastThread(p *request.Part) (end trace.Time) {
	for _, t := range f.ThreadsOf(p) {
		end = max(end, f.Threads[t].End)
	}
	return end
}

// checkThread reports whether the span of a thread exists, and the stages around its stages.
func (c *lossCount) checkThread(r *request.Request, p *request.Part, t int) bool {
	th := &c.Threads[t]
	if th.Row != request.None {
		c.shown[th.Proc]++
	}
	whole := th.Row != request.None || c.isOfVLLM(p)
	for _, i := range c.StagesOf(t) {
		if c.tree.Parent(int(i)) != spantable.None || !c.tree.Orphan(int(i)) {
			continue
		}
		parent := c.dump.Identity(int(i)).Parent
		whole = false
		if p.Root != request.None || th.Row != request.None || r.Status == request.Finished {
			// The missing parent may have lasted as long as what it lies in, and spans are written only at their end.
			c.lost(max(c.Rows[i].End, th.End, p.End), th.Proc, 1, spanKey{c.dump.TraceOf(int(i)), parent})
		}
	}
	return whole
}

// isOfVLLM reports whether a part is a request of vLLM, which names no threads.
func (f *lossFinder) isOfVLLM(p *request.Part) bool {
	return p.Root != request.None && f.Name(p.Root) == vllmRequest
}

// lastStep returns the largest decode step number of a part, on any rank; Unknown if there are none.
func (f *lossFinder) lastStep(p *request.Part) int32 {
	most := int32(request.Unknown)
	if !f.ends[p.Role][request.Stepping] {
		return most
	}
	for _, t := range f.ThreadsOf(p) {
		f.EachStage(f.StagesOf(t), func(i int) {
			if row := f.Row(i); row.Means == request.Stepping {
				most = max(most, row.Step)
			}
		})
	}
	return most
}

// checkSteps reports whether a scheduler has all steps of a part: all numbers from zero to the last one; if
// its share has ended, the last one on any rank. Otherwise, ranks need not have come equally far.
func (c *lossCount) checkSteps(r *request.Request, t int, most int32) bool {
	if most == request.Unknown || !c.OnScheduler(t) {
		return true
	}
	clear(c.stepNumber)
	own, last := int32(request.Unknown), trace.Time(0)
	c.EachStage(c.StagesOf(t), func(i int) {
		if row := c.Row(i); row.Means == request.Stepping && row.Step >= 0 {
			c.stepNumber[row.Step] = true
			own, last = max(own, row.Step), max(last, row.End)
		}
	})
	if r.Status != request.Finished || c.Threads[t].Row == request.None {
		most = own
	}
	proc := c.Threads[t].Proc
	c.shown[proc] += len(c.stepNumber)
	lost := int(most) + 1 - len(c.stepNumber)
	const believable = 1 << 20 // steps; a larger number is forged and proves nothing
	if lost <= 0 || lost > believable {
		return lost <= 0
	}
	if last == 0 {
		last = c.Threads[t].End
	}
	c.lost(last, proc, lost, spanKey{})
	return false
}

// lastStages are the stages with which the work on a finished request ends, by role.
var lastStages = [request.Other + 1][]request.Meaning{
	request.Prefill: {request.Sending},
	request.Decode:  {request.Answering},
	request.Unified: {request.Answering, request.Prefilling},
}

// isWhole reports whether a finished part has a scheduler thread and, as far as its role has them, the
// final stage and the steps up to its end.
func (f *lossFinder) isWhole(p *request.Part) bool {
	t := f.Lead(p)
	if t == request.None {
		return !f.scheduled[p.Role] || f.isOfVLLM(p)
	}
	stages := f.StagesOf(t)
	ends := lastStages[p.Role]
	if len(ends) == 0 || !f.ends[p.Role][ends[0]] {
		return true
	}
	if p.CompletionTokens > 1 {
		ends = ends[:1] // there are more tokens than the prefill yields
	}
	if !slices.ContainsFunc(stages, func(i uint32) bool { return slices.Contains(ends, f.Rows[i].Means) }) {
		return false
	}
	return f.stepsToEnd(p, t)
}

// stepsToEnd reports whether the steps of thread t reach to the end of the answering stage: the rest is
// shorter than two steps. The trace level is set by request, so a request without steps proves nothing.
func (f *lossFinder) stepsToEnd(p *request.Part, t int) bool {
	answering := f.LastStage(t, request.Answering)
	if answering == nil || p.CompletionTokens < 2 || !f.ends[p.Role][request.Stepping] {
		return true
	}
	last, longest := trace.Time(0), int64(0)
	f.EachStage(f.StagesOf(t), func(i int) {
		if row := f.Row(i); row.Means == request.Stepping {
			last, longest = max(last, row.End), max(longest, row.Dur())
		}
	})
	return last == 0 || int64(answering.End-last) <= 2*longest
}

// checkLinks finds missing rows that stages follow from.
func (f *lossFinder) checkLinks() {
	type sum struct {
		shown []int // by proc
		to    []int // indexes of links from missing rows
	}
	var missing []int
	parallel.Fold(len(f.Links), request.RowSize, func() *sum { return &sum{shown: make([]int, len(f.Procs))} }, func(x *sum, from, to int) {
		for n := from; n < to; n++ {
			link := &f.Links[n]
			switch row := &f.Rows[link.To]; {
			case row.Kind != request.Stage || row.Proc == request.None:
			case link.From != request.None:
				x.shown[row.Proc]++
			default:
				x.to = append(x.to, n)
			}
		}
	}, func(x *sum) {
		missing = append(missing, x.to...)
		for p, n := range x.shown {
			f.Shown[p] += n
		}
	})
	slices.Sort(missing)
	for _, n := range missing {
		i := int(f.Links[n].To)
		if r := f.RequestOf(i); r != request.None {
			of := &f.broken
			if t := f.Rows[i].Thread; t != request.None && f.isBeside(int(t)) {
				of = &f.stepless
			}
			*of = append(*of, int32(r))
		}
		l := f.dump.Link(n)
		f.add(spanKey{spantable.TraceID{l.TraceHi, l.TraceLo}, l.ID}, f.Rows[i].Start, int(f.Rows[i].Proc))
	}
}
