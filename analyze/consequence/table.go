package consequence

import (
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
	"github.com/sgtrace/sgtrace/analyze/telemetry/held"
	"github.com/sgtrace/sgtrace/analyze/telemetry/slow"
	"github.com/sgtrace/sgtrace/trace"
)

// Known says which findings explain others. Requests go elsewhere or pile up once a server hangs, dies, or is
// restarted; they wait at limits and are evicted from a full KV cache; load slows down decoding; ranks wait for a
// slow one where they communicate; and a slow server may have become slow at some time. That slow requests were on
// one rank says less than why that rank is slow, but whose requests they are says more than where their time went.
var Known = []finding.Consequence{
	{Cause: finding.Errors, CauseSubkind: requests.GivenUp, Effect: finding.Change, Subkinds: []string{change.GivenUpShare}, Later: true, Enough: rises},
	{Cause: finding.Errors, CauseSubkind: requests.GivenUp, Effect: finding.Load, Subkinds: []string{""}, Later: true, Enough: askAgain, Costs: true},
	{Cause: finding.Lifecycle, CauseSubkind: lifecycle.Restart, Effect: finding.Load, Subkinds: []string{"", finding.Waits, slow.Demand}, AtPlaces: true, Around: true},
	{Cause: finding.Lifecycle, CauseSubkind: lifecycle.Restart, Effect: finding.Change, Subkinds: []string{finding.CachedTokens}, Enough: withEmptyCache, Costs: true},
	{Cause: finding.Lifecycle, CauseSubkind: lifecycle.Death, Effect: finding.Change, Subkinds: []string{finding.CachedTokens}, Enough: withEmptyCache, Costs: true},
	{Cause: finding.Lifecycle, CauseSubkind: failed.Restarted, Effect: finding.Limit, Subkinds: held.LimitSubkinds, Around: true, Enough: there, Costs: true},
	{Cause: finding.Lifecycle, CauseSubkind: lifecycle.Start, Effect: finding.Load, Subkinds: []string{""}, AtPlaces: true, Around: true},
	{Cause: finding.Lifecycle, CauseSubkind: lifecycle.Stop, Effect: finding.Load, Subkinds: []string{"", finding.Waits, slow.Demand}, AtPlaces: true, Around: true, Costs: true},
	{Cause: finding.Lifecycle, CauseSubkind: lifecycle.Stop, Effect: finding.Change, Subkinds: []string{finding.CachedTokens}, Around: true, Enough: withStrangers, Costs: true},
	{Cause: finding.Lifecycle, CauseSubkind: lifecycle.LeftOut, Effect: finding.Load, Subkinds: []string{"", finding.Waits, slow.Demand}, AtPlaces: true, Around: true},
	{Cause: finding.Lifecycle, CauseSubkind: lifecycle.LeftOut, Effect: finding.Imbalance, Subkinds: []string{""}},
	{Cause: finding.Lifecycle, CauseSubkind: lifecycle.LeftOut, Effect: finding.Limit, Subkinds: serverlimit.Subkinds, Around: true},
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
	{Cause: finding.GPU, CauseSubkind: hardware.ClockSubkind, Effect: finding.Slower, Subkinds: []string{""}, Enough: AsTheClock, Costs: true},
	{Cause: finding.GPU, CauseSubkind: hardware.ClockSubkind, Effect: finding.Change, Subkinds: []string{change.Pace}, Enough: AsTheClock, Costs: true},
	{Cause: finding.GPU, CauseSubkind: hardware.ClockSubkind, Effect: finding.Load, Subkinds: []string{""}, AtPlaces: true, Enough: AsTheClock},
	{Cause: finding.GPU, CauseSubkind: hardware.ClockSubkind, Effect: finding.Imbalance, Subkinds: []string{""}, Enough: AsTheClock},
	{Cause: finding.Errors, CauseSubkind: failed.Died, Effect: finding.Lifecycle, Subkinds: failed.Gone, Elsewhere: true, Enough: afterItDied},
	{Cause: finding.Errors, CauseSubkind: failed.Died, Effect: finding.Errors, Subkinds: []string{failed.HTTP}, Later: true, Enough: afterItDied, Costs: true},
	{Cause: finding.Errors, CauseSubkind: failed.Died, Effect: finding.Errors, Subkinds: []string{failed.HTTP}, Later: true, Elsewhere: true, Enough: withoutServers, Costs: true},
	{Cause: finding.Errors, CauseSubkind: failed.Transfers, Effect: finding.Errors, Subkinds: []string{failed.HTTP}, Later: true, Enough: afterItDied, Costs: true},
	{Cause: finding.Lifecycle, CauseSubkind: failed.Hang, Effect: finding.Errors, Subkinds: []string{failed.HTTP}, Later: true, Enough: afterItDied, Costs: true},
	{Cause: finding.Errors, CauseSubkind: failed.Raised, Effect: finding.Errors, Subkinds: []string{failed.HTTP}, Enough: asItRaised, Costs: true},
	{Cause: finding.GPU, Effect: finding.Errors, Subkinds: []string{failed.Died, failed.Transfers}, Enough: afterXid, Costs: true},
	{Cause: finding.GPU, Effect: finding.Lifecycle, Subkinds: append([]string{lifecycle.Death, lifecycle.Stop, lifecycle.Hang}, failed.Gone...), Enough: afterXid, Costs: true},
	{Cause: finding.GPU, Effect: finding.Lifecycle, Subkinds: []string{failed.Hang}, Enough: afterXid, Guessed: Apart, Costs: true},
	{Cause: finding.Lifecycle, CauseSubkind: failed.Ended, Effect: finding.Lifecycle, Subkinds: failed.Gone, Enough: afterItDied, Costs: true},
	{Cause: finding.Lifecycle, CauseSubkind: failed.Taken + " OOMKilling", Effect: finding.Lifecycle, Subkinds: []string{failed.Restarted}, Enough: asItWasKilled, Costs: true},
	{Cause: finding.Lifecycle, CauseSubkind: failed.Taken + " OOMKilled", Effect: finding.Lifecycle, Subkinds: []string{failed.Restarted}, Enough: asItWasKilled, Costs: true},
	{Cause: finding.GPU, Effect: finding.Change, Subkinds: []string{finding.Stalls}, Enough: afterXid, Costs: true},
	{Cause: finding.GPU, CauseSubkind: hardware.Network, Effect: finding.Errors, Subkinds: []string{failed.Died, failed.Transfers, failed.Communication}, Enough: afterFault, Elsewhere: true, Costs: true},
	{Cause: finding.Errors, CauseSubkind: failed.Died, Effect: finding.Errors, Subkinds: []string{failed.Transfers, failed.Died}, Enough: afterPeer, Elsewhere: true, Costs: true},
	{Cause: finding.Lifecycle, CauseSubkind: lifecycle.Hang, Effect: finding.Errors, Subkinds: []string{failed.Transfers}, Enough: afterPeer, Elsewhere: true},
	{Cause: finding.Lifecycle, CauseSubkind: lifecycle.Death, Effect: finding.Errors, Subkinds: []string{failed.Transfers}, Enough: afterPeer, Elsewhere: true},
	{Cause: finding.Lifecycle, CauseSubkind: failed.Taken + " Killed", Effect: finding.Lifecycle, Subkinds: []string{failed.Stop, failed.Hang}, Enough: forProbe, Elsewhere: true},
	{Cause: finding.Load, Effect: finding.Transfer, Subkinds: []string{held.SlowLink}, Around: true, Enough: withMore, Costs: true},
	{Cause: finding.Transfer, CauseSubkind: held.SlowLink, Effect: finding.Transfer, Subkinds: []string{"", finding.Waits, cause.Transfer.String()}, Around: true, Costs: true, Same: true},
	{Cause: finding.Transfer, CauseSubkind: held.SlowLink, Effect: finding.Transfer, Subkinds: []string{"", finding.Waits, cause.Transfer.String()}, Same: true},
	{Cause: finding.Transfer, CauseSubkind: held.SlowLink, Effect: finding.Change, Subkinds: []string{""}, Around: true, Enough: asTransfers, Costs: true},
	{Cause: finding.Errors, CauseSubkind: failed.Died, Effect: finding.Lifecycle, Subkinds: []string{lifecycle.Death, lifecycle.Stop, lifecycle.Restart}, Around: true},
	{Cause: finding.Errors, CauseSubkind: failed.Died, Effect: finding.Load, Subkinds: []string{"", finding.Waits, slow.Demand}, AtPlaces: true, Around: true},
	{Cause: finding.Errors, CauseSubkind: failed.Died, Effect: finding.Imbalance, Subkinds: []string{""}, Around: true},
	{Cause: finding.Transfer, CauseSubkind: held.SlowLink, Effect: finding.Load, Subkinds: []string{"", finding.Waits}, Around: true, Enough: withoutMore},
	{Cause: finding.Hang, Effect: finding.Lifecycle, Subkinds: []string{failed.Hang}, Enough: ofWatchdog, Elsewhere: true, Costs: true},
	{Cause: finding.Hang, Effect: finding.Lifecycle, Subkinds: []string{lifecycle.Death, lifecycle.Hang, failed.Hang, failed.Taken + " Killed"}, Around: true, Enough: afterHang, Costs: true},
	{Cause: finding.Hang, Effect: finding.Change, Subkinds: []string{finding.Stalls}, Around: true, Enough: afterHang, Costs: true},
	{Cause: finding.Hang, Effect: finding.Errors, Subkinds: []string{failed.Died, requests.GivenUp}, Around: true, Enough: afterHang, Costs: true},
	{Cause: finding.Front, Effect: finding.Tail, Subkinds: []string{cause.Router.String(), cause.Dispatch.String(), cause.Unaccounted.String()}},
	{Cause: finding.Front, Effect: finding.Change, Subkinds: []string{change.TokenizingSubkind}},
	{Cause: finding.Front, CauseSubkind: serverlimit.Tokenizer, Effect: finding.Tail, Subkinds: []string{cause.Return.String()}}, // answers pass through it, too
	{Cause: finding.Front, CauseSubkind: serverlimit.Answering, Effect: finding.Tail, Subkinds: []string{cause.Return.String()}},
	{Cause: finding.Front, Effect: finding.Change, Subkinds: []string{""}, Around: true, Enough: showsIn},
	{Cause: finding.Front, CauseSubkind: serverlimit.Tokenizer, Effect: finding.Change, Subkinds: []string{""}, Around: true, Enough: falls}, // what follows has less to wait for
	{Cause: finding.Front, CauseSubkind: serverlimit.Tokenizer, Effect: finding.Load, Subkinds: []string{""}, AtPlaces: true, Around: true, Enough: pastBusy, Costs: true},
	{Cause: finding.Front, CauseSubkind: serverlimit.Tokenizer, Effect: finding.Transfer, Subkinds: []string{finding.Waits}, Around: true, Enough: rises}, // for what precedes a transfer
	{Cause: finding.Front, Effect: finding.Common, Subkinds: []string{tail.PlaceSubkind}, SameRequests: true},
	{Cause: finding.Front, CauseSubkind: serverlimit.Tokenizer, Effect: finding.Common, Subkinds: []string{tail.PlaceSubkind}, Enough: mostlyOf(cause.Dispatch)},
	{Cause: finding.Front, CauseSubkind: serverlimit.Answering, Effect: finding.Common, Subkinds: []string{tail.PlaceSubkind}, Enough: mostlyOf(cause.Return)},
	{Cause: finding.Change, CauseSubkind: finding.Stalls, Effect: finding.Limit, Subkinds: append([]string{serverlimit.Held}, held.LimitSubkinds...), Around: true, Enough: there, Costs: true},
	{Cause: finding.Change, CauseSubkind: change.Pace, Effect: finding.Limit, Subkinds: []string{serverlimit.Held}, Around: true, Enough: there, Costs: true},
	{Cause: finding.Change, CauseSubkind: finding.Stalls, Effect: finding.Limit, Subkinds: serverlimit.OfServers, Later: true, Around: true, Enough: reachedThere, Costs: true},
	{Cause: finding.Change, CauseSubkind: finding.Stalls, Effect: finding.Imbalance, Subkinds: []string{""}, OnRanks: true, Around: true, Enough: onThatRank},
	{Cause: finding.Change, CauseSubkind: finding.Stalls, Effect: finding.Load, Subkinds: []string{""}, AtPlaces: true, Around: true, Enough: avoided},
	{Cause: finding.Change, CauseSubkind: finding.Stalls, Effect: finding.Change, Subkinds: []string{finding.CachedTokens}, Around: true, Enough: there},
	{Cause: finding.Limit, CauseSubkind: held.KVCache, Effect: finding.Change, Subkinds: slow.LatencySubkinds, Elsewhere: true, Enough: behindDecode, Costs: true},
	{Cause: finding.Limit, CauseSubkind: held.KVCache, Effect: finding.Transfer, Subkinds: []string{held.SlowLink}, Elsewhere: true, Enough: behindDecode, Costs: true},
	{Cause: finding.Limit, CauseSubkind: held.KVCache, Effect: finding.Limit, Subkinds: []string{held.OnTheWay}, Elsewhere: true, Enough: behindDecode, Costs: true},
	{Cause: finding.Transfer, CauseSubkind: held.SlowLink, Effect: finding.Limit, Subkinds: []string{held.OnTheWay}, Elsewhere: true, Enough: Since, Costs: true},
	{Cause: finding.Load, CauseSubkind: slow.Demand, Effect: finding.Limit, Subkinds: held.LimitSubkinds, Later: true, Costs: true},
	{Cause: finding.Limit, CauseSubkind: held.KVCache, Effect: finding.Change, Subkinds: []string{finding.CachedTokens}, Later: true, Enough: there, Costs: true},
	{Cause: finding.Load, CauseSubkind: slow.Demand, Effect: finding.Errors, Subkinds: []string{failed.HTTP}, Later: true, Enough: there},
	{Cause: finding.Load, CauseSubkind: slow.Demand, Effect: finding.Memory, Subkinds: []string{""}, Later: true},
	{Cause: finding.Slower, Effect: finding.Limit, Subkinds: held.LimitSubkinds, OnRanks: true, Enough: asTokensTakeLonger, Costs: true},
	{Cause: finding.Slower, Effect: finding.Load, Subkinds: []string{finding.Waits}, Enough: asTokensTakeLonger, Costs: true},
	{Cause: finding.Limit, Effect: finding.Load, Subkinds: []string{finding.Waits}, SameRequests: true},
	{Cause: finding.Limit, Effect: finding.Load, Subkinds: []string{finding.Waits}, Enough: ofNobodyNamed},
	{Cause: finding.Load, Effect: finding.Limit, Subkinds: serverlimit.Subkinds, Later: true},
	{Cause: finding.Change, CauseSubkind: change.PromptLength, Effect: finding.Load, Subkinds: []string{serverlimit.LongPrompts, finding.LonePrompts}, Costs: true},
	{Cause: finding.Load, CauseSubkind: serverlimit.Crowd, Effect: finding.Change, Subkinds: []string{change.OutputLength, change.PromptLength}, Around: true},
	{Cause: finding.Load, Effect: finding.Change, Subkinds: []string{change.OutputLength, change.PromptLength}, Around: true, Enough: addedAreShort},
	{Cause: finding.Change, CauseSubkind: change.PromptLength, Effect: finding.Load, Subkinds: []string{""}, Around: true, Enough: addedAreLong},
	{Cause: finding.Load, CauseSubkind: serverlimit.LongPrompts, Effect: finding.Load, Subkinds: []string{cause.Queue.String()}},
	{Cause: finding.Load, CauseSubkind: finding.LonePrompts, Effect: finding.Load, Subkinds: []string{cause.Queue.String()}},
	{Cause: finding.Limit, CauseSubkind: serverlimit.Room.String(), Effect: finding.Memory, Subkinds: []string{""}},
	{Cause: finding.Limit, CauseSubkind: serverlimit.Preempted.String(), Effect: finding.Memory, Subkinds: []string{""}, Costs: true},
	{Cause: finding.Limit, CauseSubkind: serverlimit.Prefills.String(), Effect: finding.Tail, Subkinds: []string{cause.Interference.String(), tail.CrowdSubkind}},
	{Cause: finding.Limit, CauseSubkind: serverlimit.Transfers.String(), Effect: finding.Transfer, Subkinds: []string{"", finding.Waits}},
	{Cause: finding.Load, CauseSubkind: finding.LonePrompts, Effect: finding.Tail, Subkinds: []string{tail.StallSubkind, tail.CrowdSubkind}, Enough: func(stalls, lone *finding.Finding) bool {
		return lone.Cost > stalls.Cost && ofSameRequests(stalls, lone)
	}, Costs: true},
	{Cause: finding.Tail, CauseSubkind: tail.StallSubkind, Effect: finding.Load, Subkinds: []string{finding.LonePrompts}, Enough: ofSameRequests, Costs: true},
	{Cause: finding.Tail, CauseSubkind: tail.StallSubkind, Effect: finding.Tail, Subkinds: []string{cause.Interference.String()}},
	{Cause: finding.Tail, CauseSubkind: tail.CrowdSubkind, Effect: finding.Tail, Subkinds: []string{cause.Interference.String()}},
	{Cause: finding.Lifecycle, Effect: finding.Common, Subkinds: []string{tail.PlaceSubkind}},
	{Cause: finding.Transfer, Effect: finding.Common, Subkinds: []string{tail.PlaceSubkind}, Enough: mostlyOf(cause.Transfer)},
	{Cause: finding.Slower, Effect: finding.Common, Subkinds: []string{tail.PlaceSubkind}},
	{Cause: finding.Straggler, Effect: finding.Common, Subkinds: []string{tail.PlaceSubkind}},
	{Cause: finding.Change, CauseSubkind: change.Pace, Effect: finding.Common, Subkinds: []string{tail.PlaceSubkind}, Enough: there},
	{Cause: finding.Imbalance, CauseSubkind: rank.IdleSubkind, Effect: finding.Load, Subkinds: []string{""}, AtPlaces: true, Around: true, Enough: onThatServer, Costs: true},
	{Cause: finding.Imbalance, Effect: finding.Common, Subkinds: []string{tail.PlaceSubkind}},
	{Cause: finding.Load, Effect: finding.Common, Subkinds: []string{tail.PlaceSubkind}},
	{Cause: finding.Limit, Effect: finding.Common, Subkinds: []string{tail.PlaceSubkind}},
	{Cause: finding.Common, Effect: finding.Tail, Subkinds: cause.Names(), SameRequests: true},
	{Cause: finding.Change, CauseSubkind: finding.StepYield, Effect: finding.Tail, Subkinds: []string{cause.Decode.String()}},
	{Cause: finding.Change, CauseSubkind: change.Pace, Effect: finding.Slower, Subkinds: []string{""}, OnRanks: true, Enough: func(slow, became *finding.Finding) bool { return wasAsFast(slow, became) || costsMore(slow, became) }, Costs: true},
	{Cause: finding.Slower, Effect: finding.Change, Subkinds: []string{change.Pace}, OnRanks: true, Costs: true},
	{Cause: finding.Change, CauseSubkind: finding.CachedTokens, Effect: finding.Limit, Subkinds: held.LimitSubkinds, Later: true, Costs: true},
	{Cause: finding.Change, CauseSubkind: finding.CachedTokens, Effect: finding.Load, Subkinds: []string{finding.Waits}, Later: true, Costs: true},
	{Cause: finding.Change, CauseSubkind: finding.CachedTokens, Effect: finding.Transfer, Subkinds: []string{finding.Waits}, Around: true, Enough: rises},
	{Cause: finding.Change, CauseSubkind: change.PromptLength, Effect: finding.Transfer, Subkinds: []string{finding.Waits}, Around: true, Enough: riseBoth},
	{Cause: finding.Change, CauseSubkind: finding.CachedTokens, Effect: finding.Common, Enough: ofCachedTokens, Costs: true},
	{Cause: finding.Change, CauseSubkind: finding.CachedTokens, Effect: finding.Load, Subkinds: []string{serverlimit.LongPrompts, finding.LonePrompts}, Enough: ofSameRequests, Costs: true},
	{Cause: finding.Change, CauseSubkind: finding.CachedTokens, Effect: finding.Slower, Subkinds: []string{""}, Later: true, Enough: ofTokens},
	{Cause: finding.Change, CauseSubkind: finding.StepYield, Effect: finding.Slower, Subkinds: []string{""}, Later: true, Enough: ofTokens, Costs: true},
	{Cause: finding.Change, CauseSubkind: finding.StepYield, Effect: finding.Limit, Subkinds: held.LimitSubkinds, Later: true, Costs: true},
	{Cause: finding.Change, CauseSubkind: finding.StepYield, Effect: finding.Load, Subkinds: []string{finding.Waits}, Later: true, Costs: true},
	{Cause: finding.Change, CauseSubkind: slow.GraphedSteps, Effect: finding.Slower, Subkinds: []string{""}, Later: true, Costs: true},
	{Cause: finding.Change, CauseSubkind: slow.HostWork, Effect: finding.Slower, Subkinds: []string{""}, Later: true, Costs: true},
	{Cause: finding.Change, CauseSubkind: finding.StepYield, Effect: finding.Change, Subkinds: []string{change.Pace}, Enough: asTheYield, Costs: true},
	{Cause: finding.Change, CauseSubkind: slow.GraphedSteps, Effect: finding.Change, Subkinds: []string{change.Pace}, Enough: sinceThen, Costs: true},
	{Cause: finding.Change, CauseSubkind: slow.HostWork, Effect: finding.Change, Subkinds: []string{change.Pace}, Enough: sinceThen, Costs: true},
	{Cause: finding.Change, CauseSubkind: slow.HostWork, Effect: finding.Limit, Subkinds: held.LimitSubkinds, Later: true, Costs: true},
	{Cause: finding.Change, CauseSubkind: finding.Stalls, Effect: finding.Tail, Subkinds: cause.Names()},
	{Cause: finding.Change, CauseSubkind: finding.Stalls, Effect: finding.Change, Subkinds: []string{change.Pace}, Around: true, Enough: worksOff},
	{Cause: finding.Change, CauseSubkind: finding.Stalls, Effect: finding.Change, Subkinds: []string{""}, Around: true, Enough: easesOff},
	{Cause: finding.Change, CauseSubkind: finding.Stalls, Effect: finding.Load, Subkinds: append(cause.Names(), finding.Waits)},
	{Cause: finding.Load, Effect: finding.Tail, Subkinds: []string{cause.Interference.String(), cause.Decode.String(), tail.CrowdSubkind}},
	{Cause: finding.Imbalance, Effect: finding.Tail, Subkinds: []string{cause.Interference.String(), cause.Decode.String(), tail.CrowdSubkind}},
	{Cause: finding.GPU, CauseSubkind: collective.LinkSubkind, Effect: finding.GPU, Subkinds: []string{"communication", gpuloss.TransferSubkind}},
	{Cause: finding.GPU, CauseSubkind: collective.AbsentSubkind, Effect: finding.GPU, Subkinds: []string{gpuloss.AbsentSubkind}},
	{Cause: finding.GPU, CauseSubkind: gpuloss.WaitSubkind, Effect: finding.Straggler, Subkinds: []string{""}, Same: true},
	{Cause: finding.Straggler, Effect: finding.GPU, Subkinds: []string{gpuloss.SlowSubkind}, OnRanks: true, Enough: isComputeBound, Costs: true, Same: true},
	{Cause: finding.Straggler, Effect: finding.Change, Subkinds: []string{overtime.PaceSubkind}, OnRanks: true, Enough: asItComputes, Dates: true},
	{Cause: finding.Change, CauseSubkind: overtime.PaceSubkind, Effect: finding.GPU, Subkinds: []string{gpuloss.SlowSubkind}, OnRanks: true, Enough: onThatRank, Costs: true, Same: true},
	{Cause: finding.Change, CauseSubkind: overtime.PaceSubkind, Effect: finding.GPU, Subkinds: []string{gpuloss.PipelineSubkind}, OnRanks: true, Enough: onThatRank},
	{Cause: finding.GPU, CauseSubkind: gpuloss.SlowSubkind, Effect: finding.GPU, Subkinds: []string{gpuloss.PipelineSubkind}, OnRanks: true, Enough: onThatRank},
	{Cause: finding.GPU, Effect: finding.Change, Subkinds: []string{overtime.GapSubkind}, Elsewhere: true, Enough: mostOfIdle, Dates: true},
	{Cause: finding.GPU, Effect: finding.Change, Subkinds: []string{overtime.GapSubkind}, Elsewhere: true, Enough: ofIdle},
	{Cause: finding.Straggler, Effect: finding.Change, Subkinds: []string{metric.ExposedComm.Long}, Enough: AsItIsLate},
	{Cause: finding.Straggler, Effect: finding.Change, Subkinds: []string{change.Pace}, Elsewhere: true, Enough: asItsServer, Costs: true},
	{Cause: finding.GPU, CauseSubkind: gpuloss.WaitSubkind, Effect: finding.Change, Subkinds: []string{metric.ExposedComm.Long}},
	{Cause: finding.GPU, CauseSubkind: "communication", Effect: finding.Change, Subkinds: []string{metric.ExposedComm.Long}},
	{Cause: finding.GPU, CauseSubkind: gpuloss.TransferSubkind, Effect: finding.Change, Subkinds: []string{metric.ExposedComm.Long}},
	{Cause: finding.GPU, CauseSubkind: "communication", Effect: finding.Change, Subkinds: []string{overtime.TransferSubkind}},
	{Cause: finding.GPU, CauseSubkind: gpuloss.TransferSubkind, Effect: finding.Change, Subkinds: []string{overtime.TransferSubkind}},
	{Cause: finding.GPU, CauseSubkind: collective.LinkSubkind, Effect: finding.Change, Subkinds: []string{overtime.TransferSubkind}},
	{Cause: finding.GPU, CauseSubkind: "copies", Effect: finding.Change, Subkinds: []string{overtime.CopySubkind}},
	{Cause: finding.Straggler, Effect: finding.GPU, Subkinds: []string{"communication", gpuloss.MeetSubkind}},
	{Cause: finding.Load, Effect: finding.Errors, Subkinds: []string{requests.TurnedAway}, Later: true},
	{Cause: finding.Lifecycle, CauseSubkind: lifecycle.Hang, Effect: finding.Errors, Subkinds: []string{requests.GivenUp}, NotBefore: true},
	{Cause: finding.Lifecycle, CauseSubkind: lifecycle.Death, Effect: finding.Errors, Subkinds: []string{requests.GivenUp}, NotBefore: true},
	{Cause: finding.Change, Effect: finding.Errors, Subkinds: []string{requests.GivenUp}, NotBefore: true},
	{Cause: finding.Slower, Effect: finding.Errors, Subkinds: []string{requests.GivenUp}, NotBefore: true},
	{Cause: finding.Straggler, Effect: finding.Errors, Subkinds: []string{requests.GivenUp}, NotBefore: true},
	{Cause: finding.Transfer, Effect: finding.Errors, Subkinds: []string{requests.GivenUp}, NotBefore: true},
	{Cause: finding.Load, Effect: finding.Errors, Subkinds: []string{requests.GivenUp}, NotBefore: true},
	{Cause: finding.Limit, Effect: finding.Errors, Subkinds: []string{requests.GivenUp}, NotBefore: true},
	{Cause: finding.Slower, Effect: finding.Change, Subkinds: []string{""}, OnRanks: true},
	{Cause: finding.Slower, Effect: finding.Tail, Subkinds: []string{cause.Decode.String(), cause.Prefill.String()}, OnRanks: true},
	{Cause: finding.Change, CauseSubkind: change.Pace, Effect: finding.Tail, Subkinds: []string{cause.Decode.String()}, Enough: there},
	{Cause: finding.Slower, Effect: finding.Load, Subkinds: []string{""}, AtPlaces: true, Around: true, Enough: avoided},
	{Cause: finding.Transfer, Effect: finding.Load, Subkinds: []string{""}, AtPlaces: true, Around: true, Enough: avoided},
	{Cause: finding.Change, CauseSubkind: change.Pace, Effect: finding.Load, Subkinds: []string{""}, AtPlaces: true, Around: true, Enough: func(share, became *finding.Finding) bool { return avoided(share, became) && AsSlower(share, became) }},
	{Cause: finding.Imbalance, Effect: finding.Limit, Subkinds: serverlimit.Subkinds, OnRanks: true, Later: true, Enough: onThatRank, Costs: true},
	{Cause: finding.Imbalance, Effect: finding.Limit, Subkinds: held.LimitSubkinds, OnRanks: true, Later: true, Enough: onThatRank, Costs: true},
	{Cause: finding.Memory, Effect: finding.Change, Subkinds: []string{change.Pace}, Enough: asMemoryFills, Costs: true},
	{Cause: finding.GPU, CauseSubkind: hardware.ClockSubkind, Effect: finding.Change, Subkinds: []string{""}, Enough: AsTheClock},
	{Cause: finding.Change, CauseSubkind: slow.Slowed, Effect: finding.Limit, Subkinds: []string{held.Batch}, Enough: asTokensTakeLonger, Costs: true},
	{Cause: finding.Change, CauseSubkind: slow.Slowed, Effect: finding.Load, Subkinds: []string{slow.Demand}, Later: true, Enough: asQueued, Costs: true},
	{Cause: finding.Load, CauseSubkind: slow.Demand, Effect: finding.Load, Subkinds: []string{slow.Demand}, Elsewhere: true, Enough: throughPrefill, Costs: true},
	{Cause: finding.Change, CauseSubkind: slow.TransferSpeed, Effect: finding.Change, Subkinds: slow.LatencySubkinds, Elsewhere: true, Enough: behindTransfers, Costs: true},
	{Cause: finding.Change, CauseSubkind: slow.Slowed, Effect: finding.Imbalance, Subkinds: []string{""}, OnRanks: true, Around: true, Enough: onThatRank},
	{Cause: finding.Change, CauseSubkind: slow.Slowed, Effect: finding.Load, Subkinds: []string{finding.Waits}, Later: true, Costs: true},
	{Cause: finding.Transfer, CauseSubkind: held.SlowLink, Effect: finding.Common, Elsewhere: true, Enough: mostlyOf(cause.Transfer)},
	{Cause: finding.Load, Effect: finding.Common, Enough: mostlyOf(cause.Queue)},
	{Cause: finding.Load, Effect: finding.Change, Subkinds: []string{""}, Around: true, Enough: showsIn, Costs: true},
	{Cause: finding.Change, CauseSubkind: change.Pace, Effect: finding.Change, Subkinds: []string{""}, Around: true, Enough: showsIn, Costs: true},
	{Cause: finding.Slower, Effect: finding.Change, Subkinds: []string{""}, Around: true, Enough: showsIn, Costs: true},
	{Cause: finding.Limit, Effect: finding.Change, Subkinds: []string{""}, Around: true, Enough: seenBehind, Costs: true},
	{Cause: finding.GPU, CauseSubkind: hardware.ClockSubkind, Effect: finding.Straggler, Subkinds: []string{""}, OnRanks: true, Elsewhere: true, Enough: asItsClock, Costs: true},
	{Cause: finding.GPU, CauseSubkind: hardware.ClockSubkind, Effect: finding.Straggler, Subkinds: []string{""}, OnRanks: true, Elsewhere: true, Enough: onItsServer, Guessed: byTimesAlone, Costs: true},
	{Cause: finding.Lifecycle, CauseSubkind: failed.Router, Effect: finding.Change, Subkinds: []string{finding.CachedTokens}, Enough: withEmptyRouter, Elsewhere: true, Costs: true},
}

// addedAreLong reports whether a server got more requests when its prompts became longer: the long ones were added.
func addedAreLong(added, rose *finding.Finding) bool {
	return added.Metric.Name == change.ShareOfRequests && added.Metric.After > added.Metric.Before && rose.Metric.After > rose.Metric.Before && rose.At.Scope == place.OneRank
}

// addedAreShort reports whether prompts or answers became shorter when requests were added: those are short.
func addedAreShort(fell, added *finding.Finding) bool {
	const soon, known = trace.Time(2e9), trace.Time(30e9)
	of := added.Metric.Name
	return added.Subkind == "" && (of == change.Arrivals || of == change.ShareOfRequests) && added.Metric.After > added.Metric.Before && fell.Metric.After < fell.Metric.Before &&
		max(fell.Since-added.Since, added.Since-fell.Since) <= added.Within+soon && max(fell.Within, added.Within) <= known
}
