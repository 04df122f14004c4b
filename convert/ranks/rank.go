package ranks

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/convert/inputs"
	"github.com/sgtrace/sgtrace/format"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
	"github.com/sgtrace/sgtrace/trace/naming"
)

// Capture is the part of a file that is about one rank.
type Capture struct {
	File *inputs.ProcessProfile
	Part string // name of the part in a merged file
	// whole says that the file has no other parts.
	whole bool
	// First and Last bound the events of the part. If a filter left out events of a file with several
	// parts, they are the file's bounds, which do not depend on the filter.
	First, Last trace.Time
	known       naming.Resolved // rank and host, as far as known
	held        *contents       // computed on first use
	Clock       int             // index into Alignment.HostClocks
	process     *process        // shared by captures of the same process; nil is unknown
	Time        func(trace.Time) trace.Time
}

// A process is shared by overlapping captures of one process.
type process struct{ _ byte }

// findBounds finds the first and the last instant of a capture; complete says that no Filter left out
// events.
func (c *Capture) findBounds(complete bool) {
	c.First, c.Last = c.File.First, c.File.Last
	if !c.whole && complete && c.contents().n > 0 {
		c.First, c.Last = c.contents().first, c.contents().last
	}
}

// isEmpty reports whether a capture is known to have no events. The total of a file is known whatever a
// Filter left out; that of a part is not.
func (c *Capture) isEmpty(complete bool) bool {
	if c.whole {
		return c.File.Total == 0
	}
	return complete && c.contents().n == 0
}

// pid returns the process of a capture, 0 if it is unknown.
func (c *Capture) pid() int64 {
	if c.whole && c.File.Meta.PID != 0 {
		return c.File.Meta.PID
	}
	for i := range c.File.Lines {
		if l := &c.File.Lines[i]; l.Key.Part == c.Part && l.Key.Kind == profile.RowThread && l.Row.PID != 0 {
			return l.Row.PID
		}
	}
	return 0
}

// label returns the name of the capture within its file, for messages.
func (c *Capture) label() string {
	if c.Part == "" {
		return "it"
	}
	return "its part " + c.Part
}

// contents summarize a capture, for comparing captures. They do not depend on the order of events, and the
// contents of a capture that was merged from several are the sum of theirs.
//
// They do not cover events that a Filter left out. Filters treat all files alike, so the comparison holds
// for the rest; collectives and steps are always covered, and so are the facts about a whole file.
type contents struct {
	n           int    // number of events, instants, samples, collectives, and steps
	hash        uint64 // the sum of their keys
	first, last trace.Time
	// file has the number and bounds of all events, including those left out; total is -1 for a part of a
	// file, where it is unknown.
	file struct {
		total       int
		first, last trace.Time
	}
}

// contents summarizes the capture, once.
func (c *Capture) contents() *contents {
	if c.held != nil {
		return c.held
	}
	held := &contents{}
	held.file.total = -1
	if c.whole {
		held.file.total, held.file.first, held.file.last = c.File.Total, c.File.First, c.File.Last
	}
	c.eachKey(0, func(from, to trace.Time, key uint64) {
		if held.n == 0 || from < held.first {
			held.first = from
		}
		if held.n == 0 || to > held.last {
			held.last = to
		}
		held.n++
		held.hash += key
	})
	c.held = held
	return held
}

// add adds the contents of another capture.
func (a *contents) add(b *contents) {
	a.first, a.last = min(a.first, b.first), max(a.last, b.last)
	a.n += b.n
	a.hash += b.hash
	if a.file.total < 0 || b.file.total < 0 {
		a.file.total = -1
		return
	}
	a.file.total += b.file.total
	a.file.first, a.file.last = min(a.file.first, b.file.first), max(a.file.last, b.file.last)
}

// equal reports whether two captures hold the same. If a filter left nothing to compare, the number and the
// bounds of all events of the file decide; with at most one event, they are not known to be the same.
func (a *contents) equal(b *contents) bool {
	if a.n == 0 && b.n == 0 {
		return a.file.total > 1 && a.file == b.file
	}
	if a.n != b.n || a.hash != b.hash || a.first != b.first || a.last != b.last {
		return false
	}
	return a.file.total < 0 || b.file.total < 0 || a.file == b.file
}

// eachKey calls do for everything in a capture that has a time, with its bounds and a hash that is equal
// for equal things. shift is added to all times. Names are hashed by symbol, since all files of a merge
// share the symbols.
func (c *Capture) eachKey(shift trace.Time, do func(from, to trace.Time, key uint64)) {
	const event, instant, sample, collective, step = 1, 2, 3, 4, 5
	one := func(kind uint64, t trace.Time, dur int64, name trace.Sym, value uint64) {
		t += shift
		do(t, t+trace.Time(dur), order.Mix(order.Mix(order.Mix(order.Mix(uint64(t))+uint64(dur))+value)+uint64(name)<<3+kind))
	}
	f := c.File
	for i := range f.Lines {
		l := &f.Lines[i]
		if l.Key.Part != c.Part {
			continue
		}
		for _, lane := range l.Lanes {
			for _, i := range lane {
				e := &f.Events[i]
				one(event, e.Time, e.Dur, e.Name, 0)
			}
		}
		for _, i := range l.Instants {
			one(instant, f.Instants[i].Time, 0, f.Instants[i].Name, 0)
		}
		for _, i := range l.Samples {
			one(sample, f.Samples[i].Time, 0, 0, math.Float64bits(f.Samples[i].Value))
		}
	}
	for i := range f.Collectives.Len() {
		if x := f.Collectives.At(i); f.Rows[x.Row].Part == c.Part {
			one(collective, x.Time, x.Dur, x.Name, 0)
		}
	}
	for i := range f.Steps {
		if x := &f.Steps[i]; f.Rows[x.Row].Part == c.Part {
			one(step, x.Time, x.Dur, x.Name, 0)
		}
	}
}

// isOf reports whether c is part of a longer capture: of the same process, and with nearly all events of c.
func (c *Capture) isOf(longer *Capture) bool {
	const unknown = profile.OriginUnknown
	var shift trace.Time
	mine, others := &c.File.Meta, &longer.File.Meta
	switch p, q := c.pid(), longer.pid(); {
	case mine.Origin != unknown && others.Origin != unknown:
		if p != q && p != 0 && q != 0 || !c.overlaps(longer) {
			return false
		}
	case p != q || p == 0: // times with an unknown origin may be equal by chance
		return false
	case others.Origin != unknown: // cut off before the time origin is recorded
		shift = trace.Time(others.Base)
	case mine.Origin != unknown && c.File.Source.Format == longer.File.Source.Format:
		return false // its clock is more valuable than the other's events
	case mine.Origin != unknown: // two forms of one profiler's recording
		shift = -trace.Time(mine.Base)
	}
	return c.within(longer, shift)
}

// within reports whether a longer capture has the events of c, with shift added to their times. A few
// events, those without an end at the cut, may be missing. Events of two processes have next to nothing in
// common, since times are in nanoseconds.
func (c *Capture) within(longer *Capture, shift trace.Time) bool {
	const samples, most, of = 4096, 19, 20
	// Sampling by time selects the same events in both captures.
	every := uint64(c.contents().n/samples + 1)
	missing, total := map[uint64]int{}, 0
	c.eachKey(shift, func(at, _ trace.Time, key uint64) {
		if order.Mix(uint64(at))%every == 0 {
			missing[key]++
			total++
		}
	})
	found := 0
	longer.eachKey(0, func(at, _ trace.Time, key uint64) {
		if order.Mix(uint64(at))%every == 0 && missing[key] > 0 {
			missing[key]--
			found++
		}
	})
	return total > 0 && found*of >= total*most
}

// overlaps reports whether two captures share some time. If their time origins differ, they are assumed to.
func (c *Capture) overlaps(o *Capture) bool {
	return c.File.Meta.Origin != o.File.Meta.Origin || c.First <= o.Last && o.First <= c.Last
}

// Track is a rank on the timeline: all captures of one process.
type Track struct {
	Name     string
	Rank     trace.Rank
	Role     string // "prefill", "decode", "unified"; "" is unknown
	Host     string // "" is unknown
	PID      int64
	Run      string // shared by the file names of one capture run; "" is unknown
	kinds    stepKinds
	Proc     int // index of its proc in the requests, or request.None
	Clock    int
	Devices  int  // number of devices that its streams are on
	IsOut    bool // unwanted: it only helps to align the clocks
	Captures []*Capture
	Track    trace.TrackID
}

// Global returns the global rank, -1 if it is unknown.
func (r *Track) Global() int32 {
	if r.Rank.Global < 0 && r.Rank.TP >= 0 && r.Rank.PP <= 0 && r.Rank.DP <= 0 {
		return int32(r.Rank.TP)
	}
	return r.Rank.Global
}

// RankKey returns what is unique to a rank within a server: the global rank, or else everything known about
// the rank.
func (r *Track) RankKey() trace.Rank {
	if g := r.Global(); g >= 0 {
		return trace.Rank{TP: -1, PP: -1, DP: -1, EP: -1, Global: g}
	}
	return r.Rank
}

// overlaps reports whether both ranks were captured at the same time.
func (r *Track) overlaps(o *Track) bool {
	return slices.ContainsFunc(r.Captures, func(c *Capture) bool { return slices.ContainsFunc(o.Captures, c.overlaps) })
}

// Source says where the events of r come from, for the viewer's help popup.
func (r *Track) Source() string {
	by := map[*format.Format][]string{}
	for _, c := range r.Captures {
		for _, f := range append([]*inputs.ProcessProfile{c.File}, c.File.Duplicates...) {
			by[f.Source.Format] = append(by[f.Source.Format], f.Name)
		}
	}
	parts := order.Each(format.Sorted(by), func(f *format.Format) string { return f.Noun + " " + strings.Join(by[f], ", ") })
	if r.Host != "" {
		parts = append(parts, "host "+r.Host)
	}
	if r.PID > 0 {
		parts = append(parts, fmt.Sprintf("pid %d", r.PID))
	}
	return strings.Join(parts, ", ")
}

// ProfilerOverhead returns what makes hosts slower while they are recorded: what was recorded besides
// events, and whether CUDA graphs were being captured.
func (m *Assignment) ProfilerOverhead() (recorded []string, graphCapture bool) {
	words := map[string]bool{}
	for _, r := range m.Tracks {
		for _, c := range r.Captures {
			for _, word := range c.File.Meta.Recorded {
				words[word] = true
			}
			graphCapture = graphCapture || c.known.Name.What == naming.GraphCapture
		}
	}
	return slices.Sorted(maps.Keys(words)), graphCapture
}
