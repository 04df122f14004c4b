package convert

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sgtrace/sgtrace/convert/clocks"
	"github.com/sgtrace/sgtrace/convert/inputs"
	"github.com/sgtrace/sgtrace/convert/ranks"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/internal/parallel"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/profile/recorder"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
)

// ReportData is what reports need from the inputs: requests, and ranks with their profiles. Inputs
// that can be walked again are read each time a report walks them; everything else is held in
// memory. The caller closes it.
type ReportData struct {
	Requests *request.Set       // from OTLP dumps; nil without any
	Profiles profile.Set        // from profilers; has no Ranks without any
	Series   *series.Set        // from logs and metrics; nil without any
	Flight   *recorder.InFlight // from flight recorders and the like; nil without any
	Heap     *recorder.Memory   // from memory snapshots; nil without any
	Experts  *recorder.Experts  // from expert distribution recorders; nil without any
	// Clocks says how the clocks of hosts relate; nil unless ReportOptions.MatchCollectives asked for it.
	// All times stay on the clocks of their hosts, except those of collectives on several ranks.
	Clocks *clocks.Report
	Walked []Walked // inputs whose rows are walked
	// First and Last are the bounds of captures and requests, as stamped by their hosts.
	First, Last trace.Time
	in          *inputs.Loaded
	of          *ranks.Assignment
	aligned     *clocks.Alignment // nil if Clocks is nil
	hosts       []string          // as files call them, with repetitions
	captures    *ReportData       // captures of CUDA graphs; nil without any
}

// Walked is an input whose rows are walked.
type Walked struct {
	Source  *inputs.Source
	All     profile.Stream // all of its rows
	Counted profile.Stream // the rows that no other input has; equals All if there is no overlap
}

// ReportOptions say what reports will look for.
type ReportOptions struct {
	// Attribute says that work will be attributed to ranges: see WithoutDuplicates.
	Attribute bool
	// MatchCollectives puts the clocks of hosts on one, and finds the same collective on several
	// ranks.
	MatchCollectives bool
}

// ForReports prepares inputs, which were read with [inputs.Options.Walk], for reports. It closes in
// if it fails.
func ForReports(in *inputs.Loaded, of *ranks.Assignment, opt ReportOptions) (*ReportData, error) {
	p := &ReportData{Requests: in.Requests, Series: unlessEmpty(in.Series), Flight: unlessEmpty(in.Flight), Experts: unlessEmpty(in.Experts), Heap: unlessEmpty(in.Heap),
		Profiles: profile.Set{Syms: in.Spans.Syms}, in: in, of: of}
	// Logs, metrics, and dumps of work in flight have no clocks that could be related.
	opt.MatchCollectives = opt.MatchCollectives && (in.Requests != nil || len(of.Tracks) > 0)
	if opt.MatchCollectives {
		clocks.ReadCollectives(in, of)
		var err error
		if p.aligned, err = clocks.Relate(in, of, clocks.Options{Find: true}); err != nil {
			return nil, errors.Join(err, in.Close())
		}
		p.Clocks = p.aligned.Report(of)
	}
	p.hosts = of.Hosts()
	everything := of.Everything()
	if everything {
		p.Profiles.MissingRanks = of.MissingRanks()
	}
	of.LeaveOut(in.Requests)
	if opt.MatchCollectives {
		p.Profiles.Collectives, p.Profiles.HostCollectives = p.aligned.CollectiveMatches(of), p.aligned.HostMatches(of)
	}
	if in.Requests != nil {
		p.First, p.Last, _ = in.Requests.Bounds()
	}
	if from, to, ok := in.Series.Bounds(); ok {
		p.extend(from, to)
	}
	for _, r := range of.Tracks {
		for _, c := range r.Captures {
			in.Heap.Name(c.File.Name, r.Name)
		}
		p.Profiles.Ranks, p.Profiles.Numbers = append(p.Profiles.Ranks, r.Name), append(p.Profiles.Numbers, r.Global())
		for _, c := range r.Captures {
			p.extend(c.First, c.File.Meta.Cut(c.Last))
		}
	}
	p.Profiles.Recorded, p.Profiles.GraphCapture = of.ProfilerOverhead()
	p.Profiles.GPUs, p.Profiles.Placements = of.GPUs(), of.Placements(in.Requests)
	if opt.MatchCollectives {
		p.Profiles.ClockOffsets = p.aligned.ClockOffsets(of)
	}
	p.Profiles.Streams, p.Profiles.Files, p.Profiles.HostWaits = heldStreams(in, of)
	for _, f := range of.Files {
		if f.Source.Content.Rows == nil {
			p.Profiles.Lanes = append(p.Profiles.Lanes, f.LaneTimes(p.Profiles.Syms, in.Spans.Args)...)
		}
	}
	p.walk(everything, opt.Attribute)
	if opt.MatchCollectives {
		p.aligned.ForgetMatches()
	}
	of.ForgetCollectives()
	return p, nil
}

// unlessEmpty returns table, or nil if it is empty.
func unlessEmpty[T interface{ Empty() bool }](table T) (none T) {
	if table.Empty() {
		return none
	}
	return table
}

// extend widens First and Last to include [from, to].
func (p *ReportData) extend(from, to trace.Time) {
	p.First, p.Last = order.Earlier(p.First, from), max(p.Last, to)
}

// walk adds the inputs whose rows are walked: all of them, or only those that ranks have captures of.
func (p *ReportData) walk(everything, attribute bool) {
	others := map[*inputs.Source]string{}
	if everything {
		others = p.of.NameOthers(p.in.Sources)
	}
	held := len(p.Profiles.Streams) > 0
	for _, x := range p.in.Sources {
		if x.Content.Rows == nil || !everything && !p.tracks(x) {
			continue
		}
		all := x.Content.Rows(p.pids(x, others[x]))
		st := p.of.WithoutDuplicates(x, all, attribute)
		p.Walked = append(p.Walked, Walked{x, all, st})
		if held {
			st = profile.Unversioned(st, p.Profiles.Syms)
		}
		p.Profiles.Streams, p.Profiles.Exports = append(p.Profiles.Streams, st), true
		p.Profiles.Files = append(p.Profiles.Files, x.Input.Name)
	}
}

// tracks reports whether any rank has a capture of an input.
func (p *ReportData) tracks(x *inputs.Source) bool {
	return slices.ContainsFunc(p.of.Tracks, func(r *ranks.Track) bool {
		return slices.ContainsFunc(r.Captures, func(c *ranks.Capture) bool { return c.File.Source == x })
	})
}

// farOff is how far outside a window of time, in ns, an input must be recorded before it is skipped. The margin
// is generous because not all of its processes are known by name, nor when those began and ended.
const farOff = trace.Time(time.Hour)

// LeaveOutside drops the walked inputs that were recorded far outside [from, to], on the clocks of
// their hosts; 0 is no bound.
func (p *ReportData) LeaveOutside(from, to trace.Time) {
	held := len(p.Profiles.Streams) - len(p.Walked)
	streams, files := p.Profiles.Streams[:held:held], p.Profiles.Files[:held:held]
	walked := p.Walked[:0]
	for i, w := range p.Walked {
		if !outside(p.of, w.Source, from, to) {
			streams, walked = append(streams, p.Profiles.Streams[held+i]), append(walked, w)
			files = append(files, w.Source.Input.Name)
		}
	}
	p.Profiles.Streams, p.Profiles.Files, p.Walked = streams, files, walked
}

// outside reports whether all of an input was recorded more than farOff outside a window of time.
func outside(of *ranks.Assignment, x *inputs.Source, from, to trace.Time) bool {
	known := false
	for _, f := range of.Files {
		if f.Source != x || f.Total == 0 {
			continue
		}
		if f.Meta.Origin != profile.OriginUnix || (from == 0 || f.Last+farOff >= from) && (to == 0 || f.First-farOff <= to) {
			return false
		}
		known = true
	}
	return known
}

// heldStreams returns the recordings whose events are held in memory, their files, and when hosts waited for each other.
func heldStreams(in *inputs.Loaded, of *ranks.Assignment) (streams []profile.Stream, files []string, waits [][]profile.HostWait) {
	ranksOf := of.RanksOf()
	waits = make([][]profile.HostWait, len(of.Tracks))
	for _, f := range of.Files {
		if f.Source.Content.Rows != nil {
			continue
		}
		placeOf := ranksOf(f)
		f.HostWaits(waits, placeOf)
		st := f.Stream(in.Spans.Syms, in.Spans.Args, placeOf)
		if f.Source.Content.Observed != nil && len(f.Rows) > 0 {
			rank, _ := placeOf("") // an export has no parts
			st = profile.WithObserved(st, f.Source.Content.Observed(func(pid int32) int32 {
				if max(pid, 0) == int32(f.Meta.PID) {
					return rank
				}
				return -1
			}))
		}
		streams, files = append(streams, st), append(files, f.Name)
	}
	return streams, files, waits
}

// Profiles returns the profiles for analysis before they are drawn, after their clocks were
// aligned; nil without any rank. The inputs must have been read without [inputs.Options.Walk], so
// that all events are held in memory.
func Profiles(in *inputs.Loaded, of *ranks.Assignment, aligned *clocks.Alignment) *profile.Set {
	if len(of.Tracks) == 0 {
		return nil
	}
	p := &profile.Set{Syms: in.Spans.Syms, Collectives: aligned.CollectiveMatches(of), HostCollectives: aligned.HostMatches(of), GPUs: of.GPUs(), ClockOffsets: aligned.ClockOffsets(of)}
	p.Streams, p.Files, p.HostWaits = heldStreams(in, of)
	p.Recorded, p.GraphCapture = of.ProfilerOverhead()
	if of.Everything() {
		p.MissingRanks = of.MissingRanks()
	}
	for _, r := range of.Tracks {
		p.Ranks, p.Numbers = append(p.Ranks, r.Name), append(p.Numbers, r.Global())
	}
	return p
}

// OnOneClock puts the requests on one clock, if they or the profiles prove that the clocks of hosts
// differ.
func (p *ReportData) OnOneClock() {
	p.Requests = nil // see [inputs.Loaded.RelatedBy]
	if p.aligned == nil {
		p.in.OnOneClock()
	} else {
		p.in.RelatedBy(p.aligned.RequestClocks(p.in.Requests))
	}
	p.Requests = p.in.Requests
}

// AddCaptures adds recordings of CUDA graph captures; Close closes them, too. sizes are the numbers of
// tokens that graphs were captured for, by file.
func (p *ReportData) AddCaptures(captures *ReportData, sizes map[string]int64) {
	p.captures = captures
	p.Profiles.Captures = &profile.GraphCaptures{Set: captures.Profiles, Sizes: sizes}
}

// Close closes all inputs.
func (p *ReportData) Close() error {
	if p.captures != nil {
		return errors.Join(p.in.Close(), p.captures.Close())
	}
	return p.in.Close()
}

// ClockOf returns the label of the clock of a capture; it needs ReportOptions.MatchCollectives.
func (p *ReportData) ClockOf(c *ranks.Capture) string { return p.aligned.HostClocks[c.Clock].Label() }

// pids returns a function that maps a process of an input to its rank. Processes that the input
// does not name, such as short-lived children, together are one rank called others; "" leaves them
// out, as -1. An unknown process has the number 0.
func (p *ReportData) pids(x *inputs.Source, others string) func(pid int32) int32 {
	rankOf := map[int32]int32{}
	for i, r := range p.of.Tracks {
		for _, c := range r.Captures {
			if c.File.Source == x {
				rankOf[int32(c.File.Meta.PID)] = int32(i)
			}
		}
	}
	rest := int32(-1)
	if others != "" {
		rest = int32(len(p.Profiles.Ranks))
		p.Profiles.Ranks = append(p.Profiles.Ranks, others)
	}
	return func(pid int32) int32 {
		if rank, ok := rankOf[max(pid, 0)]; ok {
			return rank
		}
		return rest
	}
}

// Read reads inputs and decides which rank each recording is from. An input that cannot be used is
// reported to diags and left out; it is an error if none remains. The caller closes the result.
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

// ReadWindow reads recordings again, after the clocks were aligned, for the events that overlap
// [from, to] on the common clock; 0 is no bound. Load must have been told to read only the index.
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

// windowsOf returns the given window on the clock of each recording that is drawn or was absorbed
// by one.
func windowsOf(of *ranks.Assignment, aligned *clocks.Alignment, from, to trace.Time) map[*inputs.ProcessProfile]inputs.Extent {
	windows := map[*inputs.ProcessProfile]inputs.Extent{}
	add := func(f *inputs.ProcessProfile, local inputs.Extent) {
		if w, ok := windows[f]; ok { // a merged file: its parts are from several hosts
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
