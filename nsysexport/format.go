package nsysexport

import (
	"errors"
	"fmt"
	"runtime/debug"
	"slices"

	"github.com/sgtrace/sgtrace/format"
	"github.com/sgtrace/sgtrace/format/inventory"
	"github.com/sgtrace/sgtrace/nsysexport/rows"
	"github.com/sgtrace/sgtrace/nsysexport/storage"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// Format is a report of Nsight Systems that was exported: as a SQLite database, or as a
// folder of Parquet files.
var Format = &format.Format{
	Name:    "Nsight Systems export",
	Doc:     "Nsight Systems exports, as 'nsys export' writes them with --type sqlite or parquetdir; a report (.nsys-rep) that you name is exported first, if nsys is in PATH",
	For:     "'sgtrace merge', 'sgtrace convert nsys2perfetto', or 'sgtrace report --kernels' (--api, --nvtx, ...)",
	Convert: "nsys2perfetto",
	Sniff:   storage.IsDatabase,
	Folder:  storage.IsFolder,
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

// index reads an export, or what is exported of a report for it: with Walk what it says of
// its processes, else all that the filter keeps. It is opened by its path, and for every
// table anew.
func index(in *format.Input, opt *format.Options) (*format.Source, error) {
	path, remove, err := exported(in, opt.Diags)
	if err != nil {
		return nil, err
	}
	if remove == nil {
		remove = func() error { return nil }
	}
	var source *format.Source
	if opt.Walk {
		source, err = walkable(in, path, opt)
	} else {
		source, err = held(in, path, opt)
	}
	if err != nil {
		return nil, errors.Join(err, remove())
	}
	shut := source.Close
	source.Close = func() error { return errors.Join(shut(), remove()) }
	return source, nil
}

// held reads all that the filter keeps. The rest is walked over, in an export that is opened once
// more: what is wrong with it was said when its events were read.
func held(in *format.Input, path string, opt *format.Options) (*format.Source, error) {
	files, err := readEvents(in, path, nil, opt)
	var again *rows.Source
	return &format.Source{Profiles: files,
		Stream: func(opt *format.Options) ([]*profile.Profile, error) { return readEvents(in, path, nil, opt) },
		Observed: func(rank func(pid int32) int32) profile.Stream {
			if again == nil {
				var err error
				if again, err = rows.Open(path, rows.Options{Name: in.Name, Syms: opt.Syms, Diags: &trace.Diags{}, Brief: true}); err != nil {
					return (&profile.Profile{}).Stream(opt.Syms, nil, nil)
				}
			}
			return NewStream(again, rank)
		},
		Close: func() error {
			if again == nil {
				return nil
			}
			return again.Close()
		}}, err
}

// readEvents reads the events that the filter keeps. The export may be open beside.
func readEvents(in *format.Input, path string, beside *rows.Source, opt *format.Options) ([]*profile.Profile, error) {
	files, err := readProfiles(path, rows.Options{Name: in.Name, Syms: opt.Syms, Args: opt.Args, Diags: opt.Diags, Beside: beside, Workers: opt.Workers, KeepSecrets: opt.KeepSecrets}, &opt.Filter)
	if slices.ContainsFunc(files, func(f *profile.Profile) bool { return len(f.Events) > manyEvents }) {
		debug.FreeOSMemory() // of the pieces that tables were put together from
	}
	return files, err
}

// walkable reads what the export says of its processes; the rest is walked over later.
func walkable(in *format.Input, path string, opt *format.Options) (*format.Source, error) {
	src, err := rows.Open(path, rows.Options{Name: in.Name, Syms: opt.Syms, Diags: opt.Diags, Brief: true})
	if err != nil {
		return nil, err
	}
	reportMessages(src)
	processes := Outline(src)
	return &format.Source{Profiles: processes, Print: printOf(src), Close: src.Close,
		Stream: func(opt *format.Options) ([]*profile.Profile, error) { return readEvents(in, path, src, opt) },
		Rows:   func(rank func(pid int32) int32) profile.Stream { return NewStream(src, rank) },
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
