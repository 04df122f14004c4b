package finders

import (
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/cause"
	"github.com/sgtrace/sgtrace/analyze/change"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/gpu"
	"github.com/sgtrace/sgtrace/analyze/gpuloss"
	"github.com/sgtrace/sgtrace/analyze/hardware"
	"github.com/sgtrace/sgtrace/analyze/operators"
	"github.com/sgtrace/sgtrace/analyze/overtime"
	"github.com/sgtrace/sgtrace/analyze/profilewalk"
	"github.com/sgtrace/sgtrace/analyze/requests"
	"github.com/sgtrace/sgtrace/analyze/straggler"
	"github.com/sgtrace/sgtrace/analyze/telemetry"
	"github.com/sgtrace/sgtrace/analyze/telemetry/failed"
	"github.com/sgtrace/sgtrace/analyze/telemetry/held"
	"github.com/sgtrace/sgtrace/analyze/telemetry/shown"
	"github.com/sgtrace/sgtrace/analyze/telemetry/slow"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/profile/kernelname"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
)

// All lists the finders. If several findings say the same, that of the first finder leads: for load the one that knows
// since when, for ranks the one that counted how often they are late. Falling load comes last, as it explains nothing.
var All = []Finder{
	{finding.Hang, "a collective that does not end, and the rank that did not enter it or entered a different one", Flights,
		finding.Critical, finding.Certain, finding.Ranks, finding.AtPlace, []string{"--hang"}, hangs},
	{finding.GPU, "a GPU or a switch that reports an error (Xid, SXid), a network device, or PCIe, according to kernel logs and metrics", Logs,
		finding.Critical, finding.Certain, finding.GPUTime, finding.AtPlace, []string{"--timeline"}, ofSeries(hardware.Errors)},
	{finding.GPU, "a GPU that is clocked lower than the others of its host, is throttled by heat or power, or is idle while the others are busy, according to metrics, with the reason and its rank", Logs,
		finding.Warning, finding.Likely, finding.GPUTime, finding.AtPlace, []string{"--timeline"}, slowClocks},
	{finding.Host, "a host that is short of CPU, memory, or disk, drops packets, or loses links, and a pod that its CPU limit throttles, according to metrics of node exporter and cAdvisor", Logs,
		finding.Warning, finding.Certain, finding.HostTime, finding.AtPlace, []string{"--timeline"}, ofSeries(hardware.Hosts)},
	{finding.Memory, "a device that ran out of memory for an allocation of PyTorch, according to memory snapshots", Snapshots,
		finding.Critical, finding.Certain, finding.Ranks, finding.AtPlace, []string{"--memory"}, func(m *Measured) ([]finding.Finding, finding.Check) { return m.Memory.Findings() }},
	{finding.Memory, "device memory that grows until the end of a snapshot: places in the code that keep allocating blocks that are never freed", Snapshots,
		finding.Warning, finding.Likely, finding.MemoryInUse, finding.AtPlace, []string{"--memory", "--table", "memory.stacks"}, func(m *Measured) ([]finding.Finding, finding.Check) { return m.Memory.Leaks() }},
	{finding.Imbalance, "an EP rank whose experts get more tokens than those of other ranks, or layers with uneven experts, beyond chance, and whether expert kernels agree", Experts,
		finding.Warning, finding.Certain, finding.MoETime, finding.AtPlace, []string{"--experts"}, unevenExperts},
	{finding.Load, "a change in arrivals, in a rank's share of them, or in waits; far more requests than otherwise that arrive in a moment, or at equal intervals, and wait for each other", Requests,
		finding.Warning, finding.Likely, finding.RequestTime, finding.Everywhere, []string{"--timeline", "--table", "changes"}, loads},
	{finding.Front, "a gateway or tokenizer that delays requests on their way to the schedulers, and answers that leave a server or the gateway late", Requests,
		finding.Warning, finding.Certain, finding.RequestTime, finding.AtPlace, []string{"--tail", "--table", "delays"}, inFront},
	{finding.Straggler, "a rank that its TP group waits for at the end of steps", Requests,
		finding.Warning, finding.Likely, finding.RankTime, finding.AtPlace, []string{"--by-rank", "--table", "stragglers"}, lateInSteps},
	{finding.Imbalance, "a DP rank that gets more than its share of the requests", Requests,
		finding.Warning, finding.Likely, finding.RequestTime, finding.AtPlace, []string{"--by-rank", "--table", "ranks.share"}, imbalances},
	{finding.Slower, "a server that takes longer for its steps than the others of its role", Requests,
		finding.Warning, finding.Likely, finding.RequestTime, finding.AtPlace, []string{"--by-rank", "--table", "ranks"}, slowServers},
	{finding.Pipeline, "a PP stage that takes longer than the others", Requests,
		finding.Warning, finding.Likely, finding.RankTime, finding.InRole, []string{"--by-rank", "--table", "stages"}, slowStages},
	{finding.Straggler, "a rank that its group waits for in collectives", Profiles,
		finding.Warning, finding.Likely, finding.GPUTime, finding.AtPlace, []string{"--by-rank", "--table", "stragglers"}, lateInCollectives},
	{finding.Straggler, "a rank that the hosts of its group wait for in gloo collectives", Profiles,
		finding.Warning, finding.Likely, finding.GPUTime, finding.AtPlace, []string{"--by-rank", "--table", "stragglers"}, lateOnHosts},
	{finding.Straggler, "a rank that became late, or is late all the time", Requests,
		finding.Warning, finding.Likely, finding.RequestTime, finding.AtPlace, []string{"--timeline", "--table", "changes"}, changes(finding.Straggler, whatever)},
	{finding.Transfer, "KV transfers that take longer from some point on", Requests,
		finding.Warning, finding.Likely, finding.RequestTime, finding.AtPlace, []string{"--timeline", "--table", "changes"}, changes(finding.Transfer, whatever)},
	{finding.Change, "a server or a stage that became slower or faster, at some time or gradually, or that stands still, or is slow, once or periodically; longer prompts or answers, fewer cached tokens, or fewer tokens per decode step, from some point on; caches that are flushed periodically", Requests,
		finding.Warning, finding.Likely, finding.RequestTime, finding.AtPlace, []string{"--timeline", "--table", "changes"}, changes(finding.Change, whatever)},
	{finding.Limit, "a server limit that keeps requests waiting: running requests, KV cache, prefill, or KV transfers", Requests,
		finding.Warning, finding.Likely, finding.RequestTime, finding.AtPlace, []string{"--timeline", "--table", "limits"}, limits},
	{finding.Limit, "a server that holds requests back although it has room for them", Requests,
		finding.Warning, finding.Likely, finding.RequestTime, finding.AtPlace, []string{"--tail", "--table", "tail.ttft"}, heldBack},
	{finding.Errors, "requests that failed, or were turned away from a full queue", Requests,
		finding.Critical, finding.Certain, finding.Requests, finding.AtPlace, []string{"--by", "status,stage"}, failures},
	{finding.Errors, "clients that give up, most of them after the same timeout", Requests,
		finding.Warning, finding.Certain, finding.Requests, finding.Everywhere, []string{"requests", "--status", "aborted", "--limit", "20"}, giveUps},
	{finding.Memory, "requests that were retracted because the KV cache was full", Requests,
		finding.Warning, finding.Certain, finding.RequestTime, finding.AtPlace, []string{"--tail"}, retractions},
	{finding.Transfer, "KV transfers that take longer than their size explains", Requests,
		finding.Warning, finding.Certain, finding.RequestTime, finding.AtPlace, []string{"--tail"}, slowTransfers},
	{finding.Load, "prompts that are far longer than others and keep those waiting, and since when", Requests,
		finding.Warning, finding.Likely, finding.RequestTime, finding.Everywhere, []string{"--tail", "--table", "common"}, longPrompts},
	{finding.Load, "waits that take a quarter of the time of half of all requests", Requests,
		finding.Warning, finding.Certain, finding.RequestTime, finding.Everywhere, []string{"--tail"}, commonWaits},
	{finding.Load, "a prefill or decode side that is saturated", Requests,
		finding.Warning, finding.Certain, finding.RequestTime, finding.Everywhere, []string{"--tail"}, saturatedSide},
	{finding.Tail, "prompts whose prefill holds up the decoding of others for far longer than usual", Requests,
		finding.Warning, finding.Certain, finding.RequestTime, finding.AtPlace, []string{"--tail", "--metric", "itl", "--table", "stalls"}, stalls},
	{finding.Straggler, "requests that wait for a slow rank", Requests,
		finding.Warning, finding.Certain, finding.RequestTime, finding.AtPlace, []string{"--tail"}, causes(finding.Straggler)},
	{finding.Transfer, "requests that wait for KV transfers", Requests,
		finding.Warning, finding.Certain, finding.RequestTime, finding.AtPlace, []string{"--tail"}, causes(finding.Transfer)},
	{finding.Memory, "requests that are slow because they were retracted", Requests,
		finding.Warning, finding.Certain, finding.RequestTime, finding.AtPlace, []string{"--tail"}, causes(finding.Memory)},
	{finding.Load, "requests that are slow because they queue, wait for KV cache, or share a batch", Requests,
		finding.Warning, finding.Certain, finding.RequestTime, finding.AtPlace, []string{"--tail"}, causes(finding.Load)},
	{finding.Tail, "any other cause that makes requests slow", Requests,
		finding.Warning, finding.Certain, finding.RequestTime, finding.AtPlace, []string{"--tail"}, causes(finding.Tail)},
	{finding.Common, "what slow requests have in common: the model, a header, the prompt's length, the rank, the pair of hosts", Requests,
		finding.Warning, finding.Likely, finding.RequestTime, finding.AtPlace, []string{"--tail", "--table", "common"}, inCommon},
	{finding.Straggler, "a worker or a pipeline stage that computes longer than its peers in nearly all steps, in a timeline that names workers", Profiles,
		finding.Warning, finding.Likely, finding.RankTime, finding.AtPlace, []string{"--by-rank"}, slowWorkers},
	{finding.GPU, "operators that take most of the time if no device ran, and since when some take longer in the same place", Profiles,
		finding.Info, finding.Certain, finding.RankTime, finding.Everywhere, []string{"--ops"}, largeOperators},
	{finding.Errors, "launches, copies and other CUDA calls that failed", Profiles,
		finding.Critical, finding.Certain, finding.Calls, finding.AtPlace, []string{"--api"}, failedCalls},
	{finding.GPU, "GPUs that are idle for a tenth of the time, not counting gaps between kernels, or for a quarter of it in all, and why", Profiles,
		finding.Warning, finding.Certain, finding.GPUTime, finding.AtPlace, []string{"--gaps", "--table", "gaps"}, idleGPUs},
	{finding.GPU, "what the host does while GPUs wait for it, if one cause takes a fifth of that time", Profiles,
		finding.Warning, finding.Certain, finding.GPUTime, finding.AtPlace, []string{"--gaps", "--table", "gaps"}, hostCauses},
	{finding.GPU, "copies of pageable memory that keep the host busy while GPUs are idle, for 2 % of the time", Profiles,
		finding.Warning, finding.Certain, finding.GPUTime, finding.AtPlace, []string{"--gaps", "--table", "gaps"}, pageableCopies},
	{finding.GPU, "memory that the host allocates or frees again and again while GPUs are idle, for 2 % of the time", Profiles,
		finding.Warning, finding.Certain, finding.GPUTime, finding.AtPlace, []string{"--gaps", "--table", "gaps"}, allocatingHosts},
	{finding.GPU, "GPUs that start kernels late for no reason in the capture, for 2 % of the time: another process uses them", Profiles,
		finding.Warning, finding.Likely, finding.GPUTime, finding.AtPlace, []string{"--gaps", "--table", "gaps"}, withheldKernels},
	{finding.GPU, "GPUs that are idle between steps for half of the time", Profiles,
		finding.Warning, finding.Likely, finding.GPUTime, finding.AtPlace, []string{"--by-rank", "--table", "gpu.idle"}, betweenSteps},
	{finding.GPU, "devices that communicate without computing at the same time", Profiles,
		finding.Warning, finding.Certain, finding.GPUTime, finding.AtPlace, []string{"--by-rank", "--table", "gpu"}, exposure},
	{finding.GPU, "collectives that are slow every time on all ranks, for a twentieth of the time: a slow link", Profiles,
		finding.Warning, finding.Likely, finding.GPUTime, finding.AtPlace, []string{"--by-rank", "--table", "collectives.kinds"}, slowLinks},
	{finding.GPU, "a rank that waits in collectives for ranks that are not in the files, for a tenth of the time", Profiles,
		finding.Warning, finding.Likely, finding.GPUTime, finding.AtPlace, []string{"--by-rank", "--table", "collectives.parts"}, absentRanks},
	{finding.GPU, "GPUs that copy memory for a tenth of the time while no kernel runs", Profiles,
		finding.Warning, finding.Certain, finding.GPUTime, finding.AtPlace, []string{"--by-rank", "--table", "gpu"}, exposedCopies},
	{finding.GPU, "pages of unified memory that move while kernels run, for a tenth of the time", Profiles,
		finding.Warning, finding.Certain, finding.GPUTime, finding.AtPlace, []string{"--by-rank", "--table", "gpu"}, migrations},
	{finding.GPU, "GPUs that run only kernels of a single thread block for a quarter of the time", Profiles,
		finding.Warning, finding.Certain, finding.GPUTime, finding.AtPlace, []string{"--kernels"}, singleBlocks},
	{finding.GPU, "kernels that a fused kernel or a server option could make 5 % faster in total", Profiles,
		finding.Info, finding.Likely, finding.GPUTime, finding.Everywhere, []string{"--kernels", "--table", "kernels.opportunities"}, couldBeFaster},
	{finding.Change, "GPUs that become less busy, or expose more communication, for the same work, and annotated steps, kernels, or copies of one size that become slower", Profiles,
		finding.Warning, finding.Likely, finding.GPUTime, finding.AtPlace, []string{"--timeline", "--table", "timeline.gpuchanges"}, overTime},
	{finding.GPU, "a rank whose kernels take a tenth longer, or more, than those of ranks that launch the same", Profiles,
		finding.Warning, finding.Likely, finding.GPUTime, finding.AtPlace, []string{"--kernels"}, slowKernels},
	{finding.GPU, "decode steps that ran without a CUDA graph", Profiles,
		finding.Warning, finding.Certain, finding.GPUTime, finding.AtPlace, []string{"--by-rank", "--table", "steps"}, eagerSteps},
	{finding.Repeat, "a GPU, a host, or a pair of hosts that is late or slow in more runs than chance explains", Weeks,
		finding.Warning, finding.Likely, finding.GPUTime, finding.AtPlace, []string{"--fleet"}, func(m *Measured) ([]finding.Finding, finding.Check) { return m.Of.Weeks.Repeats() }},
	{finding.Change, "steps that become slower or faster from some day on", Weeks,
		finding.Warning, finding.Likely, finding.GPUTime, finding.Everywhere, []string{"--fleet", "--table", "fleet.steps"}, func(m *Measured) ([]finding.Finding, finding.Check) { return m.Of.Weeks.Drifts() }},
	{finding.Lifecycle, "servers that hang, died, or were restarted, with requests that never ended, and servers that routers repeatedly leave out", Requests,
		finding.Warning, finding.Likely, finding.Requests, finding.AtPlace, []string{"--timeline", "--table", "summary.events"}, lives},
	{finding.Errors, "processes that ended with an exception or ran out of memory, failed communication and transfers, and server errors, according to logs", Logs,
		finding.Critical, finding.Certain, finding.ServerTime, finding.AtPlace, []string{"--timeline", "--table", "logs.events"}, ofLogs(failed.Failures)},
	{finding.Lifecycle, "servers that hang, according to their watchdogs or health checks, that stop logging batches or taking in waiting requests, that load weights far more slowly than others, or that were told to shut down, according to logs", Logs,
		finding.Critical, finding.Certain, finding.ServerTime, finding.AtPlace, []string{"--timeline", "--table", "logs.events"}, ofLogs(failed.Lives)},
	{finding.Lifecycle, "servers whose logs end with requests in their batches while other logs go on for minutes, and whether the other servers take over their load", Logs,
		finding.Critical, finding.Likely, finding.ServerTime, finding.AtPlace, []string{"--timeline", "--table", "logs.ranks"}, ofLogs(failed.Endings)},
	{finding.Lifecycle, "pods that Kubernetes evicted, killed, or restarted, whose probes fail, or that do not start, and lost nodes", Logs,
		finding.Critical, finding.Certain, finding.ServerTime, finding.AtPlace, []string{"--timeline", "--table", "logs.events"}, ofLogs(failed.Cluster)},
	{finding.Lifecycle, "servers that a router removed, or that did not answer it, according to its log", Logs,
		finding.Critical, finding.Certain, finding.ServerTime, finding.AtPlace, []string{"--timeline", "--table", "logs.events"}, ofLogs(failed.Routing)},
	{finding.Lifecycle, "servers that restarted, according to counters that start over, and servers without scrapes while others have them", Logs,
		finding.Warning, finding.Certain, finding.ServerTime, finding.AtPlace, []string{"--timeline", "--table", "metrics.timeline"}, ofLogs(failed.Restarts)},
	{finding.Imbalance, "a DP rank, or a server, that has more than its share of the load, according to logs", Logs,
		finding.Warning, finding.Likely, finding.RequestTime, finding.AtPlace, []string{"--by-rank", "--table", "logs.ranks"}, ofLoad(slow.Imbalances)},
	{finding.Change, "a scheduler that stood still while it had requests in its batch, and what it did meanwhile: it wrote a profile, loaded weights, or collected garbage, according to logs", Logs,
		finding.Warning, finding.Likely, finding.ServerTime, finding.AtPlace, []string{"--timeline", "--table", "logs.events"}, ofLogs(held.Pauses)},
	{finding.Change, "from some point on, fewer cached tokens, fewer accepted drafts, decode steps without a CUDA graph, more scheduler time between batches, or more aborted requests, according to logs or metrics", Logs,
		finding.Warning, finding.Likely, finding.RequestTime, finding.AtPlace, []string{"--timeline", "--table", "logs.timeline"}, ofLoad(slow.Worsened)},
	{finding.Change, "requests that take longer from some point on, according to histograms of several scrapes", Logs,
		finding.Warning, finding.Likely, finding.RequestTime, finding.AtPlace, []string{"--timeline", "--table", "metrics.percentiles"}, longerLatencies},
	{finding.Load, "more requests, or longer prompts or answers, that make requests slower from some point on, according to logs", Logs,
		finding.Warning, finding.Likely, finding.RequestTime, finding.AtPlace, []string{"--timeline", "--table", "logs.timeline"}, ofLoad(slow.Demands)},
	{finding.Limit, "a full KV cache, a batch that cannot grow, or a prefill server that cannot keep up while requests wait, according to logs", Logs,
		finding.Warning, finding.Likely, finding.RequestTime, finding.AtPlace, []string{"--timeline", "--table", "logs.timeline"}, ofLoad(slow.Limits)},
	{finding.Limit, "runs of load generators that offer more load than the servers can take", Logs,
		finding.Warning, finding.Likely, finding.ServerTime, finding.AtPlace, []string{"--table", "bench"}, ofSeries(telemetry.Overloads)},
	{finding.Memory, "requests that were retracted because the KV cache was full, according to logs", Logs,
		finding.Warning, finding.Certain, finding.ServerTime, finding.AtPlace, []string{"--timeline", "--table", "logs.events"}, ofLogs(held.Retractions)},
	{finding.Slower, "tokens that take longer for the same work, from some point on or than on other servers of the role, according to logs", Logs,
		finding.Warning, finding.Likely, finding.RequestTime, finding.AtPlace, []string{"--timeline", "--table", "logs.timeline"}, ofLoad(slow.Slower)},
	{finding.Transfer, "KV transfers that take longer from some point on, according to how many are in flight in logs", Logs,
		finding.Warning, finding.Likely, finding.ServerTime, finding.AtPlace, []string{"--timeline", "--table", "logs.timeline"}, ofLogs(held.PiledUp)},
	{finding.Load, "queues that grow from some point on, and whether more requests came, according to logs", Logs,
		finding.Warning, finding.Likely, finding.RequestTime, finding.InRole, []string{"--timeline", "--table", "logs.timeline"}, ofLoad(slow.Changes)},
	{finding.Change, "a curve that rises or falls sharply, in an export with little else, such as one Grafana panel", Logs,
		finding.Info, finding.Likely, finding.ServerTime, finding.AtPlace, []string{"--timeline", "--table", "metrics.timeline"}, ofLogs(shown.Shown)},
	{finding.Loss, "spans that were lost on their way to the dump", Requests,
		finding.Info, finding.Certain, finding.Requests, finding.Everywhere, []string{"--by-rank", "--table", "ranks"}, lostSpans},
	{finding.Load, "arrivals that fell, and other changes of load that cost nothing", Requests,
		finding.Info, finding.Likely, finding.RequestTime, finding.Everywhere, []string{"--timeline", "--table", "changes"}, changes(finding.Load, free)},
}

// ofLogs adapts a search of logs and metrics.
func ofLogs(find func(*telemetry.Logged) ([]finding.Finding, finding.Check)) func(*Measured) ([]finding.Finding, finding.Check) {
	return func(m *Measured) ([]finding.Finding, finding.Check) { return find(m.Logged) }
}

// ofLoad adapts a search of logs that estimates request time from the numbers of running and waiting requests. If requests
// were traced, they have that cost already; and if only prefill servers have logs, most of the request time is elsewhere.
func ofLoad(find func(*telemetry.Logged) ([]finding.Finding, finding.Check)) func(*Measured) ([]finding.Finding, finding.Check) {
	return func(m *Measured) ([]finding.Finding, finding.Check) {
		found, check := find(m.Logged)
		elsewhere := !slices.ContainsFunc(m.Logged.Ranks, func(r telemetry.Rank) bool { return r.Where.Role != request.Prefill })
		for i := range found {
			if m.Costs != nil || elsewhere {
				found[i].CostBasis = finding.ServerTime
			}
			if elsewhere {
				found[i].BasisText = "request time on prefill servers"
			}
		}
		return found, check
	}
}

// longerLatencies finds requests that take longer according to histograms. That has no cost
// where traced requests cover the same time.
func longerLatencies(m *Measured) ([]finding.Finding, finding.Check) {
	found, check := slow.Latencies(m.Logged)
	if m.Costs != nil {
		from, to, _ := m.Of.Requests.Bounds()
		for i := range found {
			if f := &found[i]; f.Since >= from-f.Within && f.Since <= to {
				f.Cost = 0
			}
		}
	}
	return found, check
}

// OfWeeks returns the finders that look at several runs together.
func OfWeeks() (list []Finder) {
	return order.Only(All, func(f Finder) bool { return f.Needs == Weeks })
}

// causes returns a search for causes of slow requests that are of one kind.
func causes(kind finding.Kind) func(*Measured) ([]finding.Finding, finding.Check) {
	return func(m *Measured) ([]finding.Finding, finding.Check) {
		found, check := m.Tail.CauseFindings(kind, m.Costs)
		if !m.Stages {
			check.Reason = "servers traced no stages of requests"
			// Then all of a request's time is unaccounted for, which is not a cause.
			found = slices.DeleteFunc(found, func(f finding.Finding) bool { return f.Subkind == cause.Unaccounted.String() })
		}
		if m.Loss.Lost > 0 { // the finding about lost spans says it
			found = slices.DeleteFunc(found, func(f finding.Finding) bool { return f.Subkind == cause.PrefillSide.String() })
		}
		return found, check
	}
}

func slowWorkers(m *Measured) ([]finding.Finding, finding.Check) {
	return straggler.Workers(m.Of.Profiles)
}

// largeOperators looks for the largest operators if no device ran or was recorded: then CPUs do the work.
func largeOperators(m *Measured) ([]finding.Finding, finding.Check) {
	if m.GPUs.Ran() {
		return nil, finding.Check{What: "operators that take most of the time", Reason: "devices ran"}
	}
	if m.Of.Diags != nil && slices.ContainsFunc(m.Of.Diags.All(), func(d trace.Diag) bool { return d.Message == trace.TraceTruncated }) {
		return nil, finding.Check{What: "operators that take most of the time", Reason: "a trace is cut off, and work of devices is written last"}
	}
	opt := profilewalk.Options{From: m.Of.Devices.From, To: m.Of.Devices.To}
	found, check := operators.Largest(m.Of.Profiles, opt)
	return append(overtime.SlowerOperators(m.Of.Profiles, opt), found...), check
}

func lateInSteps(m *Measured) ([]finding.Finding, finding.Check) {
	return m.RankLoads.StragglerFindings(m.Costs)
}

func lostSpans(m *Measured) ([]finding.Finding, finding.Check) {
	found, check := m.Loss.Findings()
	for i := range m.changed {
		fell := &m.changed[i]
		if fell.Metric.Name != change.Arrivals || fell.Metric.After >= fell.Metric.Before {
			continue
		}
		f, ok := requests.OnlySlow(m.Of.Requests, fell)
		if !ok {
			f, ok = requests.OnlySome(m.Of.Requests, fell)
		}
		if ok {
			found = append(found, f)
		}
	}
	return found, check
}

func inFront(m *Measured) ([]finding.Finding, finding.Check) { return m.Front.Findings(m.Costs) }

func imbalances(m *Measured) ([]finding.Finding, finding.Check) {
	return m.RankLoads.Imbalances(m.Costs)
}
func slowServers(m *Measured) ([]finding.Finding, finding.Check) {
	return m.RankLoads.SlowServers(m.Costs)
}
func slowStages(m *Measured) ([]finding.Finding, finding.Check) { return m.RankLoads.SlowStages() }

// lateInCollectives finds ranks that others wait for, and adds the facts about their graphs, experts, and clocks.
func lateInCollectives(m *Measured) ([]finding.Finding, finding.Check) {
	found, check := m.Collectives.Findings(m.GPUs)
	for i := range found {
		found[i].Brief = found[i].Rank + " is late in its collectives"
		if m.withoutGraphs(found[i].At.RankName()) {
			found[i].Text += "; its decode steps ran without a graph, and those of the others with one"
		}
		if m.Routing == nil {
			continue
		}
		if text, ok := m.Routing.Even(found[i].At.RankName()); ok {
			found[i].Evidence = append(found[i].Evidence, finding.Sentence("%s", text))
		}
	}
	m.besideClocks(found)
	m.costAsPlayed(found)
	return m.joinHost(found), check
}

// withoutGraphs reports whether a rank launched all of its decode steps kernel by kernel,
// while the others launched all of theirs of some common batch size as graphs.
func (m *Measured) withoutGraphs(rank string) bool {
	type batch struct{ from, to int32 }
	eager, others := map[batch]bool{}, map[batch]bool{}
	for i := range m.GPUs.Graphs {
		u := &m.GPUs.Graphs[i]
		at := batch{u.MinBatch, u.MaxBatch}
		switch {
		case u.Rank == rank && u.Graph.N > 0 || u.Rank != rank && u.Eager.N > 0:
			return false
		case u.Rank == rank:
			eager[at] = true
		default:
			others[at] = true
		}
	}
	for at := range eager {
		if others[at] {
			return true
		}
	}
	return false
}

func unevenExperts(m *Measured) ([]finding.Finding, finding.Check) { return m.Routing.Findings() }

func slowLinks(m *Measured) ([]finding.Finding, finding.Check) {
	return m.Collectives.SlowLinks(m.Of.Profiles, m.GPUs)
}

func absentRanks(m *Measured) ([]finding.Finding, finding.Check) {
	return m.Collectives.Absent(m.GPUs)
}

func failures(m *Measured) ([]finding.Finding, finding.Check) {
	return requests.FailureFindings(m.Of.Requests)
}

// giveUps finds clients that give up, and prices the time that they waited in vain.
func giveUps(m *Measured) ([]finding.Finding, finding.Check) {
	found, check := requests.GiveUpFindings(m.Of.Requests)
	for i := range found {
		f := &found[i]
		claim := m.Costs.InVain(requests.Attempts(m.Of.Requests, f.Affected.Requests()))
		if priced := m.Costs.Price([]finding.Finding{{Claim: claim}})[0]; priced.Cost > 0 {
			f.Cost, f.CostBasis, f.Claim = priced.Cost, priced.CostBasis, claim
		}
	}
	return found, check
}

func retractions(m *Measured) ([]finding.Finding, finding.Check) {
	return requests.RetractionFindings(m.Of.Requests, m.Costs, m.Limits.Preempts())
}

func slowTransfers(m *Measured) ([]finding.Finding, finding.Check) {
	return m.Tail.TransferFindings(m.Costs)
}

func limits(m *Measured) ([]finding.Finding, finding.Check) { return m.Limits.Findings(m.Costs) }

func heldBack(m *Measured) ([]finding.Finding, finding.Check) { return m.Limits.HeldBack(m.Costs) }

func stalls(m *Measured) ([]finding.Finding, finding.Check) { return m.Tail.StallFindings(m.Costs) }

func saturatedSide(m *Measured) ([]finding.Finding, finding.Check) {
	return m.Tail.SideFindings(m.Costs)
}

func inCommon(m *Measured) ([]finding.Finding, finding.Check) { return m.Tail.Common.Findings(m.Costs) }

func commonWaits(m *Measured) ([]finding.Finding, finding.Check) {
	return m.Tail.WaitFindings(m.Costs)
}

func failedCalls(m *Measured) ([]finding.Finding, finding.Check) { return gpuloss.FailedCalls(m.GPUs) }

func withheldKernels(m *Measured) ([]finding.Finding, finding.Check) {
	found, check := m.GPUs.EachRun(gpuloss.Withheld)
	for i := range found {
		for _, ranks := range onOneGPU(m.uses()) {
			found[i].Evidence = slices.Insert(found[i].Evidence, 0, finding.Sentence("%s ran on the same GPU", strings.Join(ranks, " and ")))
		}
	}
	return found, check
}

// onOneGPU returns, for each GPU that several ranks shared, by UUID, these ranks.
func onOneGPU(uses []hardware.Use) (shared [][]string) {
	byUUID := map[string][]string{}
	for _, u := range uses {
		if u.UUID != "" {
			byUUID[u.UUID] = append(byUUID[u.UUID], u.Rank)
		}
	}
	for _, ranks := range byUUID {
		if len(ranks) > 1 {
			shared = append(shared, ranks)
		}
	}
	slices.SortFunc(shared, slices.Compare)
	return shared
}
func betweenSteps(m *Measured) ([]finding.Finding, finding.Check) {
	return m.GPUs.EachRun(m.idleBetweenSteps)
}
func exposedCopies(m *Measured) ([]finding.Finding, finding.Check) {
	return m.GPUs.EachRun(gpuloss.ExposedCopies)
}
func slowKernels(m *Measured) ([]finding.Finding, finding.Check) {
	found, check := m.GPUs.EachRun(func(g *gpu.GPUs) ([]finding.Finding, finding.Check) {
		return gpuloss.SlowKernels(g, m.Collectives.WaitedFor)
	})
	m.costAsPlayed(found)
	return found, check
}
func migrations(m *Measured) ([]finding.Finding, finding.Check) {
	return m.GPUs.EachRun(gpuloss.Migrations)
}

func singleBlocks(m *Measured) ([]finding.Finding, finding.Check) {
	return m.GPUs.EachRun(gpuloss.SingleBlocks)
}

// couldBeFaster finds the one optimization that would save most, for models with attention.
func couldBeFaster(m *Measured) ([]finding.Finding, finding.Check) {
	if !slices.ContainsFunc(m.GPUs.Kernels, func(k gpu.RankKernel) bool { return kernelname.KindOf(k.Name) == kernelname.KindAttention }) {
		return (&gpuloss.Opportunities{}).Finding()
	}
	return gpuloss.OpportunitiesFromKernels(m.Of.Profiles, profilewalk.Options{From: m.Of.Devices.From, To: m.Of.Devices.To}).Finding()
}

func overTime(m *Measured) ([]finding.Finding, finding.Check) { return m.OverTime.Findings() }
func eagerSteps(m *Measured) ([]finding.Finding, finding.Check) {
	return m.GPUs.EachRun(gpuloss.EagerSteps)
}

// hangs finds the rank that holds others in a collective.
func hangs(m *Measured) ([]finding.Finding, finding.Check) { return m.Hang.Findings() }

// ofSeries adapts a search of metrics.
func ofSeries(find func(*series.Set) ([]finding.Finding, finding.Check)) func(*Measured) ([]finding.Finding, finding.Check) {
	return func(m *Measured) ([]finding.Finding, finding.Check) { return find(m.Of.Series) }
}
