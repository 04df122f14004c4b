package finding

import "slices"

// Kind is the subject of a finding.
type Kind string

const (
	Straggler Kind = "straggler" // a rank that others wait for
	Front     Kind = "front"     // a gateway, or a process in front of schedulers, that holds back requests or their answers
	Slower    Kind = "slower"    // a server that takes longer than others of its role
	Load      Kind = "load"      // more work than before, or than servers can do
	Limit     Kind = "limit"     // an exhausted capacity of a server that requests wait for
	Imbalance Kind = "imbalance" // ranks that should share work do not
	Transfer  Kind = "transfer"  // KV transfers that are slow
	Memory    Kind = "memory"    // memory ran out, or will: requests were evicted from the batch, an allocation failed, or usage grows
	Errors    Kind = "errors"    // requests or CUDA calls that failed
	Hang      Kind = "hang"      // a rank that holds others in a collective that does not end
	Lifecycle Kind = "lifecycle" // a server that hangs, died, or was restarted
	Loss      Kind = "loss"      // spans that were lost on their way to the dump
	Host      Kind = "host"      // a host short of CPU, memory, or disk, or that loses packets; a pod throttled by its CPU limit
	Repeat    Kind = "repeat"    // something late or slow in run after run
	Pipeline  Kind = "pipeline"  // a stage of a pipeline that others wait for
	GPU       Kind = "gpu"       // devices that are idle, or wait for data
	Common    Kind = "common"    // a property that slow requests share
	Tail      Kind = "tail"      // why the slow requests are slow, if it is none of the above
	Change    Kind = "change"    // any other change at some time
)

// Severity is how much a finding matters, independent of its cost.
type Severity string

const (
	Critical Severity = "critical" // requests or CUDA calls fail
	Warning  Severity = "warning"  // requests or ranks lose time
	Info     Severity = "info"     // good to know; costs nothing
)

// order returns the place of s among severities, the worst first.
func (s Severity) order() int { return slices.Index([]Severity{Critical, Warning, Info}, s) }

// Confidence is how sure a finding is. If there is not enough data to be sure of anything,
// there is no finding, but a [Check] that says so.
type Confidence string

const (
	Certain Confidence = "certain" // counted, or chance is ruled out
	Likely  Confidence = "likely"  // chance or another cause is not ruled out
)

// maxChance is the largest probability of chance at which a finding is certain.
const maxChance = 0.001

// Confidence returns how sure a finding with probability p is, or otherwise if p is unknown.
func (p Probability) Confidence(otherwise Confidence) Confidence {
	switch {
	case !p.Known:
		return otherwise
	case p.P <= maxChance:
		return Certain
	}
	return Likely
}

// CostBasis is the whole that the cost of a finding is a part of.
type CostBasis string

const (
	RequestTime    CostBasis = "request time" // total E2E of finished requests
	RankTime       CostBasis = "rank time"    // total time of the ranks that wait
	HostTime       CostBasis = "host time"    // total time of the hosts with metrics
	GPUTime        CostBasis = "GPU time"     // total time of the recorded devices
	Requests       CostBasis = "requests"     // number of requests
	ServerTime     CostBasis = "server time"  // total time in which servers logged batches
	Calls          CostBasis = "CUDA calls"   // number of calls that ask devices for work
	CollectiveTime CostBasis = "time in collectives"
	Ranks          CostBasis = "ranks"         // number of ranks
	MemoryInUse    CostBasis = "memory in use" // bytes allocated at the end, on all devices with snapshots
	MoETime        CostBasis = "MoE time"      // total time of layers with experts, on all GPUs that share them
)

// Scope is how far around its place a finding is felt.
type Scope uint8

const (
	AtPlace    Scope = iota // only there
	InRole                  // by all servers of its role
	Everywhere              // everywhere: load comes from outside
)
