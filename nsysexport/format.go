package nsysexport

import (
	"fmt"
	"runtime/debug"
	"slices"

	"github.com/sgtrace/sgtrace/format"
	"github.com/sgtrace/sgtrace/inventory"
	"github.com/sgtrace/sgtrace/nsysexport/rows"
	"github.com/sgtrace/sgtrace/profile"
)

// Format is the SQLite form of a report of Nsight Systems.
var Format = &format.Format{
	Name:    "SQLite (Nsight Systems export)",
	Doc:     "Nsight Systems exports, as 'nsys export --type sqlite' writes them",
	For:     "'sgtrace merge', 'sgtrace convert nsys2perfetto', or 'sgtrace report --kernels' (--api, --nvtx, ...)",
	Convert: "nsys2perfetto",
	Sniff:   func(h format.Head) bool { return rows.Sniff(h.Bytes) },
	Index:   index,
	OnDisk:  true,
	Noun:    "Nsight Systems export",
	Beside:  true,
	Machine: true,
	Session: true,
	Again:   true,
}

// manyEvents is from where on a table of events is large beside all else.
const manyEvents = 1 << 20

// index reads an export: with Walk what it says of its processes, else all that the
// filter keeps. SQLite opens it by its path, for every table anew.
func index(in *format.Input, opt *format.Options) (*format.Source, error) {
	stream := func(opt *format.Options) ([]*profile.Profile, error) {
		files, err := ReadProfiles(in.Path, rows.Options{Name: in.Name, Syms: opt.Syms, Args: opt.Args, Diags: opt.Diags, Workers: opt.Workers, KeepSecrets: opt.KeepSecrets}, &opt.Filter)
		if slices.ContainsFunc(files, func(f *profile.Profile) bool { return len(f.Events) > manyEvents }) {
			debug.FreeOSMemory() // of the pieces that tables were put together from
		}
		return files, err
	}
	if !opt.Walk {
		files, err := stream(opt)
		return &format.Source{Profiles: files, Stream: stream}, err
	}
	src, err := rows.Open(in.Path, rows.Options{Name: in.Name, Syms: opt.Syms, Diags: opt.Diags, Brief: true})
	if err != nil {
		return nil, err
	}
	reportMessages(src)
	processes := Outline(src)
	return &format.Source{Profiles: processes, Print: printOf(src), Stream: stream, Close: src.Close,
		Rows: func(rank func(pid int32) int32) profile.Stream { return NewStream(src, rank) },
		Inventory: func(v *inventory.Inventory, size int64, are [][]profile.Identity) {
			Inventory(v, src, size, processes, slices.Concat(are...))
		}}, nil
}

// printOf is equal for exports that have the same session and as many rows of each kind:
// one is a copy, or was exported once more, with other options.
func printOf(src *rows.Source) string {
	counts := src.Counts()
	if counts == [len(counts)]int64{} {
		return ""
	}
	m := &src.Meta
	return fmt.Sprintf("%t %d %d %q %d", m.Absolute, m.SessionStart, m.Duration, m.Host, counts)
}
