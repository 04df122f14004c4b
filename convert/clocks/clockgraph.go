package clocks

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/align"
	"github.com/sgtrace/sgtrace/convert/inputs"
	"github.com/sgtrace/sgtrace/convert/ranks"
	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/internal/parallel"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
	"github.com/sgtrace/sgtrace/trace/naming"
)

// A HostClock is the clock of one host, with which all of its processes stamp their events, or the clock of
// inputs that do not name their host.
type HostClock struct {
	Names   []string // the host's names in traces and dumps; the first one is printed
	drifts  bool     // the user gave the drift
	Domain  string   // "unix", or "unknown" if times count from an unknown origin
	Fit     align.ClockFit
	First   trace.Time // bounds of its events, as stamped
	Last    trace.Time
	isKnown bool // Names are of a host, not of a file
}

// Label returns the name to show for the clock.
func (c *HostClock) Label() string { return c.Names[0] }

// findClocks gives every host one clock. Files that do not name their host get one for each rank, until
// their offsets show which of them share a host.
func (m *aligner) findClocks() {
	m.HostClocks, m.ClockOf = nil, map[request.ClockKey]int{}
	index := map[string]int{}
	add := func(key, name, domain string, known bool) int {
		i, ok := index[key]
		if !ok {
			i = len(m.HostClocks)
			index[key] = i
			c := &HostClock{Names: []string{name}, Domain: domain, isKnown: known}
			if host, ok := strings.CutPrefix(key, "host "); ok && host != "" && host != name {
				c.Names = append(c.Names, host)
			}
			m.HostClocks = append(m.HostClocks, c)
		}
		return i
	}
	if m.in.Requests != nil {
		for p := range m.in.Requests.Procs {
			key := m.in.Requests.ClockKey(p)
			m.ClockOf[key] = add(indexKey(key), m.hostName(p), "unix", true)
		}
	}
	// A rank that is also a process in the dump links the host's name in the traces to the one in the dump.
	for _, r := range m.of.Tracks {
		if r.Proc != request.None && r.Host != "" && m.in.Requests.Procs[r.Proc].Host != "" {
			i := m.clockOfProc(r.Proc)
			if _, ok := index["host "+r.Host]; !ok {
				index["host "+r.Host] = i
				if c := m.HostClocks[i]; !slices.Contains(c.Names, r.Host) {
					c.Names = append(c.Names, r.Host)
				}
			}
		}
	}
	for _, r := range m.of.Tracks {
		for _, c := range r.Captures {
			c.Clock = m.clockOfCapture(r, c, add)
		}
		r.Clock = r.Captures[0].Clock
	}
	for _, x := range m.of.Placed {
		x.Clock = add("host "+x.Host, x.Host, "unix", true)
	}
	m.noteTimes()
}

// clockOfCapture returns the index of the clock that a capture is on. It calls add with the clock's key, which creates the clock if needed.
func (m *aligner) clockOfCapture(r *ranks.Track, c *ranks.Capture, add func(key, name, domain string, known bool) int) int {
	synced := m.of.ExportClock(c)
	switch {
	case synced != nil:
		return add("session "+c.File.Name, synced.Name, "unix", true)
	case c.File.Meta.Parts != nil: // its hosts were put on one clock when it was written
		return add("file "+c.File.Name, naming.File(c.File.Name), "unix", true)
	case c.File.Meta.Origin == profile.OriginUnknown && c.File.Meta.Epoch != "":
		return add("epoch "+c.File.Meta.Epoch, cmp.Or(r.Host, r.Name), "unknown", false)
	case c.File.Meta.Origin == profile.OriginUnknown:
		return add("file "+c.File.Name, r.Name, "unknown", false)
	case r.Proc != request.None && m.in.Requests.Procs[r.Proc].Host != "":
		return m.clockOfProc(r.Proc)
	case r.Host != "":
		return add("host "+r.Host, r.Host, "unix", true)
	case c.IsOfMachine(): // all of its processes are of one host
		return add("file "+c.File.Name, r.Name, "unix", false)
	default:
		return add("rank "+r.Name, r.Name, "unix", false)
	}
}

// indexKey returns the key of a clock of requests in the index of findClocks.
func indexKey(key request.ClockKey) string {
	if key.Host == "" {
		return "role " + key.Role.String()
	}
	return "host " + key.Host
}

// hostName names the host of a proc. If the spans do not name it, as those of gateways, it is the service,
// preceded by the role if the service has several roles without a host.
func (m *aligner) hostName(p int) string {
	proc := &m.in.Requests.Procs[p]
	if proc.Host != "" {
		return m.in.Requests.HostOf(p)
	}
	name := cmp.Or(proc.Service, proc.Label, "unknown host")
	for i := range m.in.Requests.Procs {
		if o := &m.in.Requests.Procs[i]; o.Host == "" && o.Role != proc.Role && o.Service == proc.Service {
			return proc.Role.String() + " " + name
		}
	}
	return name
}

// ClockOfProc returns the index of the clock of a proc of requests.
func (m *Alignment) ClockOfProc(requests *request.Set, p int) int {
	return m.ClockOf[requests.ClockKey(p)]
}

func (m *aligner) clockOfProc(p int) int { return m.ClockOfProc(m.in.Requests, p) }

// noteTimes sets the bounds of each clock's events.
func (m *aligner) noteTimes() {
	extend := func(c *HostClock, from, to trace.Time) {
		c.First, c.Last = order.Earlier(c.First, from), max(c.Last, to)
	}
	if m.in.Requests != nil {
		clocks := make([]*HostClock, len(m.in.Requests.Procs))
		for p := range clocks {
			clocks[p] = m.HostClocks[m.clockOfProc(p)]
		}
		s := m.in.Requests
		begin := func() *[]HostClock { // indexed by proc
			list := make([]HostClock, len(clocks))
			return &list
		}
		parallel.Fold(s.Len(), request.RowSize, begin, func(list *[]HostClock, from, to int) {
			for i := from; i < to; i++ {
				if p := s.ProcOf(i); p != request.None {
					extend(&(*list)[p], s.Row(i).Start, s.Row(i).End)
				}
			}
		}, func(list *[]HostClock) {
			for p, c := range *list {
				if c.Last != 0 {
					extend(clocks[p], c.First, c.Last)
				}
			}
		})
	}
	for _, r := range m.of.Tracks {
		for _, c := range r.Captures {
			extend(m.HostClocks[c.Clock], c.First, c.Last)
		}
	}
}

// Align puts all clocks on that of the first host: the router's, or else the first rank's. Captures and
// requests get times on that clock. Unwanted ranks are evidence for the clocks, too, and are left out only
// afterward.
func Align(in *inputs.Loaded, of *ranks.Assignment, opt Options) (*Alignment, error) {
	m, err := Relate(in, of, opt)
	if err != nil {
		return nil, err
	}
	for _, r := range of.Tracks {
		for _, c := range r.Captures {
			c.Time = m.HostClocks[c.Clock].toReference()
		}
	}
	of.LeaveOut(in.Requests)
	m.shiftRequests(in, of)
	in.AsRecorded()
	return m, nil
}

// Relate determines how the clocks relate, without moving any times.
func Relate(in *inputs.Loaded, of *ranks.Assignment, opt Options) (*Alignment, error) {
	m := &aligner{Alignment: &Alignment{}, in: in, of: of}
	err := m.relate(opt.Given, opt.Find)
	return m.Alignment, err
}

func (m *aligner) relate(given []Given, find bool) error {
	if find && m.in.Assembled != nil {
		m.in.Assembled.Unstep()
		m.in.Requests = m.in.Assembled.Set
		m.of.FindProcs(m.in.Requests)
	}
	m.findClocks()
	if len(m.HostClocks) == 0 { // only logs and metrics, whose times stay as they are
		_, err := m.fixed(given)
		return err
	}
	m.matchCollectives()
	if unknown := m.unknownHosts(); find && len(unknown) > 1 && m.joinHosts(unknown, m.solve(nil, find)) {
		m.matchCollectives() // joining changed the clocks of its ranks
	}
	fixed, err := m.fixed(given)
	if err != nil {
		return err
	}
	if find {
		fixed = append(fixed, m.exportsFixed(fixed)...)
	}
	m.Solution = m.solve(fixed, find)
	m.Matches = align.MatchRest(m.ranks, m.names, m.Matches, &m.Solution)
	for i, c := range m.HostClocks {
		c.Fit = m.Solution.Clocks[i]
	}
	for _, g := range given {
		i, _ := m.clockNamed(g.Host) // fixed has looked it up
		m.HostClocks[i].takeDrift(g)
	}
	m.placeUnknown()
	m.nameUnknown()
	m.reportConflicts()
	m.Reference = m.reference()
	return nil
}

// reference returns the index of the clock that all others are put on.
func (m *aligner) reference() int {
	if m.in.Requests != nil {
		return m.clockOfProc(0)
	}
	// Prefer a clock that shows Unix time to one with an unknown origin.
	for _, x := range m.of.Placed {
		if x.Trace.Clock == m.of.First.Clock {
			return x.Clock
		}
	}
	return m.of.First.Clock
}

// solve determines the offset and drift of every clock.
func (m *aligner) solve(fixed []align.Fixed, find bool) align.Solution {
	p := align.Problem{Clocks: len(m.HostClocks), Reference: m.reference(), Fixed: fixed}
	for _, c := range m.HostClocks {
		p.Claims = append(p.Claims, c.Domain == "unix")
	}
	if find {
		p.Ranks, p.Matches, p.Bounds = m.ranks, m.Matches, m.crossingBounds()
	}
	defer memory.Free(p.Bounds)
	return align.Solve(p)
}

// crossingBounds returns the bounds on offsets from requests and messages that crossed hosts, and from collectives of hosts.
func (m *aligner) crossingBounds() []align.Bound {
	bounds := append(align.TransferBounds(m.ranks, m.names, &m.Matches), align.MeetBounds(m.hosts.ranks, &m.hosts.Matches)...)
	if m.in.Requests == nil {
		return bounds
	}
	ofRequests := m.in.Requests.ClockBounds(m.clockOfProc)
	if len(bounds) == 0 {
		return ofRequests // avoids copying them: there are many
	}
	defer memory.Free(ofRequests)
	return append(bounds, ofRequests...)
}

// fixed turns the user's offsets into relations to the reference clock.
func (m *aligner) fixed(given []Given) ([]align.Fixed, error) {
	var fixed []align.Fixed
	for _, g := range given {
		i, err := m.clockNamed(g.Host)
		if err != nil {
			return nil, err
		}
		if i == m.reference() {
			return nil, fmt.Errorf("%w: %s is the reference for all others", errNoHost, g.Host)
		}
		if !g.HasOffset {
			continue
		}
		fixed = append(fixed, align.Fixed{A: m.reference(), B: i, At: int64(m.HostClocks[i].First), Offset: g.Offset, DriftPPB: g.DriftPPB, Why: trace.SyncGiven})
	}
	return fixed, nil
}

// takeDrift replaces the drift that was found with the user's. The offset holds at T0, the middle of its
// evidence, where it hardly depends on the drift.
func (c *HostClock) takeDrift(g Given) {
	if g.HasOffset {
		return
	}
	if c.Fit.Matches == 0 {
		c.Fit.T0 = int64(c.First)
	}
	c.drifts, c.Fit.DriftPPB, c.Fit.DriftBoundPPB = true, g.DriftPPB, 0
	if c.Fit.Bound != align.Unknown {
		c.Fit.Bound = c.Fit.BoundAtT0
	}
}

// clockNamed finds a clock by the name of its host, or by an unambiguous prefix of it.
func (m *aligner) clockNamed(host string) (int, error) {
	found := -1
	var all []string
	for i, c := range m.HostClocks {
		all = append(all, c.Label())
		if slices.Contains(c.Names, host) {
			return i, nil
		}
		if slices.ContainsFunc(c.Names, func(n string) bool { return strings.HasPrefix(n, host) }) {
			if found >= 0 {
				return 0, fmt.Errorf("%w: %s is ambiguous; there are %s", errNoHost, host, strings.Join(all, ", "))
			}
			found = i
		}
	}
	if all == nil {
		return 0, fmt.Errorf("%w: %s; logs and metrics keep their times", errNoHost, host)
	}
	if found < 0 {
		return 0, fmt.Errorf("%w: %s; there are %s", errNoHost, host, strings.Join(all, ", "))
	}
	return found, nil
}

// steppedShare: up to 1/steppedShare of the collectives may contradict a clock without a warning.
const steppedShare = 20

// reportConflicts reports evidence about clocks that was not followed. One-sided bounds from requests
// contradict nothing, and the clock's own line reports them.
func (m *aligner) reportConflicts() {
	for _, c := range m.Solution.Conflicts {
		if c.Kind == align.OneSided {
			continue
		}
		m.in.Diags.Add(trace.ClockConflict.Of(m.HostClocks[c.B].Label(), m.HostClocks[c.A].Label(), c))
	}
	for _, c := range m.HostClocks {
		if f := &c.Fit; f.By == align.ByCollectives && f.Trimmed*steppedShare > f.Matches {
			m.in.Diags.Add(trace.ClockStepped.Of(c.Label(), f.Trimmed, f.Matches))
		}
	}
	for i, f := range m.Solution.Ranks {
		if f.Apart {
			m.in.Diags.Add(trace.RankClockApart.Of(m.AlignOf[i].Name, trace.FormatDuration(f.Offset), f.Matches))
		}
	}
}

// RequestClocks returns how the clocks of the requests' hosts relate, for reports.
func (m *Alignment) RequestClocks(requests *request.Set) *request.HostClocks {
	fits := order.Each(m.HostClocks, func(c *HostClock) align.ClockFit { return c.Fit })
	return requests.NewHostClocks(func(p int) int { return m.ClockOfProc(requests, p) }, fits)
}

// shiftRequests moves the spans to the reference clock, and rebuilds the requests if any clock moves.
func (m *Alignment) shiftRequests(in *inputs.Loaded, of *ranks.Assignment) {
	moves := false
	for _, i := range m.ClockOf {
		moves = moves || m.HostClocks[i].Fit.Moves()
	}
	if !moves {
		return
	}
	in.Assembled.Move(func(proc int) func(trace.Time) trace.Time {
		return m.HostClocks[m.ClockOfProc(in.Requests, proc)].toReference()
	})
	in.Requests = in.Assembled.Set
	of.FindProcs(in.Requests)
}

// toReference returns the mapping from a clock to the reference clock.
func (c *HostClock) toReference() func(trace.Time) trace.Time {
	fit := c.Fit
	if !fit.Moves() {
		return func(t trace.Time) trace.Time { return t }
	}
	return func(t trace.Time) trace.Time { return trace.Time(fit.ToReference(int64(t))) }
}

// OfHost returns the mapping from a host's Unix times to the common clock. It is the identity if no ranks
// or requests are evidence for that host's clock.
func (m *Alignment) OfHost(host string) func(trace.Time) trace.Time {
	for _, c := range m.HostClocks {
		if host != "" && c.isKnown && slices.Contains(c.Names, host) {
			return c.toReference()
		}
	}
	return func(t trace.Time) trace.Time { return t }
}

// ToLocal returns what the clock showed when the reference showed t; 0 stays 0.
func (c *HostClock) ToLocal(t trace.Time) trace.Time {
	if t == 0 {
		return 0
	}
	return trace.Time(c.Fit.ToLocal(int64(t)))
}

// Bounds returns the first and the last instant of all inputs on the common clock.
func (m *Alignment) Bounds() (first, last trace.Time) {
	for i, c := range m.HostClocks {
		at := c.toReference()
		if from := at(c.First); i == 0 || from < first {
			first = from
		}
		last = max(last, at(c.Last))
	}
	return first, last
}
