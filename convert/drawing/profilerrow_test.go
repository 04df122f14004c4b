package drawing

import (
	"slices"
	"testing"

	"github.com/sgtrace/sgtrace/convert/inputs"
	"github.com/sgtrace/sgtrace/profile"
)

// A row about the profiler itself is recognized, whatever its name; other rows without a number are
// kept.
func TestProfilerRows(t *testing.T) {
	row := func(kind profile.RowKind, name, tid string) *inputs.TrackRow {
		return &inputs.TrackRow{Key: inputs.TrackKey{Kind: kind, TID: tid}, Row: profile.Row{Kind: kind, Name: name, TIDText: tid}}
	}
	for _, c := range []struct {
		line *inputs.TrackRow
		want bool
	}{
		{row(profile.RowOther, "", "PyTorch Profiler"), true},
		{row(profile.RowOther, "", "Trace PyTorch Profiler"), true},
		{row(profile.RowOther, "profiler", "0"), true},
		{row(profile.RowOther, "Trace", ""), true},
		{row(profile.RowOther, "", "loader"), false},
		{row(profile.RowThread, "profiler", "17"), false},
	} {
		got := asProfilerRow(c.line)
		if is := got.Row.Name == profilerRow && got.Key.TID == profilerRow; is != c.want {
			t.Errorf("%+v is a row of the profiler: %v, want %v", c.line.Row, is, c.want)
		}
		if !c.want && got != c.line {
			t.Errorf("%+v has changed", c.line.Row)
		}
	}
}

// Joined rows keep all events, in lanes without partial overlaps.
func TestJoinLines(t *testing.T) {
	f := &inputs.ProcessProfile{Profile: &profile.Profile{Events: []profile.Slice{{Time: 10, Dur: 90}, {Time: 20, Dur: 20}, {Time: 50, Dur: 100}, {Time: 110, Dur: 5}}}}
	a := &inputs.TrackRow{Lanes: [][]uint32{{0, 3}}, Instants: []int32{4}}
	b := &inputs.TrackRow{Lanes: [][]uint32{{1, 2}}, Instants: []int32{1, 2}}
	got := joinLines(f, a, b)
	want := [][]uint32{{0, 1, 3}, {2}}
	if !slices.EqualFunc(got.Lanes, want, slices.Equal[[]uint32]) || !slices.Equal(got.Instants, []int32{4, 1, 2}) {
		t.Errorf("lanes %v, instants %v; want %v", got.Lanes, got.Instants, want)
	}
}
