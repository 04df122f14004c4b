package consequence

import (
	"slices"

	"github.com/sgtrace/sgtrace/analyze/finding"
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
