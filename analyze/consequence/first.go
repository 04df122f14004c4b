package consequence

import (
	"slices"

	"github.com/sgtrace/sgtrace/analyze/change"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/lifecycle"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/analyze/requests"
	"github.com/sgtrace/sgtrace/analyze/telemetry"
	"github.com/sgtrace/sgtrace/analyze/telemetry/failed"
	"github.com/sgtrace/sgtrace/analyze/telemetry/held"
	"github.com/sgtrace/sgtrace/analyze/telemetry/slow"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
)

// First returns the consequences that are looked for before those that measurements show.
func First(found []finding.Finding) []finding.Consequence {
	return slices.Concat(kept, tookOver(found), seenTwice, remade, warm)
}

// kept are the consequences of keeping only slow requests: everything measured in them is slower. If only some of all are kept, that is
// true of nothing but how many there are, and of what depends on that.
var kept = []finding.Consequence{
	{Cause: finding.Loss, CauseSubkind: requests.Sampled, Effect: finding.Load, Subkinds: []string{""}, Around: true, Enough: whenKept, Same: true},
	{Cause: finding.Loss, CauseSubkind: requests.Sampled, Effect: finding.Change, Subkinds: []string{change.Pace}, Around: true, Enough: whenKept, Same: true},
	{Cause: finding.Loss, CauseSubkind: requests.Sampling, Effect: finding.Change, Subkinds: []string{"", change.Pace, change.OutputLength, change.PromptLength, finding.CachedTokens}, Around: true, Enough: whenKept, Same: true},
	{Cause: finding.Loss, CauseSubkind: requests.Sampling, Effect: finding.Load, Subkinds: []string{"", finding.Waits}, Around: true, Enough: whenKept, Same: true},
	{Cause: finding.Loss, CauseSubkind: requests.Sampling, Effect: finding.Transfer, Subkinds: []string{"", finding.Waits}, Around: true, Enough: whenKept, Same: true},
	{Cause: finding.Loss, CauseSubkind: requests.Sampling, Effect: finding.Errors, Subkinds: nil, Around: true, Enough: whenKept, Same: true},
}

// whenKept reports whether something changed when a dump began to keep only slow requests.
func whenKept(f, of *finding.Finding) bool {
	const about = trace.Time(2e9)
	return max(f.Since-of.Since, of.Since-f.Since) <= about+f.Within+of.Within
}

// seenTwice are consequences for findings from logs about tokens and transfers that requests show, too.
var seenTwice = []finding.Consequence{
	{Cause: finding.Transfer, Effect: finding.Transfer, Subkinds: []string{held.SlowLink}, Elsewhere: true, Around: true, Enough: asRequestsTell, Same: true},
	{Cause: finding.Change, CauseSubkind: change.PromptLength, Effect: finding.Load, Subkinds: []string{slow.Demand}, Elsewhere: true, Enough: lengthOf(telemetry.PromptTokens), Same: true},
	{Cause: finding.Change, CauseSubkind: change.OutputLength, Effect: finding.Load, Subkinds: []string{slow.Demand}, Elsewhere: true, Enough: lengthOf(telemetry.AnswerTokens), Same: true},
	{Cause: finding.Change, CauseSubkind: change.Pace, Effect: finding.Slower, Subkinds: []string{""}, Enough: asLogsTell, Same: true},
	{Cause: finding.Change, CauseSubkind: finding.Stalls, Effect: finding.Slower, Subkinds: []string{""}, Enough: asLogsStall, Same: true},
	{Cause: finding.Change, CauseSubkind: finding.CachedTokens, Effect: finding.Change, Subkinds: []string{finding.CachedTokens}, Enough: asLogsCache, Same: true},
}

// remade are consequences of work that is done again: tokens that fell out of the cache are
// computed again, so that more prompts seem to arrive; and a server that takes longer since its
// restart may have been started with something else. Clients leave where they have to wait.
var remade = []finding.Consequence{
	{Cause: finding.Change, CauseSubkind: finding.CachedTokens, Effect: finding.Load, Subkinds: []string{slow.Demand}, Enough: computedAgain, Costs: true},
	{Cause: finding.Change, CauseSubkind: slow.Latency, Effect: finding.Change, Subkinds: []string{series.AbortedShare}, Enough: Since, Costs: true},
	{Cause: finding.Change, CauseSubkind: slow.Slowed, Effect: finding.Change, Subkinds: []string{series.AbortedShare}, Enough: Since, Costs: true},
	{Cause: finding.Lifecycle, CauseSubkind: failed.Restarted, Effect: finding.Slower, Subkinds: []string{""}, Enough: Since, Guessed: byTimesAlone, Costs: true},
}

// computedAgain reports whether more prompt tokens are computed only because fewer are cached:
// since then, and by no more than that explains.
func computedAgain(more, cached *finding.Finding) bool {
	const about = 1.25
	missing := (1 - cached.Metric.After) / (1 - cached.Metric.Before)
	return more.Metric.Name == telemetry.ComputedTokens && Since(more, cached) && more.Metric.After <= about*missing*more.Metric.Before
}

// Last are consequences of restarts: servers that take longer since each was restarted were
// started with something else. It comes last because that slowness has symptoms of its own.
var Last = []finding.Consequence{
	{Cause: finding.Lifecycle, CauseSubkind: lifecycle.Restart, Effect: finding.Change, Subkinds: []string{change.Pace, finding.StepYield}, Elsewhere: true, Enough: sinceRestarted, Guessed: ofOneServer, Costs: true},
}

// ofOneServer reports whether a cause is about one server, whose time alone relates it to the
// effect. Of several servers, each has to match.
func ofOneServer(_, of *finding.Finding) bool { return of.At.Scope == place.OneRank }

// sinceRestarted reports whether servers take longer since they were restarted: the one
// server, or those of a role since the first of them was.
func sinceRestarted(became, restart *finding.Finding) bool {
	const about = trace.Time(2e9)
	off, first := about+became.Within, restart.Until
	if restart.At.Scope == place.WholeRole {
		first -= (restart.Until - restart.Since) / 2
	}
	worse := became.Metric.After > became.Metric.Before != (became.Subkind == finding.StepYield)
	return worse && became.At.Scope == restart.At.Scope && became.At.Overlaps(&restart.At) &&
		became.Since+off >= restart.Since && became.Since <= first+off && (became.Until == 0 || became.Until > restart.Until+off)
}

// byTimesAlone says that nothing but their times relates a cause and an effect.
func byTimesAlone(_, _ *finding.Finding) bool { return true }

// Apart reports whether two findings are not known to be on the same host.
func Apart(x, y *finding.Finding) bool { return x.At.Host == "" || x.At.Host != y.At.Host }

// lengthOf returns a condition: logs show the same change of a length as requests, at about the same time.
func lengthOf(metric string) func(logs, traced *finding.Finding) bool {
	return func(logs, traced *finding.Finding) bool {
		const pieces = trace.Time(30e9)
		return logs.Metric.Name == metric && traced.Metric.After > traced.Metric.Before && max(logs.Since-traced.Since, traced.Since-logs.Since) <= pieces+traced.Within
	}
}

// asRequestsTell reports whether logs show the same slow transfers as requests, at about the same time.
func asRequestsTell(logs, traced *finding.Finding) bool {
	const about = trace.Time(15e9)
	return logs.Claim == nil && traced.Subkind != held.SlowLink && traced.Metric.After > traced.Metric.Before && traced.Since != 0 && max(logs.Since-traced.Since, traced.Since-logs.Since) <= about+traced.Within
}

// warm are consequences of starts of servers that are slow at first.
var warm = []finding.Consequence{
	{Cause: finding.Lifecycle, CauseSubkind: lifecycle.Restart, Effect: finding.Change, Subkinds: []string{change.Pace, finding.Stalls}, Around: true, Enough: whileWarmingUp, Costs: true, Same: true},
	{Cause: finding.Lifecycle, CauseSubkind: lifecycle.Start, Effect: finding.Change, Subkinds: []string{change.Pace, finding.Stalls}, Around: true, Enough: whileWarmingUp, Costs: true, Same: true},
}

// whileWarmingUp reports whether a server is slower, or stands still, only for as long as it warms up.
func whileWarmingUp(f, start *finding.Finding) bool {
	const about = trace.Time(5e9)
	slower := f.Subkind == finding.Stalls || f.Metric.After > f.Metric.Before
	return start.Full != 0 && f.At.Scope == place.OneRank && f.At.Overlaps(&start.At) && slower && f.Until != 0 && f.Until <= start.Full+about && f.Since+f.Within+about >= lifecycle.Began(start)
}
