package finders

import (
	"strings"
	"time"

	"github.com/sgtrace/sgtrace/analyze/cause"
	"github.com/sgtrace/sgtrace/analyze/change"
	"github.com/sgtrace/sgtrace/analyze/collective"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/gpuloss"
	"github.com/sgtrace/sgtrace/analyze/hardware"
	"github.com/sgtrace/sgtrace/analyze/lifecycle"
	"github.com/sgtrace/sgtrace/analyze/metric"
	"github.com/sgtrace/sgtrace/analyze/overtime"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/analyze/rank"
	"github.com/sgtrace/sgtrace/analyze/requests"
	"github.com/sgtrace/sgtrace/analyze/serverlimit"
	"github.com/sgtrace/sgtrace/analyze/tail"
	"github.com/sgtrace/sgtrace/analyze/telemetry/failed"
	"github.com/sgtrace/sgtrace/analyze/telemetry/slow"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
)

// consequences: requests are sent elsewhere or pile up from when a server hangs, dies, or is restarted, they wait where a limit is reached and are thrown out of a full KV
// cache, load makes decoding slow, ranks wait for a slow one where they communicate, and a server that is slow may have become so.
// That slow requests were on one rank says less than why that rank is slow, but whose they
// are says more than where their time went.
var consequences = []finding.Consequence{
	{Cause: finding.Errors, CauseSubkind: requests.GivenUp, Effect: finding.Load, Subkinds: []string{""}, Later: true, Enough: askAgain},
	{Cause: finding.Lifecycle, CauseSubkind: lifecycle.Restart, Effect: finding.Load, Subkinds: []string{"", finding.Waits, slow.Demand}, AtPlaces: true, Around: true},
	{Cause: finding.Lifecycle, CauseSubkind: failed.Restarted, Effect: finding.Change, Subkinds: []string{finding.CachedTokens}, Enough: withEmptyCache, Costs: true},
	{Cause: finding.Lifecycle, CauseSubkind: lifecycle.Restart, Effect: finding.Change, Subkinds: []string{finding.CachedTokens}, Enough: withEmptyCache, Costs: true},
	{Cause: finding.Lifecycle, CauseSubkind: lifecycle.Death, Effect: finding.Change, Subkinds: []string{finding.CachedTokens}, Enough: withEmptyCache, Costs: true},
	{Cause: finding.Lifecycle, CauseSubkind: failed.Restarted, Effect: finding.Limit, Subkinds: slow.LimitSubkinds, Around: true, Enough: there, Costs: true},
	{Cause: finding.Lifecycle, CauseSubkind: lifecycle.Start, Effect: finding.Load, Subkinds: []string{""}, AtPlaces: true, Around: true},
	{Cause: finding.Lifecycle, CauseSubkind: lifecycle.Stop, Effect: finding.Load, Subkinds: []string{"", finding.Waits, slow.Demand}, AtPlaces: true, Around: true, Costs: true},
	{Cause: finding.Lifecycle, CauseSubkind: lifecycle.Restart, Effect: finding.Imbalance, Subkinds: []string{""}},
	{Cause: finding.Lifecycle, CauseSubkind: lifecycle.Start, Effect: finding.Imbalance, Subkinds: []string{""}},
	{Cause: finding.Lifecycle, CauseSubkind: lifecycle.Stop, Effect: finding.Imbalance, Subkinds: []string{""}, Costs: true},
	{Cause: finding.Lifecycle, CauseSubkind: lifecycle.Unseen, Effect: finding.Load, Subkinds: []string{""}, AtPlaces: true, Around: true},
	{Cause: finding.Lifecycle, CauseSubkind: lifecycle.Unseen, Effect: finding.Imbalance, Subkinds: []string{""}, Elsewhere: true},
	{Cause: finding.Lifecycle, CauseSubkind: lifecycle.Death, Effect: finding.Errors, Subkinds: []string{""}, SameRequests: true},
	{Cause: finding.Lifecycle, CauseSubkind: lifecycle.Hang, Effect: finding.Errors, Subkinds: []string{""}, SameRequests: true},
	{Cause: finding.Lifecycle, CauseSubkind: lifecycle.Hang, Effect: finding.Load, Subkinds: []string{"", finding.Waits}, Later: true, AtPlaces: true},
	{Cause: finding.Lifecycle, CauseSubkind: lifecycle.Hang, Effect: finding.Limit, Subkinds: serverlimit.Subkinds, Later: true},
	{Cause: finding.Lifecycle, CauseSubkind: lifecycle.Death, Effect: finding.Load, Subkinds: []string{"", finding.Waits, slow.Demand}, AtPlaces: true, Around: true},
	{Cause: finding.Lifecycle, CauseSubkind: lifecycle.Death, Effect: finding.Imbalance, Subkinds: []string{""}},
	{Cause: finding.Lifecycle, CauseSubkind: lifecycle.Death, Effect: finding.Limit, Subkinds: serverlimit.Subkinds, Later: true},
	{Cause: finding.Lifecycle, CauseSubkind: lifecycle.Restart, Effect: finding.Front, Subkinds: []string{serverlimit.Gateway}, Around: true, Enough: lasts, Costs: true},
	{Cause: finding.Lifecycle, CauseSubkind: lifecycle.Restart, Effect: finding.Transfer, Subkinds: []string{"", finding.Waits}, AtPlaces: true, Around: true, Costs: true},
	{Cause: finding.Lifecycle, CauseSubkind: lifecycle.Death, Effect: finding.Front, Subkinds: []string{serverlimit.Gateway}, Around: true, Enough: lasts, Costs: true},
	{Cause: finding.Lifecycle, CauseSubkind: lifecycle.Death, Effect: finding.Transfer, Subkinds: []string{"", finding.Waits}, AtPlaces: true, Around: true, Costs: true},
	{Cause: finding.GPU, CauseSubkind: hardware.ClockSubkind, Effect: finding.Slower, Subkinds: []string{""}, Enough: asTheClock, Costs: true},
	{Cause: finding.GPU, CauseSubkind: hardware.ClockSubkind, Effect: finding.Change, Subkinds: []string{change.Pace}, Enough: asTheClock, Costs: true},
	{Cause: finding.GPU, CauseSubkind: hardware.ClockSubkind, Effect: finding.Load, Subkinds: []string{""}, AtPlaces: true, Enough: asTheClock},
	{Cause: finding.GPU, CauseSubkind: hardware.ClockSubkind, Effect: finding.Imbalance, Subkinds: []string{""}, Enough: asTheClock},
	{Cause: finding.Errors, CauseSubkind: failed.Died, Effect: finding.Lifecycle, Subkinds: failed.Gone, Elsewhere: true, Enough: afterItDied},
	{Cause: finding.Errors, CauseSubkind: failed.Died, Effect: finding.Errors, Subkinds: []string{failed.HTTP}, Later: true, Enough: afterItDied, Costs: true},
	{Cause: finding.Errors, CauseSubkind: failed.Transfers, Effect: finding.Errors, Subkinds: []string{failed.HTTP}, Later: true, Enough: afterItDied, Costs: true},
	{Cause: finding.GPU, Effect: finding.Errors, Subkinds: []string{failed.Died, failed.Transfers}, Enough: afterXid, Costs: true},
	{Cause: finding.GPU, Effect: finding.Lifecycle, Subkinds: []string{lifecycle.Death, lifecycle.Stop, lifecycle.Hang, failed.Hang}, Enough: afterXid, Costs: true},
	{Cause: finding.GPU, CauseSubkind: hardware.Network, Effect: finding.Errors, Subkinds: []string{failed.Died, failed.Transfers, failed.Communication}, Enough: afterFault, Elsewhere: true, Costs: true},
	{Cause: finding.Errors, CauseSubkind: failed.Died, Effect: finding.Errors, Subkinds: []string{failed.Transfers, failed.Died}, Enough: afterPeer, Elsewhere: true, Costs: true},
	{Cause: finding.Lifecycle, CauseSubkind: lifecycle.Hang, Effect: finding.Errors, Subkinds: []string{failed.Transfers}, Enough: afterPeer, Elsewhere: true},
	{Cause: finding.Lifecycle, CauseSubkind: lifecycle.Death, Effect: finding.Errors, Subkinds: []string{failed.Transfers}, Enough: afterPeer, Elsewhere: true},
	{Cause: finding.Lifecycle, CauseSubkind: failed.Taken + " Killed", Effect: finding.Lifecycle, Subkinds: []string{failed.Stop, failed.Hang}, Enough: forProbe, Elsewhere: true},
	{Cause: finding.Transfer, CauseSubkind: slow.SlowLink, Effect: finding.Transfer, Subkinds: []string{"", finding.Waits, cause.Transfer.String()}, Around: true, Costs: true},
	{Cause: finding.Transfer, CauseSubkind: slow.SlowLink, Effect: finding.Transfer, Subkinds: []string{"", finding.Waits, cause.Transfer.String()}},
	{Cause: finding.Transfer, CauseSubkind: slow.SlowLink, Effect: finding.Change, Subkinds: []string{""}, Around: true, Enough: asTransfers},
	{Cause: finding.Errors, CauseSubkind: failed.Died, Effect: finding.Lifecycle, Subkinds: []string{lifecycle.Death, lifecycle.Stop, lifecycle.Restart}, Around: true},
	{Cause: finding.Errors, CauseSubkind: failed.Died, Effect: finding.Load, Subkinds: []string{"", finding.Waits, slow.Demand}, AtPlaces: true, Around: true},
	{Cause: finding.Errors, CauseSubkind: failed.Died, Effect: finding.Imbalance, Subkinds: []string{""}, Around: true},
	{Cause: finding.Transfer, CauseSubkind: slow.SlowLink, Effect: finding.Load, Subkinds: []string{"", finding.Waits}, Around: true},
	{Cause: finding.Hang, Effect: finding.Lifecycle, Subkinds: []string{lifecycle.Death, lifecycle.Hang, failed.Hang, failed.Taken + " Killed"}, Around: true, Enough: afterHang, Costs: true},
	{Cause: finding.Hang, Effect: finding.Change, Subkinds: []string{finding.Stalls}, Around: true, Enough: afterHang, Costs: true},
	{Cause: finding.Hang, Effect: finding.Errors, Subkinds: []string{failed.Died, requests.GivenUp}, Around: true, Enough: afterHang, Costs: true},
	{Cause: finding.Front, Effect: finding.Tail, Subkinds: []string{cause.Router.String(), cause.Dispatch.String(), cause.Unaccounted.String()}},
	{Cause: finding.Front, Effect: finding.Change, Subkinds: []string{change.TokenizingSubkind}},
	{Cause: finding.Front, CauseSubkind: serverlimit.Tokenizer, Effect: finding.Tail, Subkinds: []string{cause.Return.String()}}, // it answers, too
	{Cause: finding.Front, CauseSubkind: serverlimit.Answering, Effect: finding.Tail, Subkinds: []string{cause.Return.String()}},
	{Cause: finding.Front, Effect: finding.Change, Subkinds: []string{""}, Around: true, Enough: showsIn},
	{Cause: finding.Front, Effect: finding.Common, Subkinds: []string{tail.PlaceSubkind}, SameRequests: true},
	{Cause: finding.Front, CauseSubkind: serverlimit.Tokenizer, Effect: finding.Common, Subkinds: []string{tail.PlaceSubkind}, Enough: mostlyOf(cause.Dispatch)},
	{Cause: finding.Front, CauseSubkind: serverlimit.Answering, Effect: finding.Common, Subkinds: []string{tail.PlaceSubkind}, Enough: mostlyOf(cause.Return)},
	{Cause: finding.Change, CauseSubkind: finding.Stalls, Effect: finding.Limit, Subkinds: slow.LimitSubkinds, Around: true, Enough: there, Costs: true},
	{Cause: finding.Change, CauseSubkind: finding.Stalls, Effect: finding.Limit, Subkinds: serverlimit.OfServers, Later: true, Around: true, Enough: reachedThere, Costs: true},
	{Cause: finding.Change, CauseSubkind: finding.Stalls, Effect: finding.Imbalance, Subkinds: []string{""}, OnRanks: true, Around: true, Enough: onThatRank},
	{Cause: finding.Change, CauseSubkind: finding.Stalls, Effect: finding.Change, Subkinds: []string{finding.CachedTokens}, Around: true, Enough: there},
	{Cause: finding.Limit, CauseSubkind: slow.KVCache, Effect: finding.Change, Subkinds: slow.LatencySubkinds, Elsewhere: true, Enough: behindDecode, Costs: true},
	{Cause: finding.Load, CauseSubkind: slow.Demand, Effect: finding.Limit, Subkinds: slow.LimitSubkinds, Later: true, Costs: true},
	{Cause: finding.Limit, CauseSubkind: slow.KVCache, Effect: finding.Change, Subkinds: []string{finding.CachedTokens}, Later: true, Enough: there, Costs: true},
	{Cause: finding.Load, CauseSubkind: slow.Demand, Effect: finding.Errors, Subkinds: []string{failed.HTTP}, Later: true, Enough: there},
	{Cause: finding.Load, CauseSubkind: slow.Demand, Effect: finding.Memory, Subkinds: []string{""}, Later: true},
	{Cause: finding.Slower, Effect: finding.Limit, Subkinds: slow.LimitSubkinds, OnRanks: true, Enough: asTokensTakeLonger, Costs: true},
	{Cause: finding.Slower, Effect: finding.Load, Subkinds: []string{finding.Waits}, Enough: asTokensTakeLonger, Costs: true},
	{Cause: finding.Limit, Effect: finding.Load, Subkinds: []string{finding.Waits}},
	{Cause: finding.Load, Effect: finding.Limit, Subkinds: serverlimit.Subkinds, Later: true},
	{Cause: finding.Change, CauseSubkind: change.PromptLength, Effect: finding.Load, Subkinds: []string{serverlimit.LongPrompts}, Costs: true},
	{Cause: finding.Load, CauseSubkind: serverlimit.LongPrompts, Effect: finding.Load, Subkinds: []string{cause.Queue.String()}},
	{Cause: finding.Limit, CauseSubkind: serverlimit.Room.String(), Effect: finding.Memory, Subkinds: []string{""}},
	{Cause: finding.Limit, CauseSubkind: serverlimit.Prefills.String(), Effect: finding.Tail, Subkinds: []string{cause.Interference.String(), tail.CrowdSubkind}},
	{Cause: finding.Limit, CauseSubkind: serverlimit.Transfers.String(), Effect: finding.Transfer, Subkinds: []string{"", finding.Waits}},
	{Cause: finding.Tail, CauseSubkind: tail.StallSubkind, Effect: finding.Tail, Subkinds: []string{cause.Interference.String()}},
	{Cause: finding.Tail, CauseSubkind: tail.CrowdSubkind, Effect: finding.Tail, Subkinds: []string{cause.Interference.String()}},
	{Cause: finding.Lifecycle, Effect: finding.Common, Subkinds: []string{tail.PlaceSubkind}},
	{Cause: finding.Slower, Effect: finding.Common, Subkinds: []string{tail.PlaceSubkind}},
	{Cause: finding.Straggler, Effect: finding.Common, Subkinds: []string{tail.PlaceSubkind}},
	{Cause: finding.Change, CauseSubkind: change.Pace, Effect: finding.Common, Subkinds: []string{tail.PlaceSubkind}, Enough: there},
	{Cause: finding.Imbalance, CauseSubkind: rank.IdleSubkind, Effect: finding.Load, Subkinds: []string{""}, AtPlaces: true, Around: true, Enough: onThatServer, Costs: true},
	{Cause: finding.Transfer, Effect: finding.Common, Subkinds: []string{tail.PlaceSubkind}, Enough: mostlyOf(cause.Transfer)},
	{Cause: finding.Imbalance, Effect: finding.Common, Subkinds: []string{tail.PlaceSubkind}},
	{Cause: finding.Load, Effect: finding.Common, Subkinds: []string{tail.PlaceSubkind}},
	{Cause: finding.Limit, Effect: finding.Common, Subkinds: []string{tail.PlaceSubkind}},
	{Cause: finding.Common, Effect: finding.Tail, Subkinds: cause.Names(), SameRequests: true},
	{Cause: finding.Change, CauseSubkind: finding.StepYield, Effect: finding.Tail, Subkinds: []string{cause.Decode.String()}},
	{Cause: finding.Change, CauseSubkind: change.Pace, Effect: finding.Slower, Subkinds: []string{""}, OnRanks: true, Enough: func(slow, became *finding.Finding) bool { return wasAsFast(slow, became) || costsMore(slow, became) }, Costs: true},
	{Cause: finding.Slower, Effect: finding.Change, Subkinds: []string{change.Pace}, OnRanks: true, Costs: true},
	{Cause: finding.Change, CauseSubkind: finding.CachedTokens, Effect: finding.Limit, Subkinds: slow.LimitSubkinds, Later: true, Costs: true},
	{Cause: finding.Change, CauseSubkind: finding.CachedTokens, Effect: finding.Load, Subkinds: []string{finding.Waits}, Later: true, Costs: true},
	{Cause: finding.Change, CauseSubkind: finding.CachedTokens, Effect: finding.Common, Enough: ofCachedTokens, Costs: true},
	{Cause: finding.Change, CauseSubkind: finding.CachedTokens, Effect: finding.Slower, Subkinds: []string{""}, Later: true, Enough: ofTokens},
	{Cause: finding.Change, CauseSubkind: finding.StepYield, Effect: finding.Slower, Subkinds: []string{""}, Later: true, Enough: ofTokens, Costs: true},
	{Cause: finding.Change, CauseSubkind: finding.StepYield, Effect: finding.Limit, Subkinds: slow.LimitSubkinds, Later: true, Costs: true},
	{Cause: finding.Change, CauseSubkind: finding.StepYield, Effect: finding.Load, Subkinds: []string{finding.Waits}, Later: true, Costs: true},
	{Cause: finding.Change, CauseSubkind: slow.GraphedSteps, Effect: finding.Slower, Subkinds: []string{""}, Later: true, Costs: true},
	{Cause: finding.Change, CauseSubkind: slow.HostWork, Effect: finding.Slower, Subkinds: []string{""}, Later: true, Costs: true},
	{Cause: finding.Change, CauseSubkind: finding.StepYield, Effect: finding.Change, Subkinds: []string{change.Pace}, Enough: asTheYield, Costs: true},
	{Cause: finding.Change, CauseSubkind: slow.GraphedSteps, Effect: finding.Change, Subkinds: []string{change.Pace}, Enough: sinceThen, Costs: true},
	{Cause: finding.Change, CauseSubkind: slow.HostWork, Effect: finding.Change, Subkinds: []string{change.Pace}, Enough: sinceThen, Costs: true},
	{Cause: finding.Change, CauseSubkind: slow.HostWork, Effect: finding.Limit, Subkinds: slow.LimitSubkinds, Later: true, Costs: true},
	{Cause: finding.Change, CauseSubkind: finding.Stalls, Effect: finding.Tail, Subkinds: cause.Names()},
	{Cause: finding.Change, CauseSubkind: finding.Stalls, Effect: finding.Change, Subkinds: []string{change.Pace}, Around: true, Enough: worksOff},
	{Cause: finding.Change, CauseSubkind: finding.Stalls, Effect: finding.Load, Subkinds: append(cause.Names(), finding.Waits)},
	{Cause: finding.Load, Effect: finding.Tail, Subkinds: []string{cause.Interference.String(), cause.Decode.String(), tail.CrowdSubkind}},
	{Cause: finding.Imbalance, Effect: finding.Tail, Subkinds: []string{cause.Interference.String(), cause.Decode.String(), tail.CrowdSubkind}},
	{Cause: finding.GPU, CauseSubkind: collective.LinkSubkind, Effect: finding.GPU, Subkinds: []string{"communication", transferSubkind}},
	{Cause: finding.GPU, CauseSubkind: collective.AbsentSubkind, Effect: finding.GPU, Subkinds: []string{absentSubkind}},
	{Cause: finding.GPU, CauseSubkind: waitSubkind, Effect: finding.Straggler, Subkinds: []string{""}},
	{Cause: finding.Straggler, Effect: finding.Change, Subkinds: []string{overtime.PaceSubkind}, OnRanks: true, Enough: asItComputes},
	{Cause: finding.Straggler, Effect: finding.Change, Subkinds: []string{metric.ExposedComm.Long}, Enough: asItIsLate},
	{Cause: finding.Straggler, Effect: finding.Change, Subkinds: []string{change.Pace}, Elsewhere: true, Enough: asItsServer, Costs: true},
	{Cause: finding.GPU, CauseSubkind: waitSubkind, Effect: finding.Change, Subkinds: []string{metric.ExposedComm.Long}},
	{Cause: finding.GPU, CauseSubkind: "communication", Effect: finding.Change, Subkinds: []string{metric.ExposedComm.Long}},
	{Cause: finding.GPU, CauseSubkind: "copies", Effect: finding.Change, Subkinds: []string{overtime.CopySubkind}},
	{Cause: finding.Straggler, Effect: finding.GPU, Subkinds: []string{"communication", gpuloss.MeetSubkind}},
	{Cause: finding.Load, Effect: finding.Errors, Subkinds: []string{requests.TurnedAway}, Later: true},
	{Cause: finding.Limit, Effect: finding.Errors, Subkinds: []string{requests.TurnedAway}, NotBefore: true},
	{Cause: finding.Lifecycle, CauseSubkind: lifecycle.Hang, Effect: finding.Errors, Subkinds: []string{requests.GivenUp}, NotBefore: true},
	{Cause: finding.Lifecycle, CauseSubkind: lifecycle.Death, Effect: finding.Errors, Subkinds: []string{requests.GivenUp}, NotBefore: true},
	{Cause: finding.Change, Effect: finding.Errors, Subkinds: []string{requests.GivenUp}, NotBefore: true},
	{Cause: finding.Slower, Effect: finding.Errors, Subkinds: []string{requests.GivenUp}, NotBefore: true},
	{Cause: finding.Straggler, Effect: finding.Errors, Subkinds: []string{requests.GivenUp}, NotBefore: true},
	{Cause: finding.Transfer, Effect: finding.Errors, Subkinds: []string{requests.GivenUp}, NotBefore: true},
	{Cause: finding.Load, Effect: finding.Errors, Subkinds: []string{requests.GivenUp}, NotBefore: true},
	{Cause: finding.Limit, Effect: finding.Errors, Subkinds: []string{requests.GivenUp}, NotBefore: true},
	{Cause: finding.Slower, Effect: finding.Change, Subkinds: []string{""}, OnRanks: true},
	{Cause: finding.Slower, Effect: finding.Tail, Subkinds: []string{cause.Decode.String()}, OnRanks: true},
	{Cause: finding.Change, CauseSubkind: change.Pace, Effect: finding.Tail, Subkinds: []string{cause.Decode.String()}, Enough: there},
	{Cause: finding.Slower, Effect: finding.Load, Subkinds: []string{""}, AtPlaces: true, Around: true, Enough: avoided},
	{Cause: finding.Transfer, Effect: finding.Load, Subkinds: []string{""}, AtPlaces: true, Around: true, Enough: avoided},
	{Cause: finding.Change, CauseSubkind: change.Pace, Effect: finding.Load, Subkinds: []string{""}, AtPlaces: true, Around: true, Enough: func(share, became *finding.Finding) bool { return avoided(share, became) && asSlower(share, became) }},
	{Cause: finding.Imbalance, Effect: finding.Limit, Subkinds: serverlimit.Subkinds, OnRanks: true, Later: true, Enough: onThatRank, Costs: true},
	{Cause: finding.Imbalance, Effect: finding.Limit, Subkinds: slow.LimitSubkinds, OnRanks: true, Later: true, Enough: onThatRank, Costs: true},
	{Cause: finding.Memory, Effect: finding.Change, Subkinds: []string{change.Pace}, Enough: asMemoryFills, Costs: true},
	{Cause: finding.GPU, CauseSubkind: hardware.ClockSubkind, Effect: finding.Change, Subkinds: []string{""}, Enough: asTheClock},
	{Cause: finding.Change, CauseSubkind: slow.Slowed, Effect: finding.Limit, Subkinds: []string{slow.Batch}, Enough: asTokensTakeLonger, Costs: true},
	{Cause: finding.Change, CauseSubkind: slow.Slowed, Effect: finding.Load, Subkinds: []string{slow.Demand}, Later: true, Enough: asQueued, Costs: true},
	{Cause: finding.Load, CauseSubkind: slow.Demand, Effect: finding.Load, Subkinds: []string{slow.Demand}, Elsewhere: true, Enough: throughPrefill, Costs: true},
	{Cause: finding.Change, CauseSubkind: slow.TransferSpeed, Effect: finding.Change, Subkinds: slow.LatencySubkinds, Elsewhere: true, Enough: behindTransfers, Costs: true},
	{Cause: finding.Change, CauseSubkind: slow.Slowed, Effect: finding.Imbalance, Subkinds: []string{""}, OnRanks: true, Around: true, Enough: onThatRank},
	{Cause: finding.Change, CauseSubkind: slow.Slowed, Effect: finding.Load, Subkinds: []string{finding.Waits}, Later: true, Costs: true},
	{Cause: finding.Transfer, CauseSubkind: slow.SlowLink, Effect: finding.Common, Elsewhere: true, Enough: mostlyOf(cause.Transfer)},
	{Cause: finding.Load, Effect: finding.Common, Enough: mostlyOf(cause.Queue)},
	{Cause: finding.Load, Effect: finding.Change, Subkinds: []string{""}, Around: true, Enough: showsIn, Costs: true},
	{Cause: finding.Change, CauseSubkind: change.Pace, Effect: finding.Change, Subkinds: []string{""}, Around: true, Enough: showsIn, Costs: true},
	{Cause: finding.Slower, Effect: finding.Change, Subkinds: []string{""}, Around: true, Enough: showsIn, Costs: true},
	{Cause: finding.Limit, Effect: finding.Change, Subkinds: []string{""}, Around: true, Enough: func(seen, _ *finding.Finding) bool { return isSeen(seen) }, Costs: true},
	{Cause: finding.GPU, CauseSubkind: hardware.ClockSubkind, Effect: finding.Straggler, Subkinds: []string{""}, OnRanks: true, Elsewhere: true, Enough: asItsClock, Costs: true},
	{Cause: finding.Lifecycle, CauseSubkind: failed.Router, Effect: finding.Change, Subkinds: []string{finding.CachedTokens}, Enough: withEmptyRouter, Elsewhere: true, Costs: true},
}

// overloaded: requests wait at a limit because a server is slow if without that the servers would
// have served all that came. They began to wait no earlier than it was.
func (m *Measured) overloaded() []finding.Consequence {
	if m.Limits == nil {
		return nil
	}
	const soon = trace.Time(2e9)
	type asked struct {
		at   place.Location
		kind string
	}
	suffices := map[asked]bool{} // what looks at all requests
	// What is slow for a while has no part in what requests wait for later.
	meanwhile := func(limit, slow *finding.Finding) bool {
		return slow.Until == 0 || m.Limits.MostlyBefore(slow.At.Role, limit.Subkind, slow.Until)
	}
	by := func(limit, slow *finding.Finding) bool {
		return meanwhile(limit, slow) && (slow.Since == 0 || limit.Since+soon+slow.Within >= slow.Since) &&
			order.Memo(suffices, asked{slow.At, limit.Subkind}, func() bool { return m.Limits.WouldSuffice(&slow.At, limit.Subkind) })
	}
	became := func(limit, slow *finding.Finding) bool { return asSlower(limit, slow) && meanwhile(limit, slow) }
	return []finding.Consequence{
		{Cause: finding.Slower, Effect: finding.Limit, Subkinds: serverlimit.OfServers, Enough: by, Costs: true},
		{Cause: finding.Change, CauseSubkind: change.Pace, Effect: finding.Limit, Subkinds: serverlimit.OfServers, Around: true, Enough: became, Costs: true},
	}
}

// asTheClock reports whether a server may be slower for the clock of one of its GPUs: it became so
// about when a scrape saw the clock first.
func asTheClock(slower, clock *finding.Finding) bool {
	const scrapes = trace.Time(45e9)
	known := clock.At.Host != "" && slower.At.Scope == place.OneRank // which server's GPU it is
	if slower.Since == 0 {
		return known
	}
	return slower.Since >= clock.Since-scrapes && slower.Since <= clock.Since+scrapes
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

// asItComputes reports whether kernels of a rank take longer since about when it is late for what it computes.
func asItComputes(pace, late *finding.Finding) bool {
	return strings.Contains(late.Text, collective.ComputeBound) && asItIsLate(pace, late)
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

// sinceThen reports whether tokens take longer since about when logs tell of something, as pieces of some lines do.
func sinceThen(became, logs *finding.Finding) bool {
	const pieces = trace.Time(30e9)
	return workOf(&became.Metric) == "decode" && became.Metric.After > became.Metric.Before && logs.Since != 0 && became.Since != 0 &&
		max(logs.Since-became.Since, became.Since-logs.Since) <= pieces+became.Within
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

// showsIn reports whether users see more load, or servers that became slower, in what changed: all of them, in how long it takes.
func showsIn(seen, load *finding.Finding) bool {
	return isSeen(seen) && load.Metric.After > load.Metric.Before
}

// isSeen reports whether something is what all users see: it takes longer.
func isSeen(f *finding.Finding) bool {
	return f.At.Scope == place.Everywhere && f.Metric.After > f.Metric.Before
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
	return retracted.Metric.Name == slow.Retracted && pace.Since != 0 && pace.Since+pace.Within+fills >= retracted.Since &&
		(retracted.Until == 0 || pace.Since <= retracted.Until+fills)
}

// mostlyOf reports whether most of what requests with something in common take longer is of one cause.
func mostlyOf(c cause.Cause) func(common, _ *finding.Finding) bool {
	return func(common, _ *finding.Finding) bool { return common.Mostly == c.String() }
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
		return f.Subkind == finding.Waits
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
