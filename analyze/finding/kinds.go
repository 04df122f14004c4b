package finding

// Kind is the subject of a finding.
type Kind string

const (
	Straggler Kind = "straggler" // a rank that others wait for
	Front     Kind = "front"     // a gateway or a process in front of schedulers that keeps requests, or their answers
	Slower    Kind = "slower"    // a server that takes longer than others of its role
	Load      Kind = "load"      // more to do than before, or than can be done
	Limit     Kind = "limit"     // what a server has no more of, so that requests wait
	Imbalance Kind = "imbalance" // ranks that should share work do not
	Transfer  Kind = "transfer"  // KV transfers that are slow
	Memory    Kind = "memory"    // memory ran out, or will: requests were thrown out of the batch, an allocation failed, or what is kept grows
	Errors    Kind = "errors"    // requests or CUDA calls that failed
	Hang      Kind = "hang"      // a rank that keeps others in a collective that does not end
	Lifecycle Kind = "lifecycle" // a server that hangs, died, or was restarted
	Loss      Kind = "loss"      // spans that were lost on their way to the dump
	Host      Kind = "host"      // a host that is short of CPU, memory, or disk, or loses packets; a pod that its limit holds back
	Repeat    Kind = "repeat"    // what is late or slow in run after run
	Pipeline  Kind = "pipeline"  // a stage of a pipeline that others wait for
	GPU       Kind = "gpu"       // devices that are idle, or wait for data
	Common    Kind = "common"    // what slow requests have in common
	Tail      Kind = "tail"      // why the slow requests are slow, if it is none of the above
	Change    Kind = "change"    // something else that became different at some time
)

// Severity is how much a finding matters, whatever it costs.
type Severity string

const (
	Critical Severity = "critical" // requests or CUDA calls fail
	Warning  Severity = "warning"  // requests or ranks lose time
	Info     Severity = "info"     // good to know; costs nothing
)

// Confidence is how sure a finding is. Where there is not enough data to be sure of
// anything there is no finding, but a [Check] that says so.
type Confidence string

const (
	Certain Confidence = "certain" // counted, or chance is ruled out
	Likely  Confidence = "likely"  // chance or another cause is not ruled out
)

// maxChance is the probability up to which a finding is certain.
const maxChance = 0.001

// Confidence returns how sure a finding with probability p is; otherwise, without one.
func (p Probability) Confidence(otherwise Confidence) Confidence {
	switch {
	case !p.Known:
		return otherwise
	case p.P <= maxChance:
		return Certain
	}
	return Likely
}

// CostBasis says of what a finding costs a part.
type CostBasis string

const (
	RequestTime    CostBasis = "request time" // the sum of the E2E of finished requests
	RankTime       CostBasis = "rank time"    // the time of the ranks that wait
	HostTime       CostBasis = "host time"    // the time of the hosts that metrics are of
	GPUTime        CostBasis = "GPU time"     // the time of the devices that were recorded
	Requests       CostBasis = "requests"     // how many there are
	ServerTime     CostBasis = "server time"  // the time in which servers logged batches
	Calls          CostBasis = "CUDA calls"   // how many ask devices for work
	CollectiveTime CostBasis = "time in collectives"
	Ranks          CostBasis = "ranks"         // how many there are
	MemoryInUse    CostBasis = "memory in use" // what was allocated at the end, on all devices of snapshots
	MoETime        CostBasis = "MoE time"      // the time of layers with experts, on all GPUs that share them
)

// Scope is how far around its place a finding is felt.
type Scope uint8

const (
	AtPlace    Scope = iota // there and nowhere else
	InRole                  // by all servers of the role
	Everywhere              // by all: load comes from outside
)
