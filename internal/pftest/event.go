package pftest

import (
	"errors"
	"fmt"
	"slices"
)

// maxDepth is the number of nested slices past which trace_processor drops.
const maxDepth = 512

// The types of track events.
const (
	begin = iota + 1
	end
	instant
	counter
)

// event is a TrackEvent with its ids resolved.
type event struct {
	kind        uint64
	track       *Track
	name, cat   string
	correlation string
	args        map[string]any
	value       *float64
	opens, ends []uint64 // flows
	fields      []field
}

// event reads a TrackEvent and applies it.
func (d *decoder) event(time int64, b []byte) error {
	e, err := d.trackEvent(b)
	if err != nil {
		return err
	}
	if (e.kind == counter) != e.track.Counter || (e.kind == counter) != (e.value != nil) {
		return fmt.Errorf("event of type %d on track %q", e.kind, e.track.Name)
	}
	switch e.kind {
	case begin:
		return d.begin(time, e)
	case end:
		return d.end(time, e)
	case instant:
		if e.opens != nil || e.ends != nil {
			return errors.New("instant with flows")
		}
		d.trace.Instants = append(d.trace.Instants,
			&Instant{Track: e.track, Parent: innermost(e.track), Name: e.name, Time: time, Args: e.args})
	case counter:
		if e.args != nil || e.name != "" {
			return errors.New("counter with a name or arguments")
		}
		d.trace.Samples = append(d.trace.Samples, Sample{e.track, time, *e.value})
	default:
		return fmt.Errorf("event type %d", e.kind)
	}
	return nil
}

func (d *decoder) trackEvent(b []byte) (e event, err error) {
	fields, err := parse("TrackEvent", b, eventRules)
	if err != nil {
		return e, err
	}
	e.fields = fields
	for _, f := range fields {
		err = nil
		switch f.number {
		case 3:
			e.cat, err = d.lookup(categories, f.num)
		case 4:
			if e.args == nil {
				e.args = map[string]any{}
			}
			err = d.entry(e.args, f.data)
		case eventArgs:
			if e.args == nil {
				e.args = map[string]any{}
			}
			err = d.typedArgs(e.args, f.data)
		case 9:
			e.kind = f.num
		case 10:
			e.name, err = d.lookup(eventNames, f.num)
		case 11:
			e.track = d.tracks[f.num]
		case 30, 44:
			v := float64(int64(f.num))
			if f.number == 44 {
				v = f.double()
			}
			if e.value != nil {
				return e, errors.New("counter with two values")
			}
			e.value = &v
		case 36:
			e.opens = append(e.opens, f.num)
		case 42:
			e.ends = append(e.ends, f.num)
		case 54:
			e.correlation, err = d.lookup(correlations, f.num)
		}
		if err != nil {
			return e, err
		}
	}
	if e.track == nil {
		return e, errors.New("event on a track that is not declared")
	}
	return e, nil
}

func innermost(t *Track) *Slice {
	if len(t.open) == 0 {
		return nil
	}
	return t.open[len(t.open)-1]
}

func (d *decoder) begin(time int64, e event) error {
	if !has(e.fields, 10) {
		return errors.New("BEGIN without a name")
	}
	s := &Slice{
		Track: e.track, Parent: innermost(e.track), Name: e.name, Cat: e.cat,
		Start: time, Dur: -1, Args: e.args, Correlation: e.correlation,
	}
	d.trace.Slices = append(d.trace.Slices, s)
	if e.track.open = append(e.track.open, s); len(e.track.open) > maxDepth {
		return fmt.Errorf("slice %q is nested too deep", e.name)
	}
	return d.flowEvents(s, e)
}

func (d *decoder) end(time int64, e event) error {
	for _, f := range e.fields {
		if n := f.number; n != 9 && n != 11 && n != 42 {
			return fmt.Errorf("END with field %d", n)
		}
	}
	s := innermost(e.track)
	if s == nil {
		return fmt.Errorf("END on track %q closes nothing", e.track.Name)
	}
	s.Dur = time - s.Start
	e.track.open = e.track.open[:len(e.track.open)-1]
	return d.flowEvents(s, e)
}

// flow is an arrow of which the first end, and perhaps the second, was read.
type flow struct{ first, second *Slice }

func (d *decoder) flowEvents(s *Slice, e event) error {
	for _, id := range e.opens {
		if d.flows[id] != nil {
			return fmt.Errorf("flow %d is opened twice", id)
		}
		d.flows[id] = &flow{first: s}
		d.flowIDs = append(d.flowIDs, id)
	}
	for _, id := range e.ends {
		f := d.flows[id]
		if f == nil || f.second != nil || f.first == s {
			return fmt.Errorf("flow %d ends before it is opened, twice, or where it began", id)
		}
		f.second = s
	}
	return nil
}

// finish checks that nothing is left open and draws the arrows.
func (d *decoder) finish() error {
	for _, t := range d.trace.Tracks {
		if s := innermost(t); s != nil {
			return fmt.Errorf("slice %q on track %q never ends", s.Name, t.Path())
		}
	}
	slices.Sort(d.flowIDs)
	for _, id := range d.flowIDs {
		from, to := d.flows[id].first, d.flows[id].second
		if to == nil {
			return fmt.Errorf("flow %d has one end", id)
		}
		if to.Start < from.Start {
			from, to = to, from
		}
		from.Out, to.In = append(from.Out, to), append(to.In, from)
		d.trace.Flows = append(d.trace.Flows, Flow{id, from, to})
	}
	return nil
}
