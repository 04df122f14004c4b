package gaps

import (
	"cmp"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/gpu"
	"github.com/sgtrace/sgtrace/analyze/host"
	"github.com/sgtrace/sgtrace/trace"
)

// A query asks what a thread did during a part of a gap, which lasts weight ns. If from and to are
// equal, it asks about that moment only.
type query struct {
	from, to trace.Time
	weight   int64
	gap      int32 // index among the late gaps of the device
	reason   gpu.Reason
	drained  bool // time after the call at this moment, which let the device run dry: counted apart from the causes
}

// A cause is what sums are grouped by: why a device was idle, and what the host did.
type cause struct {
	reason gpu.Reason
	at     site
	other  trace.Sym // what another thread did meanwhile; 0 if that does not matter
	pause  bool      // the thread began and ended nothing for far longer than it takes to launch
}

// A total adds up the parts of gaps with one cause.
type total struct {
	tally
	gap    int32 // the last one that was added to, with its device
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

// totals are sums by cause. They are stored by the number of the cause, as hashing one takes as long as adding to its sum.
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

// join adds the sum of the same cause from elsewhere.
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
	pauses  []pause // parts in which the thread paused
	stills  []pause // the same, and parts as long in one Python function, which may be at work
	turns   turns
	drained totals                                       // time after calls that let the device run dry, by call
	each    func(number int32, gap trace.Time, ns int64) // takes every part of a gap, with the number of its cause; nil is nobody
	kept    *keptRank                                    // nil keeps nothing
	// For the current device:
	device int32
	late   []lateGap
	pause  int64                     // ns from which on standing still is a pause
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

// askedAtOnce is how many gaps are turned into queries before threads answer these: queries take
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

// ask turns some late gaps of a device into queries to threads.
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

// askLauncher asks what the launching thread did. From its launch on, that is the launching call,
// whatever follows it.
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
		q.from = max(g.launch, g.Gap.From) // the launch may have begun before the gap
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

// put queues a query to a thread. Of an unknown thread nothing is recorded, so the query is counted without a site.
func (w *rankWork) put(number int32, q query) {
	if number != unknownThread {
		t := w.host.threads[number]
		t.queries = append(t.queries, q)
	} else if !q.drained {
		w.count(&q, cause{reason: q.reason}, q.weight, 0)
	}
}

// answer answers all queries to a thread about gaps of a device, from its stack.
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
			since := max(s.Changed, d.late[q.gap].Gap.From) // changes before the gap were not kept
			at, end, samples := t.seen.refine(s.Here(), since, now, s.Until(q.to))
			c := cause{reason: q.reason, at: at}
			length := distribution.Between(now, end)
			ran := at.did != host.OffCPU && at.did != s.Here().did // a sample shows that
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

// count counts a part of a gap, and the samples that show its cause.
func (w *rankWork) count(q *query, c cause, ns int64, samples int) {
	if ns == 0 {
		return
	}
	if c.at.operator != 0 {
		c.at.function = 0 // it only calls the operator
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

// compare orders causes by their names, as the numbers of symbols differ from run to run.
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
