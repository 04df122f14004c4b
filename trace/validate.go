package trace

import (
	"cmp"
	"errors"
	"fmt"
)

// Validate reports the first broken invariant of each kind in t: references in range, slices sorted and
// nesting, no negative durations, parents before children, and only samples on counters.
func Validate(t *Trace) error {
	return errors.Join(
		validateTracks(t), validateSlices(t), validatePoints(t), validateFlows(t),
	)
}

func validateTracks(t *Trace) error {
	for id := 1; id < len(t.Tracks); id++ {
		if p := t.Tracks[id].Parent; int(p) >= id {
			return fmt.Errorf("track %d: parent %d was not added before it", id, p)
		}
	}
	return nil
}

func validateSlices(t *Trace) error {
	if len(t.About) != len(t.Slices) {
		return fmt.Errorf("%d slices but %d subjects of slices", len(t.Slices), len(t.About))
	}
	var open []Slice
	for id := 1; id < len(t.Slices); id++ {
		s := t.Slices[id]
		if s.Track == 0 || int(s.Track) >= len(t.Tracks) || t.Tracks[s.Track].Kind == KindCounter {
			return fmt.Errorf("slice %d: track %d cannot hold it", id, s.Track)
		}
		if int(t.About[id]) >= len(t.Subjects) {
			return fmt.Errorf("slice %d: subject %d does not exist", id, t.About[id])
		}
		if s.Dur < 0 {
			return fmt.Errorf("slice %d: duration %d", id, s.Dur)
		}
		if prev := t.Slices[id-1]; prev.Track != s.Track {
			open = open[:0]
			if prev.Track > s.Track {
				return fmt.Errorf("slice %d: track %d after track %d", id, s.Track, prev.Track)
			}
		} else if prev.Time > s.Time {
			return fmt.Errorf("slice %d: starts before slice %d on its track", id, id-1)
		}
		for len(open) > 0 && open[len(open)-1].End() <= s.Time {
			open = open[:len(open)-1]
		}
		if len(open) > 0 && open[len(open)-1].End() < s.End() {
			return fmt.Errorf("slice %d: [%d,%d) reaches over [%d,%d)", id,
				s.Time, s.End(), open[len(open)-1].Time, open[len(open)-1].End())
		}
		open = append(open, s)
	}
	return nil
}

func validatePoints(t *Trace) error {
	for i, x := range t.Instants {
		if x.Track == 0 || int(x.Track) >= len(t.Tracks) || t.Tracks[x.Track].Kind == KindCounter {
			return fmt.Errorf("instant %d: track %d cannot hold it", i, x.Track)
		}
		if i > 0 && cmp.Or(cmp.Compare(t.Instants[i-1].Track, x.Track), cmp.Compare(t.Instants[i-1].Time, x.Time)) > 0 {
			return fmt.Errorf("instant %d: out of order", i)
		}
	}
	for i, x := range t.Samples {
		if int(x.Track) >= len(t.Tracks) || t.Tracks[x.Track].Kind != KindCounter {
			return fmt.Errorf("sample %d: track %d is no counter", i, x.Track)
		}
		if i > 0 && cmp.Or(cmp.Compare(t.Samples[i-1].Track, x.Track), cmp.Compare(t.Samples[i-1].Time, x.Time)) > 0 {
			return fmt.Errorf("sample %d: out of order", i)
		}
	}
	return nil
}

func validateFlows(t *Trace) error {
	for i, f := range t.Flows {
		if f.From == 0 || f.To == 0 || f.From == f.To || int(max(f.From, f.To)) >= len(t.Slices) {
			return fmt.Errorf("flow %d: from slice %d to slice %d", i, f.From, f.To)
		}
	}
	return nil
}
