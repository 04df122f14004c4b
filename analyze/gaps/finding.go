package gaps

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/gpu"
	"github.com/sgtrace/sgtrace/analyze/host"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/words"
)

// A cause is worth a finding from these shares on: of the time of devices (less will do for a thing
// that no server needs), and of the time for which the host was late.
const (
	muchOfTime = 1.0 / 20
	ofThing    = 1.0 / 50
	muchOfLate = 1.0 / 5
)

// A suspect may explain most of why the host was late. It consists of some rows of a table.
type suspect struct {
	text   string // continues "41 % of the wait for the host"
	rank   suspicion
	time   int64 // ns
	table  string
	rows   []*Cause // the longest first
	likely bool     // not certain
}

// A suspicion ranks suspects by how much they explain, the most first. It decides between suspects of
// about the same time.
type suspicion uint8

const (
	thing      suspicion = iota // a call, garbage collection, a lock, another thread
	standstill                  // the hosts of most ranks stand still at once
	drain                       // a call that let the device run dry
	pauses                      // nothing is recorded for long
	somewhere                   // in Python or operators
	frameOf                     // everything that one Python function does
)

// aboutAll is the share of the longest suspect's time from which on a suspect takes about as long.
const aboutAll = 2.0 / 3

// wait returns how long devices waited for the host, in ns, and in how many gaps.
func (g *Gaps) wait() (ns int64, gaps int) {
	for i := range g.Causes {
		if c := &g.Causes[i]; c.counts() {
			gaps += int(c.Gaps)
			ns = distribution.AddTimes(ns, c.Time)
		}
	}
	return ns, gaps
}

// judge returns a check of whether there are gaps to judge.
func (g *Gaps) judge(what string) finding.Check {
	wait, gaps := g.wait()
	check := finding.Check{What: what, Of: "gap", N: gaps, Needed: 1} // shares are exact
	if wait == 0 {
		check.Reason = "no GPU waits for its host"
	}
	return check
}

// ColdSubkind is the subkind of findings about hosts that load code, compile, or record CUDA graphs.
const ColdSubkind = "cold host cause"

// Findings returns what the host did while devices waited for it. length is the time of all devices, in
// ns.
func (g *Gaps) Findings(length int64) ([]finding.Finding, finding.Check) {
	wait, _ := g.wait()
	check, s := g.judge("what hosts do while GPUs wait"), g.worst()
	switch {
	case wait > 0 && len(s.rows) == 0:
		check.Reason = "nothing was recorded while GPUs waited for their hosts"
	case wait > 0 && !g.Recorded.Code() && g.saw == (host.RecordedThreads{}) && !(s.rank == thing && s.rows[0].Reason == gpu.HostWork || s.rank == pauses || s.rank == standstill):
		// Calls explain only what they do themselves, and pauses that there are none; if they are the reason, the finding about idle time names them.
		check.Reason = "no operators, Python functions or ranges were recorded"
	}
	if check.State() != finding.LookedAt {
		return nil, check
	}
	if !s.stands(length, wait) {
		return nil, check
	}
	share := distribution.Fraction(s.time, length)
	f := finding.Finding{Subkind: "host cause", Cost: share,
		Text:   fmt.Sprintf("%.0f %% of the wait for the host %s", 100*distribution.Fraction(s.time, wait), s.text),
		Metric: finding.Metric{Name: "host wait by cause", Unit: table.Share, Before: math.NaN(), After: share}}
	if s.likely {
		f.Confidence = finding.Likely
	}
	if s.rows[0].Reason.Cold() {
		f.Subkind = ColdSubkind
	}
	f.Evidence = append(s.evidence(g.export), finding.Sentence("%s for the host %.0f %% of the time", g.theyWait(), 100*distribution.Fraction(wait, length)))
	if s.rank == pauses || s.likely {
		for _, text := range g.Recorded.Missing(&g.saw, g.export) {
			f.Evidence = append(f.Evidence, finding.Sentence("%s", text))
		}
	}
	if s.rank == standstill {
		f.Evidence = append(f.Evidence, finding.Sentence("hosts that stop at the same time wait for something they share (storage, a process that feeds them, a rank), or do the same thing in the same step, such as garbage collection"))
	}
	for _, e := range [...]finding.Evidence{g.pauseEvidence(&s, wait), g.longestOf(&s)} {
		if e.Text != "" {
			f.Evidence = append(f.Evidence, e)
		}
	}
	return []finding.Finding{f}, check
}

// stands reports whether a suspect is worth a finding.
func (s *suspect) stands(length, wait int64) bool {
	least := muchOfTime
	if s.rank == thing || s.rank == standstill {
		least = ofThing
	}
	return distribution.Fraction(s.time, length) >= least && distribution.Fraction(s.time, wait) >= muchOfLate
}

// counts reports whether a finding may be about a cause: the host was late, and there was something to
// launch. A host that waits for unrecorded work is not late, since the device was busy; nor is one that
// waits for other ranks. Between steps there may have been nothing to launch, unless the host did
// something that it does not do while it waits for requests, such as waiting for a lock that another
// thread keeps while it works.
func (c *Cause) counts() bool {
	if strings.Contains(c.Call, "ProfilerSt") { // cudaProfilerStop: nobody profiles what serves
		return false
	}
	busy := !c.Activity.Idle() || c.Activity == host.Locked && c.Other != ""
	return c.Activity != host.OnDevice && c.Reason != gpu.Unseen && c.Reason != gpu.Meeting && c.Reason != gpu.ProfilerStart && (c.Reason != gpu.BetweenSteps || c.suspicion() == thing && busy)
}

// suspicion returns how much a cause explains.
func (c *Cause) suspicion() suspicion {
	switch c.Activity {
	case host.InPython, host.InOperator, host.InRange, host.InNative, host.Launching:
		return somewhere
	}
	return thing
}

// theyWait begins a sentence about the devices.
func (g *Gaps) theyWait() string {
	if g.several {
		return "the GPUs wait"
	}
	return "the GPU waits"
}

// worst returns the suspect that explains most among those of about the longest time.
func (g *Gaps) worst() suspect {
	list := append(g.drains(), g.pausing(), g.standing(), g.locking())
	list = append(list, g.places()...)
	most := int64(0)
	for i := range list {
		most = max(most, list[i].time)
	}
	var best suspect
	for i := range list {
		s := &list[i]
		if float64(s.time) < aboutAll*float64(most) {
			continue
		}
		if best.time == 0 || s.rank < best.rank || s.rank == best.rank && s.time > best.time {
			best = *s
		}
	}
	return best
}

// drains are the calls that let devices run dry.
func (g *Gaps) drains() (list []suspect) {
	for i := range g.Drained {
		if c := &g.Drained[i]; c.Where() != "" {
			list = append(list, suspect{text: "follows " + c.Where(), rank: drain, time: c.Time, table: "gaps.syncs", rows: []*Cause{c}})
		}
	}
	return list
}

// places are single causes, their sums by Python function, and all that a data loader did.
func (g *Gaps) places() (list []suspect) {
	whole := map[string]int{}
	for i := range g.Causes {
		c := &g.Causes[i]
		if !c.counts() || c.Activity == host.NotRecorded || c.Where() == "" && c.Activity != host.OffCPU {
			continue
		}
		rank := c.suspicion()
		list = append(list, suspect{text: c.sentence(), rank: rank, time: c.Time, table: "gaps", rows: []*Cause{c}})
		in, all := c.Frame, suspect{text: "is in " + host.Short(c.Frame), rank: frameOf, table: "gaps"}
		switch {
		case host.IsLoader(c.Range) && in == "":
			in, all.text, all.rank = c.Range, loading(c.Range), thing
		case in == "" || rank == thing:
			continue
		}
		at, ok := whole[in]
		if !ok {
			at = len(list)
			whole[in] = at
			list = append(list, all)
		}
		list[at].time = distribution.AddTimes(list[at].time, c.Time)
		list[at].rows = append(list[at].rows, c)
	}
	return list
}

// loading says that a host is in the annotation of a data loader.
func loading(loader string) string {
	if host.WithoutWorkers(loader) {
		return "is the data loader, which has no workers and so loads in the launching thread: " + loader
	}
	return "is waiting for the data loader, which has workers: " + loader
}

// sentence continues "41 % of the wait for the host".
func (c *Cause) sentence() string {
	switch c.Activity {
	case host.CopyingPageable:
		return "is a copy of pageable memory: " + c.Where()
	case host.OtherThread:
		if c.Frame == "" {
			return "is waiting for another thread: " + c.Where()
		}
		fallthrough
	case host.InPython:
		if c.Function == "" {
			return "is Python in " + c.Where()
		}
	case host.InNative:
		if c.Function == "" {
			return "is native code in " + c.Where()
		}
	case host.OffCPU:
		return strings.TrimSuffix("is the launching thread off the CPU: it was preempted, or waits in a call that was not recorded; it is in "+c.Where(), "; it is in ")
	case host.Collecting:
		if c.Frame == "" {
			return "is garbage collection"
		}
		return "is garbage collection in " + host.Short(c.Frame)
	case host.Locked:
		if c.Other != "" {
			return "is waiting for another thread: " + c.Where()
		}
		return "is waiting for a lock: " + c.Where()
	case host.Sleeping:
		return "is waiting: " + c.Where()
	case host.LoadingData:
		return loading(c.Range)
	}
	return "is " + c.Where()
}

// maxEvidence is how many rows of a suspect are shown as evidence.
const maxEvidence = 2

// evidence names the largest rows of a suspect. export means that some rows may come from an export of
// Nsight Systems.
func (s *suspect) evidence(export bool) (list []finding.Evidence) {
	for _, c := range s.rows[:min(len(s.rows), maxEvidence)] {
		text := fmt.Sprintf("%s: %s in %s", cmp.Or(c.Where(), c.Activity.String()), words.Nearly(c.Time), words.Counted(int(c.Gaps), "gap"))
		if c.Gaps > 1 {
			text += fmt.Sprintf(", the longest %s", words.Nearly(c.LongestPart))
		}
		if c.Samples > 0 {
			text += ", by " + words.Counted(int(c.Samples), "sample")
		}
		row := finding.Row("call", c.Call, "operator", c.Operator, "function", c.Function, "frame", c.Frame, "range", c.Range, "other_thread", c.Other)
		if s.table == "gaps" {
			row = append(row, finding.Row("idle", gpu.ReasonWords[c.Reason], "did", c.Activity.String(), "pause", c.pauses())...)
		}
		e := finding.Sentence("%s", text)
		if !export || c.Call == "" || c.Frame != "" { // otherwise the report divides the row by calling function
			e = e.In(s.table, row, "time_ns", float64(c.Time))
		}
		list = append(list, e)
	}
	return list
}

// longestOf returns the length of the longest gap with a cause of the suspect.
func (g *Gaps) longestOf(s *suspect) finding.Evidence {
	for i := range g.Longest {
		l := &g.Longest[i]
		if !slices.ContainsFunc(s.rows, func(c *Cause) bool {
			return c.Frame == l.Frame && c.Range == l.Range && c.Call == l.Call && c.Other == l.Other
		}) {
			continue
		}
		text := "longest such gap: " + words.Nearly(l.Gap.Length())
		if g.several {
			text += " on " + l.Rank
		}
		return finding.Sentence("%s", text)
	}
	return finding.Evidence{}
}
