package convert

import (
	"errors"
	"fmt"

	"github.com/sgtrace/sgtrace/convert/clocks"
	"github.com/sgtrace/sgtrace/convert/inputs"
	"github.com/sgtrace/sgtrace/convert/ranks"
	"github.com/sgtrace/sgtrace/internal/parallel"
	"github.com/sgtrace/sgtrace/trace"
)

// Read reads inputs and finds out which rank each recording is of. An input that cannot
// be used is reported to diags and left out; the error is for when none is left. The caller
// closes what was loaded.
func Read(files []inputs.Input, opt inputs.Options, want ranks.Options, diags *trace.Diags) (*inputs.Loaded, *ranks.Assignment, error) {
	opt.Ranks = want.Ranks
	in, err := inputs.Load(files, opt, diags)
	if err != nil {
		return nil, nil, err
	}
	if in.OnlyRecordings() && len(in.Files) == 0 {
		return nil, nil, errors.Join(inputs.ErrNoEvents, in.Close())
	}
	of, err := ranks.Assign(in, want)
	if err != nil {
		return nil, nil, errors.Join(err, in.Close())
	}
	return in, of, nil
}

// ReadWindow reads recordings once more, after the clocks were aligned, for the events that
// overlap [from, to] on the common clock; 0 is open. Load must have been told to read the index
// only.
func ReadWindow(in *inputs.Loaded, of *ranks.Assignment, aligned *clocks.Alignment, from, to trace.Time) error {
	bySource := map[*inputs.Source][]*inputs.ProcessProfile{}
	for _, f := range of.Files {
		if f.Source.Once {
			return fmt.Errorf("%s: %w", f.Name, inputs.ErrOnce)
		}
	}
	windows := windowsOf(of, aligned, from, to)
	for f := range windows {
		bySource[f.Source] = append(bySource[f.Source], f)
	}
	together, workers := inputs.Readers(len(in.Sources))
	parallel.Few(together, len(in.Sources), func(i int) {
		files := bySource[in.Sources[i]]
		if len(files) == 0 {
			return // of ranks that are left out
		}
		all := windows[files[0]]
		for _, f := range files[1:] {
			w := windows[f]
			all = inputs.Extent{From: min(all.From, w.From), To: max(all.To, w.To)}
		}
		in.Window(in.Sources[i], files, all, workers)
	})
	of.JoinAgain()
	return nil
}

// windowsOf returns when the given times are on the clock of each recording that is drawn, or
// was put into one.
func windowsOf(of *ranks.Assignment, aligned *clocks.Alignment, from, to trace.Time) map[*inputs.ProcessProfile]inputs.Extent {
	windows := map[*inputs.ProcessProfile]inputs.Extent{}
	add := func(f *inputs.ProcessProfile, local inputs.Extent) {
		if w, ok := windows[f]; ok { // a merged file, whose parts are of several hosts
			local = inputs.Extent{From: min(w.From, local.From), To: max(w.To, local.To)}
		}
		windows[f] = local
	}
	for _, r := range of.Tracks {
		for _, c := range r.Captures {
			clock := aligned.HostClocks[c.Clock]
			local := inputs.Extent{From: clock.ToLocal(from), To: clock.ToLocal(to)}
			add(c.File, local)
			of.EachAbsorbed(c.File, local, add)
		}
	}
	return windows
}
