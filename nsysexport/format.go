package nsysexport

import (
	"fmt"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/format"
	"github.com/sgtrace/sgtrace/profile"
)

// Format is the SQLite form of a report of Nsight Systems.
var Format = &format.Format{
	Name:     "SQLite (Nsight Systems export)",
	Doc:      "exports of Nsight Systems, as 'nsys export --type sqlite' writes them",
	For:      "'sgtrace merge', 'sgtrace convert nsys2perfetto' and 'sgtrace report --kernels' (--api, --nvtx, ...)",
	Convert:  "nsys2perfetto",
	Sniff:    func(h format.Head) bool { return Sniff(h.Bytes) },
	Index:    index,
	OnDisk:   true,
	Recorder: "Nsight Systems export",
	Beside:   true,
	Machine:  true,
	Session:  true,
	Again:    true,
}

// manyEvents is from where on a table of events is large beside all else.
const manyEvents = 1 << 20

// index reads an export: with Walk what it says of its processes, else all that the
// filter keeps. SQLite opens it by its path, for every table anew.
func index(in *format.Input, opt *format.Options) (*format.Source, error) {
	stream := func(opt *format.Options) ([]*profile.Profile, error) {
		files, err := ReadProfiles(in.Path, Options{Syms: opt.Syms, Args: opt.Args, Diags: opt.Diags, Workers: opt.Workers, KeepSecrets: opt.KeepSecrets}, &opt.Filter)
		if slices.ContainsFunc(files, func(f *profile.Profile) bool { return len(f.Events) > manyEvents }) {
			debug.FreeOSMemory() // of the pieces that tables were put together from
		}
		return files, err
	}
	if !opt.Walk {
		files, err := stream(opt)
		return &format.Source{Profiles: files, Stream: stream}, err
	}
	src, err := Open(in.Path, Options{Syms: opt.Syms, Diags: opt.Diags, Brief: true})
	if err != nil {
		return nil, err
	}
	return &format.Source{Profiles: src.Outline(), Print: src.print(), Stream: stream, Rows: src.Stream, Inventory: src.inventory, Close: src.Close}, nil
}

// print is equal for exports that have the same session and as many rows of each kind:
// one is a copy, or was exported once more, with other options.
func (s *Source) print() string {
	var counts []string
	rows := int64(0)
	for _, spec := range []*tableSpec{&kernelTable, &apiTable, &memcpyTable, &memsetTable, &nvtxTable} {
		n := s.count(spec)
		rows += n
		counts = append(counts, fmt.Sprint(n))
	}
	if rows <= 0 {
		return ""
	}
	m := &s.Meta
	return fmt.Sprintf("%t %d %d %q %s", m.Absolute, m.SessionStart, m.Duration, m.Host, strings.Join(counts, " "))
}

// inventory says what the export holds. Of its events only messages of the profiler are
// read.
func (s *Source) inventory() *profile.Inventory {
	m := &s.Meta
	v := &profile.Inventory{Session: profile.Session{Product: m.Product, Schema: m.Schema, Host: m.Host, Absolute: m.Absolute, Start: m.SessionStart,
		Duration: m.Duration, Graphs: m.GraphMode, PartialTables: m.PartialTables, PartialTimes: m.PartialTimes}}
	gpus := map[int64][]int64{} // by pid
	for _, d := range m.Devices {
		gpus[int64(d.PID)] = append(gpus[int64(d.PID)], d.GPU)
	}
	for _, p := range s.Processes {
		v.Processes = append(v.Processes, profile.Process{PID: int64(p.PID), Name: p.Name, GPUs: gpus[int64(p.PID)]})
		delete(gpus, int64(p.PID))
	}
	for _, d := range m.Devices {
		if own := gpus[int64(d.PID)]; own != nil { // a process without a name
			v.Processes = append(v.Processes, profile.Process{PID: int64(d.PID), GPUs: own})
			delete(gpus, int64(d.PID))
		}
	}
	for _, g := range m.GPUs {
		v.GPUs = append(v.GPUs, profile.Device{ID: g.ID, Name: g.Name})
	}
	for _, t := range s.EventTables() {
		v.Tables = append(v.Tables, profile.Table{Name: t.Name, Rows: t.Rows, Read: true, First: t.First, Last: t.Last, Timed: t.Timed && m.Absolute})
	}
	for _, t := range s.Unread {
		v.Tables = append(v.Tables, profile.Table{Name: t.Name, Rows: t.Rows})
	}
	for x := range s.Messages {
		v.Messages = append(v.Messages, profile.Message{Time: x.Time, PID: x.PID, Severity: x.Severity, Text: x.Text})
	}
	return v
}
