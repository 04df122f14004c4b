package readback

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/perfetto/reader"
)

// A Trace is the content of a Perfetto file.
type Trace struct {
	Tracks     []*Track    // in file order
	Slices     []*Slice    // in the order of their begins
	Instants   []*Instant  // in file order
	Samples    []Sample    // in file order
	Flows      []Flow      // in the order of their ids
	Attributes []Attribute // in file order
	// Start is the time of the clock snapshot, ns since 1970; 0 if there is none.
	Start int64
}

// Shown counts the tracks with events on or below them: trace_processor creates no others.
func (t *Trace) Shown() int {
	shown := map[*Track]bool{}
	show := func(track *Track) {
		for ; track != nil && !shown[track]; track = track.Parent {
			shown[track] = true
		}
	}
	for _, s := range t.Slices {
		show(s.Track)
	}
	for _, i := range t.Instants {
		show(i.Track)
	}
	for _, s := range t.Samples {
		show(s.Track)
	}
	return len(shown)
}

// A Track is a declared track.
type Track struct {
	reader.Track
	Parent *Track // nil if there is none

	open []*Slice
}

// Path returns the names of t's ancestors and of t itself, joined with " > ".
func (t *Track) Path() string {
	if t.Parent == nil {
		return t.Name
	}
	return t.Parent.Path() + " > " + t.Name
}

// A Slice is an interval; Start is ns since 1970, Dur ns.
type Slice struct {
	Track       *Track
	Parent      *Slice // the slice around it, or nil
	Name, Cat   string
	Start, Dur  int64
	Args        map[string]any // string, int64, uint64, float64, bool, []any, map[string]any
	Correlation string
	Out, In     []*Slice // along arrows, in the order of their ids
}

// An Instant is a point event.
type Instant struct {
	Track  *Track
	Parent *Slice // the innermost slice open at Time, or nil
	Name   string
	Time   int64
	Args   map[string]any
}

// A Sample is a value of a counter.
type Sample struct {
	Track *Track
	Time  int64
	Value float64
}

// A Flow is an arrow.
type Flow struct {
	ID       uint64
	From, To *Slice
}

// An Attribute is one key and value of the description of the trace.
type Attribute = reader.Attribute

// Track returns the only track with the given path, or nil.
func (t *Trace) Track(path string) (found *Track) {
	for _, track := range t.Tracks {
		if track.Path() != path {
			continue
		}
		if found != nil {
			return nil
		}
		found = track
	}
	return found
}

// On returns the slices of a track, in the order of their begins.
func (t *Trace) On(track *Track) (on []*Slice) {
	for _, s := range t.Slices {
		if s.Track == track {
			on = append(on, s)
		}
	}
	return on
}

// Text prints t for people and golden files: tracks in the order of a viewer, each with its events, times relative to
// Start.
func (t *Trace) Text() string {
	var b strings.Builder
	for _, a := range t.Attributes {
		fmt.Fprintf(&b, "# %s: %s\n", a.Key, a.Value)
	}
	order := slices.Clone(t.Tracks)
	slices.SortFunc(order, compareTracks)
	e := events{map[*Track][]*Slice{}, map[*Track][]*Instant{}, map[*Track][]Sample{}}
	for _, s := range t.Slices {
		e.slices[s.Track] = append(e.slices[s.Track], s)
	}
	for _, i := range t.Instants {
		e.instants[i.Track] = append(e.instants[i.Track], i)
	}
	for _, s := range t.Samples {
		e.samples[s.Track] = append(e.samples[s.Track], s)
	}
	for _, track := range order {
		e.print(&b, track, t.Start)
	}
	for _, f := range t.Flows {
		fmt.Fprintf(&b, "%s / %s -> %s / %s\n", f.From.Track.Path(), f.From.Name, f.To.Track.Path(), f.To.Name)
	}
	return b.String()
}

// compareTracks orders parents before children, siblings by rank, and roots by name.
func compareTracks(a, b *Track) int {
	x, y := lineage(a), lineage(b)
	for i := range min(len(x), len(y)) {
		if x[i] == y[i] {
			continue
		}
		if i == 0 {
			return cmp.Or(strings.Compare(x[0].Name, y[0].Name), cmp.Compare(x[0].UUID, y[0].UUID))
		}
		return cmp.Compare(x[i].Rank, y[i].Rank)
	}
	return cmp.Compare(len(x), len(y))
}

func lineage(t *Track) []*Track {
	if t == nil {
		return nil
	}
	return append(lineage(t.Parent), t)
}

// events are the events of each track.
type events struct {
	slices   map[*Track][]*Slice
	instants map[*Track][]*Instant
	samples  map[*Track][]Sample
}

// print prints a track, with times relative to start.
func (e *events) print(b *strings.Builder, track *Track, start int64) {
	b.WriteString(track.Path())
	if track.Counter {
		fmt.Fprintf(b, " [%s]", track.Unit)
	}
	if track.Desc != "" {
		fmt.Fprintf(b, " (%s)", track.Desc)
	}
	b.WriteByte('\n')
	for _, s := range e.slices[track] {
		indent := strings.Repeat("  ", depth(s))
		fmt.Fprintf(b, "%s  %d +%d %s%s\n", indent, s.Start-start, s.Dur, s.Name, printArgs(s.Args))
	}
	for _, i := range e.instants[track] {
		fmt.Fprintf(b, "  %d ! %s%s\n", i.Time-start, i.Name, printArgs(i.Args))
	}
	for _, s := range e.samples[track] {
		fmt.Fprintf(b, "  %d = %v\n", s.Time-start, s.Value)
	}
}

func depth(s *Slice) (n int) {
	for p := s.Parent; p != nil; p = p.Parent {
		n++
	}
	return n
}

func printArgs(args map[string]any) string {
	var b strings.Builder
	for _, key := range slices.Sorted(maps.Keys(args)) {
		fmt.Fprintf(&b, " %s=%v", key, args[key])
	}
	return b.String()
}
