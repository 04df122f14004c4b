package convert

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"

	"github.com/sgtrace/sgtrace/chrometrace"
	"github.com/sgtrace/sgtrace/internal/align"
	"github.com/sgtrace/sgtrace/internal/parallel"
	"github.com/sgtrace/sgtrace/nsysexport"
	"github.com/sgtrace/sgtrace/nsysexport/rows"
	"github.com/sgtrace/sgtrace/otlpjson"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/request/assembly"
	"github.com/sgtrace/sgtrace/trace"
)

// ErrNoEvents says that none of the inputs of a merge could be used.
var ErrNoEvents = errors.New("no input has any spans or events")

// A Merge is all that some inputs hold, on its way onto one timeline: read with
// [Read], put on one clock with Align, then drawn with Layout.
type Merge struct {
	// Requests are those of the OTLP inputs; nil without any.
	Requests *request.Set

	dump *otlpjson.Dump
	// assembled keeps the spans that Requests were made of, until clocks are related.
	assembled *assembly.Assembly
	diags     *trace.Diags
	files     []*recording            // in the order of their names
	pairs     []*pair                 // traces and exports of one process
	paired    bool                    // they were looked for
	synced    map[string]*exportClock // of exports whose clock was matched with that of a trace, by name
	placed    []*exportClock          // traces whose clock was matched with that of an export
	ranks     []*rankTrack            // in the order of the timeline
	first     *rankTrack              // whose clock is the reference where there are no requests
	wants     func(*rankTrack) bool
	clocks    []*hostClock

	hostClocks map[string]int // clock of each host of Requests
	alignRanks []align.Rank   // the collectives of each rank that has any
	alignNames *align.Names   // of their communicators and calls
	alignOf    []*rankTrack   // which rank that is
	calls      [][]call       // where each of their collectives comes from
	matches    []align.Match  // the same collective on several ranks
	bounds     []align.Bound  // what requests and messages between hosts say
	solution   align.Solution
}

// ReadOptions say how the inputs of a merge are read.
type ReadOptions struct {
	Stdin  io.Reader // what the name - stands for
	Meter  Meter     // may be nil
	Only   *Format   // refuse inputs of other formats; nil is none
	Filter profile.Filter
	Ranks  []trace.Rank // leave out PyTorch traces of other ranks; none is all
	Hosts  []string     // leave out PyTorch traces of other hosts, by the beginnings of their names; none is all
	RankOf []GivenRank  // ranks of processes of Nsight Systems exports

	// KeepSecrets tells to keep attributes and arguments that may hold prompts or
	// credentials.
	KeepSecrets bool

	// OneClock tells Load to put all times on one clock, for reports. A timeline has the
	// times as they were recorded.
	OneClock bool
	// Attribute tells ReadEvidence that work will be attributed to ranges: see untwin.
	Attribute bool
	// Meetings tells ReadEvidence to put the clocks of hosts on one and to find the
	// same collective on several ranks.
	Meetings bool

	base     int64     // of a file that was read before
	both     bool      // there are traces and exports, which tell about each other
	outlines *outlines // opens Nsight Systems exports instead of reading them; nil without
}

// Read reads inputs of any kind, PyTorch traces in parallel. An input that cannot
// be used is reported to diags and left out; the error is for when none is left.
func Read(inputs []Input, opt ReadOptions, diags *trace.Diags) (*Merge, error) {
	m := &Merge{dump: newDump(diags, opt.KeepSecrets), diags: diags}
	var dumps, traces []candidate
	for _, in := range inputs {
		s := candidate{input: in}
		if err := s.recognise(&opt); err != nil {
			m.unusable(in, err)
			continue
		}
		if opt.Only != nil && s.format != opt.Only {
			m.unusable(in, s.format.elsewhere())
			continue
		}
		if in.As != nil && s.format != in.As {
			m.notice("input-other-kind", in.Name, "was given as %s, and is %s: read as what it is", in.As.Name, s.format.Name)
		}
		if s.format == FormatOTLP {
			dumps = append(dumps, s)
		} else {
			traces = append(traces, s)
		}
	}
	isTrace := func(c candidate) bool { return !c.isExport() }
	opt.both = slices.ContainsFunc(traces, candidate.isExport) && slices.ContainsFunc(traces, isTrace)
	if opt.outlines != nil && opt.Filter.Cats != nil && opt.both {
		// By their work traces and exports of one process are recognised.
		opt.Filter.Cats = slices.Concat(opt.Filter.Cats, profile.WorkCategories)
	}
	var wg sync.WaitGroup
	wg.Go(func() { m.readOTLP(dumps, &opt) })
	m.readTorch(traces, &opt)
	wg.Wait()
	m.pairedBefore(traces, &opt)
	if m.dump.Len() > 0 {
		m.assembled = assembly.Build(m.dump)
		m.Requests = m.assembled.Set
	}
	if m.Requests == nil && len(m.files) == 0 {
		return nil, ErrNoEvents
	}
	return m, m.findRanks(&opt)
}

// candidate is an input that is looked at.
type candidate struct {
	input  Input
	format *Format
	stream *Stream // of what can be opened once only; nil for files
}

// recognise opens the input and looks at its head. Files are closed again: there
// may be more of them than a process may have open.
func (s *candidate) recognise(opt *ReadOptions) error {
	info, err := os.Stat(s.input.Name)
	again := err == nil && info.Mode().IsRegular()
	meter := opt.Meter
	if again {
		meter = nil // its bytes are read once more
	}
	stream, err := Open(s.input.Name, opt.Stdin, meter)
	if err != nil {
		return err
	}
	err = stream.unusable()
	switch {
	case err != nil || stream.Format != FormatSQLite:
	case stream.zeros && (!again || stream.Compression != ""):
		err = errZeros
	case stream.Compression != "":
		err = fmt.Errorf("is %s, which must be a file that is not compressed: decompress it first", stream.Format.Name)
	case !again:
		err = fmt.Errorf("is %s, which must be a file on a disk: copy it there, and give its name", stream.Format.Name)
	}
	s.format, s.stream = stream.Format, stream
	if again || err != nil {
		s.stream = nil
		return errors.Join(err, stream.Close())
	}
	return nil
}

// isExport tells whether an input is an Nsight Systems export.
func (s candidate) isExport() bool { return s.format == FormatSQLite }

func (s *candidate) open(opt *ReadOptions) (*Stream, error) {
	if s.stream != nil {
		return s.stream, nil
	}
	return Open(s.input.Name, opt.Stdin, opt.Meter)
}

// readOTLP reads the dumps, one after another: each is parsed on all cores.
func (m *Merge) readOTLP(dumps []candidate, opt *ReadOptions) {
	for i := range dumps {
		s, err := dumps[i].open(opt)
		if err == nil {
			err = errors.Join(m.dump.Read(s.Name, s), s.Close())
		}
		if err != nil {
			m.unusable(dumps[i].input, err)
		}
	}
	m.dump.ReportOther()
}

// readTorch reads the traces and orders their events, several files at once:
// decompressing one takes a core.
func (m *Merge) readTorch(traces []candidate, opt *ReadOptions) {
	cores := runtime.GOMAXPROCS(0)
	files := make([][]*recording, len(traces))
	parallel.Each(len(traces), func(i int) {
		profiles := m.readTrace(&traces[i], opt, max(1, cores/len(traces)))
		files[i] = make([]*recording, len(profiles))
		// Of the processes of an export, several can be put in order at a time.
		some := func(k int) { files[i][k] = newRecording(profiles[k], &traces[i]) }
		if len(traces) >= cores {
			for k := range profiles {
				some(k)
			}
			return
		}
		parallel.Each(len(profiles), some)
	})
	m.files = slices.Concat(files...)
	if opt.outlines != nil {
		m.files = opt.outlines.leaveOutRepetitions(m, m.files)
	}
}

// manyEvents is from where on a table of events is large beside all else.
const manyEvents = 1 << 20

// readTrace reads one trace: a file for every process of an Nsight Systems export,
// one for a PyTorch trace, none if it cannot be used.
func (m *Merge) readTrace(in *candidate, opt *ReadOptions, workers int) []*profile.Profile {
	if in.isExport() {
		if opt.outlines != nil {
			files, err := opt.outlines.open(in.input.Name, rows.Options{Syms: m.dump.Syms, Diags: m.diags})
			if err != nil {
				m.unusable(in.input, err)
			}
			return files
		}
		files, err := nsysexport.ReadProfiles(in.input.Name, rows.Options{
			Syms: m.dump.Syms, Args: m.dump.Args, Diags: m.diags, Workers: workers, KeepSecrets: opt.KeepSecrets}, &opt.Filter)
		if err != nil {
			m.unusable(in.input, err)
		}
		if slices.ContainsFunc(files, func(f *profile.Profile) bool { return len(f.Events) > manyEvents }) {
			debug.FreeOSMemory() // of the pieces that tables were put together from
		}
		return files
	}
	s, err := in.open(opt)
	if err != nil {
		m.unusable(in.input, err)
		return nil
	}
	defer s.Close()
	filter := opt.Filter
	filter.IndexOnly = filter.IndexOnly || !opt.both && opt.unwanted(in.input)
	f, err := chrometrace.Read(s.Name, s, chrometrace.Options{
		Syms: m.dump.Syms, Args: m.dump.Args, Diags: m.diags, Workers: workers, Filter: filter, Base: opt.base, KeepSecrets: opt.KeepSecrets,
	})
	if err != nil {
		m.unusable(in.input, err)
		return nil
	}
	if len(f.Events) > manyEvents {
		// The pieces that the table was put together from are garbage, as much as the
		// table itself, and sorting comes on top. A cycle takes milliseconds, since
		// tables hold no pointers.
		runtime.GC()
	}
	return []*profile.Profile{f}
}

// ErrOnce says that an input would have to be read twice.
var ErrOnce = errors.New("cannot be read twice, as a window of time needs")

// ReadWindow reads the PyTorch traces once more, after Align, for the events that
// overlap [from, to] on the common clock; 0 is open. Read must have been told to
// read the index only.
func (m *Merge) ReadWindow(from, to trace.Time, opt ReadOptions) error {
	for _, f := range m.files {
		if f.source.stream != nil {
			return fmt.Errorf("%s: %w", f.Name, ErrOnce)
		}
	}
	// What is wrong with the files was reported when they were read first.
	again := &Merge{dump: m.dump, diags: &trace.Diags{}}
	windows := m.windows(from, to)
	cores := max(1, runtime.GOMAXPROCS(0)/max(1, len(m.files)))
	parallel.Each(len(m.files), func(i int) {
		f, own := m.files[i], opt
		w, ok := windows[f]
		if !ok || f.isExport() {
			return // of a rank that is left out, or read with the other processes of its file
		}
		own.Filter.From, own.Filter.To = w.from, w.to
		own.base = f.Meta.Base
		for _, file := range again.readTrace(f.source, &own, cores) {
			f.replace(file)
		}
	})
	again.readExports(windows, opt)
	for _, f := range m.files {
		for _, a := range f.absorbed {
			a.run(m)
		}
	}
	return nil
}

// windows returns when the given times are on the clock of each file that is drawn.
func (m *Merge) windows(from, to trace.Time) map[*recording]extent {
	windows := map[*recording]extent{}
	add := func(f *recording, local extent) {
		if w, ok := windows[f]; ok { // a merged file, whose parts are of several hosts
			local = extent{min(w.from, local.from), max(w.to, local.to)}
		}
		windows[f] = local
	}
	for _, r := range m.ranks {
		for _, c := range r.captures {
			local := extent{m.clocks[c.clock].toLocal(from), m.clocks[c.clock].toLocal(to)}
			add(c.file, local)
			for _, a := range c.file.absorbed {
				add(a.from, a.window(local))
			}
		}
	}
	return windows
}

// readExports reads the exports of the given recordings once more, each once for all
// of its processes.
func (m *Merge) readExports(windows map[*recording]extent, opt ReadOptions) {
	bySource := map[*candidate][]*recording{}
	var sources []*candidate
	for f := range windows {
		if f.isExport() {
			if bySource[f.source] == nil {
				sources = append(sources, f.source)
			}
			bySource[f.source] = append(bySource[f.source], f)
		}
	}
	parallel.Each(len(sources), func(i int) {
		own := opt
		for k, f := range bySource[sources[i]] {
			w := windows[f]
			if k > 0 {
				w = extent{min(w.from, own.Filter.From), max(w.to, own.Filter.To)}
			}
			own.Filter.From, own.Filter.To = w.from, w.to
		}
		profiles := m.readTrace(sources[i], &own, max(1, runtime.GOMAXPROCS(0)/len(sources)))
		for _, f := range bySource[sources[i]] {
			for _, p := range profiles {
				if p.Meta.PID == f.Meta.PID {
					f.replace(p)
				}
			}
		}
	})
}

// unusable reports an input that is left out. What a directory or a glob happens
// to hold besides traces is not worth more than a notice.
func (m *Merge) unusable(in Input, err error) {
	d := trace.Diag{Severity: trace.Error, Code: "input-unusable", Pos: trace.Pos{File: in.Name, Offset: -1}, Msg: err.Error()}
	if in.Found && errors.Is(err, errUnknownFormat) {
		d.Severity, d.Code = trace.Notice, "input-skipped"
	}
	m.diags.Add(d)
}
