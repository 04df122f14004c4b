package nsysexport

import (
	"slices"

	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// callTimes are the times of the launches of a process.
type callTimes struct {
	p     *process
	times []trace.Time // by launch; nil if the events have them
	nodes []uint64     // graph nodes, by collective
	spans []span       // by work; nil if the events have them
}

// at returns when a launch was made.
func (c *callTimes) at(launch int32) trace.Time {
	if c.times != nil {
		return c.times[launch]
	}
	return c.p.Profile.Events[c.p.Profile.Launches[launch].Event].Time
}

// span returns when a device did some work.
func (c *callTimes) span(work int) (from, to trace.Time) {
	if c.spans != nil {
		return c.spans[work].from, c.spans[work].to
	}
	e := &c.p.Profile.Events[c.p.Profile.Work[work].Event]
	return e.Time, e.End()
}

// add puts the pieces of a process together, and gives them up.
func (f *process) add(pieces []*piece) *callTimes {
	var events, launches, times, work, spans, samples, collectives, steps int
	for i, p := range pieces {
		events, launches, times = events+p.events.n, launches+p.launches.n, times+p.times.n
		work, spans, samples, collectives = work+p.work.n, spans+p.spans.n, samples+p.samples.n, collectives+p.collectives.Len()
		if i == 0 {
			f.Profile.First, f.Profile.Last = p.first, p.last
		}
		f.Profile.First, f.Profile.Last = min(f.Profile.First, p.first), max(f.Profile.Last, p.last)
		f.Profile.Total += p.total
		steps += len(p.steps) + len(p.forwards)
	}
	events += steps // on the GPU, which are found later
	f.Profile.Collectives.Grow(collectives)
	f.Profile.Events, f.Profile.Work, f.Profile.Samples = memory.Make[trace.Slice](events)[:0], memory.Make[profile.Link](work)[:0], memory.Make[trace.Sample](samples)[:0]
	f.Profile.Launches = memory.Make[profile.Link](launches)[:0]
	out := &callTimes{p: f}
	if times > 0 {
		out.times = memory.Make[trace.Time](times)[:0]
	}
	if spans > 0 {
		out.spans = memory.Make[span](spans)[:0]
	}
	for _, p := range pieces {
		f.addPiece(p, out)
	}
	return out
}

func (f *process) addPiece(p *piece, times *callTimes) {
	rows := make([]int32, len(p.rows))
	for i, row := range p.rows {
		rows[i] = f.row(row)
	}
	events, launches, work, samples := len(f.Profile.Events), len(f.Profile.Launches), len(f.Profile.Work), len(f.Profile.Samples)
	f.Profile.Events = p.events.appendTo(f.Profile.Events)
	for i := events; i < len(f.Profile.Events); i++ {
		f.Profile.Events[i].Track = trace.TrackID(rows[f.Profile.Events[i].Track])
	}
	moveLink := func(l *profile.Link) {
		l.Row = rows[l.Row]
		if l.Event != profile.NoEvent {
			l.Event += int32(events)
		}
	}
	f.Profile.Launches, f.Profile.Work = p.launches.appendTo(f.Profile.Launches), p.work.appendTo(f.Profile.Work)
	for i := launches; i < len(f.Profile.Launches); i++ {
		moveLink(&f.Profile.Launches[i])
	}
	for i := work; i < len(f.Profile.Work); i++ {
		moveLink(&f.Profile.Work[i])
	}
	times.times, times.spans = p.times.appendTo(times.times), p.spans.appendTo(times.spans)
	f.Profile.Samples = p.samples.appendTo(f.Profile.Samples)
	for i := samples; i < len(f.Profile.Samples); i++ {
		f.Profile.Samples[i].Track = trace.TrackID(rows[f.Profile.Samples[i].Track])
	}
	prints := len(f.Profile.Fingerprint)
	f.Profile.Fingerprint = p.prints.appendTo(f.Profile.Fingerprint)
	for i := prints; i < len(f.Profile.Fingerprint); i++ {
		f.Profile.Fingerprint[i].Track = trace.TrackID(rows[f.Profile.Fingerprint[i].Track])
	}
	for _, x := range p.instants {
		x.Track = trace.TrackID(rows[x.Track])
		f.Profile.Instants = append(f.Profile.Instants, x)
	}
	for i := range p.collectives.Len() {
		c := p.collectives.At(i)
		c.Row = rows[c.Row]
		if c.Event != profile.NoEvent {
			c.Event += int32(events)
		}
		f.Profile.Collectives.Add(&c)
	}
	p.collectives = profile.Collectives{}
	times.nodes = p.nodes.appendTo(times.nodes)
	steps := p.steps
	if len(steps) == 0 {
		steps = p.forwards
	}
	for _, s := range steps {
		s.Row = rows[s.Row]
		if s.Event != profile.NoEvent {
			s.Event += int32(events)
		}
		f.Profile.Steps = append(f.Profile.Steps, s)
	}
}

// dropLoose gives up links of events that a filter left out: most of the memory of
// an export of which a window is drawn.
func (f *process) dropLoose(sparse bool) {
	if !sparse {
		return
	}
	loose := func(l profile.Link) bool { return l.Event == profile.NoEvent }
	f.Profile.Launches = slices.Clip(slices.Clone(slices.DeleteFunc(f.Profile.Launches, loose)))
	f.Profile.Work = slices.Clip(slices.Clone(slices.DeleteFunc(f.Profile.Work, loose)))
}
