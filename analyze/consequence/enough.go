package consequence

import (
	"strings"
	"time"

	"github.com/sgtrace/sgtrace/analyze/cause"
	"github.com/sgtrace/sgtrace/analyze/change"
	"github.com/sgtrace/sgtrace/analyze/change/work"
	"github.com/sgtrace/sgtrace/analyze/collective"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/gpuloss"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/analyze/serverlimit"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/tail"
	"github.com/sgtrace/sgtrace/analyze/telemetry"
	"github.com/sgtrace/sgtrace/analyze/telemetry/failed"
	"github.com/sgtrace/sgtrace/analyze/telemetry/held"
	"github.com/sgtrace/sgtrace/analyze/telemetry/slow"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
)

// The functions below are conditions for [finding.Consequence.Enough], on an effect and its cause.

// AsTheClock reports whether a server may be slower because of the clock of one of its GPUs:
// it became slower at about the time at which a scrape first showed the lower clock.
func AsTheClock(slower, clock *finding.Finding) bool {
	const scrapes = trace.Time(45e9)
	known := clock.At.Host != "" && slower.At.Scope == place.OneRank // it is known whose GPU it is
	if slower.Since == 0 {
		return known
	}
	return slower.Since >= clock.Since-scrapes && slower.Since <= clock.Since+scrapes || slower.Full != 0 && slower.Begins(clock.Since, scrapes)
}

// Since reports whether requests may take longer because of something: they do since about
// when that began, according to scrapes, and not only after it is over.
func Since(longer, of *finding.Finding) bool {
	const about, soon = trace.Time(15e9), trace.Time(60e9) // requests count only when they end
	return of.Since != 0 && of.Subkind != failed.Silent && longer.Since >= of.Since-2*longer.Within-of.Within-about && (of.Until == 0 || longer.Since <= of.Until+soon)
}

// asQueued reports whether a server seems to get more work than it can do only because its
// queue grows: no more requests arrive, but they take longer there.
func asQueued(more, slowed *finding.Finding) bool {
	return there(more, slowed) && more.Metric.Name == series.Metrics[series.Queued].Name
}

// withEmptyCache reports whether fewer tokens are cached because of a restart: on that server, and as soon as it gets requests.
func withEmptyCache(cached, restart *finding.Finding) bool {
	return there(cached, restart) && Since(cached, restart)
}

// withStrangers reports whether fewer tokens are cached since servers stopped serving: their
// sessions went to others, which have none of their tokens.
func withStrangers(cached, stop *finding.Finding) bool {
	return Since(cached, stop) && (cached.At.Scope == place.Everywhere || cached.At.Role == stop.At.Role)
}

// ofNobodyNamed reports whether the affected requests are unknown, as with logs.
func ofNobodyNamed(f, _ *finding.Finding) bool { return len(f.Affected.Requests()) == 0 }

// there reports whether f is on a single rank, at the place of another finding.
func there(f, of *finding.Finding) bool { return f.At.Scope == place.OneRank && of.At.Overlaps(&f.At) }

// reachedThere reports whether requests wait at a limit of servers that stood still. The
// backlog may stay, as clients that gave up retry.
func reachedThere(limit, stall *finding.Finding) bool {
	return limit.Since != 0 && stall.At.Overlaps(&limit.At)
}

// asItsClock reports whether a rank may be late because of the clock of its GPU, or of all
// GPUs of its host; and, unless it was always late, since about when the clock was low.
func asItsClock(late, clock *finding.Finding) bool {
	same := clock.At.Rank != trace.NoRank && clock.At.Rank == late.At.Rank || clock.At.Label != "" && clock.At == late.At // all ranks of one host
	return same && (late.Since == 0 || AsTheClock(late, clock))
}

// onItsServer reports whether a rank is late since about when one GPU of its server has a
// lower clock; whether it is the rank's GPU is unknown.
func onItsServer(late, clock *finding.Finding) bool {
	return late.At.Host != "" && late.At.Host == clock.At.Host && late.Since != 0 && clock.At.Rank == trace.NoRank && AsTheClock(late, clock)
}

// asItComputes reports whether kernels of a compute-bound late rank take longer since about when it is late.
func asItComputes(pace, late *finding.Finding) bool {
	return isComputeBound(pace, late) && (late.Since == 0 || AsItIsLate(pace, late))
}

// isComputeBound reports whether a rank is late because of what it computes.
func isComputeBound(_, late *finding.Finding) bool {
	return strings.Contains(late.Text, collective.ComputeBound)
}

// AsItIsLate reports whether something changed at about the time at which a rank became late.
func AsItIsLate(changed, late *finding.Finding) bool {
	const soon = trace.Time(2e9)
	off := soon + late.Within + changed.Within
	return late.Since != 0 && changed.Since >= late.Since-off && changed.Since <= late.Since+off
}

// asItsServer reports whether a server became slower at about the time at which one of its
// ranks became late, and by at most twice the lateness.
func asItsServer(pace, late *finding.Finding) bool {
	const most = 2
	slower := pace.Metric.After - pace.Metric.Before
	return new(pace.At.Team()).Overlaps(&late.At) && slower > 0 && slower <= most*late.Metric.After && AsItIsLate(pace, late)
}

// AsSlower reports whether requests may wait at a limit because the servers there became slower. If more requests had arrived, these
// would explain the limit instead. Decode steps that take a little longer leave no server without time for prefills, or without room.
func AsSlower(limit, became *finding.Finding) bool {
	slight := work.Of(&became.Metric) == "decode" && became.Metric.After < finding.Slight*became.Metric.Before
	other := limit.Subkind == serverlimit.Prefills.String() || limit.Subkind == serverlimit.Room.String()
	return became.Metric.After > became.Metric.Before && limit.At.Overlaps(&became.At) && !(slight && other)
}

// wasAsFast reports whether a server that seems to have always been slow became slower at some
// time, by at least half of its distance to its peers: then that explains most of the difference.
func wasAsFast(slow, became *finding.Finding) bool {
	const most = 0.5
	x, y := &slow.Metric, &became.Metric
	return slow.Since == 0 && became.Since != 0 && became.Until == 0 && became.At.Scope == place.OneRank && y.After > y.Before && x.After/x.Before-1 <= (y.After/y.Before-1)/most
}

// asLogsTell reports whether logs show about time per token what requests show.
func asLogsTell(logs, became *finding.Finding) bool {
	return logs.Metric.Name == slow.TimePerToken && logs.Metric.After > logs.Metric.Before && sinceThen(became, logs) &&
		(logs.At.Scope == place.OneRank || logs.At.Scope == became.At.Scope)
}

// asLogsCache reports whether logs show the same change of cached tokens as requests, at about the same time.
func asLogsCache(logs, traced *finding.Finding) bool {
	const about = trace.Time(30e9)
	return logs.Claim == nil && traced.Claim != nil && logs.Metric.After < logs.Metric.Before == (traced.Metric.After < traced.Metric.Before) && traced.Begins(logs.Since, about+logs.Within)
}

// asLogsStall reports whether a longer time per token in logs is a stall of that server at about that time.
func asLogsStall(logs, stalls *finding.Finding) bool {
	const about = trace.Time(15e9)
	return logs.Metric.Name == slow.TimePerToken && there(logs, stalls) && max(logs.Since-stalls.Since, stalls.Since-logs.Since) <= about+logs.Within
}

// sinceThen reports whether decoding became slower at about the time of a change in logs, whose times are those of groups of lines.
func sinceThen(became, logs *finding.Finding) bool {
	const pieces = trace.Time(30e9)
	return work.Of(&became.Metric) == "decode" && became.Metric.After > became.Metric.Before && logs.Since != 0 && became.Since != 0 && became.Begins(logs.Since, pieces)
}

// ofTokens reports whether a server is slower per token. Time per step, compared with that of
// peers, depends neither on caches nor on how many tokens a step yields.
func ofTokens(f, _ *finding.Finding) bool { return f.Metric.Name == slow.TimePerToken }

// asTheYield reports whether tokens take longer because a step yields fewer of them, and by no more than that explains.
func asTheYield(became, fewer *finding.Finding) bool {
	const about = 1.2
	return sinceThen(became, fewer) && became.Metric.After/became.Metric.Before <= about*fewer.Metric.Before/fewer.Metric.After
}

// costsMore reports whether a server that became slower than its peers at one kind of work became slower at
// the same time at another kind, which costs more: if all work takes longer, prefills are the least of it.
func costsMore(slow, became *finding.Finding) bool {
	off := trace.Time(2*time.Second) + slow.Within + became.Within
	return slow.Since != 0 && slow.Until == 0 && became.Until == 0 && max(slow.Since-became.Since, became.Since-slow.Since) <= off &&
		work.Of(&slow.Metric) != work.Of(&became.Metric) && became.At.Scope != place.Everywhere && became.Metric.After > became.Metric.Before && became.Cost > slow.Cost
}

// avoided reports whether a server gets a smaller share because it is slow, or another one of
// its role a larger one: routers avoid slow servers.
func avoided(share, slow *finding.Finding) bool {
	if share.At.Scope != place.OneRank || slow.At.Scope != place.OneRank || share.At.Role != slow.At.Role {
		return false
	}
	return share.At.Overlaps(&slow.At) == (share.Metric.After < share.Metric.Before)
}

// pastBusy reports whether the shares of servers change while tokenizers are too busy: requests
// of a busy tokenizer reach its scheduler later and in bursts, and routers send others elsewhere.
func pastBusy(share, busy *finding.Finding) bool {
	return share.Metric.Name == change.ShareOfRequests && share.At.Role == busy.At.Role
}

// showsIn reports whether a change is how all users see more load, or slower servers: everything takes longer.
func showsIn(seen, load *finding.Finding) bool {
	return isSeen(seen) && load.Metric.After > load.Metric.Before
}

// rises reports whether the metric of a finding rose.
func rises(f, _ *finding.Finding) bool { return f.Metric.After > f.Metric.Before }

// riseBoth reports whether the metrics of both findings rose.
func riseBoth(f, cause *finding.Finding) bool { return rises(f, nil) && rises(cause, nil) }

// falls reports whether the metric of a finding fell.
func falls(f, _ *finding.Finding) bool { return f.Metric.After < f.Metric.Before }

// withMore reports whether all KV transfers take longer while more requests arrive: servers are busy when one is through.
func withMore(transfers, load *finding.Finding) bool {
	return transfers.At.Scope == place.Everywhere && !withoutMore(load, transfers)
}

// withoutMore reports whether a change of the load is something else than more arrivals, which no server brings about.
func withoutMore(load, _ *finding.Finding) bool {
	return load.Metric.Name != change.Arrivals || load.Metric.After < load.Metric.Before
}

// isSeen reports whether all users see that something takes longer.
func isSeen(f *finding.Finding) bool {
	return f.At.Scope == place.Everywhere && f.Metric.After > f.Metric.Before
}

// easesOff reports whether users see times fall again once servers that stood still go on.
func easesOff(seen, stall *finding.Finding) bool {
	return seen.At.Scope == place.Everywhere && seen.Metric.After < seen.Metric.Before && stall.Until != 0 && seen.Since+seen.Within >= stall.Until
}

// seenBehind reports whether a change is how users see a limit, or how long the full batches
// of a server at its limit take, though work of that size takes as long as ever.
func seenBehind(f, limit *finding.Finding) bool {
	return isSeen(f) || f.Claim == nil && f.Metric.After > f.Metric.Before && there(f, limit)
}

// onThatRank reports whether both findings are on the same single rank.
func onThatRank(reached, skewed *finding.Finding) bool {
	return reached.At.Scope == place.OneRank && skewed.At.Scope == place.OneRank && reached.At.Overlaps(&skewed.At)
}

// onThatServer reports whether a DP rank may get more because another rank of its server gets nothing.
func onThatServer(more, idle *finding.Finding) bool {
	return more.At.Host == idle.At.Host && more.At.Server == idle.At.Server && more.At.Role == idle.At.Role && more.Metric.After > more.Metric.Before
}

// asTokensTakeLonger reports whether requests may pile up on a server because its tokens take
// longer: always, or since before the requests began to wait, within the resolution of log lines.
func asTokensTakeLonger(waits, slower *finding.Finding) bool {
	const pieces = trace.Time(15e9)
	return slower.At.Scope == place.OneRank && waits.At.Scope == place.OneRank && (slower.Since == 0 || waits.Since+waits.Within+pieces >= slower.Since)
}

// asMemoryFills reports whether tokens may take longer around evictions from a full KV cache:
// before, contexts that fill it make steps longer, and evicted requests are computed again.
func asMemoryFills(pace, retracted *finding.Finding) bool {
	const fills = trace.Time(60e9)
	return retracted.Metric.Name == held.Retracted && pace.Since != 0 && pace.Since+pace.Within+fills >= retracted.Since &&
		(retracted.Until == 0 || pace.Since <= retracted.Until+fills)
}

// mostlyOf returns a condition: most of the extra time of requests with something in common has cause c.
func mostlyOf(c cause.Cause) func(common, _ *finding.Finding) bool {
	return func(common, _ *finding.Finding) bool { return common.Mostly == c.String() }
}

// ofSameRequests reports whether two findings share at least half of the requests of the smaller one: the same prompts held them up.
func ofSameRequests(f, g *finding.Finding) bool {
	x, y := f.Affected.Requests(), order.Set(g.Affected.Requests())
	return 2*order.Count(x, func(r int) bool { return y[r] }) >= min(len(x), len(y))
}

// ofCachedTokens reports whether slow requests have a share of cached tokens in common, because fewer are cached for all requests.
func ofCachedTokens(common, fewer *finding.Finding) bool {
	return strings.HasPrefix(common.Subkind, tail.CachedTokens) && fewer.Metric.After < fewer.Metric.Before
}

// afterXid reports whether a server may have failed because of a GPU error: soon after it.
func afterXid(of, xid *finding.Finding) bool {
	const soon = trace.Time(120e9)
	before := trace.Time(5e9)      // clocks differ, and log lines may have whole seconds only
	if of.Subkind == failed.Hang { // since its last batch, which may have been logged some time ago
		before = 30e9
	}
	return strings.HasPrefix(xid.Subkind, "Xid ") && of.Since != 0 && of.Since >= xid.Since-before && of.Since <= xid.Since+soon
}

// afterFault reports whether processes wait for each other, or transfers fail, since about the time of a network fault.
func afterFault(of, fault *finding.Finding) bool {
	const before, soon = trace.Time(30e9), trace.Time(60e9) // the last batch before may have been logged some time ago
	return (of.Subkind != failed.Died || failed.Waited(of)) && of.Since != 0 && fault.Since != 0 && of.Since >= fault.Since-before && of.Since <= fault.Since+soon
}

// afterPeer reports whether a server lost its peers in transfers because another server died,
// as heartbeats show; or whether processes that waited for those of a dead server ended, too.
func afterPeer(lost, died *finding.Finding) bool {
	const before, soon = trace.Time(5e9), trace.Time(120e9)
	if lost.Subkind == failed.Died {
		return failed.Waited(lost) && !failed.Waited(died) && died.Since != 0 && max(lost.Since-died.Since, died.Since-lost.Since) <= soon/2
	}
	return failed.LostPeer(lost) && lost.At.Role != died.At.Role && died.Since != 0 && lost.Since >= died.Since-before && lost.Since <= died.Since+soon
}

// forProbe reports whether a server was told to shut down because a probe failed: at that
// time, as the killer logged it. That a busy server did not answer before explains the probe.
func forProbe(told, killed *finding.Finding) bool {
	const exact, patience = trace.Time(5e9), trace.Time(900e9)
	if told.Subkind == failed.Hang {
		return told.Cost == 0 && told.Since != 0 && told.Since <= killed.Since && killed.Since-max(told.Since, told.Until) <= patience
	}
	return killed.Since != 0 && max(told.Since-killed.Since, killed.Since-told.Since) <= exact
}

// withEmptyRouter reports whether fewer tokens are cached because a router restarted, and no longer knows which server has which.
func withEmptyRouter(cached, router *finding.Finding) bool {
	return cached.Metric.After < cached.Metric.Before && Since(cached, router) && cached.Since <= router.Since+trace.Time(60e9)
}

// afterItDied reports whether what an orchestrator and a router do to a server follows its end: soon after that.
func afterItDied(gone, died *finding.Finding) bool {
	const before, soon = trace.Time(5e9), trace.Time(900e9)
	return gone.At.Host != "" && gone.At.Host == died.At.Host && died.Since != 0 && gone.Since >= died.Since-before && gone.Since <= died.Since+soon
}

// withoutServers reports whether a router had no server for requests soon after one died.
func withoutServers(refused, died *finding.Finding) bool {
	const soon = trace.Time(900e9)
	return strings.Contains(refused.Text, "has no server for a request") && died.Since != 0 && refused.Since <= died.Since+soon
}

// asItRaised reports whether a server answered with errors because of an exception that it survived: at the same time, as far as
// stamps in whole seconds show that, and no more often.
func asItRaised(answers, raised *finding.Finding) bool {
	const stamps = trace.Time(2e9)
	near := func(a, b trace.Time) bool { return max(a-b, b-a) <= stamps }
	return answers.At.Host != "" && answers.At.Host == raised.At.Host && answers.Metric.Name == failed.ServerErrors && answers.Metric.After <= raised.Metric.After &&
		near(answers.Since, raised.Since) && near(max(answers.Since, answers.Until), max(raised.Since, raised.Until))
}

// asItWasKilled reports whether a restarted server was killed while it was away.
func asItWasKilled(started, killed *finding.Finding) bool {
	const clocks = trace.Time(5e9)
	return started.At.Host != "" && started.At.Host == killed.At.Host && killed.Since >= started.Since-clocks && killed.Since <= started.Until+clocks
}

// afterHang reports whether a server may have been given up because of a collective that does not
// end: after that began, and before watchdogs lose patience, by default after half an hour at most.
func afterHang(failed, hang *finding.Finding) bool {
	const before, patience = trace.Time(60e9), trace.Time(2400e9) // clocks differ
	return hang.Since != 0 && failed.Since != 0 && failed.Since >= hang.Since-before && failed.Since <= hang.Since+patience
}

// ofWatchdog reports whether a log tells what a hang was found by: a collective that a watchdog saw time out.
func ofWatchdog(told, hang *finding.Finding) bool {
	return failed.TimedOut(told) && (hang.Since == 0 || told.Since == 0 || told.Since >= hang.Since)
}

// lasts reports whether a gateway may hold requests because a server is away: for as long as
// that is, and until soon after it is back.
func lasts(kept, away *finding.Finding) bool {
	const soon = trace.Time(10e9) // until health checks see it
	return away.Until == 0 && kept.Until == 0 || away.Until != 0 && kept.Until != 0 && kept.Until <= away.Until+soon
}

// askAgain reports whether more requests may arrive because clients give up and retry.
func askAgain(load, givenUp *finding.Finding) bool {
	const about = 1.2
	return load.Metric.Name == change.Arrivals && load.Metric.After-load.Metric.Before <= about*givenUp.Metric.After
}

// worksOff reports whether a server may be slower for a while because it works off the backlog
// of a stall, in fuller batches than ever.
func worksOff(slower, stall *finding.Finding) bool {
	return slower.Until != 0 && slower.At == stall.At
}

// ofIdle reports whether a finding about idle devices covers all of the idle time, including longer gaps before kernels.
func ofIdle(_, idle *finding.Finding) bool {
	return gpuloss.AboutIdle(idle) && idle.Metric.Name == gpuloss.IdleMetric
}

// mostOfIdle reports whether longer gaps explain most of that idle time.
func mostOfIdle(gaps, idle *finding.Finding) bool {
	return ofIdle(gaps, idle) && 2*gaps.Cost >= idle.Cost
}

// throughPrefill reports whether more requests reach decode servers because more reach prefill servers: they are the same requests.
func throughPrefill(more, first *finding.Finding) bool {
	return more.At.Role == request.Decode && first.At.Role == request.Prefill && more.Metric.Name == first.Metric.Name && more.Metric.Name == telemetry.RequestRate && Since(more, first)
}

// behindTransfers reports whether requests take longer on a server because the KV cache reaches it, or leaves it, more slowly.
func behindTransfers(longer, slower *finding.Finding) bool {
	return longer.At.Role != request.Unified && longer.Metric.Name == series.Metrics[series.TTFT].Name && Since(longer, slower)
}

// behindDecode reports whether requests take longer on a prefill server because decode servers
// have no room: prompts are computed and sent only if there is room.
func behindDecode(longer, full *finding.Finding) bool {
	return longer.At.Role == request.Prefill && full.At.Role == request.Decode && Since(longer, full)
}

// asTransfers reports whether transfers may explain what takes longer. A stage that contains a transfer, or
// waits for one, grows by no more than the transfer does; and users may see more requests that wait for long.
func asTransfers(slower, link *finding.Finding) bool {
	x, y := &slower.Metric, &link.Metric
	return x.Unit == table.Share && isSeen(slower) || x.Unit == table.Duration && y.Unit == table.Duration && x.After > x.Before && x.After-x.Before <= 1.5*(y.After-y.Before)
}
