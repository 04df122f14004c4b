package finders

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/collective"
	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/gaps"
	"github.com/sgtrace/sgtrace/analyze/gpu"
	"github.com/sgtrace/sgtrace/analyze/gpuloss"
	"github.com/sgtrace/sgtrace/analyze/profilewalk"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/profile/kernelname"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// idleTime finds idle devices in each run, and lets tell add to these findings.
func (m *Measured) idleTime(tell func(g *gpu.GPUs, found []finding.Finding)) ([]finding.Finding, finding.Check) {
	return m.GPUs.EachRun(func(g *gpu.GPUs) ([]finding.Finding, finding.Check) {
		found, check := gpuloss.Idle(g, m.Gaps.Paused)
		if len(found) > 0 {
			tell(g, found)
		}
		return found, check
	})
}

// plainly adds nothing.
func plainly(*gpu.GPUs, []finding.Finding) {}

// idleGPUs says in one sentence that devices wait for the host, and what the host does.
func idleGPUs(m *Measured) ([]finding.Finding, finding.Check) {
	found, check := m.idleTime(m.tellHost)
	m.tellMeetings(found)
	m.tellBusyFrom(found)
	return found, check
}

// tellBusyFrom says from when on devices are busy, if they are idle only before that: then it is a start, whatever their hosts did meanwhile.
func (m *Measured) tellBusyFrom(idle []finding.Finding) {
	if m.OverTime == nil || m.GPUs.Divided() {
		return
	}
	at, before, busy := m.OverTime.BusyFrom()
	for i := range idle {
		if f := &idle[i]; at != 0 && f.Metric.Name == gpuloss.IdleMetric && f.Subkind != gpuloss.StartSubkind {
			f.Evidence = slices.Insert(f.Evidence, 0, finding.Sentence("%.0f %% of that is before %s; from then on, %s %.0f %% busy", 100*before, words.At(at, words.ClockLayout), gpuloss.GPUsAre(m.GPUs), 100*busy))
		}
	}
}

// tellHost adds what hosts do meanwhile to findings about idle devices of a run.
func (m *Measured) tellHost(g *gpu.GPUs, found []finding.Finding) {
	of := m.Gaps
	if len(g.GPUs) > 0 {
		of = m.Gaps.Of(g.GPUs[0].RankIndex)
	}
	host, _ := of.Findings(g.Length())
	toldHost := false
	if i := slices.IndexFunc(found, func(f finding.Finding) bool { return tellsHost(&f, host) }); i >= 0 { // say it once
		f, evidence := &found[i], host[0].Evidence
		if f.Subkind == gpuloss.HostSubkind {
			f.Text += ": " + host[0].Text
			f.Confidence = host[0].Confidence
		} else if f.Subkind != gpuloss.StartSubkind {
			evidence = slices.Insert(slices.Clone(evidence), 0, finding.Sentence("%s", host[0].Text))
		}
		f.Evidence = slices.Insert(f.Evidence, min(1, len(f.Evidence)), evidence...)
		toldHost = true
	}
	if i := slices.IndexFunc(found, tellsAvoidable); i >= 0 {
		addAvoidable(&found[i], avoidable(g, of, inSteps), toldHost)
	}
}

// idleBetweenSteps finds devices that idle between steps of a run, and where their hosts are for most of
// that time: in a loop that polls for requests, or in preparations for a step before its annotation begins.
func (m *Measured) idleBetweenSteps(g *gpu.GPUs) ([]finding.Finding, finding.Check) {
	found, check := gpuloss.IdleBetweenSteps(g)
	if len(found) == 0 {
		return found, check
	}
	f, all, free := &found[0], int64(0), int64(0)
	from, to := g.GPUs[0].First, g.GPUs[0].Last
	for i := range g.GPUs {
		from, to = min(from, g.GPUs[i].First), max(to, g.GPUs[i].Last)
	}
	traced := m.tracedWork(from, to)
	for i := range g.GPUs {
		all, free = distribution.AddTimes(all, g.GPUs[i].Waits.Time[gpu.BetweenSteps]), distribution.AddTimes(free, m.withoutRequests(&g.GPUs[i], traced))
	}
	if 2*(all-free) < all {
		return nil, check // there were no requests
	}
	places := m.Gaps.Of(g.GPUs[0].RankIndex).Busiest(func(r gpu.Reason) bool { return r == gpu.BetweenSteps })
	if len(places) > 0 && 2*places[0].Time >= all {
		f.Text += fmt.Sprintf("; for %.0f %% of that, hosts are in %s", 100*distribution.Fraction(places[0].Time, all), places[0].Where)
	} else if at := inPlaces(places, maxNamed); at != "" {
		f.Evidence = append(f.Evidence, finding.Sentence("hosts are %s then", at))
	}
	return found, check
}

// tracedWork returns the stages in a time in which requests waited for schedulers or were computed.
func (m *Measured) tracedWork(from, to trace.Time) (rows []*request.Row) {
	set := m.Of.Requests
	if set == nil || set.Names == nil || !slices.ContainsFunc(set.Procs, func(p request.Proc) bool { return p.Schedules }) {
		return nil
	}
	for i := range set.Rows {
		r := &set.Rows[i]
		if (r.Phase == request.QueuePhase || r.Phase == request.PrefillPhase || r.Phase == request.DecodePhase) && r.Kind == request.Stage && r.End > from && r.Start < to {
			rows = append(rows, r)
		}
	}
	return rows
}

// withoutRequests returns for how many ns of its recording a rank had no request waiting or
// being computed, as far as traced requests show.
func (m *Measured) withoutRequests(g *gpu.GPU, traced []*request.Row) int64 {
	set, own := m.Of.Requests, map[int32]bool{}
	type piece struct{ from, to trace.Time }
	var busy []piece
	for _, r := range traced {
		of := order.Memo(own, r.Proc, func() bool { return set.Procs[r.Proc].Schedules && set.Names.Rank(set.Place(int(r.Proc))) == g.Rank })
		if of && r.End > g.First && r.Start < g.Last {
			busy = append(busy, piece{max(r.Start, g.First), min(r.End, g.Last)})
		}
	}
	if len(busy) == 0 {
		return 0 // they were not traced
	}
	slices.SortFunc(busy, func(a, b piece) int { return cmp.Compare(a.from, b.from) })
	free, last := int64(0), g.First
	for _, p := range busy {
		free += int64(max(0, p.from-last))
		last = max(last, p.to)
	}
	return free + int64(max(0, g.Last-last))
}

// tellsHost reports whether an idle finding covers the same time as a finding about what the
// host does, so that one sentence can say both.
func tellsHost(idle *finding.Finding, host []finding.Finding) bool {
	if len(host) == 0 {
		return false
	}
	if host[0].Subkind == gaps.ColdSubkind {
		return idle.Subkind == gpuloss.StartSubkind || idle.Subkind == gpuloss.HostSubkind
	}
	return idle.Subkind == gpuloss.HostSubkind || tellsAvoidable(*idle)
}

// tellsAvoidable reports whether an idle finding covers all idle time within steps, and so all avoidable host work in it.
func tellsAvoidable(f finding.Finding) bool {
	return f.Metric.Name == gpuloss.IdleMetric
}

// muchAvoidable is the part of idle time that avoidable host work must take to be in the sentence, if nothing else about the host is.
const muchAvoidable = 1.0 / 5

// addAvoidable adds avoidable host work to an idle finding. It is part of the idle time, and has no cost of its own.
func addAvoidable(f *finding.Finding, avoidable []finding.Finding, toldHost bool) {
	for _, a := range avoidable {
		if a.Cost >= muchAvoidable*f.Cost && !toldHost {
			f.Text, toldHost = fmt.Sprintf("%s; %s", f.Text, a.Brief), true
		} else {
			f.Evidence = slices.Insert(f.Evidence, min(1, len(f.Evidence)), finding.Sentence("of that, %s", a.Brief))
		}
		f.Evidence = append(f.Evidence, a.Evidence...)
	}
}

// avoidable finds avoidable host work in a run during idle time for the selected reasons.
func avoidable(g *gpu.GPUs, gaps *gaps.Gaps, of func(gpu.Reason) bool) []finding.Finding {
	pageable, _ := gaps.Pageable(g.Length(), of)
	allocated, _ := gaps.Allocations(g.Length(), coldAllocations(g), of)
	return append(pageable, allocated...)
}

// inSteps reports whether idle time with a reason counts as within steps.
func inSteps(r gpu.Reason) bool { return r != gpu.BetweenSteps }

// apart returns a condition: idle time with a reason is not covered by any idle finding.
func (m *Measured) apart() func(gpu.Reason) bool {
	idle, _ := m.idleTime(plainly)
	told := slices.ContainsFunc(idle, tellsAvoidable)
	return func(r gpu.Reason) bool { return !told || !inSteps(r) }
}

// hostCauses says what the host does, unless an idle finding says it.
func hostCauses(m *Measured) ([]finding.Finding, finding.Check) {
	found, check := m.Gaps.Findings(m.GPUs.Length())
	if check.Covered = m.GPUs.Coverage(); !check.Covered.Enough() {
		return nil, check // what looks like a wait may be work that is missing
	}
	idle, _ := m.idleTime(plainly)
	if slices.ContainsFunc(idle, func(f finding.Finding) bool { return tellsHost(&f, found) }) {
		return nil, check
	}
	return found, check
}

func pageableCopies(m *Measured) ([]finding.Finding, finding.Check) {
	return m.Gaps.Pageable(m.GPUs.Length(), m.apart())
}

func allocatingHosts(m *Measured) ([]finding.Finding, finding.Check) {
	return m.Gaps.Allocations(m.GPUs.Length(), coldAllocations(m.GPUs), m.apart())
}

// coldAllocations returns the idle time due to allocations while processes start, in ns.
func coldAllocations(g *gpu.GPUs) int64 {
	return g.Total(func(d *gpu.GPU) int64 { return d.Cold.Time[gpu.Allocation] })
}

// exposure finds exposed communication, all the time or in steps of one kind, and says who is waited for if it is mostly waiting.
func exposure(m *Measured) ([]finding.Finding, finding.Check) {
	return m.GPUs.EachRun(func(g *gpu.GPUs) ([]finding.Finding, finding.Check) {
		if g != m.GPUs {
			return gpuloss.Exposure(g, nil) // waits in collectives are known only for all runs together
		}
		found, check := gpuloss.Exposure(g, append(m.Collectives.Waiting(), m.Collectives.Unseen()...))
		for i := range found {
			if name, ok := strings.CutPrefix(found[i].Metric.Name, gpuloss.ExposedMetric+" in "); ok {
				m.waitsIn(name, &found[i])
			} else if m.absentExplain() {
				found[i].Subkind = gpuloss.AbsentSubkind
			}
		}
		switch {
		case len(found) == 0:
		case m.waits != nil:
			found = m.waits.lead(found, m)
		case found[0].Metric.Name == gpuloss.ExposedMetric:
			m.besideStragglers(&found[0])
			if stood := m.Collectives.Stood(); stood != "" {
				found[0].Text += "; " + stood
			} else {
				m.tellPipeline(&found[0])
			}
		}
		return found, check
	})
}

// besideStragglers removes the waiting for stragglers, which have findings of their own, from exposed
// communication, unless it is most of it; unknown waiting is assumed to be like known waiting.
func (m *Measured) besideStragglers(f *finding.Finding) {
	lost := 0.0
	for _, s := range m.Collectives.Stragglers(m.GPUs) {
		lost += distribution.Fraction(s.Lost, m.GPUs.Length())
	}
	if lost > 0 && lost < mostlyWaiting*f.Cost*m.Collectives.Waited().Covered.Share() {
		f.Cost -= lost
		f.Subkind = gpuloss.TransferSubkind
	}
}

// evenly is how many times its even share of the waiting a rank may cause and still count as no worse than the others.
const evenly = 1.5

// absentExplain reports whether most exposed communication is waiting for ranks that are not in the files.
func (m *Measured) absentExplain() bool {
	exposed := distribution.SumTimes(order.EachRow(m.GPUs.GPUs, func(g *gpu.GPU) int64 { return g.Exposed(kernelname.ClassCommunication) }))
	return float64(m.Collectives.AbsentWait()) >= mostlyWaiting*float64(exposed)
}

// waitsIn turns a finding about exposed communication in steps of one kind into one about waiting, if it is mostly that.
func (m *Measured) waitsIn(name string, f *finding.Finding) {
	kind := profile.StepKind(slices.Index(profilewalk.StepKinds[:], name))
	var length, exposed, hidden int64
	for i := range m.GPUs.GPUs {
		did := &m.GPUs.GPUs[i].BySteps[kind]
		e := did.Exposed(kernelname.ClassCommunication)
		length, exposed = distribution.AddTimes(length, did.Total()), distribution.AddTimes(exposed, e)
		hidden = distribution.AddTimes(hidden, did.Time(kernelname.ClassCommunication)-e)
	}
	var wait, blame int64
	var late *collective.StepRank
	ranks := 0
	for i := range m.Collectives.ByStep {
		r := &m.Collectives.ByStep[i]
		if r.Kind != kind {
			continue
		}
		ranks++
		wait, blame = distribution.AddTimes(wait, r.Wait), distribution.AddTimes(blame, r.Blame)
		if late == nil || r.Blame > late.Blame {
			late = r
		}
	}
	waiting := min(exposed, wait-hidden)
	waited := m.Collectives.Waited()
	if late == nil || !waited.Covered.Enough() || float64(waiting) < mostlyWaiting*float64(exposed) {
		return
	}
	part := func(ns int64) float64 { return 100 * distribution.Fraction(ns, length) }
	share := distribution.Fraction(late.Blame, blame)
	f.Text = fmt.Sprintf("in %s, %s %.0f %% of the time in collectives, %.0f %% of that for %s", name, gpuloss.GPUsWait(m.GPUs), part(waiting), 100*share, late.Rank.Rank)
	if share < evenly/float64(ranks) {
		f.Text = fmt.Sprintf("in %s, %s %.0f %% of the time in collectives, for each other: %.0f %% of that for %s, and no more for any other", name, gpuloss.GPUsWait(m.GPUs), part(waiting), 100*share, late.Rank.Rank)
	}
	f.Metric.Name, f.Metric.After = "waiting in collectives in "+name, distribution.Fraction(waiting, length)
	f.Cost = distribution.Fraction(waiting, m.GPUs.Length())
	f.Evidence = slices.Insert(f.Evidence, 0, finding.Sentence("in %s, exposed communication is %.0f %% of the time: %.0f %% is waiting for late ranks, %.0f %% is data transfer%s",
		name, part(exposed), part(waiting), part(exposed-waiting), orAbsent(&waited)))
}
