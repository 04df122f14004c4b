package finders

import (
	"slices"

	"github.com/sgtrace/sgtrace/analyze/change"
	"github.com/sgtrace/sgtrace/analyze/collective"
	"github.com/sgtrace/sgtrace/analyze/consequence"
	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/gpu"
	"github.com/sgtrace/sgtrace/analyze/gpuloss"
	"github.com/sgtrace/sgtrace/analyze/hardware"
	"github.com/sgtrace/sgtrace/analyze/overtime"
	"github.com/sgtrace/sgtrace/analyze/straggler"
	"github.com/sgtrace/sgtrace/analyze/telemetry/slow"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/profile/kernelname"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
)

// longer returns the consequences for requests that take longer according to scraped histograms, since
// about when something else was found. Findings about a rank, a host, or what is in front of a server have
// another place than the server's histograms; they count unless they are known to be on another host.
func (m *Measured) longer() []finding.Consequence {
	whole := []finding.Kind{finding.Load, finding.Limit, finding.Slower, finding.Memory, finding.Errors, finding.Lifecycle, finding.Transfer, finding.Imbalance, finding.GPU, finding.Front, finding.Straggler, finding.Host}
	parts := []string{change.OutputLength, change.PromptLength, change.Pace, finding.CachedTokens, finding.StepYield, finding.Stalls, slow.GraphedSteps, slow.HostWork}
	of := func(kind finding.Kind, subkind string) finding.Consequence {
		return finding.Consequence{Cause: kind, CauseSubkind: subkind, Effect: finding.Change, Subkinds: append([]string{series.AbortedShare}, slow.LatencySubkinds...), Enough: consequence.Since, Costs: true}
	}
	list := order.Each(parts, func(subkind string) finding.Consequence { return of(finding.Change, subkind) })
	for _, kind := range whole {
		c := of(kind, "")
		c.OnRanks = kind == finding.Imbalance
		if slices.Contains([]finding.Kind{finding.GPU, finding.Front, finding.Straggler, finding.Host}, kind) {
			c.Elsewhere, c.Guessed = true, consequence.Apart
			c.Enough = func(longer, of *finding.Finding) bool {
				return consequence.Since(longer, of) && !m.onOtherHost(longer, of)
			}
		}
		list = append(list, c)
	}
	return list
}

// onOtherHost reports whether two findings are on different hosts, by names that metrics know:
// a host may also have names that they don't.
func (m *Measured) onOtherHost(x, y *finding.Finding) bool {
	known := func(host string) bool {
		return host != "" && slices.ContainsFunc(m.Of.Series.Servers, func(s series.Server) bool { return s.Host == host })
	}
	return x.At.Host != y.At.Host && known(x.At.Host) && known(y.At.Host)
}

// recorded returns the consequences of what recordings show: a server takes longer because a
// rank was late in collectives, or because of slow links. Requests say since when.
func (m *Measured) recorded() []finding.Consequence {
	if m.GPUs == nil {
		return nil
	}
	return []finding.Consequence{
		{Cause: finding.GPU, CauseSubkind: gpuloss.WaitSubkind, Effect: finding.GPU, Subkinds: []string{gpuloss.SlowSubkind}, OnRanks: true, Elsewhere: true, Enough: m.isWaitedFor, Costs: true, Same: true},
		{Cause: finding.GPU, CauseSubkind: gpuloss.WaitSubkind, Effect: finding.Change, Subkinds: []string{overtime.PaceSubkind}, OnRanks: true, Elsewhere: true, Enough: m.isWaitedFor, Dates: true},
		{Cause: finding.Straggler, Effect: finding.Change, Subkinds: []string{change.Pace}, Elsewhere: true, Enough: m.asLong, Costs: true, Dates: true},
		{Cause: finding.Straggler, Effect: finding.Slower, Subkinds: []string{""}, Elsewhere: true, Enough: m.asLong, Costs: true, Dates: true},
		{Cause: finding.Change, CauseSubkind: slow.GraphedSteps, Effect: finding.GPU, Subkinds: []string{gpuloss.HostSubkind}, Elsewhere: true, Enough: func(_, eager *finding.Finding) bool { return m.recordedIn(eager, "") }},
		{Cause: finding.GPU, CauseSubkind: collective.LinkSubkind, Effect: finding.Change, Subkinds: []string{change.Pace}, Elsewhere: true, Enough: m.asTheLink, Costs: true, Dates: true},
		{Cause: finding.GPU, CauseSubkind: collective.LinkSubkind, Effect: finding.Slower, Subkinds: []string{""}, Elsewhere: true, Enough: m.asTheLink, Costs: true, Dates: true},
	}
}

// isWaitedFor reports whether kernels take longer on a rank that others wait for, and that is compute-bound.
func (m *Measured) isWaitedFor(pace, _ *finding.Finding) bool {
	return m.waits != nil && slices.ContainsFunc(m.waits.told(), func(l *lateRank) bool {
		return l.name == pace.At.RankName() && collective.IsComputeBound(l.why)
	})
}

// asLong reports whether a server takes longer since before one of its ranks was recorded, or
// since about when that rank became late, by about as much as the other ranks lost to it.
func (m *Measured) asLong(pace, late *finding.Finding) bool {
	const about = 2
	longer := 1 - pace.Metric.Before/pace.Metric.After
	then := late.Since != 0 && consequence.AsItIsLate(pace, late)
	return (then || late.Since == 0 && m.recordedIn(pace, late.Rank)) && longer > 0 && late.Lost >= longer/about && late.Lost <= longer*about && new(pace.At.Team()).Overlaps(&late.At)
}

// asTheLink reports whether a server takes longer since before its ranks were recorded, by no
// more than the time they spent on exposed communication.
func (m *Measured) asTheLink(pace, _ *finding.Finding) bool {
	exposed := m.GPUs.Total(func(g *gpu.GPU) int64 { return g.Exposed(kernelname.ClassCommunication) })
	longer := 1 - pace.Metric.Before/pace.Metric.After
	return longer > 0 && longer <= distribution.Fraction(exposed, m.GPUs.Length()) && m.recordedIn(pace, "")
}

// recordedIn reports whether a rank was recorded only while something lasted; "" means all ranks.
func (m *Measured) recordedIn(f *finding.Finding, rank string) bool {
	within, n := true, 0
	for i := range m.GPUs.GPUs {
		if g := &m.GPUs.GPUs[i]; rank == "" || g.Rank == rank {
			n++
			within = within && g.First >= f.Since-f.Within && (f.Until == 0 || g.Last <= f.Until+f.Within)
		}
	}
	return f.Since != 0 && within && n > 0
}

// onHosts returns the consequences of hosts that are short of something, for whatever runs on
// them, and of lossy networks, for transfers.
func (m *Measured) onHosts() []finding.Consequence {
	if m.Of.Series == nil {
		return nil
	}
	var list []finding.Consequence
	for _, network := range []string{hardware.FailingLink, hardware.LossyNetwork} {
		list = append(list, finding.Consequence{Cause: finding.Host, CauseSubkind: network, Effect: finding.Transfer, Elsewhere: true, Enough: m.asTheHost, Guessed: consequence.Apart, Costs: true})
	}
	for _, e := range []struct {
		kind     finding.Kind
		subkinds []string
	}{
		{finding.Slower, []string{""}}, {finding.Straggler, []string{""}}, {finding.Change, []string{change.Pace, finding.Stalls, slow.HostWork}},
		{finding.GPU, []string{gpuloss.BetweenSubkind}}, {finding.Load, []string{finding.Waits}},
	} {
		list = append(list, finding.Consequence{Cause: finding.Host, Effect: e.kind, Subkinds: e.subkinds, Elsewhere: true, Enough: m.asTheHost, Guessed: consequence.Apart, Costs: true})
	}
	return list
}

// asTheHost reports whether something may be slower since a host is short of something. If it
// is unknown which host it is on, the two must begin within one scrape interval.
func (m *Measured) asTheHost(slower, host *finding.Finding) bool {
	if slower.Kind == finding.GPU {
		return m.recordedIn(host, "")
	}
	if slower.At.Host != "" && slower.At.Host == host.At.Host {
		return consequence.AsTheClock(slower, host)
	}
	return !m.onOtherHost(slower, host) && slower.Since != 0 && max(slower.Since-host.Since, host.Since-slower.Since) <= host.Within+slower.Within+trace.Time(2e9)
}

// lateByIdling returns the consequences of ranks that are late because their devices idle.
// They idle longer while the others wait, and both times are lost.
func (m *Measured) lateByIdling() []finding.Consequence {
	if m.GPUs == nil || m.GPUs.Divided() || m.Collectives == nil {
		return nil
	}
	adds := func(idle, late *finding.Finding) float64 {
		switch {
		case late.Kind == finding.Straggler:
			return m.idleLonger(idle, late.At.RankName())
		case m.waits != nil && late.Metric.Name == gpuloss.WaitMetric:
			return m.idleLonger(idle, order.Each(m.waits.told(), func(l *lateRank) string { return l.name })...)
		}
		return 0
	}
	beyond := func(idle, late *finding.Finding) float64 {
		if m.played[late.Rank] {
			return 0
		}
		return adds(idle, late)
	}
	mostly := func(idle, late *finding.Finding) bool { return idle.Cost > 0 && 2*adds(idle, late) >= idle.Cost }
	unknown := func(idle, late *finding.Finding) bool {
		return late.Kind == finding.Straggler && !m.toldOfHost(late) && mostly(idle, late)
	}
	return []finding.Consequence{
		{Cause: finding.Straggler, Effect: finding.GPU, Enough: unknown, Adds: beyond, Tells: true, Elsewhere: true},
		{Cause: finding.Straggler, Effect: finding.GPU, Enough: mostly, Adds: beyond, Elsewhere: true},
		{Cause: finding.GPU, Effect: finding.GPU, Enough: mostly, Adds: beyond, Elsewhere: true},
	}
}

// idleLonger returns how much longer the devices of some ranks idle than those of the others do
// on average, as a part of the time of all devices; 0 unless the finding is about all idle time.
func (m *Measured) idleLonger(idle *finding.Finding, ranks ...string) float64 {
	if !gpuloss.AboutIdle(idle) || idle.Metric.Name != gpuloss.IdleMetric {
		return 0
	}
	inSteps := func(g *gpu.GPU) int64 {
		return max(0, distribution.SumTimes(g.Waits.Time[:])-g.Waits.Time[gpu.BetweenSteps]-g.Cold.Total())
	}
	var own, others, ofOwn, ofOthers int64
	for i := range m.GPUs.GPUs {
		if g := &m.GPUs.GPUs[i]; slices.Contains(ranks, g.Rank) {
			own, ofOwn = distribution.AddTimes(own, inSteps(g)), distribution.AddTimes(ofOwn, g.Length())
		} else {
			others, ofOthers = distribution.AddTimes(others, inSteps(g)), distribution.AddTimes(ofOthers, g.Length())
		}
	}
	if ofOthers == 0 {
		return 0
	}
	usual := distribution.Fraction(others, ofOthers) * float64(ofOwn)
	return max(0, float64(own)-usual) / float64(m.GPUs.Length())
}

// toldOfHost reports whether a straggler is known to be host-bound.
func (m *Measured) toldOfHost(late *finding.Finding) bool {
	return slices.ContainsFunc(m.Collectives.Stragglers(m.GPUs), func(s straggler.Straggler) bool {
		return s.Name == late.At.RankName() && collective.IsHostBound(s.Cause)
	})
}
