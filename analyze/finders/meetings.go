package finders

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/collective"
	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/gaps"
	"github.com/sgtrace/sgtrace/analyze/gpuloss"
)

// lateOnHosts finds ranks that come late to collectives of hosts.
func lateOnHosts(m *Measured) ([]finding.Finding, finding.Check) {
	if m.OfHosts == nil {
		return nil, finding.Check{What: "lateness in gloo collectives", Of: "gloo collective", Needed: 1, Reason: "no gloo collectives were recorded"}
	}
	found, check := m.OfHosts.Findings(m.GPUs)
	for i := range found {
		if at := inPlaces(m.lateHosts[found[i].At.RankName()], maxNamed); at != "" {
			found[i].Evidence = append(found[i].Evidence, finding.Sentence("while its GPU waited for launches then, its host was %s", at))
		}
	}
	return found, check
}

// findLateHosts finds what the hosts of ranks did that come late for that.
func (m *Measured) findLateHosts(collector *gaps.Collector) {
	if m.OfHosts == nil {
		return
	}
	var windows []gaps.Window
	var names []string
	for _, s := range m.OfHosts.Late(m.GPUs) {
		rank := int32(slices.Index(m.Of.Profiles.Ranks, s.Name))
		if rank >= 0 && collective.IsHostBound(s.Cause) {
			windows = append(windows, gaps.Window{Rank: rank, From: s.Since, To: s.Until}.Moved(m.Of.Profiles.ClockOffsetOf(rank)))
			names = append(names, s.Name)
		}
	}
	if len(windows) == 0 {
		return
	}
	m.lateHosts = map[string][]gaps.Work{}
	for i, late := range collector.Late(windows) {
		m.lateHosts[names[i]] = late.Causes
	}
}

// tellMeetings says for whom hosts wait, where devices are idle mostly because they do.
func (m *Measured) tellMeetings(idle []finding.Finding) {
	for i := range idle {
		f := &idle[i]
		if f.Subkind != gpuloss.MeetSubkind || m.OfHosts == nil {
			continue
		}
		late := m.OfHosts.Late(m.GPUs)
		waited := m.OfHosts.Waited()
		lost := int64(0)
		var names []string
		for k := range late {
			lost = distribution.AddTimes(lost, late[k].Lost)
			names = append(names, late[k].Name)
		}
		f.Text += fmt.Sprintf("; %.0f %% of the time in them is waiting for the last rank", 100*distribution.Fraction(waited.Wait, waited.Took))
		if len(late) > 0 {
			f.Text += fmt.Sprintf(", %.0f %% of that for %s", 100*distribution.Fraction(lost, waited.Wait), strings.Join(names, ", "))
		}
		if len(late) != 1 || float64(lost) < oneExplains*float64(waited.Wait) {
			f.Subkind = "idle" // by nobody in particular
		}
		if len(late) == 0 {
			for _, sentence := range m.OfHosts.Verdict(nil) {
				f.Evidence = append(f.Evidence, finding.Sentence("%s", sentence))
			}
		}
		f.Evidence = append(f.Evidence, m.OfHosts.Begin()...)
	}
}
