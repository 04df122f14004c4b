package gaps

import (
	"cmp"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/gpu"
	"github.com/sgtrace/sgtrace/analyze/host"
	"github.com/sgtrace/sgtrace/trace"
)

// A query asks what a thread did during a part of a gap. The part lasts weight ns; it may be
// asked about one moment only, at which from and to are equal.
type query struct {
	from, to trace.Time
	weight   int64
	gap      int32 // among the late ones of the device
	reason   gpu.Reason
	drained  bool // by the call at this moment: it counts beside the causes
}

// A cause is a row of sums: why a device was idle, and what the host did.
type cause struct {
	reason gpu.Reason
	at     site
	other  trace.Sym // what another thread did meanwhile; 0 is nothing that matters
	pause  bool      // the thread began and ended nothing for far longer than it takes to launch
}

// A total is the sum of a cause.
type total struct {
	tally
	gap    int32 // the last one, with its device
	device int32
	inGap  int64 // ns of the cause in it
}

func (t *total) add(device, gap int32, ns int64) {
	if t.gaps == 0 || t.gap != gap || t.device != device {
		t.gaps++
		t.gap, t.device, t.inGap = gap, device, 0
	}
	t.inGap = distribution.AddTimes(t.inGap, ns)
	t.time = distribution.AddTimes(t.time, ns)
	t.longest = max(t.longest, t.inGap)
}

// totals are sums by cause. Causes are counted by number: to hash one takes as long as to add.
type totals struct {
	numbers map[cause]int32
	keys    []cause // by number
	sums    []total
}

// of returns the number of a cause.
func (t *totals) of(c *cause) int32 {
	n, known := t.numbers[*c]
	if !known {
		if t.numbers == nil {
			t.numbers = map[cause]int32{}
		}
		n = int32(len(t.keys))
		t.numbers[*c] = n
		t.keys, t.sums = append(t.keys, *c), append(t.sums, total{})
	}
	return n
}

// join adds what others have of a cause.
func (t *totals) join(c *cause, more *tally) {
	if more.gaps > 0 {
		t.sums[t.of(c)].tally.add(more)
	}
}

// A rankWork finds the causes of the gaps of one rank.
type rankWork struct {
	host  *rankHost
	names *host.Names

	causes  totals
	pauses  []pause // parts of them
	stills  []pause // parts of them, and of what else of the kind may be work of one function
	turns   turns
	drained totals                                       // time after calls that let the device run dry, by call
	each    func(number int32, gap trace.Time, ns int64) // of a cause; nil is nobody
	kept    *keptRank                                    // nil keeps nothing
	// Of the device at hand:
	device int32
	late   []lateGap
	pause  int64                     // ns from which on it is one
	long   map[int32]map[cause]int64 // parts of the longest gaps, by number of the gap
}

// measure finds the causes of the gaps of all devices, and those of the longest ones.
func (w *rankWork) measure(devices []*deviceGaps) {
	for _, d := range devices {
		d.late, d.parts = d.packed.unpack()
	}
	w.host.settle()
	w.host.findLaunches(devices)
	for i, d := range devices {
		w.device, w.late, w.pause, w.long = int32(i), d.late, d.pauseFrom(), map[int32]map[cause]int64{}
		for k := range d.longest {
			if l := &d.longest[k]; l.late != notLate {
				w.long[l.late] = map[cause]int64{}
			}
		}
		for reason := range d.rest {
			w.causes.join(&cause{reason: gpu.Reason(reason), at: site{did: host.OnDevice}}, &d.rest[reason])
		}
		w.walk(d)
		for k := range d.longest {
			d.longest[k].cause = w.largest(w.long[d.longest[k].late])
		}
		d.late, d.parts = nil, nil
	}
	if w.kept != nil {
		w.kept.causes = w.causes.keys
	}
}

// askedAtOnce is how many gaps threads are asked about before they answer: queries take
// memory.
const askedAtOnce = 1 << 14

// walk passes over the late gaps of a device and the stacks of all threads.
func (w *rankWork) walk(d *deviceGaps) {
	for k, t := range w.host.threads {
		t.sweep = newSweep(w.names, t.frames)
		t.seen.rewind()
		t.others = others{of: w, but: int32(k)}
	}
	for from := 0; from < len(d.late); from += askedAtOnce {
		w.ask(d, from, min(from+askedAtOnce, len(d.late)))
		for _, t := range w.host.threads {
			w.answer(t, d)
		}
	}
	for _, t := range w.host.threads {
		t.sweep, t.others = sweep{}, others{}
	}
}

// ask divides some late gaps of a device among the threads.
func (w *rankWork) ask(d *deviceGaps, first, end int) {
	for i := first; i < end; i++ {
		g := &d.late[i]
		from := g.Gap.From
		after := int64(0) // ns after the call that let the device run dry
		var drained host.ThreadID
		for _, p := range d.partsOf(i) {
			q := query{from: from, to: p.to, gap: int32(i), reason: p.reason, weight: distribution.Between(from, p.to)}
			from = p.to
			if p.reason.Launched() {
				w.count(&q, cause{reason: p.reason, at: site{did: host.OnDevice}}, q.weight, 0)
				continue
			}
			if p.by != noCall && p.reason != gpu.AfterSync {
				w.put(w.threadOf(d.by[p.by]), q)
				continue
			}
			if p.reason == gpu.AfterSync {
				after, drained = distribution.AddTimes(after, q.weight), d.by[p.by]
			}
			w.askLauncher(g, q)
		}
		if after > 0 {
			w.put(w.threadOf(drained), query{from: g.Gap.From, to: g.Gap.From, weight: after, gap: int32(i), reason: gpu.AfterSync, drained: true})
		}
	}
}

// askLauncher asks what the launching thread did. From its call on, that is the call, whatever
// follows it.
func (w *rankWork) askLauncher(g *lateGap, q query) {
	if q.from < g.launch {
		before := q
		before.to = min(q.to, g.launch)
		before.weight = distribution.Between(before.from, before.to)
		w.put(g.thread, before)
	}
	if q.to > g.launch {
		q.from = max(q.from, g.launch)
		q.weight = distribution.Between(q.from, q.to)
		q.from = max(g.launch, g.Gap.From) // it may have begun before
		q.to = q.from
		w.put(g.thread, q)
	}
}

// threadOf returns the number of a thread, unknownThread if it did nothing in late gaps.
func (w *rankWork) threadOf(id host.ThreadID) int32 {
	i, found := slices.BinarySearchFunc(w.host.threads, id, func(t *thread, id host.ThreadID) int { return t.id.Compare(id) })
	if !found {
		return unknownThread
	}
	return int32(i)
}

// put puts a query to a thread. Of no thread, nothing is recorded.
func (w *rankWork) put(number int32, q query) {
	if number != unknownThread {
		t := w.host.threads[number]
		t.queries = append(t.queries, q)
	} else if !q.drained {
		w.count(&q, cause{reason: q.reason}, q.weight, 0)
	}
}

// answer looks at the stack of a thread for all queries to it about gaps of a device.
func (w *rankWork) answer(t *thread, d *deviceGaps) {
	byTime := func(a, b query) int { return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to)) }
	if !slices.IsSortedFunc(t.queries, byTime) {
		slices.SortStableFunc(t.queries, byTime)
	}
	s := &t.sweep
	for i := range t.queries {
		q := &t.queries[i]
		s.MoveTo(q.from)
		if q.from == q.to {
			w.count(q, cause{reason: q.reason, at: s.Here()}, q.weight, 0)
			continue
		}
		for now := q.from; now < q.to; {
			since := max(s.Changed, d.late[q.gap].Gap.From) // what changed before the gap is not kept
			at, end, samples := t.seen.refine(s.Here(), since, now, s.Until(q.to))
			c := cause{reason: q.reason, at: at}
			length := distribution.Between(now, end)
			ran := at.did != host.OffCPU && at.did != s.Here().did // it was seen
			if length >= waitsForOthers && c.at.mayWait() && !ran {
				if blamed, ns := t.others.blame(c, now, end); ns > 0 {
					w.count(q, blamed, ns, 0)
					length -= ns
				}
			}
			if c.standsStill() {
				if length >= w.pause {
					c.pause = c.mayPause()
					still := pause{device: w.device, gap: d.late[q.gap].Gap.From, ns: length}
					if c.at.did == host.InPython {
						still.in = cmp.Or(c.at.frame, c.at.function)
					}
					w.stills = append(w.stills, still)
				}
				w.turns.add(length)
			}
			w.count(q, c, length, samples)
			now = end
			s.MoveTo(now)
		}
	}
	t.queries = t.queries[:0]
}

// count counts a part of a gap, and the samples that tell of it.
func (w *rankWork) count(q *query, c cause, ns int64, samples int) {
	if ns == 0 {
		return
	}
	if c.at.operator != 0 {
		c.at.function = 0 // it is how the operator was called
	}
	if q.drained {
		w.drained.sums[w.drained.of(&cause{reason: c.reason, at: c.at})].add(w.device, q.gap, ns)
		return
	}
	number := w.causes.of(&c)
	sum := &w.causes.sums[number]
	sum.add(w.device, q.gap, ns)
	sum.samples += int64(samples)
	if c.pause {
		w.pauses = append(w.pauses, pause{device: w.device, gap: w.late[q.gap].Gap.From, ns: ns})
	}
	if w.kept != nil {
		w.kept.add(number, w.late[q.gap].Gap.From, ns)
	}
	if w.each != nil {
		w.each(number, w.late[q.gap].Gap.From, ns)
	}
	if in := w.long[q.gap]; in != nil {
		in[c] = distribution.AddTimes(in[c], ns)
	}
}

// largest returns the cause of most of a gap.
func (w *rankWork) largest(in map[cause]int64) cause {
	best, most := cause{at: site{did: host.OnDevice}}, int64(0)
	for c, ns := range in {
		if ns > most || ns == most && w.compare(&c, &best) < 0 {
			best, most = c, ns
		}
	}
	return best
}

// compare orders causes by what they are called: the numbers of symbols differ from run to
// run.
func (w *rankWork) compare(a, b *cause) int {
	order := cmp.Or(cmp.Compare(a.reason, b.reason), cmp.Compare(a.at.did, b.at.did))
	for _, of := range [...]func(*cause) trace.Sym{
		func(c *cause) trace.Sym { return c.at.call }, func(c *cause) trace.Sym { return c.at.operator },
		func(c *cause) trace.Sym { return c.at.function }, func(c *cause) trace.Sym { return c.at.frame },
		func(c *cause) trace.Sym { return c.at.span }, func(c *cause) trace.Sym { return c.other },
	} {
		order = cmp.Or(order, w.names.Compare(of(a), of(b)))
	}
	return order
}
