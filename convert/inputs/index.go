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
	"github.com/sgtrace/sgtrace/request/spantable"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
	"github.com/sgtrace/sgtrace/trace/naming"
	"github.com/sgtrace/sgtrace/trace/redact"
)

// ErrNoEvents says that none of the inputs could be used, ErrNoSpans that none of them
// has requests, where these are asked for.
var (
	ErrNoEvents = errors.New("no input has any spans or events")
	errNoSpans  = errors.New("no input has any spans")
)

// ErrOnce says that an input would have to be read twice.
var ErrOnce = errors.New("cannot be read twice, but a time window needs that")

// Options say what of inputs is read. They do not change what it means.
type Options struct {
	Stdin  io.Reader      // what the name - stands for
	Meter  Meter          // may be nil
	Only   *format.Format // refuse inputs of other formats; nil is none
	Filter profile.Filter
	// Ranks are those whose events are wanted; none is all. Which ranks recordings are of is
	// decided later: here, events are left out if the name or the label of a file says so.
	Ranks []naming.Want

	// KeepSecrets tells to keep attributes and arguments that may hold prompts or
	// credentials.
	KeepSecrets bool
	// Zone is that of local stamps in logs that do not tell theirs; nil is not known.
	Zone *time.Location

	// WithoutOriginals tells to do with what datasets have.
	WithoutOriginals bool

	// Requests leaves out what profilers recorded, which Only makes an error.
	Requests bool
	// Walk tells that rows will be walked, and nothing will be drawn.
	Walk bool

	// Inventory gets what recordings tell of themselves, but not which ranks they are of and
	// how large their files are; nil gets nothing.
	Inventory *inventory.Inventory

	// Pick chooses the requests that are read, if there are dumps only, and large ones: who
	// selects from them gets the same as from all. nil reads everything.
	Pick *assembly.Pick

	// Each gets what profilers recorded, one input after another, and it is given up
	// then; nil keeps all.
	Each func(x *Source)
}

// Loaded is what was read of some inputs.
type Loaded struct {
	// Requests are those of the OTLP inputs; nil without any.
	Requests *request.Set

	Spans *spantable.Table // with the names and arguments of everything
	// Series are what logs and metrics say of servers and devices over time; empty without any.
	Series *series.Set
	// Flight is what processes say of the collectives that they have in flight; empty without any.
	Flight *recorder.InFlight
	// Experts is which expert got how many tokens; empty without any.
	Experts *recorder.Experts
	// records are what logs and records of requests say of them; spans are made of it.
	records *spantable.RequestRecords
	// Heap is what allocators had of devices; empty without any.
	Heap *recorder.Memory
	// Assembled keeps the spans that Requests were made of, until clocks are decided.
	Assembled *assembly.Assembly
	Diags     *trace.Diags
	opt       Options
	Used      []Input           // what was recognized and asked for, as it was given
	Both      bool              // there are recordings of two profilers, which tell about each other
	Files     []*ProcessProfile // in the order of their names
	Sources   []*Source         // of the files
}

// newSpans returns an empty table that reports to diags. Unless keepSecrets, attributes that
// may hold secrets are left out of it, and credentials are masked in all names that are
// interned in its table of symbols, by readers of any format.
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

// Load reads inputs of any kind: all that decides who is who and how clocks relate, and
// as much of the events as will be asked for and cannot be read later. Recordings are
// read in parallel. An input that cannot be used is reported to diags and left out; the
// error is for when none is left. The caller closes what it returns.
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

// finishSeries puts what logs and metrics say on Unix time, and makes spans of the requests that
// they tell of.
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

// OnlyRecordings reports whether there is nothing but what profilers recorded, if that.
func (m *Loaded) OnlyRecordings() bool {
	return m.Requests == nil && m.Series.Empty() && m.Flight.Empty() && m.Experts.Empty()
}

// OnOneClock puts the requests on one clock where they prove that the clocks of hosts
// differ.
func (m *Loaded) OnOneClock() {
	if m.Assembled != nil {
		m.Assembled.Unstep()
		m.RelatedBy(m.Assembled.Set.HostClocks())
	}
}

// RelatedBy puts the requests on the clock that c relates their hosts to, after it has
// reported what times cannot be right. It is for reports, and gives up the spans that
// requests were made of.
func (m *Loaded) RelatedBy(c *request.HostClocks) {
	m.Assembled.Set.ReportTimes()
	m.Requests = nil // or they would stay while others are made of them
	m.Assembled.OnOneClock(c)
	m.Release()
}

// AsRecorded leaves the times of requests as they are, as timelines have them, and gives
// up the spans that requests were made of.
func (m *Loaded) AsRecorded() {
	if m.Assembled == nil {
		return
	}
	m.Assembled.BreakTies()
	m.Release()
}

// Release gives up the spans that requests were made of.
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

// KeepsKinds reports whether all of what devices did was kept.
func (m *Loaded) KeepsKinds() bool { return m.opt.Filter.KeepsKinds() }

// Close closes what rows are read from.
func (m *Loaded) Close() error {
	errs := order.Each(m.Sources, (*Source).close)
	return errors.Join(errs...)
}

// keepWork makes sure that the index has what devices did, by which two profilers that
// recorded one process are recognized.
func (m *Loaded) keepWork(recordings []*Source) {
	f := &m.opt.Filter
	switch {
	case !m.Both:
	case m.opt.Walk && f.Cats != nil:
		f.Cats = slices.Concat(f.Cats, profile.WorkCategories)
	case m.opt.Walk || f.KeepsWork():
	default:
		// Of what can be read once only, ranks still tell what is of one process.
		f.Fingerprint = !slices.ContainsFunc(recordings, func(x *Source) bool { return x.Once })
	}
}

// options returns what a format is told, for a reader that may use so many goroutines.
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

// indexAside reads what processes have in flight and what experts got, several inputs at once.
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

// heldByRecording is about how many bytes are held of a recording that is being read beside its
// tables: what is decompressed, and what a worker parses.
const heldByRecording = 8 << 20

// Readers tells how many recordings of n are to be read at a time, and how many workers parse each.
func Readers(n int) (together, workers int) {
	together = parallel.Workers(heldByRecording)
	return together, max(1, together/max(n, 1))
}

// indexRecordings reads what profilers recorded and orders the events, several inputs at
// once: decompressing one takes a core.
func (m *Loaded) indexRecordings(recordings []*Source) {
	together, workers := Readers(len(recordings))
	files := make([][]*ProcessProfile, len(recordings))
	parallel.Few(together, len(recordings), func(i int) {
		x := recordings[i]
		if !m.indexRecording(x, workers) {
			return
		}
		files[i] = make([]*ProcessProfile, len(x.Content.Profiles))
		// Of the processes of a machine, several can be put in order at a time.
		some := func(k int) { files[i][k] = newProcessProfile(x.Content.Profiles[k], x) }
		if len(recordings) >= together {
			for k := range x.Content.Profiles {
				some(k)
			}
		} else {
			parallel.Each(len(x.Content.Profiles), some)
		}
		x.Content.Profiles = nil // recordings give them up when they are drawn
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

// Unidentified are n profiles of which nobody knows whose they are.
func Unidentified(n int) [][]profile.Identity {
	all := make([][]profile.Identity, n)
	for i := range all {
		all[i] = []profile.Identity{{Rank: trace.NoRank}}
	}
	return all
}

// showEach reads one recording after another, and gives each up.
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

// isOut reports whether the name or label of an input says that it is of no rank that is
// wanted: then its events need not be kept.
func (m *Loaded) isOut(x *Source) bool { return !x.Format.Machine && m.opt.unwanted(x.Input) }

// unwanted reports whether the name or label of an input says that it is of no rank
// that is wanted: then its events need not be kept.
func (opt *Options) unwanted(in Input) bool {
	if len(opt.Ranks) == 0 {
		return false
	}
	known, _ := naming.Resolve([]naming.Input{{Path: in.Name, Said: in.said(), Label: in.Label, HeaderRank: -1}})
	return !slices.ContainsFunc(opt.Ranks, func(w naming.Want) bool { return !w.Rank.Contradicts(known[0].Rank) })
}

// Identities finds out which ranks the parts of each profile of an input are, by itself.
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

// identify finds out which rank a part of a file is, by itself: other files may tell
// more.
func identify(f *ProcessProfile, part string) profile.Identity {
	all, _ := naming.Resolve([]naming.Input{f.Describe(part)})
	known := &all[0]
	is := profile.Identity{Part: part, Rank: known.Rank, RankFrom: known.From, Host: known.Host}
	if is.Rank == trace.NoRank && len(f.Meta.Hints) > 0 {
		is.Rank.Global, is.RankFrom = f.Meta.Hints[0].Rank, f.Meta.Hints[0].From
	}
	return is
}
