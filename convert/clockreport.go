package convert

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/sgtrace/sgtrace/internal/align"
	"github.com/sgtrace/sgtrace/trace"
)

// ClockSchema names the form of a clock report. Fields are only ever added.
const ClockSchema = "sgtrace.clocks/v1"

// A ClockReport says how the clocks of a merge were put on one.
type ClockReport struct {
	Schema    string      `json:"schema"`
	Reference string      `json:"reference"`
	Clocks    []ClockLine `json:"clocks"`
}

// A ClockLine is one clock. With local times t in ns,
//
//	reference = t - offset_ns - drift_ppb/1e9 * (t - t0_ns)
type ClockLine struct {
	Host     string   `json:"host"`
	Names    []string `json:"names"`  // all that inputs call the host by
	Ranks    []string `json:"ranks"`  // PyTorch traces on this clock
	Domain   string   `json:"domain"` // "unix", "unknown"
	Why      string   `json:"why"`    // "reference", "given", "recorded", "matched", "assumed"
	By       string   `json:"by,omitempty"`
	Reason   string   `json:"reason,omitempty"` // why nothing is known, of an assumed clock
	T0       int64    `json:"t0_ns"`
	Offset   int64    `json:"offset_ns"` // this clock minus the reference, at t0
	DriftPPB int64    `json:"drift_ppb"`
	// DriftGiven tells that the user gave the drift, and only that.
	DriftGiven bool `json:"drift_given,omitempty"`
	// Bound is how far the offset may be off within [FirstNs, LastNs]; -1 is
	// unknown.
	Bound       int64 `json:"bound_ns"`
	Matches     int   `json:"matches"`
	Trimmed     int   `json:"trimmed"`
	ResidualP95 int64 `json:"residual_p95_ns"`
	FirstNs     int64 `json:"first_ns"` // bounds of the events on this clock, as stamped
	LastNs      int64 `json:"last_ns"`
}

// Clocks reports how the clocks were aligned.
func (m *Clocks) ClockReport() *ClockReport {
	r := &ClockReport{Schema: ClockSchema, Reference: m.hostClocks[m.reference()].label()}
	ranks := make([][]string, len(m.hostClocks))
	for _, rank := range m.tracks {
		ranks[rank.clock] = append(ranks[rank.clock], strings.TrimSuffix(rank.name, " ("+rank.host+")"))
	}
	communities := sync.OnceValue(m.communities)
	for i, c := range m.hostClocks {
		l := ClockLine{Host: c.label(), Names: c.names, Ranks: append([]string{}, ranks[i]...), Domain: c.domain, Why: c.fit.Why.String(), By: c.fit.By.String(),
			T0: c.fit.T0, Offset: c.fit.Offset, DriftPPB: c.fit.DriftPPB, DriftGiven: c.drifts, Bound: c.fit.Bound, Matches: c.fit.Matches,
			Trimmed: c.fit.Trimmed, ResidualP95: c.fit.ResidualP95, FirstNs: int64(c.first), LastNs: int64(c.last)}
		switch {
		case i == m.reference():
			l.Why = "reference"
		case c.fit.Why == trace.SyncAssumed && c.fit.By == align.ByNothing:
			l.Reason = m.whyAssumed(i, communities)
		}
		r.Clocks = append(r.Clocks, l)
	}
	return r
}

// WriteJSON writes the report as one JSON object.
func (r *ClockReport) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

// String describes a clock on one line, for people.
func (l *ClockLine) String() string {
	var b strings.Builder
	switch {
	case len(l.Ranks) == 0:
		fmt.Fprintf(&b, "clock of %s", l.Host)
	case l.Ranks[0] == l.Host: // the host is unknown
		fmt.Fprintf(&b, "clock of %s", abbreviate(l.Ranks))
	default:
		fmt.Fprintf(&b, "clock of %s (%s)", l.Host, abbreviate(l.Ranks))
	}
	if l.Why == "reference" {
		return b.String() + ": reference"
	}
	fmt.Fprintf(&b, ": %s", offsetText(l.Offset))
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
	case l.By == align.ByRequests.String() && l.Offset == 0:
		fmt.Fprintf(&b, ": requests agree with its time, %d bounds", l.Matches)
	case l.By == align.ByRequests.String():
		fmt.Fprintf(&b, " by requests, %d bounds", l.Matches)
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
	}
	return b.String()
}

// offsetText prints an offset to the nanosecond, in a unit that people can read.
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

// addClocks adds the clocks and how they relate to the trace.
func (m *merging) addClocks() {
	m.clockIDs = make([]trace.ClockID, len(m.hostClocks))
	for i, c := range m.hostClocks {
		m.clockIDs[i] = m.Clock(trace.Clock{Domain: m.Intern(c.domain), Host: m.Intern(c.label())})
	}
	reference := m.clockIDs[m.reference()]
	report := m.ClockReport()
	for i, c := range m.hostClocks {
		m.Sync(c.fit.Sync(reference, m.clockIDs[i]))
		m.Attribute("sgtrace.clock."+c.label(), strings.TrimPrefix(report.Clocks[i].String(), "clock of "))
	}
}
