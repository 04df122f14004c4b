package clocks

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/sgtrace/sgtrace/align"
	"github.com/sgtrace/sgtrace/convert/ranks"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/trace"
)

// Schema names the version of the clock report's format. Fields are only ever added.
const Schema = "sgtrace.clocks/v1"

// A Report says how the clocks of a merge were put on one.
type Report struct {
	Schema    string        `json:"schema"`
	Reference string        `json:"reference"`
	Clocks    []ClockRecord `json:"clocks"`
}

// A ClockRecord describes one clock. For local times t in ns,
//
//	reference = t - offset_ns - drift_ppb/1e9 * (t - t0_ns)
type ClockRecord struct {
	Host     string   `json:"host"`
	Names    []string `json:"names"`  // all names of the host in the inputs
	Ranks    []string `json:"ranks"`  // ranks recorded on this clock
	Domain   string   `json:"domain"` // "unix", "unknown"
	Why      string   `json:"why"`    // "reference", "given", "recorded", "matched", "assumed"
	By       string   `json:"by,omitempty"`
	Reason   string   `json:"reason,omitempty"` // of an assumed clock: why nothing is known
	T0       int64    `json:"t0_ns"`
	Offset   int64    `json:"offset_ns"` // this clock minus the reference, at t0
	DriftPPB int64    `json:"drift_ppb"`
	// DriftGiven says that the user gave the drift, but not the offset.
	DriftGiven bool `json:"drift_given,omitempty"`
	// Bound is the largest error of the offset within [FirstNs, LastNs]; -1 is unknown.
	Bound int64 `json:"bound_ns"`
	// Loose is the part of Bound caused by one direction of requests, whose shortest delays are far apart.
	Loose       int64 `json:"loose_ns,omitempty"`
	Matches     int   `json:"matches"`
	Trimmed     int   `json:"trimmed"`
	ResidualP95 int64 `json:"residual_p95_ns"`
	FirstNs     int64 `json:"first_ns"` // bounds of the events on this clock, as stamped
	LastNs      int64 `json:"last_ns"`
}

// Lopsided reports whether the bound is large only because requests in one direction are hardly ever as
// fast as they can be.
func (l *ClockRecord) Lopsided() bool {
	const matters = 1_000_000 // ns
	return 2*l.Loose >= l.Bound && l.Bound >= matters && l.By == align.ByRequests.String()
}

// Report describes how the clocks were aligned.
func (m *Alignment) Report(of *ranks.Assignment) *Report {
	r := &Report{Schema: Schema, Clocks: []ClockRecord{}}
	if len(m.HostClocks) == 0 {
		return r
	}
	r.Reference = m.HostClocks[m.Reference].Label()
	names := make([][]string, len(m.HostClocks))
	for _, rank := range of.Tracks {
		names[rank.Clock] = append(names[rank.Clock], strings.TrimSuffix(rank.Name, " ("+rank.Host+")"))
	}
	communities := sync.OnceValue(of.Communities)
	for i, c := range m.HostClocks {
		l := ClockRecord{Host: c.Label(), Names: c.Names, Ranks: append([]string{}, names[i]...), Domain: c.Domain, Why: c.Fit.Why.String(), By: c.Fit.By.String(),
			T0: c.Fit.T0, Offset: c.Fit.Offset, DriftPPB: c.Fit.DriftPPB, DriftGiven: c.drifts, Bound: c.Fit.Bound, Loose: c.Fit.Loose, Matches: c.Fit.Matches,
			Trimmed: c.Fit.Trimmed, ResidualP95: c.Fit.ResidualP95, FirstNs: int64(c.First), LastNs: int64(c.Last)}
		switch {
		case i == m.Reference:
			l.Why = "reference"
		case c.Fit.Why == trace.SyncAssumed && c.Fit.By == align.ByNothing:
			l.Reason = m.whyAssumed(of, i, communities)
		}
		r.Clocks = append(r.Clocks, l)
	}
	return r
}

// Most returns the largest absolute offset while events were stamped, in ns.
func (l *ClockRecord) Most() int64 {
	fit := align.ClockFit{T0: l.T0, Offset: l.Offset, DriftPPB: l.DriftPPB}
	from, to := l.FirstNs-fit.ToReference(l.FirstNs), l.LastNs-fit.ToReference(l.LastNs)
	return max(from, -from, to, -to)
}

// WriteJSON writes the report as one JSON object.
func (r *Report) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

// Of names the owner of the clock: the host, or the ranks if the host is unknown.
func (l *ClockRecord) Of() string {
	if len(l.Ranks) > 0 && l.Ranks[0] == l.Host {
		return abbreviate(l.Ranks)
	}
	return l.Host
}

// String describes a clock on one line, for people.
func (l *ClockRecord) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "clock of %s", l.Of())
	if len(l.Ranks) > 0 && l.Ranks[0] != l.Host {
		fmt.Fprintf(&b, " (%s)", abbreviate(l.Ranks))
	}
	if l.Why == "reference" {
		return b.String() + ": reference"
	}
	fmt.Fprintf(&b, ": %s", offsetText(l.shownOffset()))
	if l.DriftPPB != 0 {
		fmt.Fprintf(&b, ", drift %+.2f ppm", float64(l.DriftPPB)/1e3)
	}
	if l.DriftGiven {
		b.WriteString(" (given)")
	}
	b.WriteString(", " + l.Why)
	switch {
	case l.Reason != "":
		b.WriteString(" (" + l.Reason + ")")
	case l.By == "":
	case l.Why == trace.SyncAssumed.String():
		fmt.Fprintf(&b, " (related to other hosts by %s, but not to the reference)", l.By)
	case (l.By == align.ByRequests.String() || l.By == align.ByHosts.String()) && l.Offset == 0:
		fmt.Fprintf(&b, ": %s agree with its time, %d bounds", l.By, l.Matches)
	case l.By == align.ByRequests.String() || l.By == align.ByHosts.String():
		fmt.Fprintf(&b, " by %s, %d bounds", l.By, l.Matches)
	case l.By == align.ByKernels.String():
		fmt.Fprintf(&b, " by %d kernels that PyTorch's profiler saw, too", l.Matches)
	default:
		fmt.Fprintf(&b, " by %d %s", l.Matches, l.By)
	}
	if l.ResidualP95 > 0 {
		fmt.Fprintf(&b, ", residual p95 %s", trace.FormatDuration(l.ResidualP95))
	}
	switch {
	case l.Bound == align.Unknown:
		b.WriteString(", bound unknown")
	case l.Bound > 0:
		fmt.Fprintf(&b, ", within %s", trace.FormatDuration(l.Bound))
		if l.Lopsided() {
			b.WriteString(", as few requests are fast in one direction")
		}
	}
	return b.String()
}

// shownOffset returns the offset, in ns, without the digits that its bound makes meaningless; the JSON report has them.
func (l *ClockRecord) shownOffset() int64 {
	const finer = 100 // than the bound
	unit := int64(1)
	for unit*10*finer <= l.Bound {
		unit *= 10
	}
	return cmp.Or(int64(time.Duration(l.Offset).Round(time.Duration(unit))), l.Offset)
}

// offsetText formats an offset in a readable unit.
func offsetText(ns int64) string {
	size := max(ns, -ns)
	text := strconv.FormatFloat(float64(size)/1e3, 'f', -1, 64) + "us"
	switch {
	case ns == 0:
		return "not moved"
	case size >= 10_000_000_000:
		text = time.Duration(size).String()
	case size >= 1_000_000:
		text = strconv.FormatFloat(float64(size)/1e6, 'f', -1, 64) + "ms"
	}
	if ns < 0 {
		return text + " behind"
	}
	return text + " ahead"
}

// abbreviate lists a few of many names.
func abbreviate(names []string) string {
	const most = 4
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s, ... %s, %d ranks", strings.Join(names[:2], ", "), names[len(names)-1], len(names))
}

// exportsFixed returns the relations between the clocks of exports and traces, except for clocks that the
// user has given.
func (m *aligner) exportsFixed(given []align.Fixed) []align.Fixed {
	var fixed []align.Fixed
	known := order.Set(order.Each(given, func(g align.Fixed) int { return g.B }))
	relate := func(a, b int, at trace.Time, offset int64, s *ranks.Shift, drift int64) {
		if !known[b] && a != b {
			known[b] = true
			fixed = append(fixed, align.Fixed{A: a, B: b, At: int64(at), Offset: offset, DriftPPB: drift, Bound: s.Bound,
				Why: trace.SyncMatched, By: align.ByKernels, Matches: s.Matches})
		}
	}
	for _, r := range m.of.Tracks {
		for _, c := range r.Captures {
			if x := m.of.ExportClock(c); x != nil {
				relate(x.Trace.Clock, c.Clock, x.Shift.At+trace.Time(x.Shift.Offset), x.Shift.Offset, &x.Shift, x.Shift.DriftPPB)
			}
		}
	}
	for _, x := range m.of.Placed {
		relate(x.Clock, x.Trace.Clock, x.Shift.At, -x.Shift.Offset, &x.Shift, -x.Shift.DriftPPB)
	}
	return fixed
}

// whyAssumed says why there is no evidence about a clock; "" if that is obvious.
func (m *Alignment) whyAssumed(in *ranks.Assignment, clock int, communities func() map[*ranks.Track]string) string {
	var mine, others []*ranks.Track
	for _, r := range in.Tracks {
		switch {
		case r.Clock == clock:
			mine = append(mine, r)
		case m.Solution.Clocks[r.Clock].Component == m.Solution.Clocks[m.Reference].Component:
			others = append(others, r)
		}
	}
	alone := func(r *ranks.Track) bool {
		return !slices.ContainsFunc(r.Captures, func(c *ranks.Capture) bool { return c.File.Collectives.Len() > 0 })
	}
	mine, others = slices.DeleteFunc(mine, alone), slices.DeleteFunc(others, alone)
	if len(mine) == 0 || len(others) == 0 {
		return m.whyNoRequests(clock)
	}
	of, theirs := communities(), map[string]bool{}
	for _, r := range others {
		theirs[of[r]] = true
	}
	apart, called := !theirs[""], true
	for _, r := range mine {
		apart = apart && of[r] != "" && !theirs[of[r]]
		key := r.RankKey()
		called = called && (key == trace.NoRank || slices.ContainsFunc(others, func(o *ranks.Track) bool { return o.RankKey() == key }))
	}
	switch {
	case apart:
		return "its ranks share no communicator of NCCL with the others"
	case called:
		return "its ranks are called like others and taken for those of another server, which share no collectives with them"
	}
	return "its collectives fit those of the others in no way"
}

// whyNoRequests says why requests are no evidence about a clock; "" if none crossed to it.
func (m *Alignment) whyNoRequests(clock int) string {
	for _, c := range m.Solution.Conflicts {
		if (c.A == clock || c.B == clock) && c.Kind >= align.DividedRequests {
			return c.String()
		}
	}
	return ""
}
