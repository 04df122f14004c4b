package convert

import (
	"errors"
	"fmt"
	"runtime"

	"github.com/sgtrace/sgtrace/convert/inputs"
	"github.com/sgtrace/sgtrace/internal/align"
	"github.com/sgtrace/sgtrace/internal/parallel"
	"github.com/sgtrace/sgtrace/trace"
)

// Ranks tell which rank each of the recordings of some inputs is of.
type Ranks struct {
	*inputs.Inputs
	pairs    []*pair                             // recordings of one process by two profilers
	absorbed map[*inputs.Recording][]*absorption // what was put into a recording, in this order
	synced   map[*inputs.Indexed]*exportClock    // of inputs whose clock was matched with that of a recording beside
	placed   []*exportClock                      // recordings whose clock was matched with that of one beside
	tracks   []*rankTrack                        // in the order of the timeline
	first    *rankTrack                          // whose clock is the reference where there are no requests
	wants    func(*rankTrack) bool
}

// Clocks tell how the clocks of the hosts of some ranks and requests relate.
type Clocks struct {
	*Ranks
	hostClocks []*hostClock
	clockOf    map[string]int // of each host of Requests, an index into hostClocks
	alignRanks []align.Rank   // the collectives of each rank that has any
	alignNames *align.Names   // of their communicators and calls
	alignOf    []*rankTrack   // which rank that is
	calls      [][]call       // where each of their collectives comes from
	matches    []align.Match  // the same collective on several ranks
	bounds     []align.Bound  // what requests and messages between hosts say
	solution   align.Solution
}

// A Merge is all that some inputs hold: read with [Read], put on one clock with Align,
// then drawn with Layout; or walked over as [Evidence].
type Merge struct{ *Clocks }

func newRanks(in *inputs.Inputs) *Ranks {
	return &Ranks{Inputs: in, absorbed: map[*inputs.Recording][]*absorption{}, synced: map[*inputs.Indexed]*exportClock{}}
}

// Read reads inputs and finds out which rank each recording is of. An input that cannot
// be used is reported to diags and left out; the error is for when none is left.
func Read(files []inputs.Input, opt inputs.Options, diags *trace.Diags) (*Merge, error) {
	in, err := inputs.Index(files, opt, diags)
	if err != nil {
		return nil, err
	}
	m := &Merge{&Clocks{Ranks: newRanks(in)}}
	if in.Requests == nil && len(in.Files) == 0 {
		err = inputs.ErrNoEvents
	} else {
		err = m.findRanks()
	}
	if err != nil {
		return nil, errors.Join(err, in.Close())
	}
	return m, nil
}

// ReadWindow reads recordings once more, after Align, for the events that overlap
// [from, to] on the common clock; 0 is open. Read must have been told to read the index
// only.
func (m *Merge) ReadWindow(from, to trace.Time) error {
	bySource := map[*inputs.Indexed][]*inputs.Recording{}
	for _, f := range m.Files {
		if f.Source.Once {
			return fmt.Errorf("%s: %w", f.Name, inputs.ErrOnce)
		}
	}
	windows := m.windows(from, to)
	for f := range windows {
		bySource[f.Source] = append(bySource[f.Source], f)
	}
	parallel.Each(len(m.Sources), func(i int) {
		files := bySource[m.Sources[i]]
		if len(files) == 0 {
			return // of ranks that are left out
		}
		all := windows[files[0]]
		for _, f := range files[1:] {
			w := windows[f]
			all = inputs.Extent{From: min(all.From, w.From), To: max(all.To, w.To)}
		}
		m.Window(m.Sources[i], files, all, max(1, runtime.GOMAXPROCS(0)/len(m.Sources)))
	})
	for _, f := range m.Files {
		for _, a := range m.absorbed[f] {
			a.run(m.Ranks)
		}
	}
	return nil
}

// windows returns when the given times are on the clock of each file that is drawn.
func (m *Merge) windows(from, to trace.Time) map[*inputs.Recording]inputs.Extent {
	windows := map[*inputs.Recording]inputs.Extent{}
	add := func(f *inputs.Recording, local inputs.Extent) {
		if w, ok := windows[f]; ok { // a merged file, whose parts are of several hosts
			local = inputs.Extent{From: min(w.From, local.From), To: max(w.To, local.To)}
		}
		windows[f] = local
	}
	for _, r := range m.tracks {
		for _, c := range r.captures {
			local := inputs.Extent{From: m.hostClocks[c.clock].toLocal(from), To: m.hostClocks[c.clock].toLocal(to)}
			add(c.file, local)
			for _, a := range m.absorbed[c.file] {
				add(a.from, a.window(local))
			}
		}
	}
	return windows
}

// Layout draws everything and returns the finished trace. The events of recordings
// are given up on the way: a Merge can be drawn once.
func (m *Merge) Layout(view View, ranks RankLayout) *trace.Trace {
	return drawMerge(m.Clocks, view, ranks)
}
