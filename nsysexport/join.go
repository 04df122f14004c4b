package nsysexport

import (
	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// work is a piece of work of a device.
type work struct {
	from, to    trace.Time
	correlation int64
}

// add joins the pieces of a process, and frees them.
func (f *process) add(pieces []*piece) {
	var events, launches, done, samples, collectives, steps int
	for i, p := range pieces {
		events, launches, done = events+p.events.n, launches+p.launches.n, done+p.work.n
		samples, collectives = samples+p.samples.n, collectives+p.collectives.Len()
		if i == 0 {
			f.Profile.First, f.Profile.Last = p.first, p.last
		}
		f.Profile.First, f.Profile.Last = min(f.Profile.First, p.first), max(f.Profile.Last, p.last)
		f.Profile.Total += p.total
		steps += len(p.steps) + len(p.forwards)
	}
	events += steps // on the GPU, which are found later
	f.Profile.Collectives.Grow(collectives)
	f.Profile.Events, f.Profile.Samples = memory.Make[profile.Slice](events)[:0], memory.Make[profile.CounterSample](samples)[:0]
	f.launches, f.work = memory.Make[profile.Launch](launches)[:0], memory.Make[work](done)[:0]
	for _, p := range pieces {
		f.addPiece(p)
	}
}

func (f *process) addPiece(p *piece) {
	rows := order.Each(p.rows, f.row)
	events, launches, samples, prints := len(f.Profile.Events), len(f.launches), len(f.Profile.Samples), len(f.Profile.Fingerprint)
	f.Profile.Events = p.events.appendTo(f.Profile.Events)
	for i := events; i < len(f.Profile.Events); i++ {
		e := &f.Profile.Events[i]
		e.Place = e.Place.OnRow(rows[e.Place.Row()])
	}
	f.launches, f.work = p.launches.appendTo(f.launches), p.work.appendTo(f.work)
	for i := launches; i < len(f.launches); i++ {
		f.launches[i].Row = rows[f.launches[i].Row]
	}
	f.Profile.Samples = p.samples.appendTo(f.Profile.Samples)
	for i := samples; i < len(f.Profile.Samples); i++ {
		f.Profile.Samples[i].Row = rows[f.Profile.Samples[i].Row]
	}
	f.Profile.Fingerprint = p.prints.appendTo(f.Profile.Fingerprint)
	for i := prints; i < len(f.Profile.Fingerprint); i++ {
		f.Profile.Fingerprint[i].Row = rows[f.Profile.Fingerprint[i].Row]
	}
	for _, x := range p.instants {
		x.Row = rows[x.Row]
		f.Profile.Instants = append(f.Profile.Instants, x)
	}
	moved := func(event int32) int32 {
		if event == profile.NoEvent {
			return event
		}
		return event + int32(events)
	}
	for i := range p.collectives.Len() {
		c := p.collectives.At(i)
		c.Row, c.Event = rows[c.Row], moved(c.Event)
		f.Profile.Collectives.Add(&c)
	}
	p.collectives = profile.Collectives{}
	f.nodes = p.nodes.appendTo(f.nodes)
	steps := p.steps
	if len(steps) == 0 {
		steps = p.forwards
	}
	for _, s := range steps {
		s.Row, s.Event = rows[s.Row], moved(s.Event)
		f.Profile.Steps = append(f.Profile.Steps, s)
	}
}
