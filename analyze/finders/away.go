package finders

import (
	"slices"

	"github.com/sgtrace/sgtrace/analyze/cause"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/lifecycle"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/analyze/telemetry/failed"
	"github.com/sgtrace/sgtrace/analyze/telemetry/held"
	"github.com/sgtrace/sgtrace/analyze/telemetry/slow"
	"github.com/sgtrace/sgtrace/trace"
)

// away are the findings of servers that are gone, or stand still.
var away = []struct {
	kind    finding.Kind
	subkind string
}{{finding.Errors, failed.Died}, {finding.Lifecycle, failed.Ended}, {finding.Lifecycle, failed.Hang}, {finding.Lifecycle, failed.Restarted}, {finding.Lifecycle, failed.Stop}}

// tookOver returns the consequences of servers that are away or stand still, according to logs and
// metrics: other servers of the role get their requests, with everything that follows from that.
func tookOver(found []finding.Finding) (list []finding.Consequence) {
	for _, of := range away {
		if !slices.ContainsFunc(found, func(f finding.Finding) bool { return f.Kind == of.kind && f.Subkind == of.subkind }) {
			continue
		}
		list = append(list,
			finding.Consequence{Cause: of.kind, CauseSubkind: of.subkind, Effect: finding.Lifecycle, Subkinds: []string{failed.Silent, failed.Ended}, Around: true, Enough: sameServer, Costs: true},
			finding.Consequence{Cause: of.kind, CauseSubkind: of.subkind, Effect: finding.Imbalance, Subkinds: []string{""}, Around: true, Enough: hasMoreLeft, Costs: true},
			finding.Consequence{Cause: of.kind, CauseSubkind: of.subkind, Effect: finding.Load, Subkinds: []string{slow.Demand, finding.Waits}, Around: true, Enough: forAnother, Costs: true},
			finding.Consequence{Cause: of.kind, CauseSubkind: of.subkind, Effect: finding.Limit, Subkinds: held.LimitSubkinds, Around: true, Enough: forAnother, Costs: true},
			finding.Consequence{Cause: of.kind, CauseSubkind: of.subkind, Effect: finding.Change, Subkinds: slow.LatencySubkinds, Around: true, Enough: forAnother, Costs: true})
	}
	if len(list) == 0 {
		return nil
	}
	return append([]finding.Consequence{
		{Cause: finding.Lifecycle, CauseSubkind: failed.Restarted, Effect: finding.Lifecycle, Subkinds: []string{failed.Stop}, Around: true, Enough: onThatHost},
		{Cause: finding.Lifecycle, CauseSubkind: failed.Hang, Effect: finding.Lifecycle, Subkinds: []string{failed.Hang}, Around: true, Enough: sameMoment},
		{Cause: finding.Load, CauseSubkind: slow.Demand, Effect: finding.Limit, Subkinds: held.LimitSubkinds, Around: true, Enough: onThatHost, Costs: true},
		{Cause: finding.Load, CauseSubkind: slow.Demand, Effect: finding.Change, Subkinds: []string{slow.Latency}, Around: true, Enough: onThatHost, Costs: true},
		{Cause: finding.Errors, CauseSubkind: failed.Died, Effect: finding.Lifecycle, Subkinds: []string{failed.Ended}, Around: true, Enough: func(gone, _ *finding.Finding) bool { return gone.CostBasis == finding.ServerTime }, Costs: true},
	}, list...)
}

// onThatHost reports whether two findings are about the same server, or both about several.
func onThatHost(f, of *finding.Finding) bool {
	return f.At.Overlaps(&of.At) && (f.At.Host == of.At.Host || f.At.Scope == place.WholeRole && of.At.Scope == place.WholeRole)
}

// sameServer reports whether a server has no scrapes because it is away. A finding from its log or its counters is worth more.
func sameServer(silent, away *finding.Finding) bool {
	const soon = trace.Time(60e9)
	return onThatHost(silent, away) && silent.CostBasis != finding.Requests && (away.Until == 0 || silent.Since <= away.Until+soon+silent.Within)
}

// sameMoment reports whether a log and scrapes report that the same server stands still, under
// what may be two names: the times agree.
func sameMoment(f, of *finding.Finding) bool {
	return f.Within > 0 && of.Within == 0 && f.At.Role == of.At.Role && max(f.Since-of.Since, of.Since-f.Since) <= f.Within
}

// hasMoreLeft reports whether a server has more than its share because another one of its role has none, whenever that shows.
func hasMoreLeft(share, away *finding.Finding) bool {
	return share.At.Role == away.At.Role && share.At.Host != away.At.Host
}

// forAnother reports whether a server has more work because another one of its role is away; or because it is back itself.
func forAnother(more, away *finding.Finding) bool {
	const soon = trace.Time(30e9) // until routers notice
	return more.At.Role == away.At.Role && more.Since != 0 && more.Since <= max(away.Since, away.Until)+soon+more.Within+away.Within
}

// lives finds what happened to servers. While one is away, others have more work, and requests
// on one that hangs or died wait in vain.
func lives(m *Measured) ([]finding.Finding, finding.Check) {
	found, check := m.Lives.Findings()
	if m.Costs == nil {
		return found, check
	}
	for i := range found {
		f := &found[i]
		died, hangs := f.Subkind == lifecycle.Death, f.Subkind == lifecycle.Hang
		if f.Since == 0 || !died && !hangs && (f.Cost > 0 || !slices.Contains(lifecycle.Away, f.Subkind)) {
			continue
		}
		over := f.Until
		if over != 0 {
			over += (over - f.Since) / 2 // time to work off the backlog
		}
		var claim finding.Claim
		if !hangs {
			claim = m.Costs.Risen(cause.Span{From: f.Since, Until: over, At: place.Location{Scope: place.Everywhere}}, m.Costs.BySize, cause.OverloadCauses...)
		}
		if died || hangs { // cost is the extra time of requests, or the number of lost ones, whichever is more
			claim = claim.And(m.Costs.Lost(f.Affected.Requests()))
			if m.Costs.Price([]finding.Finding{{Claim: claim}})[0].Cost <= f.Cost {
				continue
			}
			f.CostBasis = finding.RequestTime
		}
		f.Claim = claim
		if f.Until != 0 && !died && !hangs {
			f.Severity = finding.Info // it was intended, and is over
		}
	}
	m.addWarmUps(found)
	return m.Costs.Price(found), check
}
