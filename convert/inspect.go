package convert

import (
	"cmp"
	"os"
	"slices"

	"github.com/sgtrace/sgtrace/internal/tracename"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// An Inspector takes in what profilers recorded, one input after another. What it gets
// is given up afterwards. size is that of the file, -1 is unknown.
type Inspector interface {
	// Trace takes a recording of one process, or of several parts, without arguments.
	Trace(t *profile.Profile, syms *trace.Symbols, size int64, parts []profile.Identity)
	// Export takes a recording of a machine of which no events were read, and the
	// processes that it names.
	Export(name string, held *profile.Inventory, size int64, processes []*profile.Profile, are []profile.Identity)
}

// Inspect reads inputs of any kind as far as it takes to tell what they hold: dumps in
// full, traces without arguments, exports without events. The requests are nil without
// dumps. An input that cannot be used is reported to diags and left out; the error is
// for when none is left.
func Inspect(inputs []Input, opt ReadOptions, diags *trace.Diags, in Inspector) (*request.Set, error) {
	opt.Filter, opt.Walk = profile.Filter{Args: profile.ArgsNone}, true
	opt.each = func(m *Inputs, x *indexed) { inspect(m, x, in) }
	m, err := Index(inputs, opt, diags)
	if err != nil {
		return nil, err
	}
	return m.Requests, m.Close()
}

// inspect shows an input.
func inspect(m *Inputs, x *indexed, in Inspector) {
	size := sizeOf(x.input.Name)
	if x.Inventory == nil {
		for _, p := range x.Profiles {
			f := newRecording(p, x)
			var parts []profile.Identity
			for _, name := range f.parts() {
				parts = append(parts, identify(f, name))
			}
			in.Trace(f.Profile, m.dump.Syms, size, parts)
		}
		return
	}
	processes := x.Profiles
	slices.SortFunc(processes, func(a, b *profile.Profile) int { return cmp.Compare(a.Meta.PID, b.Meta.PID) })
	var are []profile.Identity
	for _, p := range processes {
		are = append(are, identify(&recording{Profile: p, source: x}, ""))
	}
	in.Export(x.input.Name, x.Inventory(), size, processes, are)
}

// identify finds out which rank a part of a file is, by itself: other files may tell
// more.
func identify(f *recording, part string) profile.Identity {
	all, _ := tracename.Resolve([]tracename.Input{f.describe(part)})
	known := &all[0]
	is := profile.Identity{Part: part, Rank: known.Rank, RankFrom: known.From, Host: known.Host}
	if is.Rank == trace.NoRank && len(f.Meta.Hints) > 0 {
		is.Rank.Global, is.RankFrom = f.Meta.Hints[0].Rank, f.Meta.Hints[0].From
	}
	return is
}

// sizeOf returns the size of a file, -1 if that is unknown.
func sizeOf(name string) int64 {
	info, err := os.Stat(name)
	if err != nil || !info.Mode().IsRegular() {
		return -1
	}
	return info.Size()
}
