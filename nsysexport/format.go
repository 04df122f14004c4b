package nsysexport

import (
	"errors"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"strings"

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

// manyEvents is the number of events from which their table is large compared with everything else.
const manyEvents = 1 << 20

// index reads an export, or makes one from a report and reads that: with Walk only the facts about its
// processes, else everything that the filter keeps. The export is opened by its path, anew for every table.
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

// held reads everything that the filter keeps. The rest is read from a second opening of the export, which does
// not report damage again.
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

// readEvents reads the events that the filter keeps. beside is the same export, if it is already open.
func readEvents(in *format.Input, path string, beside *rows.Source, opt *format.Options) ([]*profile.Profile, error) {
	files, err := readProfiles(path, rows.Options{Name: in.Name, Syms: opt.Syms, Args: opt.Args, Diags: opt.Diags, Beside: beside, Workers: opt.Workers, KeepSecrets: opt.KeepSecrets}, &opt.Filter)
	if slices.ContainsFunc(files, func(f *profile.Profile) bool { return len(f.Events) > manyEvents }) {
		debug.FreeOSMemory() // frees the pieces of the tables
	}
	return files, err
}

// walkable reads the facts about the processes; events are read later by walking over the rows.
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

// printOf returns the same text for exports that have the same session and the same number of rows of each
// kind: one is a copy, or was exported again with other options.
func printOf(src *rows.Source) string {
	counts := src.Counts()
	if counts == [len(counts)]int64{} {
		return ""
	}
	m := &src.Meta
	return fmt.Sprintf("%t %d %d %q %d", m.Absolute, m.SessionStart, m.Duration, m.Host, counts)
}

// Inventory adds an export, of size bytes, to an inventory, with the processes that it names and their
// identities. It reads no events except messages of the profiler.
func Inventory(v *inventory.Inventory, src *rows.Source, size int64, processes []*profile.Profile, are []profile.Identity) {
	m := &src.Meta
	v.Exports = append(v.Exports, inventory.Export{
		File: src.Name, Size: size, Product: m.Product, Schema: m.Schema, Host: m.Host, Absolute: m.Absolute,
		Start: m.SessionStart, Duration: m.Duration, GraphMode: m.GraphMode, Driver: m.Driver,
		PartialTables: m.PartialTables, PartialTimes: m.PartialTimes,
	})
	listProcesses(v, src, processes, are)
	for _, g := range m.GPUs {
		v.AddDevice(src.Name, g.Name, g.ID)
	}
	for _, t := range src.EventTables() {
		v.Tables = append(v.Tables, inventory.Table{File: src.Name, Name: t.Name, Rows: t.Rows, Read: true,
			First: t.First, Last: t.Last, Timed: t.Timed && m.Absolute})
	}
	for _, t := range src.Unread {
		v.Tables = append(v.Tables, inventory.Table{File: src.Name, Name: t.Name, Rows: t.Rows})
	}
	for x := range src.Messages {
		v.Messages = append(v.Messages, inventory.Message{File: src.Name, Time: x.Time, Timed: m.Absolute,
			Severity: severityWords[x.Severity], PID: int64(x.PID), Text: x.Text})
	}
}

// severityWords are nsys's names of severities, by number.
var severityWords = map[uint8]string{2: "warning", 3: "error"}

// listProcesses adds the processes with a known pid or rank.
func listProcesses(v *inventory.Inventory, src *rows.Source, processes []*profile.Profile, are []profile.Identity) {
	gpus := map[int64][]int64{} // by pid
	for _, d := range src.Meta.Devices {
		gpus[int64(d.PID)] = append(gpus[int64(d.PID)], d.GPU)
	}
	events := src.Active()
	for i, p := range processes {
		name, _, _ := p.ProcessOf("")
		row := inventory.Process{File: src.Name, Name: name, Is: are[i], N: 1, PID: p.Meta.PID,
			World: p.Meta.WorldSize, GPUs: gpus[p.Meta.PID], Events: events[int32(p.Meta.PID)], Steps: -1, Collectives: -1}
		switch {
		case row.Events == 0 && len(row.GPUs) == 0 && row.Is.RankFrom == rows.FromEnvironment:
			row.Is.Rank, row.Is.RankFrom = trace.NoRank, "" // a process that nsys did not start
		case row.World < 0 && len(p.Meta.Hints) > 0:
			row.World = p.Meta.Hints[0].Size
		}
		if row.PID > 0 || row.Is.Rank != trace.NoRank {
			v.AddProcess(row)
		}
	}
}

// reportMessages reports the profiler's warnings about lost data and missing permissions, but not those about
// libraries that the program does not use.
func reportMessages(src *rows.Source) {
	type place struct {
		message *trace.Message
		text    string
	}
	counts := map[place]int{}
	var order []place
	for m := range src.Messages {
		p := place{trace.NsysWarning, strings.TrimSpace(m.Text)}
		if m.Severity > 2 && !isAboutSamples(p.text) || losesWork(p.text) {
			p.message = trace.NsysError
		}
		if isUnused(p.text) {
			continue
		}
		if counts[p]++; counts[p] == 1 {
			order = append(order, p)
		}
	}
	texts := map[*trace.Message][]string{}
	for _, p := range order {
		text := strings.Join(strings.Fields(p.text), " ")
		texts[p.message] = append(texts[p.message], text)
	}
	for _, m := range []*trace.Message{trace.NsysError, trace.NsysWarning} {
		if list := texts[m]; len(list) > 0 {
			src.Diag(m, "", 0, strings.Join(list, " | "))
		}
	}
}

// isUnused reports whether a message says that a process makes no calls to a library, so that nothing is
// missing. For CUDA, something may be missing.
func isUnused(text string) bool {
	of, question := strings.CutPrefix(text, "No ")
	return question && strings.Contains(of, " events collected. Does the process use ") && !strings.HasPrefix(of, "CUDA ")
}

// isAboutSamples reports whether a message is about samples of threads, whose loss does not affect the work of
// devices.
func isAboutSamples(text string) bool {
	return strings.Contains(text, "CPU IP/backtrace sample") || strings.Contains(text, "CPU kernel IP/backtrace sample")
}

// losesWork reports whether a message, of any severity, says that work of devices may be missing.
func losesWork(text string) bool {
	return strings.Contains(text, "CUPTI events might be missing") || strings.Contains(text, "Not all CUDA events might have been collected")
}

// Outline returns the facts about the processes of an export without reading their events: profiles without
// events, by process id, which last from the first event of the export to the last.
func Outline(src *rows.Source) []*profile.Profile {
	r := newProfiler(src)
	for _, p := range src.Processes {
		r.file(p.PID)
	}
	for _, t := range src.Threads {
		r.file(t.PID)
	}
	for pid := range src.StreamUsers {
		r.file(pid)
	}
	for _, rank := range src.Ranks {
		r.file(rank.PID)
	}
	if len(r.profiles) == 0 {
		strangers(src, func(pid int32) { r.file(pid) })
	}
	var outlines []*profile.Profile
	first, last := src.Extent()
	for _, pid := range slices.Sorted(maps.Keys(r.profiles)) {
		p := r.profiles[pid]
		p.Profile.First, p.Profile.Last, p.Profile.Total = first, last, 1
		outlines = append(outlines, p.Profile)
	}
	return outlines
}

// strangers calls f with the process of each row. It reads whole tables, and is only for exports that name no
// process at all.
func strangers(src *rows.Source, f func(pid int32)) {
	st := NewStream(src, func(pid int32) int32 {
		f(pid)
		return -1
	})
	st.Kernels(func(*profile.Kernel) bool { return true })
	st.Copies(func(*profile.Copy) bool { return true })
	st.Calls(func(*profile.Call) bool { return true })
	st.Ranges(func(*profile.Range) bool { return true })
}
