package convert

import (
	"os"

	"github.com/sgtrace/sgtrace/convert/inputs"
	"github.com/sgtrace/sgtrace/internal/tracename"
	"github.com/sgtrace/sgtrace/inventory"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// Inspect reads inputs of any kind as far as it takes to tell what they hold: dumps in
// full, traces without arguments, exports without events. What profilers recorded it adds
// to in; the requests are nil without dumps. read is what was recognized. An input that
// cannot be used is reported to diags and left out; the error is for when none is left.
func Inspect(files []inputs.Input, opt inputs.Options, diags *trace.Diags, in *inventory.Inventory) (requests *request.Set, read []inputs.Input, err error) {
	opt.Filter, opt.Walk = profile.Filter{Args: profile.ArgsNone}, true
	opt.Each = func(x *inputs.Indexed) {
		if x.Inventory != nil {
			x.Inventory(in, sizeOf(x.Input.Path()), identities(x))
		}
	}
	m, err := inputs.Index(files, opt, diags)
	if err != nil {
		return nil, nil, err
	}
	if m.Assembled != nil {
		m.Release()
	}
	return m.Requests, m.Taken, m.Close()
}

// identities finds out which ranks the parts of each profile of an input are.
func identities(x *inputs.Indexed) (all [][]profile.Identity) {
	for _, p := range x.Profiles {
		f := &inputs.Recording{Profile: p, Source: x}
		if !x.Format.Machine {
			f = inputs.NewRecording(p, x)
		}
		var parts []profile.Identity
		for _, name := range f.Parts() {
			parts = append(parts, identify(f, name))
		}
		all = append(all, parts)
	}
	return all
}

// identify finds out which rank a part of a file is, by itself: other files may tell
// more.
func identify(f *inputs.Recording, part string) profile.Identity {
	all, _ := tracename.Resolve([]tracename.Input{f.Describe(part)})
	known := &all[0]
	is := profile.Identity{Part: part, Rank: known.Rank, RankFrom: known.From, Host: known.Host}
	if is.Rank == trace.NoRank && len(f.Meta.Hints) > 0 {
		is.Rank.Global, is.RankFrom = f.Meta.Hints[0].Rank, f.Meta.Hints[0].From
	}
	return is
}

// sizeOf returns the size of a file, or of the files in a folder; -1 if that is unknown.
func sizeOf(name string) int64 {
	info, err := os.Stat(name)
	switch {
	case err != nil:
		return -1
	case info.Mode().IsRegular():
		return info.Size()
	case !info.IsDir():
		return -1
	}
	entries, err := os.ReadDir(name)
	if err != nil {
		return -1
	}
	size := int64(0)
	for _, e := range entries {
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() {
			size += info.Size()
		}
	}
	return size
}
