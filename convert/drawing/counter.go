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

// change is a step of a counter.
type change struct {
	at    trace.Time
	value int64 // added to the counter, or its new value
}

// procCounters is what the counters of a proc are made of: when requests began
// and ceased to wait or run, and the batch sizes that schedule events tell.
type procCounters struct {
	levels
	batch []change
}

// room is how many samples the counters have at most.
func (c *procCounters) room() int { return len(c.queued) + len(c.running) + len(c.batch) }

// levels are how many requests waited and ran, as steps.
type levels struct{ queued, running []change }

// add adds those of a thread.
func (v *levels) add(l *layout, t int) {
	l.eachLevel(t, func(waits bool, from, to trace.Time) {
		steps := &v.running
		if waits {
			steps = &v.queued
		}
		*steps = memory.Append(*steps, change{from, 1}, change{to, -1})
	})
}

// sort puts the steps in order.
func (v *levels) sort() {
	sortSteps(v.queued)
	sortSteps(v.running)
}

// sortSteps puts the steps of a counter in order; those at one time are added up.
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

// eachLevel calls f for the times in which a thread waits, and those in which it prefills or decodes. As in reports, who
// waits for the other server is queued, and who waits for the first decode batch of a server that
// prefills, too, is running. Stages of a kind that follow one another at once, such as the steps of decoding, are one time.
func (l *layout) eachLevel(t int, f func(waits bool, from, to trace.Time)) {
	var under struct { // what is under way
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

// drawCounters adds the counter tracks of a proc that have any samples. Their names say of which rank, too: a pinned track has no other.
func (d *drawing) drawCounters(p int, parent trace.TrackID) {
	c, of := &d.counters[p], naming.Separator+d.set.RankName(p)
	d.drawLevel(parent, 0, "queued"+of, "requests that wait on this rank for a batch, for memory, or for the other server", c.queued)
	d.drawLevel(parent, 1, "running"+of, "requests in a prefill or decode stage on this rank", c.running)
	d.drawBatch(parent, "batch size"+of, c.batch)
}

// drawLevel draws a counter that changes by steps.
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

// drawBatch draws the batch size: every request of a batch reports the same
// event, so that only changes are kept.
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
