package drawing

import (
	"cmp"
	"slices"

	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/internal/parallel"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
	"github.com/sgtrace/sgtrace/trace/naming"
)

// change is one change of a counter.
type change struct {
	at    trace.Time
	value int64 // a difference, or the new value
}

// procCounters is the source of a proc's counters: when requests started and stopped waiting or running,
// and the batch sizes of its schedule events.
type procCounters struct {
	levels
	batch []change
}

// room returns the maximum number of samples.
func (c *procCounters) room() int { return len(c.queued) + len(c.running) + len(c.batch) }

// levels are the numbers of requests that wait and run, as differences.
type levels struct{ queued, running []change }

// add adds the differences of thread t.
func (v *levels) add(l *layout, t int) {
	l.eachLevel(t, func(waits bool, from, to trace.Time) {
		steps := &v.running
		if waits {
			steps = &v.queued
		}
		*steps = memory.Append(*steps, change{from, 1}, change{to, -1})
	})
}

// sort sorts the differences by time.
func (v *levels) sort() {
	sortSteps(v.queued)
	sortSteps(v.running)
}

// sortSteps sorts the differences of a counter by time; the order within one time does not matter, since they are added up.
func sortSteps(steps []change) {
	slices.SortFunc(steps, func(x, y change) int { return cmp.Compare(x.at, y.at) })
}

// collectCounters collects the counters of every proc.
func (l *layout) collectCounters() {
	all := make([]procCounters, len(l.set.Procs))
	for t := range l.set.AllThreads() {
		all[l.set.Threads[t].Proc].add(l, t)
	}
	for i := range l.set.All() {
		if t := l.set.ThreadOf(i); t == request.None || !l.drawn(i) {
			continue
		}
		for _, e := range l.set.InstantsOf(i) {
			if e.Kind == request.Scheduled && e.Batch != request.Unknown {
				c := &all[l.set.ProcOf(i)]
				c.batch = memory.Append(c.batch, change{e.Time, int64(e.Batch)})
			}
		}
	}
	l.counters = all
	parallel.Each(len(all), func(p int) {
		all[p].sort()
		slices.SortFunc(all[p].batch, func(x, y change) int { return cmp.Or(cmp.Compare(x.at, y.at), cmp.Compare(x.value, y.value)) })
	})
}

// eachLevel calls f for each period in which a thread waits, and each in which it prefills or decodes. As in reports, a
// request that waits for the other server is queued, but one that waits for its first decode batch on a unified server
// is running. Adjacent stages of the same kind, such as decode steps, are one period.
func (l *layout) eachLevel(t int, f func(waits bool, from, to trace.Time)) {
	var under struct { // the current period
		waits    bool
		from, to trace.Time
	}
	unified := l.set.Procs[l.set.Threads[t].Proc].Role == request.Unified
	for _, i := range l.set.StagesOf(t) {
		s := l.set.Row(int(i))
		if !l.drawn(int(i)) || s.End <= s.Start {
			continue
		}
		waits := s.Phase == request.QueuePhase || s.Phase == request.BootstrapPhase
		if s.Means == request.DecodeQueueing && unified {
			waits = false
		} else if !waits && s.Phase != request.PrefillPhase && s.Phase != request.DecodePhase {
			continue
		}
		if under.to > under.from && under.waits == waits && under.to == s.Start {
			under.to = s.End
			continue
		}
		if under.to > under.from {
			f(under.waits, under.from, under.to)
		}
		under.waits, under.from, under.to = waits, s.Start, s.End
	}
	if under.to > under.from {
		f(under.waits, under.from, under.to)
	}
}

// drawCounters adds the counter tracks of a proc that have any samples. Their names include the rank, since a pinned track is
// shown without its process.
func (d *drawing) drawCounters(p int, parent trace.TrackID) {
	c, of := &d.counters[p], naming.Separator+d.set.RankName(p)
	d.drawLevel(parent, 0, "queued"+of, "requests that wait on this rank for a batch, for memory, or for the other server", c.queued)
	d.drawLevel(parent, 1, "running"+of, "requests in a prefill or decode stage on this rank", c.running)
	d.drawBatch(parent, "batch size"+of, c.batch)
}

// drawLevel draws a counter that is given as differences.
func (d *drawing) drawLevel(parent trace.TrackID, order int32, name, desc string, steps []change) {
	if len(steps) == 0 {
		return
	}
	track := d.counterTrack(parent, order, name, desc)
	level, shown := int64(0), int64(-1)
	for i, s := range steps {
		level += s.value
		if last := i+1 == len(steps) || steps[i+1].at != s.at; last && level != shown {
			d.b.Sample(trace.Sample{Time: s.at, Value: float64(level), Track: track})
			shown = level
		}
	}
}

// drawBatch draws the batch size. Every request of a batch reports the same event, so only changes are
// drawn.
func (d *drawing) drawBatch(parent trace.TrackID, name string, sizes []change) {
	if len(sizes) == 0 {
		return
	}
	track := d.counterTrack(parent, 2, name, "batch_size of the schedule events of this rank")
	last := int64(-1)
	for _, s := range sizes {
		if s.value != last {
			d.b.Sample(trace.Sample{Time: s.at, Value: float64(s.value), Track: track})
		}
		last = s.value
	}
}

func (d *drawing) counterTrack(parent trace.TrackID, order int32, name, desc string) trace.TrackID {
	return d.b.Track(trace.Track{Parent: parent, Kind: trace.KindCounter, Name: d.b.Intern(name), Order: order,
		Rank: trace.NoRank, Unit: d.b.Intern("requests"), Desc: d.b.Intern(desc)})
}
