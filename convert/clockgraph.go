package convert

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/internal/align"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// A hostClock is the clock of one host, by which all of its processes stamp
// their events; or that of inputs that do not tell their host.
type hostClock struct {
	names   []string // host as traces and dumps call it; the first is printed
	drifts  bool     // the user says how fast
	domain  string   // "unix", or "unknown" where times count from something unknown
	fit     align.ClockFit
	first   trace.Time // bounds of its events, as stamped
	last    trace.Time
	isKnown bool // names a host, not a file
}

// label is what people call the clock by.
func (c *hostClock) label() string { return c.names[0] }

// A GivenClock is what the user says about the clock of a host. With an offset, that
// is all there is to it; a drift alone leaves the offset to be found out.
type GivenClock struct {
	Host      string
	HasOffset bool
	Offset    int64 // ns that it is ahead of the reference when its events begin
	DriftPPB  int64 // how fast that grows
}

// ErrNoHost says that the user named a host that no input is from.
var ErrNoHost = errors.New("no such host")

// findClocks gives every host one clock. Files that do not tell their host get
// one for each rank, until their offsets tell which of them are of one host.
func (m *Clocks) findClocks() {
	m.hostClocks, m.clockOf = nil, map[string]int{}
	index := map[string]int{}
	add := func(key, name, domain string, known bool) int {
		i, ok := index[key]
		if !ok {
			i = len(m.hostClocks)
			index[key] = i
			c := &hostClock{names: []string{name}, domain: domain, isKnown: known}
			if host, ok := strings.CutPrefix(key, "host "); ok && host != "" && host != name {
				c.names = append(c.names, host)
			}
			m.hostClocks = append(m.hostClocks, c)
		}
		return i
	}
	if m.Requests != nil {
		for p := range m.Requests.Procs {
			proc := &m.Requests.Procs[p]
			m.clockOf[proc.Host] = add("host "+proc.Host, hostName(proc), "unix", true)
		}
	}
	// A rank that is a process of the dump ties the names of their hosts together.
	for _, r := range m.tracks {
		if r.proc != request.None && r.host != "" && m.Requests.Procs[r.proc].Host != "" {
			i := m.clockOfProc(r.proc)
			if _, ok := index["host "+r.host]; !ok {
				index["host "+r.host] = i
				m.hostClocks[i].names = append([]string{r.host}, m.hostClocks[i].names...)
			}
		}
	}
	for _, r := range m.tracks {
		for _, c := range r.captures {
			synced := m.exportClock(c)
			switch {
			case synced != nil:
				c.clock = add("session "+c.file.Name, synced.name, "unix", true)
			case c.file.Meta.Parts != nil: // its hosts were put on one clock when it was written
				c.clock = add("file "+c.file.Name, stem(c.file.Name), "unix", true)
			case c.file.Meta.Origin == profile.OriginUnknown:
				c.clock = add("file "+c.file.Name, r.name, "unknown", false)
			case r.proc != request.None && m.Requests.Procs[r.proc].Host != "":
				c.clock = m.clockOfProc(r.proc)
			case r.host != "":
				c.clock = add("host "+r.host, r.host, "unix", true)
			case c.isOfMachine(): // all of its processes are of one host
				c.clock = add("file "+c.file.Name, r.name, "unix", false)
			default:
				c.clock = add("rank "+r.name, r.name, "unix", false)
			}
		}
		r.clock = r.captures[0].clock
	}
	for _, x := range m.placed {
		x.clock = add("host "+x.host, x.host, "unix", true)
	}
	m.noteTimes()
}

// hostName is what people call the host of proc by: the beginning of its id, or
// the service where the spans do not tell the host, as those of gateways.
func hostName(proc *request.Proc) string {
	if proc.Host == "" {
		return cmp.Or(proc.Service, proc.Label, "unknown host")
	}
	return proc.ShortHost()
}

// clockOfProc returns the index of the clock of a proc of Requests.
func (m *Clocks) clockOfProc(p int) int { return m.clockOf[m.Requests.Procs[p].Host] }

// noteTimes notes which times each clock was read at.
func (m *Clocks) noteTimes() {
	extend := func(c *hostClock, from, to trace.Time) {
		if c.first == 0 || from < c.first {
			c.first = from
		}
		c.last = max(c.last, to)
	}
	if m.Requests != nil {
		for i := range m.Dump.Len() {
			if p := m.Requests.ProcOf(i); p != request.None {
				extend(m.hostClocks[m.clockOfProc(p)], m.Dump.Span(i).Start, m.Dump.Span(i).End)
			}
		}
	}
	for _, r := range m.tracks {
		for _, c := range r.captures {
			extend(m.hostClocks[c.clock], c.first, c.last)
		}
	}
}

// Align puts all clocks on that of the first host: that of the router, else of the
// first rank. What is given goes before what can be found out. With find false
// nothing is found out, and only what is given moves.
func (m *Clocks) Align(given []GivenClock, find bool) error {
	if err := m.relateClocks(given, find); err != nil {
		return err
	}
	for _, r := range m.tracks {
		for _, c := range r.captures {
			c.time = m.hostClocks[c.clock].toReference()
		}
	}
	m.leaveOutRanks()
	m.shiftRequests()
	m.AsRecorded()
	return nil
}

// relateClocks finds out how the clocks relate, and moves nothing.
func (m *Clocks) relateClocks(given []GivenClock, find bool) error {
	m.findClocks()
	m.matchCollectives()
	if unknown := m.unknownHosts(); find && len(unknown) > 1 && m.joinHosts(unknown, m.solve(nil, find)) {
		m.matchCollectives() // its ranks say which clock they have
	}
	fixed, err := m.fixed(given)
	if err != nil {
		return err
	}
	if find {
		fixed = append(fixed, m.exportsFixed(fixed)...)
	}
	m.solution = m.solve(fixed, find)
	for i, c := range m.hostClocks {
		c.fit = m.solution.Clocks[i]
	}
	for _, g := range given {
		i, _ := m.clockNamed(g.Host) // fixed has looked it up
		m.hostClocks[i].takeDrift(g)
	}
	m.keepAgreeing()
	m.placeUnknown()
	m.nameUnknown()
	m.reportConflicts()
	return nil
}

// reference returns the clock that all others are put on.
func (m *Clocks) reference() int {
	if m.Requests != nil {
		return m.clockOfProc(0)
	}
	// A clock that shows Unix time is better than one that counts from something.
	for _, x := range m.placed {
		if x.trace.clock == m.first.clock {
			return x.clock
		}
	}
	return m.first.clock
}

// solve relates the clocks.
func (m *Clocks) solve(fixed []align.Fixed, find bool) align.Solution {
	p := align.Problem{Clocks: len(m.hostClocks), Reference: m.reference(), Fixed: fixed}
	if find {
		p.Ranks, p.Matches = m.alignRanks, m.matches
		m.bounds = m.crossingBounds()
		p.Bounds = m.bounds
	}
	return align.Solve(p)
}

// crossingBounds returns what requests and messages that crossed hosts say.
func (m *Clocks) crossingBounds() []align.Bound {
	bounds := align.TransferBounds(m.alignRanks, m.alignNames, m.matches)
	if m.Requests != nil {
		bounds = append(bounds, m.Requests.ClockBounds(m.clockOfProc)...)
	}
	return bounds
}

// keepAgreeing leaves a clock where it is if what requests say about it agrees with
// the Unix time that it claims to show: the middle of an interval of milliseconds
// is no better than a clock that NTP keeps.
func (m *Clocks) keepAgreeing() {
	for i, c := range m.hostClocks {
		f := &c.fit
		if f.By != align.ByRequests || f.Why != trace.SyncMatched || c.domain != "unix" || f.DriftPPB != 0 || max(f.Offset, -f.Offset) > f.Bound ||
			slices.ContainsFunc(m.alignRanks, func(r align.Rank) bool { return r.Clock == i }) {
			continue
		}
		before, found := m.violated(m.bounds), *f
		f.Bound += max(f.Offset, -f.Offset)
		f.BoundAtT0 += max(f.Offset, -f.Offset)
		if f.Offset = 0; m.violated(m.bounds) > before {
			*f = found
		}
	}
}

// violated counts the bounds that the clocks contradict as they are.
func (m *Clocks) violated(bounds []align.Bound) (n int) {
	for _, b := range bounds {
		// At the reference time of the instant, B minus A.
		at := m.hostClocks[b.B].fit.ToReference(b.At)
		shown := func(i int) int64 { return int64(m.hostClocks[i].toLocal(trace.Time(at))) }
		if offset := shown(b.B) - shown(b.A); b.Lo != align.NoLo && offset < b.Lo || b.Hi != align.NoHi && offset > b.Hi {
			n++
		}
	}
	return n
}

// fixed turns what the user says about clocks into relations to the reference.
func (m *Clocks) fixed(given []GivenClock) ([]align.Fixed, error) {
	var fixed []align.Fixed
	for _, g := range given {
		i, err := m.clockNamed(g.Host)
		if err != nil {
			return nil, err
		}
		if i == m.reference() {
			return nil, fmt.Errorf("%w: %s is the reference, which all others are put on", ErrNoHost, g.Host)
		}
		if !g.HasOffset {
			continue
		}
		fixed = append(fixed, align.Fixed{A: m.reference(), B: i, At: int64(m.hostClocks[i].first), Offset: g.Offset, DriftPPB: g.DriftPPB, Why: trace.SyncGiven})
	}
	return fixed, nil
}

// takeDrift puts a given drift in the place of the one found. The offset holds at
// T0, the middle of what it was found from, and is nearly independent of the drift
// there.
func (c *hostClock) takeDrift(g GivenClock) {
	if g.HasOffset {
		return
	}
	if c.fit.Matches == 0 {
		c.fit.T0 = int64(c.first)
	}
	c.drifts, c.fit.DriftPPB, c.fit.DriftBoundPPB = true, g.DriftPPB, 0
	if c.fit.Bound != align.Unknown {
		c.fit.Bound = c.fit.BoundAtT0
	}
}

// clockNamed finds a clock by the name of its host, or the beginning of one.
func (m *Clocks) clockNamed(host string) (int, error) {
	found := -1
	var all []string
	for i, c := range m.hostClocks {
		all = append(all, c.label())
		if slices.Contains(c.names, host) {
			return i, nil
		}
		if slices.ContainsFunc(c.names, func(n string) bool { return strings.HasPrefix(n, host) }) {
			if found >= 0 {
				return 0, fmt.Errorf("%w: %s is ambiguous; there are %s", ErrNoHost, host, strings.Join(all, ", "))
			}
			found = i
		}
	}
	if found < 0 {
		return 0, fmt.Errorf("%w: %s; there are %s", ErrNoHost, host, strings.Join(all, ", "))
	}
	return found, nil
}

// steppedShare is which share of the collectives, 1 in so many, may contradict a
// clock without a word.
const steppedShare = 20

// reportConflicts reports evidence about clocks that was not followed.
func (m *Clocks) reportConflicts() {
	for _, c := range m.solution.Conflicts {
		m.Diags.Add(trace.Diag{Severity: trace.Notice, Code: "clock-conflict", Pos: trace.Pos{File: m.hostClocks[c.B].label(), Offset: -1},
			Msg: fmt.Sprintf("against the clock of %s, %s", m.hostClocks[c.A].label(), c)})
	}
	for _, c := range m.hostClocks {
		if f := &c.fit; f.By == align.ByCollectives && f.Trimmed*steppedShare > f.Matches {
			m.Diags.Add(trace.Diag{Severity: trace.Notice, Code: "clock-stepped", Pos: trace.Pos{File: c.label(), Offset: -1},
				Msg: fmt.Sprintf("%d of %d collectives end elsewhere than this clock says; it may have been set during the capture", f.Trimmed, f.Matches)})
		}
	}
	for i, f := range m.solution.Ranks {
		if f.Apart {
			m.Diags.Add(trace.Diag{Severity: trace.Notice, Code: "rank-clock-apart", Pos: trace.Pos{File: m.alignOf[i].name, Offset: -1},
				Msg: fmt.Sprintf("its collectives end %s off those of its peers, in the median of %d; it was not moved", trace.FormatDuration(f.Offset), f.Matches)})
		}
	}
}

// shiftRequests moves the spans to the reference clock and rebuilds the requests
// if that changes anything.
func (m *Clocks) shiftRequests() {
	moves := false
	for _, i := range m.clockOf {
		moves = moves || m.hostClocks[i].fit.Offset != 0 || m.hostClocks[i].fit.DriftPPB != 0
	}
	if !moves {
		return
	}
	m.Assembled.Move(func(proc int) func(trace.Time) trace.Time { return m.hostClocks[m.clockOfProc(proc)].toReference() })
	m.Requests = m.Assembled.Set
	m.findProcs()
}

// toReference returns the mapping from a clock to the reference clock.
func (c *hostClock) toReference() func(trace.Time) trace.Time {
	fit := c.fit
	switch {
	case fit.Offset == 0 && fit.DriftPPB == 0:
		return func(t trace.Time) trace.Time { return t }
	case fit.DriftPPB == 0:
		return func(t trace.Time) trace.Time { return t - trace.Time(fit.Offset) }
	}
	return func(t trace.Time) trace.Time { return trace.Time(fit.ToReference(int64(t))) }
}

// toLocal returns what the clock showed when the reference showed t, or 0 for 0.
func (c *hostClock) toLocal(t trace.Time) trace.Time {
	if t == 0 {
		return 0
	}
	// The inverse of a line that is nearly the identity: one step of correction
	// leaves the square of the drift.
	local := t + trace.Time(c.fit.Offset)
	return local + t - trace.Time(c.fit.ToReference(int64(local)))
}

// Bounds returns the first and the last instant of all inputs on the common
// clock.
func (m *Clocks) Bounds() (first, last trace.Time) {
	for i, c := range m.hostClocks {
		at := c.toReference()
		if from := at(c.first); i == 0 || from < first {
			first = from
		}
		last = max(last, at(c.last))
	}
	return first, last
}
