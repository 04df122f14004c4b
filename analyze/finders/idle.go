package finders

import (
	"fmt"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/gaps"
	"github.com/sgtrace/sgtrace/analyze/gpu"
	"github.com/sgtrace/sgtrace/analyze/gpuloss"
)

// idleTime finds that devices are idle, in each run.
func (m *Measured) idleTime() ([]finding.Finding, finding.Check) {
	return m.GPUs.EachRun(func(g *gpu.GPUs) ([]finding.Finding, finding.Check) { return gpuloss.Idle(g, m.Gaps.Paused) })
}

// idleGPUs says in one sentence that devices wait for the host, and what the host does.
func idleGPUs(m *Measured) ([]finding.Finding, finding.Check) {
	found, check := m.idleTime()
	host, _ := m.Gaps.Findings(m.GPUs.Length())
	m.tellMeetings(found)
	if m.tellsOfRuns(found, host) {
		for i := range found {
			if f := &found[i]; f.Subkind == gpuloss.HostSubkind {
				f.Evidence = slices.Insert(f.Evidence, min(1, len(f.Evidence)), finding.Sentence("in all runs together, %s", host[0].Text))
			}
		}
	}
	toldHost := false
	for i := range found {
		if f := &found[i]; m.tellsHost(f, host) {
			if f.Subkind == gpuloss.HostSubkind {
				f.Text += ": " + host[0].Text
				f.Confidence = host[0].Confidence
			}
			f.Evidence = slices.Insert(f.Evidence, min(1, len(f.Evidence)), host[0].Evidence...)
			toldHost = true
			break // it is told once
		}
	}
	if i := slices.IndexFunc(found, tellsAvoidable); i >= 0 {
		m.addAvoidable(&found[i], toldHost)
	}
	return found, check
}

// tellsHost reports whether a finding that devices are idle also says what the host does:
// what is found of that is about the same time.
func (m *Measured) tellsHost(idle *finding.Finding, host []finding.Finding) bool {
	if len(host) == 0 || len(m.GPUs.Runs) > 1 {
		return false
	}
	if host[0].Subkind == gaps.ColdSubkind && idle.Subkind == gpuloss.StartSubkind {
		return true
	}
	return idle.Subkind == gpuloss.HostSubkind
}

// tellsOfRuns reports whether findings of several runs, that devices are idle for their hosts, say what hosts
// do: that is known of all runs together, and is no time beside that of the runs.
func (m *Measured) tellsOfRuns(idle, host []finding.Finding) bool {
	return len(host) > 0 && len(m.GPUs.Runs) > 1 && slices.ContainsFunc(idle, func(f finding.Finding) bool { return f.Subkind == gpuloss.HostSubkind })
}

// tellsAvoidable reports whether a finding that devices are idle is about all of the time in which hosts
// do what they need not, between steps apart.
func tellsAvoidable(f finding.Finding) bool {
	return f.Metric.Name == gpuloss.IdleMetric
}

// muchAvoidable is the part of idle time from which on what hosts need not do is told in the sentence, if nothing else is.
const muchAvoidable = 1.0 / 5

// addAvoidable adds to a finding that devices are idle what hosts do then that they need not: it is a part of that
// time, and costs nothing beside.
func (m *Measured) addAvoidable(f *finding.Finding, toldHost bool) {
	for _, a := range m.avoidable(inSteps) {
		if a.Cost >= muchAvoidable*f.Cost && !toldHost {
			f.Text, toldHost = fmt.Sprintf("%s; %s", f.Text, a.Brief), true
		} else {
			f.Evidence = slices.Insert(f.Evidence, min(1, len(f.Evidence)), finding.Sentence("of that, %s", a.Brief))
		}
		f.Evidence = append(f.Evidence, a.Evidence...)
	}
}

// avoidable finds what hosts do that they need not while devices are idle for some reasons.
func (m *Measured) avoidable(of func(gpu.Reason) bool) []finding.Finding {
	pageable, _ := m.Gaps.Pageable(m.GPUs.Length(), of)
	allocated, _ := m.Gaps.Allocations(m.GPUs.Length(), m.coldAllocations(), of)
	return append(pageable, allocated...)
}

// inSteps reports whether idle time for a reason is of the finding that devices are idle.
func inSteps(r gpu.Reason) bool { return r != gpu.BetweenSteps }

// apart reports whether idle time for a reason is in no finding that devices are idle.
func (m *Measured) apart() func(gpu.Reason) bool {
	idle, _ := m.idleTime()
	told := slices.ContainsFunc(idle, tellsAvoidable)
	return func(r gpu.Reason) bool { return !told || !inSteps(r) }
}

// hostCauses says what the host does where that is not told with the idle time.
func hostCauses(m *Measured) ([]finding.Finding, finding.Check) {
	found, check := m.Gaps.Findings(m.GPUs.Length())
	idle, _ := m.idleTime()
	if m.tellsOfRuns(idle, found) || slices.ContainsFunc(idle, func(f finding.Finding) bool { return m.tellsHost(&f, found) }) {
		return nil, check
	}
	return found, check
}

func pageableCopies(m *Measured) ([]finding.Finding, finding.Check) {
	return m.Gaps.Pageable(m.GPUs.Length(), m.apart())
}

func allocatingHosts(m *Measured) ([]finding.Finding, finding.Check) {
	return m.Gaps.Allocations(m.GPUs.Length(), m.coldAllocations(), m.apart())
}

// coldAllocations returns the idle time for allocations while processes start, ns.
func (m *Measured) coldAllocations() (cold int64) {
	for i := range m.GPUs.GPUs {
		cold = distribution.AddTimes(cold, m.GPUs.GPUs[i].Cold.Time[gpu.Allocation])
	}
	return cold
}
