package finders

import (
	"strings"

	"github.com/sgtrace/sgtrace/analyze/change"
	"github.com/sgtrace/sgtrace/analyze/consequence"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/analyze/requests"
	"github.com/sgtrace/sgtrace/analyze/serverlimit"
	"github.com/sgtrace/sgtrace/analyze/tail"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/trace"
)

// overloaded returns the consequences for requests that wait at a limit because a server is slow: otherwise
// the servers would have served everything that arrived. The waits must not begin before the server was slow.
func (m *Measured) overloaded() []finding.Consequence {
	if m.Limits == nil {
		return nil
	}
	const soon = trace.Time(2e9)
	type asked struct {
		at   place.Location
		kind string
	}
	suffices := map[asked]bool{} // cached, as WouldSuffice looks at all requests
	// A server that was slow for a while does not explain later waits.
	meanwhile := func(limit, slow *finding.Finding) bool {
		return slow.Until == 0 || m.Limits.MostlyBefore(slow.At.Role, limit.Subkind, slow.Until)
	}
	by := func(limit, slow *finding.Finding) bool {
		return meanwhile(limit, slow) && (slow.Since == 0 || limit.Since+soon+slow.Within >= slow.Since) &&
			order.Memo(suffices, asked{slow.At, limit.Subkind}, func() bool { return m.Limits.WouldSuffice(&slow.At, limit.Subkind) })
	}
	became := func(limit, slow *finding.Finding) bool {
		return consequence.AsSlower(limit, slow) && meanwhile(limit, slow)
	}
	// If routers look at how much work servers have, one that computes a long prompt gets fewer requests meanwhile.
	whileLong := func(share, _ *finding.Finding) bool {
		off := soon + share.Within
		return m.Limits.ComputesLong(share.Since-off, share.Since+off)
	}
	longer := func(f, prompts *finding.Finding) bool {
		return prompts.Metric.After > prompts.Metric.Before && m.cameMeanwhile(f, prompts)
	}
	return []finding.Consequence{
		{Cause: finding.Change, CauseSubkind: change.PromptLength, Effect: finding.Tail, Subkinds: []string{tail.StallSubkind}, Enough: longer},
		{Cause: finding.Change, CauseSubkind: change.PromptLength, Effect: finding.Load, Subkinds: []string{finding.Waits}, Enough: longer},
		{Cause: finding.Load, CauseSubkind: serverlimit.LongPrompts, Effect: finding.Load, Subkinds: []string{""}, AtPlaces: true, Around: true, Enough: whileLong},
		{Cause: finding.Load, CauseSubkind: finding.LonePrompts, Effect: finding.Load, Subkinds: []string{""}, AtPlaces: true, Around: true, Enough: whileLong},
		{Cause: finding.Load, CauseSubkind: serverlimit.LongPrompts, Effect: finding.Change, Subkinds: []string{""}, AtPlaces: true, Around: true, Enough: func(f, _ *finding.Finding) bool {
			return strings.HasPrefix(f.Metric.Name, change.SlowShare+"prefill") && whileLong(f, nil)
		}, Costs: true},
		{Cause: finding.Limit, Effect: finding.Errors, Subkinds: []string{requests.TurnedAway}, NotBefore: true, Enough: m.cameMeanwhile},
		{Cause: finding.Slower, Effect: finding.Limit, Subkinds: serverlimit.OfServers, Enough: by, Costs: true},
		{Cause: finding.Change, CauseSubkind: change.Pace, Effect: finding.Limit, Subkinds: serverlimit.OfServers, Around: true, Enough: became, Costs: true},
	}
}

// cameMeanwhile reports whether most of the requests that an effect is about arrived while the cause lasted.
func (m *Measured) cameMeanwhile(effect, cause *finding.Finding) bool {
	list := effect.Affected.Requests()
	return 2*order.Count(list, func(r int) bool {
		at := m.Of.Requests.Requests[r].Start
		return at >= cause.Since-cause.Within && (cause.Until == 0 || at <= cause.Until)
	}) > len(list)
}
