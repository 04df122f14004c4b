package trace

// Window returns the part of t in [from, to): slices that overlap it, cut to fit, with their true times in
// their arguments; instants and samples within it, and for every counter its value at from; and arrows
// whose ends are both included. Tracks without any of these are left out. t is not changed; the arguments
// are shared.
func Window(t *Trace, from, to Time) *Trace {
	w := windowing{t: t, from: from, to: to, tracks: make([]TrackID, len(t.Tracks))}
	w.out = NewBuilder(t.Syms, t.Args, &Diags{})
	out := w.out.t
	out.Subjects, out.Attributes = t.Subjects, t.Attributes
	w.keepTracks()
	place := make(map[SliceID]SliceID)
	for i := 1; i < len(t.Slices); i++ {
		s := t.Slices[i]
		if !w.has(s.Time, s.End()) {
			continue
		}
		id := w.out.Slice(s, t.About[i])
		w.out.cut(&out.Slices[id], max(s.Time, from), min(s.End(), to))
		out.Slices[id].Track = w.tracks[s.Track]
		place[SliceID(i)] = id
	}
	for _, x := range t.Instants {
		if w.has(x.Time, x.Time) {
			x.Track = w.tracks[x.Track]
			w.out.Instant(x)
		}
	}
	w.samples()
	for _, f := range t.Flows {
		if a, b := place[f.From], place[f.To]; a != 0 && b != 0 {
			w.out.Flow(Flow{From: a, To: b, Name: f.Name})
		}
	}
	return w.out.Finish()
}

type windowing struct {
	t        *Trace
	from, to Time
	out      *Builder
	tracks   []TrackID // by track of t; 0 is left out
}

// has reports whether an event from a to b is in the window. An event without a duration is only at its
// time.
func (w *windowing) has(a, b Time) bool { return a < w.to && (b > w.from || a >= w.from) }

// keepTracks adds the tracks that have events in the window, and their ancestors.
func (w *windowing) keepTracks() {
	t, used := w.t, make([]bool, len(w.t.Tracks))
	use := func(id TrackID) {
		for ; id != 0 && !used[id]; id = t.Tracks[id].Parent {
			used[id] = true
		}
	}
	for _, s := range t.Slices[1:] {
		if w.has(s.Time, s.End()) {
			use(s.Track)
		}
	}
	for _, x := range t.Instants {
		if w.has(x.Time, x.Time) {
			use(x.Track)
		}
	}
	for _, x := range t.Samples {
		if x.Time < w.to {
			use(x.Track)
		}
	}
	// Parents may come after their children.
	for id := 1; id < len(used); id++ {
		if used[id] {
			w.tracks[id] = w.out.Track(t.Tracks[id])
		}
	}
	for i := range w.out.t.Tracks[1:] {
		track := &w.out.t.Tracks[i+1]
		track.Parent = w.tracks[track.Parent]
	}
}

// samples adds the samples in the window, including each counter's last value before it.
func (w *windowing) samples() {
	all := w.t.Samples
	for i, x := range all {
		switch {
		case x.Time >= w.to:
			continue
		case x.Time < w.from:
			if i+1 < len(all) && all[i+1].Track == x.Track && all[i+1].Time <= w.from {
				continue
			}
			x.Time = w.from
		}
		x.Track = w.tracks[x.Track]
		w.out.Sample(x)
	}
}
