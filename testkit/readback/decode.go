package readback

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/sgtrace/sgtrace/perfetto/reader"
	"github.com/sgtrace/sgtrace/trace"
)

// Limits beyond which trace_processor drops slices (nesting) and tracks (ancestors).
const (
	maxDepth     = 512
	maxAncestors = 100
)

// Decode reads a Perfetto trace written by this module. Any violation of the format, or of the promises in the package
// comment of the writer, is an error.
func Decode(data []byte) (*Trace, error) {
	d := decoder{trace: &Trace{}, tracks: map[uint64]*Track{}, flows: map[uint64]*flow{}}
	for p, err := range reader.Packets(bytes.NewReader(data)) {
		if err != nil {
			return nil, err
		}
		d.trace.Attributes = append(d.trace.Attributes, p.Attributes...)
		if p.Start != nil {
			d.trace.Start = *p.Start
		}
		if p.Track != nil {
			t := &Track{Track: *p.Track}
			d.tracks[t.UUID] = t
			d.trace.Tracks = append(d.trace.Tracks, t)
		}
		if p.Event != nil {
			if err := d.event(p.Event); err != nil {
				return nil, fmt.Errorf("packet at byte %d: %w", p.Offset, err)
			}
		}
	}
	if err := d.link(); err != nil {
		return nil, err
	}
	return d.trace, d.finish()
}

type decoder struct {
	trace   *Trace
	tracks  map[uint64]*Track
	flows   map[uint64]*flow
	flowIDs []uint64 // in the order of their first events
}

// link resolves parents, once all tracks are known.
func (d *decoder) link() error {
	type place struct {
		parent *Track
		rank   int
	}
	taken := map[place]bool{}
	for _, t := range d.trace.Tracks {
		if t.Track.Parent != 0 {
			t.Parent = d.tracks[t.Track.Parent]
			if t.Parent == nil {
				return fmt.Errorf("track %q: parent %d does not exist", t.Name, t.Track.Parent)
			}
			if !t.Parent.Explicit || t.Parent.Counter {
				return fmt.Errorf("track %q: parent %q does not order its children, or is a counter", t.Name, t.Parent.Name)
			}
		}
		if p := (place{t.Parent, t.Rank}); taken[p] {
			return fmt.Errorf("track %q: a sibling has rank %d, too", t.Name, t.Rank)
		} else {
			taken[p] = true
		}
	}
	for _, t := range d.trace.Tracks {
		n := 0
		for p := t; p != nil; p = p.Parent {
			if n++; n > maxAncestors {
				return errors.New("tracks are in a loop or too deep")
			}
		}
	}
	return nil
}

// event adds an event to the trace.
func (d *decoder) event(e *reader.Event) error {
	track := d.tracks[e.Track]
	args, err := arguments(slices.Concat(e.Typed, e.Args))
	if err != nil {
		return err
	}
	switch e.Kind {
	case reader.Begin:
		return d.begin(track, e, args)
	case reader.End:
		s := innermost(track)
		if s == nil {
			return fmt.Errorf("END on track %q closes nothing", track.Name)
		}
		s.Dur = e.Time - s.Start
		track.open = track.open[:len(track.open)-1]
		return d.flowEvents(s, e)
	case reader.Instant:
		d.trace.Instants = append(d.trace.Instants, &Instant{Track: track, Parent: innermost(track), Name: e.Name, Time: e.Time, Args: args})
	case reader.Counter:
		d.trace.Samples = append(d.trace.Samples, Sample{track, e.Time, e.Value})
	}
	return nil
}

func innermost(t *Track) *Slice {
	if len(t.open) == 0 {
		return nil
	}
	return t.open[len(t.open)-1]
}

func (d *decoder) begin(track *Track, e *reader.Event, args map[string]any) error {
	s := &Slice{
		Track: track, Parent: innermost(track), Name: e.Name, Cat: e.Category,
		Start: e.Time, Dur: -1, Args: args, Correlation: e.Correlation,
	}
	d.trace.Slices = append(d.trace.Slices, s)
	if track.open = append(track.open, s); len(track.open) > maxDepth {
		return fmt.Errorf("slice %q is nested too deep", e.Name)
	}
	return d.flowEvents(s, e)
}

// arguments returns what a viewer shows for a list: nil if it is empty.
func arguments(list []reader.Arg) (map[string]any, error) {
	var args map[string]any
	for _, a := range list {
		if args == nil {
			args = map[string]any{}
		}
		key := reader.Pathless(a.Name)
		if _, ok := args[key]; ok {
			return nil, fmt.Errorf("argument %q repeats", key)
		}
		var err error
		if args[key], err = argument(a); err != nil {
			return nil, err
		}
	}
	return args, nil
}

func argument(a reader.Arg) (any, error) {
	switch a.Kind {
	case trace.ArgInt:
		return int64(a.Bits), nil
	case trace.ArgUint:
		return a.Bits, nil
	case trace.ArgFloat:
		return math.Float64frombits(a.Bits), nil
	case trace.ArgBool:
		return a.Bits != 0, nil
	case trace.ArgDict:
		return arguments(a.Elems)
	case trace.ArgArray:
		var all []any
		for _, e := range a.Elems {
			v, err := argument(e)
			if err != nil {
				return nil, err
			}
			all = append(all, v)
		}
		return all, nil
	}
	return string(a.Text), nil
}

// flow is an arrow whose first end, and perhaps second end, has been read.
type flow struct{ first, second *Slice }

func (d *decoder) flowEvents(s *Slice, e *reader.Event) error {
	for _, id := range e.Opens {
		if d.flows[id] != nil {
			return fmt.Errorf("flow %d is opened twice", id)
		}
		d.flows[id] = &flow{first: s}
		d.flowIDs = append(d.flowIDs, id)
	}
	for _, id := range e.Ends {
		f := d.flows[id]
		if f == nil || f.second != nil || f.first == s {
			return fmt.Errorf("flow %d ends before it is opened, twice, or where it began", id)
		}
		f.second = s
	}
	return nil
}

// finish checks that no slice is open and draws the arrows.
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
