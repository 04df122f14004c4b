package finders

import (
	"strings"
	"time"

	"github.com/sgtrace/sgtrace/analyze/cause"
	"github.com/sgtrace/sgtrace/analyze/change"
	"github.com/sgtrace/sgtrace/analyze/collective"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/gpuloss"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/analyze/tail"
	"github.com/sgtrace/sgtrace/analyze/telemetry/failed"
	"github.com/sgtrace/sgtrace/analyze/telemetry/held"
	"github.com/sgtrace/sgtrace/analyze/telemetry/slow"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
)

// What follows is what [finding.Consequence.Enough] asks of an effect and its cause.

// asTheClock reports whether a server may be slower for the clock of one of its GPUs: it became so
// about when a scrape saw the clock first.
func asTheClock(slower, clock *finding.Finding) bool {
	const scrapes = trace.Time(45e9)
	known := clock.At.Host != "" && slower.At.Scope == place.OneRank // which server's GPU it is
	if slower.Since == 0 {
		return known
	}
	return slower.Since >= clock.Since-scrapes && slower.Since <= clock.Since+scrapes || slower.Full != 0 && slower.Begins(clock.Since, scrapes)
}

// since reports whether requests may take longer for something: since about when that began, as scrapes tell it, and not after
// it is over.
func since(longer, of *finding.Finding) bool {
	const about, soon = trace.Time(15e9), trace.Time(60e9) // a request counts when it ends: later
	return of.Since != 0 && of.Subkind != failed.Silent && longer.Since >= of.Since-2*longer.Within-of.Within-about && (of.Until == 0 || longer.Since <= of.Until+soon)
}

// asQueued reports whether a queue grows, by which more seems to be asked of a server than it does, while no more requests come than before:
// there, for what takes longer.
func asQueued(more, slowed *finding.Finding) bool {
	return there(more, slowed) && more.Metric.Name == series.Metrics[series.Queued].Name
}

// withEmptyCache reports whether fewer tokens are cached for a restart: there, and as soon as the server has requests.
func withEmptyCache(cached, restart *finding.Finding) bool {
	return there(cached, restart) && since(cached, restart)
}

// withStrangers reports whether fewer tokens are cached since servers ceased to serve: their sessions come to others, which know nothing of them.
func withStrangers(cached, stop *finding.Finding) bool {
	return since(cached, stop) && (cached.At.Scope == place.Everywhere || cached.At.Role == stop.At.Role)
}

// ofNobodyNamed reports whether nobody knows which requests a finding is about, as it is with logs.
func ofNobodyNamed(f, _ *finding.Finding) bool { return len(f.Affected.Requests()) == 0 }

// there reports whether something is at the place of another finding, and nowhere else.
func there(f, of *finding.Finding) bool { return f.At.Scope == place.OneRank && of.At.Overlaps(&f.At) }

// reachedThere reports whether requests wait at a limit of servers that stood still, since then: what piled up may not go away, as clients
// ask again for what they gave up.
func reachedThere(limit, stall *finding.Finding) bool {
	return limit.Since != 0 && stall.At.Overlaps(&limit.At)
}

// asItsClock reports whether a rank may be late for the clock of its GPU: of that very rank, or of all GPUs of a host for those of all
// its ranks, and since about then if it was not late all the time.
func asItsClock(late, clock *finding.Finding) bool {
	same := clock.At.Rank != trace.NoRank && clock.At.Rank == late.At.Rank || clock.At.Label != "" && clock.At == late.At // all of one host
	return same && (late.Since == 0 || asTheClock(late, clock))
}

// onItsServer reports whether a rank is late since about when one GPU of its server has a lower clock: which rank has that GPU, nothing tells.
func onItsServer(late, clock *finding.Finding) bool {
	return late.At.Host != "" && late.At.Host == clock.At.Host && late.Since != 0 && clock.At.Rank == trace.NoRank && asTheClock(late, clock)
}

// asItComputes reports whether kernels of a rank take longer since about when it is late for what it computes.
func asItComputes(pace, late *finding.Finding) bool {
	return isComputeBound(pace, late) && (late.Since == 0 || asItIsLate(pace, late))
}

// isComputeBound reports whether a rank is late for what it computes.
func isComputeBound(_, late *finding.Finding) bool {
	return strings.Contains(late.Text, collective.ComputeBound)
}

// asItIsLate reports whether something may have changed for a rank that is late since about then.
func asItIsLate(changed, late *finding.Finding) bool {
	const soon = trace.Time(2e9)
	off := soon + late.Within + changed.Within
	return late.Since != 0 && changed.Since >= late.Since-off && changed.Since <= late.Since+off
}

// asItsServer reports whether a server became slower for a rank of it that is late since about then: by no more than twice as much.
func asItsServer(pace, late *finding.Finding) bool {
	const most = 2
	slower := pace.Metric.After - pace.Metric.Before
	return new(pace.At.Team()).Overlaps(&late.At) && slower > 0 && slower <= most*late.Metric.After && asItIsLate(pace, late)
}

// asSlower reports whether requests may wait at a limit because the servers there became slower, and not because
// more came, which would have the limit for itself.
func asSlower(limit, became *finding.Finding) bool {
	return became.Metric.After > became.Metric.Before && limit.At.Overlaps(&became.At)
}

// wasAsFast reports whether a server that seems to have been slow all the time was about as fast as its peers
// before it became slower: that explains most of the difference.
func wasAsFast(slow, became *finding.Finding) bool {
	const most = 0.5
	x, y := &slow.Metric, &became.Metric
	return slow.Since == 0 && became.Since != 0 && became.Until == 0 && became.At.Scope == place.OneRank && y.After > y.Before && x.After/x.Before-1 <= (y.After/y.Before-1)/most
}

// workOf is which work the metric of a pace is of.
func workOf(m *finding.Metric) string {
	work, _, _ := strings.Cut(m.Name, " ")
	return work
}

// asLogsTell reports whether logs tell of tokens what requests do.
func asLogsTell(logs, became *finding.Finding) bool {
	return logs.Metric.Name == slow.TimePerToken && logs.Metric.After > logs.Metric.Before && sinceThen(became, logs) &&
		(logs.At.Scope == place.OneRank || logs.At.Scope == became.At.Scope)
}

// asLogsCache reports whether logs tell of cached tokens what requests do, since about then.
func asLogsCache(logs, traced *finding.Finding) bool {
	const about = trace.Time(30e9)
	return logs.Claim == nil && traced.Claim != nil && logs.Metric.After < logs.Metric.Before == (traced.Metric.After < traced.Metric.Before) && traced.Begins(logs.Since, about+logs.Within)
}

// asLogsStall reports whether logs tell of tokens, there and since about then, that a server stands still.
func asLogsStall(logs, stalls *finding.Finding) bool {
	const about = trace.Time(15e9)
	return logs.Metric.Name == slow.TimePerToken && there(logs, stalls) && max(logs.Since-stalls.Since, stalls.Since-logs.Since) <= about+logs.Within
}

// sinceThen reports whether tokens take longer since about when logs tell of something, as pieces of some lines do.
func sinceThen(became, logs *finding.Finding) bool {
	const pieces = trace.Time(30e9)
	return workOf(&became.Metric) == "decode" && became.Metric.After > became.Metric.Before && logs.Since != 0 && became.Since != 0 && became.Begins(logs.Since, pieces)
}

// ofTokens reports whether a server is slower for each token: what it takes for a step, beside its peers, depends on no cache, nor on how
// many tokens come out of it.
func ofTokens(f, _ *finding.Finding) bool { return f.Metric.Name == slow.TimePerToken }

// asTheYield reports whether tokens take longer because fewer of them come out of a step: by no more than that.
func asTheYield(became, fewer *finding.Finding) bool {
	const about = 1.2
	return sinceThen(became, fewer) && became.Metric.After/became.Metric.Before <= about*fewer.Metric.Before/fewer.Metric.After
}

// costsMore reports whether a server that is slower than its peers from some point on became so then at what costs more: where it
// takes longer for all that it does, prefills are the least of it.
func costsMore(slow, became *finding.Finding) bool {
	off := trace.Time(2*time.Second) + slow.Within + became.Within
	return slow.Since != 0 && slow.Until == 0 && became.Until == 0 && max(slow.Since-became.Since, became.Since-slow.Since) <= off &&
		workOf(&slow.Metric) != workOf(&became.Metric) && became.At.Scope != place.Everywhere && became.Metric.After > became.Metric.Before && became.Cost > slow.Cost
}

// avoided reports whether routers send less to a server because it is slow, and so more to another one of
// its role.
func avoided(share, slow *finding.Finding) bool {
	if share.At.Scope != place.OneRank || slow.At.Scope != place.OneRank || share.At.Role != slow.At.Role {
		return false
	}
	return share.At.Overlaps(&slow.At) == (share.Metric.After < share.Metric.Before)
}

// pastBusy reports whether servers get more or less of the requests while tokenizers are too busy: those of a busy one come to its
// scheduler later, many at a time, and routers send others elsewhere.
func pastBusy(share, busy *finding.Finding) bool {
	return share.Metric.Name == change.ShareOfRequests && share.At.Role == busy.At.Role
}

// showsIn reports whether users see more load, or servers that became slower, in what changed: all of them, in how long it takes.
func showsIn(seen, load *finding.Finding) bool {
	return isSeen(seen) && load.Metric.After > load.Metric.Before
}

// rises reports whether there is more of what a finding is about than before.
func rises(f, _ *finding.Finding) bool { return f.Metric.After > f.Metric.Before }

// isSeen reports whether something is what all users see: it takes longer.
func isSeen(f *finding.Finding) bool {
	return f.At.Scope == place.Everywhere && f.Metric.After > f.Metric.Before
}

// easesOff reports whether what all users see takes less time again once servers go on that stood still.
func easesOff(seen, stall *finding.Finding) bool {
	return seen.At.Scope == place.Everywhere && seen.Metric.After < seen.Metric.Before && stall.Until != 0 && seen.Since+seen.Within >= stall.Until
}

// seenBehind reports whether a change is what users see of a limit, or what the batches of a server that is at its limit take: these are full,
// and work of that size takes as long as ever.
func seenBehind(f, limit *finding.Finding) bool {
	return isSeen(f) || f.Claim == nil && f.Metric.After > f.Metric.Before && there(f, limit)
}

// onThatRank reports whether a limit is reached where the load is, and nowhere else.
func onThatRank(reached, skewed *finding.Finding) bool {
	return reached.At.Scope == place.OneRank && skewed.At.Scope == place.OneRank && reached.At.Overlaps(&skewed.At)
}

// onThatServer reports whether a DP rank may get more because another one of its server gets nothing.
func onThatServer(more, idle *finding.Finding) bool {
	return more.At.Host == idle.At.Host && more.At.Server == idle.At.Server && more.At.Role == idle.At.Role && more.Metric.After > more.Metric.Before
}

// asTokensTakeLonger reports whether requests may pile up on a server because its tokens take longer: since about then,
// as pieces of some lines tell, or always.
func asTokensTakeLonger(waits, slower *finding.Finding) bool {
	const pieces = trace.Time(15e9)
	return slower.At.Scope == place.OneRank && waits.At.Scope == place.OneRank && (slower.Since == 0 || waits.Since+pieces >= slower.Since)
}

// asMemoryFills reports whether tokens may take longer because requests are thrown out of a full KV cache:
// it fills before, with contexts that steps take longer for, and what was thrown out is computed again.
func asMemoryFills(pace, retracted *finding.Finding) bool {
	const fills = trace.Time(60e9)
	return retracted.Metric.Name == held.Retracted && pace.Since != 0 && pace.Since+pace.Within+fills >= retracted.Since &&
		(retracted.Until == 0 || pace.Since <= retracted.Until+fills)
}

// mostlyOf reports whether most of what requests with something in common take longer is of one cause.
func mostlyOf(c cause.Cause) func(common, _ *finding.Finding) bool {
	return func(common, _ *finding.Finding) bool { return common.Mostly == c.String() }
}

// ofSameRequests reports whether half of the requests that one of two findings has, if not more, are of the other, too: the same prompts held them
// up.
func ofSameRequests(f, g *finding.Finding) bool {
	x, y := f.Affected.Requests(), order.Set(g.Affected.Requests())
	return 2*order.Count(x, func(r int) bool { return y[r] }) >= min(len(x), len(y))
}

// ofCachedTokens reports whether slow requests have in common how many of their tokens are cached: since these are
// fewer, for every request.
func ofCachedTokens(common, fewer *finding.Finding) bool {
	return strings.HasPrefix(common.Subkind, tail.CachedTokens) && fewer.Metric.After < fewer.Metric.Before
}

// afterXid reports whether a server may have failed for an error of a GPU: soon after it.
func afterXid(failed, xid *finding.Finding) bool {
	const before, soon = trace.Time(5e9), trace.Time(120e9) // clocks differ, and a stamp of a log is of a second
	return strings.HasPrefix(xid.Subkind, "Xid ") && failed.Since != 0 && failed.Since >= xid.Since-before && failed.Since <= xid.Since+soon
}

// afterFault reports whether processes wait for each other, or transfers fail, for a fault of the network: since about then.
func afterFault(of, fault *finding.Finding) bool {
	const before, soon = trace.Time(30e9), trace.Time(60e9) // the last batch before it may have been logged a while ago
	return (of.Subkind != failed.Died || failed.Waited(of)) && of.Since != 0 && fault.Since != 0 && of.Since >= fault.Since-before && of.Since <= fault.Since+soon
}

// afterPeer reports whether a server lost the other side of its transfers as that died, which heartbeats tell it, or processes ended that
// waited for those of a server that died.
func afterPeer(lost, died *finding.Finding) bool {
	const before, soon = trace.Time(5e9), trace.Time(120e9)
	if lost.Subkind == failed.Died {
		return failed.Waited(lost) && !failed.Waited(died) && died.Since != 0 && max(lost.Since-died.Since, died.Since-lost.Since) <= soon/2
	}
	return failed.LostPeer(lost) && lost.At.Role != died.At.Role && died.Since != 0 && lost.Since >= died.Since-before && lost.Since <= died.Since+soon
}

// forProbe reports whether a server was told to shut down because a probe of it failed: right then, by who says so. That it did not
// answer before, being busy, is why.
func forProbe(told, killed *finding.Finding) bool {
	const exact, patience = trace.Time(5e9), trace.Time(900e9)
	if told.Subkind == failed.Hang {
		return told.Cost == 0 && told.Since != 0 && told.Since <= killed.Since && killed.Since-max(told.Since, told.Until) <= patience
	}
	return killed.Since != 0 && max(told.Since-killed.Since, killed.Since-told.Since) <= exact
}

// withEmptyRouter reports whether fewer tokens are cached as a router began anew, which knows no longer which server has what.
func withEmptyRouter(cached, router *finding.Finding) bool {
	return cached.Metric.After < cached.Metric.Before && since(cached, router) && cached.Since <= router.Since+trace.Time(60e9)
}

// afterItDied reports whether what an orchestrator and a router do to a server is for its end: soon after that.
func afterItDied(gone, died *finding.Finding) bool {
	const before, soon = trace.Time(5e9), trace.Time(900e9)
	return gone.At.Host != "" && gone.At.Host == died.At.Host && died.Since != 0 && gone.Since >= died.Since-before && gone.Since <= died.Since+soon
}

// asItWasKilled reports whether a server was started again in whose absence it was killed.
func asItWasKilled(started, killed *finding.Finding) bool {
	const clocks = trace.Time(5e9)
	return started.At.Host != "" && started.At.Host == killed.At.Host && killed.Since >= started.Since-clocks && killed.Since <= started.Until+clocks
}

// afterHang reports whether a server may have been given up for a collective that does not end: once that began,
// and not much later than watchdogs wait, which is half an hour at most unless somebody sets them.
func afterHang(failed, hang *finding.Finding) bool {
	const before, patience = trace.Time(60e9), trace.Time(2400e9) // clocks differ
	return hang.Since != 0 && failed.Since != 0 && failed.Since >= hang.Since-before && failed.Since <= hang.Since+patience
}

// isSymptom reports whether a finding tells where time went, and not why: if another one
// explains all of that time, it says nothing more.
func isSymptom(f *finding.Finding) bool {
	switch f.Kind {
	case finding.Tail, finding.Limit:
		return true
	case finding.Memory:
		return f.CostBasis != finding.Ranks // memory of a device is no part of the time of requests
	case finding.Load:
		return f.Subkind == finding.Waits || f.Subkind == finding.LonePrompts
	case finding.Transfer: // slow ones; since when says more
		return f.Since == 0 || f.Subkind == finding.Waits
	case finding.Common:
		return f.Subkind == tail.PlaceSubkind
	case finding.Change: // of what users see
		return f.Subkind == "" && f.At.Scope == place.Everywhere && f.CostBasis == finding.RequestTime
	}
	return false
}

// lasts reports whether a gateway may keep requests because a server is away: it does for as long as that,
// and hands them on soon after it is back.
func lasts(kept, away *finding.Finding) bool {
	const soon = trace.Time(10e9) // until health checks see it
	return away.Until == 0 && kept.Until == 0 || away.Until != 0 && kept.Until != 0 && kept.Until <= away.Until+soon
}

// askAgain reports whether clients that give up and ask again may be why more requests arrive.
func askAgain(load, givenUp *finding.Finding) bool {
	const about = 1.2
	return load.Metric.Name == change.Arrivals && load.Metric.After-load.Metric.Before <= about*givenUp.Metric.After
}

// worksOff reports whether a server may be slower for a while as it works off what queued up while
// it stood still, in batches that are fuller than ever.
func worksOff(slower, stall *finding.Finding) bool {
	return slower.Until != 0 && slower.At == stall.At
}

// claimsAt is in which turn a finding claims time of requests: first what is slower at the same
// load, then load, which is why anything else is, and last symptoms.
func claimsAt(f *finding.Finding) int {
	switch {
	case isSymptom(f):
		return 2
	case f.Kind == finding.Load:
		return 1
	}
	return 0
}

// whatever takes any finding.
func whatever(*finding.Finding) bool { return true }

// comesAndGoes reports whether a finding is about what requests do to each other: they queue and
// hold each other up on every server now and then, and no server is at fault.
func comesAndGoes(f *finding.Finding) bool {
	return (f.Kind == finding.Load || f.Kind == finding.Imbalance || f.Kind == finding.Tail) && f.CostBasis == finding.RequestTime
}

// hardlyCosts reports whether a server became slower by so little, or for so short, that nobody
// would notice.
func hardlyCosts(f *finding.Finding) bool {
	const least = 0.005 // of the time of requests
	return f.Kind == finding.Change && f.Subkind == change.Pace && f.Cost < least
}

// costly and free tell whether a finding costs so much that anyone would notice: load comes and
// goes.
func costly(f *finding.Finding) bool { return f.Cost >= minLoadCost }
func free(f *finding.Finding) bool   { return !costly(f) }

// minLoadCost is the part of the time of requests that load, or a tail for it, costs at least.
const minLoadCost = 0.02

// ofIdle reports whether a finding about idle devices is about all of the time for which gaps in front of kernels take longer.
func ofIdle(_, idle *finding.Finding) bool {
	return gpuloss.AboutIdle(idle) && idle.Metric.Name == gpuloss.IdleMetric
}

// mostOfIdle reports whether most of that is for gaps that take longer.
func mostOfIdle(gaps, idle *finding.Finding) bool {
	return ofIdle(gaps, idle) && 2*gaps.Cost >= idle.Cost
}
