package convert

import (
	"errors"
	"iter"
	"slices"
	"time"

	"github.com/sgtrace/sgtrace/convert/clocks"
	"github.com/sgtrace/sgtrace/convert/inputs"
	"github.com/sgtrace/sgtrace/convert/ranks"
	"github.com/sgtrace/sgtrace/inventory"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// Evidence is what some inputs hold, for reports: requests, and ranks with what
// their profilers recorded. What can be walked again is read whenever a report walks over
// it, all else is held. The caller closes it.
type Evidence struct {
	Requests    *request.Set // of OTLP dumps; nil without any
	profile.Set              // of what profilers recorded; no Ranks without any
	// Clocks tell how the clocks of hosts relate, if EvidenceOptions.SyncPoints asked for
	// it; else nil. All times but those of sync points stay on the clocks of their hosts.
	Clocks *clocks.Report
	Taken  []inputs.Input // that were taken, see [inputs.Inputs.Taken]
	Walked []Walked       // inputs of which rows are walked
	// First and Last are the bounds of captures and requests, as their hosts stamped them.
	First, Last trace.Time
	merge       *Merge
	hosts       []string // as files call them, some repeatedly
}

// Walked is an input of which rows are walked.
type Walked struct {
	*inputs.Indexed
	All     profile.Stream // its rows
	Counted profile.Stream // those that no other input has; All if no input has any
}

// EvidenceOptions say what reports will look for.
type EvidenceOptions struct {
	// Attribute tells that work will be attributed to ranges: see WithoutDuplicates.
	Attribute bool
	// SyncPoints tells to put the clocks of hosts on one and to find the same collective on
	// several ranks.
	SyncPoints bool
}

// Evidence prepares what was read, with [inputs.Options.Walk], for reports. It closes m if
// that fails.
func (m *Merge) Evidence(opt EvidenceOptions) (*Evidence, error) {
	p := &Evidence{Requests: m.Requests, Set: profile.Set{Syms: m.Dump.Syms}, merge: m}
	if opt.SyncPoints {
		m.ReadCollectives()
		if err := m.RelateClocks(nil, true); err != nil {
			return nil, errors.Join(err, m.Close())
		}
		p.Clocks = m.Report()
	}
	p.hosts = m.Hosts()
	everything := len(m.Opt.Ranks) == 0 && len(m.Opt.Hosts) == 0
	if everything {
		p.Absences = m.Absences()
	}
	m.LeaveOutRanks()
	if opt.SyncPoints {
		p.Meetings = m.Meetings()
	}
	if m.Requests != nil {
		p.First, p.Last, _ = m.Requests.Bounds()
	}
	for _, r := range m.Tracks {
		p.Ranks = append(p.Ranks, r.Name)
		for _, c := range r.Captures {
			if p.First == 0 || c.First < p.First {
				p.First = c.First
			}
			p.Last = max(p.Last, c.Last)
		}
	}
	p.Recorded, p.GraphCapture = m.Burdens()
	p.GPUs, p.Homes = m.GPUs(), m.Homes()
	if opt.SyncPoints {
		p.Ahead = m.Ahead()
	}
	p.Streams = m.heldStreams()
	for _, f := range m.Files {
		if f.Source.Rows == nil {
			p.Lanes = append(p.Lanes, f.LaneTimes(m.Dump.Syms, m.Dump.Args)...)
		}
	}
	others := map[*inputs.Indexed]string{}
	if everything {
		others = m.NameOthers()
	}
	held := len(p.Streams) > 0
	for _, x := range m.Sources {
		if x.Rows == nil || !everything && !m.tracks(x) {
			continue
		}
		all := x.Rows(p.pids(m.Ranks, x, others[x]))
		st := m.WithoutDuplicates(x, all, opt.Attribute)
		p.Walked = append(p.Walked, Walked{x, all, st})
		if held {
			st = unversioned{st, m.Dump.Syms}
		}
		p.Streams, p.Exports = append(p.Streams, st), true
	}
	m.ForgetMatches()
	return p, nil
}

// tracks reports whether any rank has a capture of an input.
func (m *Merge) tracks(x *inputs.Indexed) bool {
	return slices.ContainsFunc(m.Tracks, func(r *ranks.Track) bool {
		return slices.ContainsFunc(r.Captures, func(c *ranks.Capture) bool { return c.File.Source == x })
	})
}

// farOff is how far from a window of time, in ns, an input is not walked over: its processes were
// recorded at one time, but not all of them are known by name, and when these began and ended.
const farOff = trace.Time(time.Hour)

// LeaveOutside leaves out the inputs of which rows are walked and that were recorded at another time
// than from from to to, on the clocks of their hosts; 0 is no bound.
func (p *Evidence) LeaveOutside(from, to trace.Time) {
	held := len(p.Streams) - len(p.Walked)
	streams := p.Streams[:held:held]
	walked := p.Walked[:0]
	for i, w := range p.Walked {
		if !p.merge.outside(w.Indexed, from, to) {
			streams, walked = append(streams, p.Streams[held+i]), append(walked, w)
		}
	}
	p.Streams, p.Walked = streams, walked
}

// outside reports whether all of an input was recorded far off a window of time.
func (m *Merge) outside(x *inputs.Indexed, from, to trace.Time) bool {
	known := false
	for _, f := range m.Files {
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

// heldStreams are the recordings of which the events are held.
func (m *Merge) heldStreams() (streams []profile.Stream) {
	ranksOf := m.RanksOf()
	for _, f := range m.Files {
		if f.Source.Rows != nil {
			continue
		}
		of := ranksOf(f)
		st := f.Stream(m.Dump.Syms, m.Dump.Args, of)
		if f.Source.Observed != nil && len(f.Rows) > 0 {
			rank, _ := of(f.Rows[0].Part)
			st = withObserved{st, f.Source.Observed(func(pid int32) int32 {
				if pid == int32(f.Rows[0].PID) {
					return rank
				}
				return -1
			})}
		}
		streams = append(streams, st)
	}
	return streams
}

// withObserved is the events that are held, and what was observed meanwhile.
type withObserved struct {
	profile.Stream
	observed profile.Stream
}

func (b withObserved) Samples(yield func(*profile.Sample) bool) { b.observed.Samples(yield) }
func (b withObserved) Backtraces(wanted func(*profile.Sample) bool) iter.Seq[*profile.Sample] {
	return b.observed.Backtraces(wanted)
}
func (b withObserved) Runs(yield func(*profile.Run) bool) { b.observed.Runs(yield) }
func (b withObserved) CounterValues(yield func(*profile.CounterValue) bool) {
	b.observed.CounterValues(yield)
}

// Profiles are what profilers recorded, for whoever looks at it before it is drawn, after
// Align; nil without any rank. Inputs were read without [inputs.Options.Walk], so that all
// events are held.
func (m *Merge) Profiles() *profile.Set {
	if len(m.Tracks) == 0 {
		return nil
	}
	p := &profile.Set{Syms: m.Dump.Syms, Meetings: m.Meetings(), GPUs: m.GPUs(), Streams: m.heldStreams(), Ahead: m.Ahead()}
	p.Recorded, p.GraphCapture = m.Burdens()
	if len(m.Opt.Ranks) == 0 && len(m.Opt.Hosts) == 0 {
		p.Absences = m.Absences()
	}
	for _, r := range m.Tracks {
		p.Ranks = append(p.Ranks, r.Name)
	}
	return p
}

// OnOneClock puts the requests on one clock where they, or what profilers recorded, prove
// that the clocks of hosts differ.
func (p *Evidence) OnOneClock() {
	p.Requests = nil // see [inputs.Inputs.RelatedBy]
	if p.Clocks == nil {
		p.merge.OnOneClock()
	} else {
		p.merge.RelatedBy(p.merge.RequestClocks())
	}
	p.Requests = p.merge.Requests
}

// Inventory is what the files of profilers say about themselves, if
// [inputs.Options.Inventory] asked for it; else nil.
func (p *Evidence) Inventory() *inventory.Inventory { return p.merge.Opt.Inventory }

// unversioned calls calls as PyTorch does, without the version of CUDA in which their
// signature changed: nsys stats leaves short ones out only.
type unversioned struct {
	profile.Stream
	syms *trace.Symbols
}

func (u unversioned) Calls(yield func(*profile.Call) bool) {
	names := map[trace.Sym]trace.Sym{}
	u.Stream.Calls(func(c *profile.Call) bool {
		name, ok := names[c.Name]
		if !ok {
			name = u.syms.Intern(profile.CallName(u.syms.Name(c.Name)))
			names[c.Name] = name
		}
		c.Name = name
		return yield(c)
	})
}

// Close closes what is read from.
func (p *Evidence) Close() error { return p.merge.Close() }

// pids tells which rank a process of a machine is. Processes that the input does
// not name, short-lived children, are one rank together, others; "" leaves them out.
func (p *Evidence) pids(m *ranks.Ranks, x *inputs.Indexed, others string) func(pid int32) int32 {
	rankOf := map[int32]int32{}
	for i, r := range m.Tracks {
		for _, c := range r.Captures {
			if c.File.Source == x {
				rankOf[int32(c.File.Rows[0].PID)] = int32(i)
			}
		}
	}
	rest := int32(-1)
	if others != "" {
		rest = int32(len(p.Ranks))
		p.Ranks = append(p.Ranks, others)
	}
	return func(pid int32) int32 {
		if rank, ok := rankOf[pid]; ok {
			return rank
		}
		return rest
	}
}
