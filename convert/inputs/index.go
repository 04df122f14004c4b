package inputs

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/sgtrace/sgtrace/format"
	"github.com/sgtrace/sgtrace/format/inventory"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/internal/parallel"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/profile/recorder"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/request/assembly"
	"github.com/sgtrace/sgtrace/request/pick"
	"github.com/sgtrace/sgtrace/request/spantable"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
	"github.com/sgtrace/sgtrace/trace/naming"
	"github.com/sgtrace/sgtrace/trace/redact"
)

// ErrNoEvents is returned if no input could be used, errNoSpans if no input has requests, and these were
// asked for.
var (
	ErrNoEvents = errors.New("no input has any spans or events")
	errNoSpans  = errors.New("no input has any spans")
)

// ErrOnce is returned if an input would have to be read twice but cannot be.
var ErrOnce = errors.New("cannot be read twice, but a time window needs that")

// Options say which parts of the inputs are read. They do not change their meaning.
type Options struct {
	Stdin  io.Reader      // read for the name -
	Meter  Meter          // may be nil
	Only   *format.Format // refuse other formats; nil accepts all
	Filter profile.Filter
	// Ranks are those whose events are wanted; none is all. The rank of each recording is decided later:
	// here, events are left out only if the name or label of the file rules the ranks out.
	Ranks []naming.Want

	// KeepSecrets keeps attributes and arguments that may hold prompts or credentials.
	KeepSecrets bool
	// Zone is the time zone of local log timestamps without a zone; nil is unknown.
	Zone *time.Location

	// WithoutOriginals uses only what datasets have, without opening originals.
	WithoutOriginals bool

	// Requests leaves out profiles; Only makes them an error.
	Requests bool
	// Walk says that rows will be walked, and nothing will be drawn.
	Walk bool

	// Inventory receives what recordings say about themselves, but without ranks and file sizes; may be
	// nil.
	Inventory *inventory.Inventory

	// Pick chooses which requests are read if there are only dumps, and large ones. A selection from these
	// gives the same result as one from all. nil reads everything.
	Pick *pick.Wanted

	// Each is called for each profiler input in turn, whose content is then released; nil keeps everything.
	Each func(x *Source)
}

// Loaded is what was read from the inputs.
type Loaded struct {
	// Requests are from the OTLP inputs; nil without any.
	Requests *request.Set

	Spans *spantable.Table // also has the names and arguments of everything else
	// Series are what logs and metrics say about servers and devices over time; empty without any.
	Series *series.Set
	// Flight has the collectives that processes have in flight; empty without any.
	Flight *recorder.InFlight
	// Experts has the number of tokens that each expert got; empty without any.
	Experts *recorder.Experts
	// records are requests in logs and records, from which spans are made.
	records *spantable.RequestRecords
	// Heap has the allocators' state of device memory; empty without any.
	Heap *recorder.Memory
	// Assembled keeps the spans that Requests were made from until the clocks are decided.
	Assembled *assembly.Assembly
	Diags     *trace.Diags
	opt       Options
	Used      []Input           // recognized inputs of the wanted kind, as given
	Both      bool              // there are recordings by two profilers, which may be of the same processes
	Files     []*ProcessProfile // by name
	Sources   []*Source         // of Files
}

// newSpans returns an empty table that reports to diags. Without keepSecrets, the table drops attributes
// that may hold secrets, and its symbol table masks credentials in all names, for readers of any format.
func newSpans(diags *trace.Diags, keepSecrets bool) *spantable.Table {
	d := spantable.New(diags)
	if d.KeepSecrets = keepSecrets; !keepSecrets {
		d.Syms.Rename(redact.Mask)
	}
	return d
}

// newLoaded returns empty tables, to be filled.
func newLoaded(opt Options, diags *trace.Diags) *Loaded {
	m := &Loaded{Spans: newSpans(diags, opt.KeepSecrets), Diags: diags, opt: opt}
	m.Series, m.Flight = series.New(m.Spans.Syms, diags), recorder.NewInFlight(m.Spans.Syms)
	m.Heap, m.Experts = recorder.NewMemory(m.Spans.Syms), &recorder.Experts{}
	m.records = spantable.NewRequestRecords(m.Series)
	return m
}

// Load reads inputs of any kind: everything that decides which process each recording is from and how
// clocks relate, and as many events as will be needed and cannot be read later. It reads recordings in
// parallel. An input that cannot be used is reported to diags and left out; it is an error if none remains.
// The caller closes the result.
func Load(inputs []Input, opt Options, diags *trace.Diags) (*Loaded, error) {
	m := newLoaded(opt, diags)
	known := m.recognize(inputs)
	dumps, recordings := known.dumps, known.recordings
	beside := func(x *Source) bool { return x.Format.Beside }
	m.Both = slices.ContainsFunc(recordings, beside) && !allOf(recordings, beside)
	m.keepWork(recordings)
	switch {
	case opt.Each != nil:
		m.showEach(recordings)
		m.indexRequests(dumps)
	case opt.Pick != nil && len(recordings) == 0 && canPick(dumps):
		if err := m.indexPicked(dumps); err != nil {
			return nil, err
		}
	default:
		var wg sync.WaitGroup
		wg.Go(func() { m.indexRequests(dumps) })
		m.indexRecordings(recordings)
		wg.Wait()
	}
	if m.Assembled == nil {
		m.finishSeries()
		m.assemble()
	}
	m.indexAside(known.aside)
	switch {
	case m.Requests != nil || !opt.Requests && (!m.OnlyRecordings() || len(m.Sources) > 0):
		return m, nil
	case known.others > 0 || !m.Series.Empty():
		return nil, fmt.Errorf("%w; for profiler data, logs, and metrics, use 'sgtrace report' or 'sgtrace merge'", errNoSpans)
	case opt.Requests:
		return nil, errNoSpans
	}
	return nil, ErrNoEvents
}

func allOf(list []*Source, is func(*Source) bool) bool {
	return !slices.ContainsFunc(list, func(x *Source) bool { return !is(x) })
}

// finishSeries converts the times of logs and metrics to Unix time, and makes spans of the requests in
// them.
func (m *Loaded) finishSeries() {
	if m.Series.Empty() {
		return
	}
	var known series.Known
	known.From, known.To = m.Spans.Bounds()
	known.Given, known.GivenBy = m.opt.Zone, "--tz"
	m.Series.Finish(known)
	m.records.Emit(m.Spans)
}

// OnlyRecordings reports whether there is nothing besides profiles, which may be missing, too.
func (m *Loaded) OnlyRecordings() bool {
	return m.Requests == nil && m.Series.Empty() && m.Flight.Empty() && m.Experts.Empty()
}

// OnOneClock puts the requests on one clock, if they prove that the clocks of hosts differ.
func (m *Loaded) OnOneClock() {
	if m.Assembled != nil {
		m.Assembled.Unstep()
		m.RelatedBy(m.Assembled.Set.HostClocks())
	}
}

// RelatedBy reports implausible times, and then puts the requests on the clock that c relates their hosts
// to. It is for reports, and releases the spans that requests were made from.
func (m *Loaded) RelatedBy(c *request.HostClocks) {
	m.Assembled.Set.ReportTimes()
	m.Requests = nil // otherwise, the old requests would stay in memory while new ones are made
	m.Assembled.OnOneClock(c)
	m.Release()
}

// AsRecorded leaves the times of requests as they are, as in timelines, and releases the spans that
// requests were made from.
func (m *Loaded) AsRecorded() {
	if m.Assembled == nil {
		return
	}
	m.Assembled.BreakTies()
	m.Release()
}

// Release releases the spans that requests were made from.
func (m *Loaded) Release() {
	m.Assembled.Release()
	m.Requests, m.Assembled = m.Assembled.Set, nil
}

// Walks reports whether rows will be walked, and nothing will be drawn.
func (m *Loaded) Walks() bool { return m.opt.Walk }

// Complete reports whether nothing was left out of recordings.
func (m *Loaded) Complete() bool {
	f := &m.opt.Filter
	return f.Cats == nil && f.Names == nil && f.MinDur == 0 && f.From == 0 && f.To == 0 && !f.IndexOnly
}

// KeepsKinds reports whether all device work was kept.
func (m *Loaded) KeepsKinds() bool { return m.opt.Filter.KeepsKinds() }

// Close closes the files that rows are read from.
func (m *Loaded) Close() error {
	errs := order.Each(m.Sources, (*Source).close)
	return errors.Join(errs...)
}

// keepWork makes sure that the index has the device work, by which recordings of one process by two
// profilers are recognized.
func (m *Loaded) keepWork(recordings []*Source) {
	f := &m.opt.Filter
	switch {
	case !m.Both:
	case m.opt.Walk && f.Cats != nil:
		f.Cats = slices.Concat(f.Cats, profile.WorkCategories)
	case m.opt.Walk || f.KeepsWork():
	default:
		// If an input can be read only once, none gets a fingerprint: recordings of one process are matched by rank.
		f.Fingerprint = !slices.ContainsFunc(recordings, func(x *Source) bool { return x.Once })
	}
}

// options returns the options of a format's reader, which may use the given number of goroutines.
func (m *Loaded) options(filter profile.Filter, workers int) *format.Options {
	return &format.Options{Syms: m.Spans.Syms, Args: m.Spans.Args, Diags: m.Diags, Spans: m.Spans, Series: m.Series, Records: m.records, Flight: m.Flight, Heap: m.Heap, Experts: m.Experts, Workers: workers, KeepSecrets: m.opt.KeepSecrets,
		Filter: filter, Walk: m.opt.Walk, Parts: !m.opt.Requests && m.opt.Pick == nil}
}

// indexRequests reads the dumps, one after another: each is parsed on all cores.
func (m *Loaded) indexRequests(dumps []*Source) {
	for _, x := range dumps {
		if err := x.index(m.options(m.opt.Filter, 0)); err != nil {
			m.unusable(x.Input, err)
		}
	}
	m.Spans.ReportOther()
}

// indexAside reads dumps of work in flight and of expert distributions, several inputs in parallel.
func (m *Loaded) indexAside(list []*Source) {
	errs := make([]error, len(list))
	parallel.Each(len(list), func(i int) { errs[i] = list[i].index(m.options(m.opt.Filter, 1)) })
	for i, err := range errs {
		if err != nil {
			m.unusable(list[i].Input, err)
		}
	}
	m.Flight.Finish(func(source int32) trace.Time {
		zone := &m.Series.Sources[source].Zone
		if !zone.Local {
			return 0
		}
		return trace.Time(zone.East)
	})
	m.Experts.Finish()
}

// heldByRecording is roughly how many bytes reading a recording needs besides its tables: the decompressed
// data, and what a worker parses.
const heldByRecording = 8 << 20

// Readers returns how many of n recordings to read at a time, and how many workers parse each.
func Readers(n int) (together, workers int) {
	together = parallel.Workers(heldByRecording)
	return together, max(1, together/max(n, 1))
}

// indexRecordings reads the profiles and sorts their events, several inputs in parallel: decompressing one
// input keeps a core busy.
func (m *Loaded) indexRecordings(recordings []*Source) {
	together, workers := Readers(len(recordings))
	files := make([][]*ProcessProfile, len(recordings))
	parallel.Few(together, len(recordings), func(i int) {
		x := recordings[i]
		if !m.indexRecording(x, workers) {
			return
		}
		files[i] = make([]*ProcessProfile, len(x.Content.Profiles))
		// With few inputs, sort the processes of one machine in parallel.
		some := func(k int) { files[i][k] = newProcessProfile(x.Content.Profiles[k], x) }
		if len(recordings) >= together {
			for k := range x.Content.Profiles {
				some(k)
			}
		} else {
			parallel.Each(len(x.Content.Profiles), some)
		}
		x.Content.Profiles = nil // m.Files owns them now, and releases them when they are drawn
	})
	for i, x := range recordings {
		if x.Content == nil {
			continue
		}
		list := x.Content.Inventory
		x.Content.Inventory = nil // it holds profiles, too
		if x.Content.Print != "" {
			same := slices.IndexFunc(m.Sources, func(o *Source) bool { return o.Format == x.Format && o.Content.Print == x.Content.Print })
			if same >= 0 {
				m.Diags.Add(trace.CaptureRepeated.Of(x.Input.Name, "it", "session and rows", m.Sources[same].Input.Name))
				x.close()
				continue
			}
		}
		m.Sources = append(m.Sources, x)
		m.Files = append(m.Files, files[i]...)
		if m.opt.Inventory != nil && list != nil {
			const unknown = -1
			list(m.opt.Inventory, unknown, Unidentified(len(files[i])))
		}
	}
}

// Unidentified returns n profiles' identities, all unknown.
func Unidentified(n int) [][]profile.Identity {
	all := make([][]profile.Identity, n)
	for i := range all {
		all[i] = []profile.Identity{{Rank: trace.NoRank}}
	}
	return all
}

// showEach reads one recording after another, and releases each.
func (m *Loaded) showEach(recordings []*Source) {
	for _, x := range recordings {
		if m.indexRecording(x, 0) {
			m.opt.Each(x)
			if err := x.close(); err != nil {
				m.unusable(x.Input, err)
				continue
			}
			x.Content = &format.Source{}
			m.Sources = append(m.Sources, x)
		}
	}
}

// indexRecording reads one input, and reports whether it can be used.
func (m *Loaded) indexRecording(x *Source, workers int) bool {
	filter := m.opt.Filter
	filter.IndexOnly = filter.IndexOnly || !m.Both && m.isOut(x)
	err := x.index(m.options(filter, workers))
	if err != nil {
		x.Content = nil
		m.unusable(x.Input, err)
	}
	return err == nil
}

// isOut reports whether the name or label of an input rules out all wanted ranks, so that its events need
// not be kept.
func (m *Loaded) isOut(x *Source) bool { return !x.Format.Machine && m.opt.unwanted(x.Input) }

// unwanted reports whether the name or label of an input rules out all wanted ranks.
func (opt *Options) unwanted(in Input) bool {
	if len(opt.Ranks) == 0 {
		return false
	}
	known, _ := naming.Resolve([]naming.Input{{Path: in.Name, Said: in.said(), Label: in.Label, HeaderRank: -1}})
	return !slices.ContainsFunc(opt.Ranks, func(w naming.Want) bool { return !w.Rank.Contradicts(known[0].Rank) })
}

// Identities returns the ranks of the parts of each profile of an input, as far as the input itself identifies them.
func (x *Source) Identities() (all [][]profile.Identity) {
	for _, p := range x.Content.Profiles {
		f := &ProcessProfile{Profile: p, Source: x}
		if !x.Format.Machine {
			f = newProcessProfile(p, x)
		}
		parts := order.Each(f.Parts(), func(name string) profile.Identity { return identify(f, name) })
		all = append(all, parts)
	}
	return all
}

// identify determines the rank of a part of a file from that file alone: other files may say more.
func identify(f *ProcessProfile, part string) profile.Identity {
	all, _ := naming.Resolve([]naming.Input{f.Describe(part)})
	known := &all[0]
	is := profile.Identity{Part: part, Rank: known.Rank, RankFrom: known.From, Host: known.Host}
	if is.Rank == trace.NoRank && len(f.Meta.Hints) > 0 {
		is.Rank.Global, is.RankFrom = f.Meta.Hints[0].Rank, f.Meta.Hints[0].From
	}
	return is
}
