package perfetto

import (
	"cmp"
	"reflect"
	"slices"
	"testing"

	"github.com/sgtrace/sgtrace/testkit/readback"
	"github.com/sgtrace/sgtrace/trace"
)

// compare fails the test if got does not match tr.
func compare(t testing.TB, tr *trace.Trace, got *readback.Trace) {
	t.Helper()
	c := comparison{TB: t, tr: tr, got: got, slices: make([]*readback.Slice, len(tr.Slices))}
	c.check("numbers of things", 0,
		[]int{len(got.Tracks), len(got.Slices), len(got.Instants), len(got.Samples), len(got.Flows), len(got.Attributes)},
		[]int{len(tr.Tracks) - 1, len(tr.Slices) - 1, len(tr.Instants), len(tr.Samples), len(tr.Flows), len(tr.Attributes)})
	if from, _, ok := tr.Bounds(); ok {
		c.check("clock", 0, got.Start, int64(from))
	}
	for i, a := range tr.Attributes {
		c.check("attribute", i, got.Attributes[i], readback.Attribute{Key: a.Key, Value: readback.Valid(a.Value)})
	}
	c.tracks()
	c.intervals()
	c.points()
	c.arrows()
}

type comparison struct {
	testing.TB
	tr     *trace.Trace
	got    *readback.Trace
	slices []*readback.Slice // by id in tr; the first is nil
}

func (c *comparison) check(what string, i int, got, want any) {
	c.Helper()
	if !reflect.DeepEqual(got, want) {
		c.Fatalf("%s %d:\n got %v\nwant %v", what, i, got, want)
	}
}

func (c *comparison) name(s trace.Sym) string { return readback.Valid(c.tr.Syms.Name(s)) }

func (c *comparison) tracks() {
	for i, got := range c.got.Tracks {
		want := c.tr.Tracks[i+1]
		parent := trace.TrackID(0)
		if got.Parent != nil {
			parent = trace.TrackID(got.Parent.UUID)
		}
		c.check("track", i,
			[]any{got.UUID, parent, got.Name, got.Desc, got.Counter, got.Unit},
			[]any{uint64(i + 1), want.Parent, c.name(want.Name), c.name(want.Desc), want.Kind == trace.KindCounter, c.name(want.Unit)})
		for j, other := range c.got.Tracks[:i] {
			if o := c.tr.Tracks[j+1]; o.Parent == want.Parent {
				c.check("rank of track", i, other.Rank < got.Rank, o.Order <= want.Order)
			}
		}
	}
}

func (c *comparison) intervals() {
	// Slices begin in order of time, then in the order of the model.
	var order []trace.SliceID
	for id := 1; id < len(c.tr.Slices); id++ {
		order = append(order, trace.SliceID(id))
	}
	slices.SortStableFunc(order, func(a, b trace.SliceID) int {
		return cmp.Compare(c.tr.Slices[a].Time, c.tr.Slices[b].Time)
	})
	for i, id := range order {
		c.slices[id] = c.got.Slices[i]
	}
	parents := make([]trace.SliceID, len(c.tr.Slices))
	for id := 1; id < len(c.tr.Slices); id++ {
		s, about, got := c.tr.Slices[id], c.tr.Subjects[c.tr.About[id]], c.slices[id]
		parent := trace.SliceID(id - 1)
		for parent != 0 && (c.tr.Slices[parent].Track != s.Track || c.tr.Slices[parent].End() <= s.Time) {
			parent = parents[parent]
		}
		parents[id] = parent
		c.check("slice", id,
			[]any{got.Track.UUID, got.Name, got.Cat, got.Start, got.Dur, got.Correlation, got.Args},
			[]any{uint64(s.Track), c.name(s.Name), c.name(s.Cat), int64(s.Time), s.Dur, c.name(about.ID), readback.Args(c.tr, s.Args, about.Args)})
		c.check("parent of slice", id, got.Parent == c.slices[parent], true)
	}
}

func (c *comparison) points() {
	instants := slices.Clone(c.tr.Instants)
	slices.SortStableFunc(instants, func(a, b trace.Instant) int { return cmp.Compare(a.Time, b.Time) })
	for i, want := range instants {
		got := c.got.Instants[i]
		c.check("instant", i,
			[]any{got.Track.UUID, got.Name, got.Time, got.Args},
			[]any{uint64(want.Track), c.name(want.Name), int64(want.Time), readback.Args(c.tr, want.Args, 0)})
		around := trace.SliceID(0)
		for id := 1; id < len(c.tr.Slices); id++ {
			if s := c.tr.Slices[id]; s.Track == want.Track && s.Time <= want.Time && want.Time < s.End() {
				around = trace.SliceID(id)
			}
		}
		c.check("slice around instant", i, got.Parent == c.slices[around], true)
	}
	samples := slices.Clone(c.tr.Samples)
	slices.SortStableFunc(samples, func(a, b trace.Sample) int { return cmp.Compare(a.Time, b.Time) })
	for i, want := range samples {
		got := c.got.Samples[i]
		c.check("sample", i, []any{got.Track.UUID, got.Time, got.Value}, []any{uint64(want.Track), int64(want.Time), want.Value})
	}
}

func (c *comparison) arrows() {
	for i, f := range c.tr.Flows {
		from, to := c.tr.Slices[f.From], c.tr.Slices[f.To]
		want := readback.Flow{ID: uint64(i + 1), From: c.slices[f.From], To: c.slices[f.To]}
		// Perfetto must draw these arrows backward; see the comment on flows.
		if to.Time < from.Time || to.Time == from.Time && f.To < f.From && to.Dur == 0 {
			want.From, want.To = want.To, want.From
		}
		if got := c.got.Flows[i]; got != want {
			c.Fatalf("flow %d goes from %v to %v, want from %v to %v", i, got.From, got.To, want.From, want.To)
		}
	}
}
