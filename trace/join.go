package trace

// Join puts traces that share symbols and arguments into one, the tracks of the
// first before those of the second. Attributes are those of all.
func Join(traces ...*Trace) *Trace {
	if len(traces) == 1 {
		return traces[0]
	}
	first := traces[0]
	out := &Trace{
		Syms: first.Syms, Args: first.Args,
		Tracks: make([]Track, 1), Slices: make([]Slice, 1, rows(traces)), About: make([]SubjectID, 1, rows(traces)),
		Subjects: make([]Subject, 1), Clocks: make([]Clock, 1),
	}
	for _, t := range traces {
		out.add(t)
	}
	return out
}

func rows(traces []*Trace) int {
	n := 1
	for _, t := range traces {
		n += len(t.Slices) - 1
	}
	return n
}

// add appends the tables of t, renumbered.
func (t *Trace) add(o *Trace) {
	track, slice := TrackID(len(t.Tracks)-1), SliceID(len(t.Slices)-1)
	subject, clock := SubjectID(len(t.Subjects)-1), ClockID(len(t.Clocks)-1)
	for _, x := range o.Tracks[1:] {
		if x.Parent != 0 {
			x.Parent += track
		}
		if x.Clock != 0 {
			x.Clock += clock
		}
		t.Tracks = append(t.Tracks, x)
	}
	for i, x := range o.Slices[1:] {
		x.Track += track
		about := o.About[i+1]
		if about != 0 {
			about += subject
		}
		t.Slices, t.About = append(t.Slices, x), append(t.About, about)
	}
	for _, x := range o.Instants {
		x.Track += track
		t.Instants = append(t.Instants, x)
	}
	for _, x := range o.Samples {
		x.Track += track
		t.Samples = append(t.Samples, x)
	}
	for _, x := range o.Flows {
		t.Flows = append(t.Flows, Flow{x.From + slice, x.To + slice, x.Name})
	}
	for _, x := range o.Syncs {
		x.A, x.B = x.A+clock, x.B+clock
		t.Syncs = append(t.Syncs, x)
	}
	t.Subjects = append(t.Subjects, o.Subjects[1:]...)
	t.Clocks = append(t.Clocks, o.Clocks[1:]...)
	t.Attributes = append(t.Attributes, o.Attributes...)
}
