package convert

import (
	"errors"
	"fmt"
	"runtime"

	"github.com/sgtrace/sgtrace/convert/clocks"
	"github.com/sgtrace/sgtrace/convert/drawing"
	"github.com/sgtrace/sgtrace/convert/inputs"
	"github.com/sgtrace/sgtrace/convert/ranks"
	"github.com/sgtrace/sgtrace/internal/parallel"
	"github.com/sgtrace/sgtrace/trace"
)

// A Merge is all that some inputs hold: read with [Read], put on one clock with Align,
// then drawn with Layout; or walked over as [Evidence].
type Merge struct{ *clocks.Clocks }

// Read reads inputs and finds out which rank each recording is of. An input that cannot
// be used is reported to diags and left out; the error is for when none is left.
func Read(files []inputs.Input, opt inputs.Options, diags *trace.Diags) (*Merge, error) {
	in, err := inputs.Index(files, opt, diags)
	if err != nil {
		return nil, err
	}
	m := &Merge{&clocks.Clocks{Ranks: ranks.New(in)}}
	if in.Requests == nil && len(in.Files) == 0 {
		err = inputs.ErrNoEvents
	} else {
		err = m.FindRanks()
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
		for _, a := range m.Absorbed[f] {
			a.Run(m.Ranks)
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
	for _, r := range m.Tracks {
		for _, c := range r.Captures {
			local := inputs.Extent{From: m.HostClocks[c.Clock].ToLocal(from), To: m.HostClocks[c.Clock].ToLocal(to)}
			add(c.File, local)
			for _, a := range m.Absorbed[c.File] {
				add(a.From, a.Window(local))
			}
		}
	}
	return windows
}

// Layout draws everything and returns the finished trace. The events of recordings
// are given up on the way: a Merge can be drawn once.
func (m *Merge) Layout(opt drawing.Options) *trace.Trace {
	return drawing.Draw(m.Clocks, opt)
}
