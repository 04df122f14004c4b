package simulator

import (
	"cmp"
	"fmt"
	"time"
)

// Mode is the shape of the deployment.
type Mode int

const (
	// PDGateway is an smg gateway in front of one prefill and one decode instance, each of the three on a host of its own. Both
	// halves of a request share the gateway's trace and a bootstrap room.
	PDGateway Mode = iota
	// PDDirect is the same behind a balancer that does not trace: the halves of
	// a request share the bootstrap room and nothing else.
	PDDirect
	// Unified is one instance on one host that does prefill and decode.
	Unified
)

// String returns the name used in truth.json.
func (m Mode) String() string {
	switch m {
	case PDGateway:
		return "pd-gateway"
	case PDDirect:
		return "pd-direct"
	case Unified:
		return "unified"
	}
	return fmt.Sprintf("Mode(%d)", int(m))
}

// Config describes a deployment, its workload, and its faults. Start from [DefaultConfig].
type Config struct {
	// Seed determines everything random, including ids.
	Seed uint64
	// Luck varies the durations on machines for the same requests; 0 means those of Seed.
	Luck uint64
	// Mode is the shape of the deployment.
	Mode Mode
	// Release is the service.version of the servers; "" is none, SGLang's default.
	Release string
	// Pace multiplies the duration of all steps; 0 means 1.
	Pace float64
	// Model is the name in gen_ai.response.model. It has no influence on times.
	Model string
	// Prefill, Decode and Unified are the ranks of the instances; a mode reads only those of its instances.
	Prefill, Decode, Unified Parallel
	// Level is SGLANG_TRACE_LEVEL: 1 stages, 2 dispatch, 3 every token, 4
	// run_batch_cpu, which only the pipeline parallel loop of SGLang emits.
	Level int

	// Start is the true time at which the clock of the run begins.
	Start time.Time
	// Requests is the number of requests.
	Requests int
	// Rate is the mean number of arrivals per second outside the burst. The length of a run is about Requests / Rate.
	Rate float64
	// Prompt and Output are the lengths of the requests in tokens.
	Prompt, Output Lengths

	// ChunkTokens is the largest number of prompt tokens in one prefill step.
	ChunkTokens int
	// MaxQueued is the largest number of requests that wait in a unified scheduler before it answers "queue is full". SGLang
	// has no such limit in PD mode.
	MaxQueued int
	// MaxRunning is the largest number of requests that one batch decodes.
	MaxRunning int
	// KVTokens is the KV cache of one DP rank that decodes, in tokens. When it is full, requests are retracted. A prefill
	// instance always has room.
	KVTokens int
	// Scheduling is where schedulers differ from SGLang's defaults.
	Scheduling Scheduling

	// Incident is a change in the middle of the run.
	Incident Incident
	// Straggler is the rank that the others wait for.
	Straggler Straggler
	// Hang is the DP rank that stops working.
	Hang Hang
	// SlowTransfers and FailedTransfers are shares of the requests whose KV
	// transfer takes much longer, or fails. PD only.
	SlowTransfers, FailedTransfers float64
	// LinkTokens is the number of tokens per second at which the KV caches of all requests are transferred, one after the
	// other. Zero is no limit. PD only.
	LinkTokens int
	// LongPrompts is the share of requests whose prompt has LongTokens tokens.
	LongPrompts float64
	LongTokens  int
	// SlowTransfersAtOnset means that only requests that arrive after the onset of the incident have slow transfers.
	SlowTransfersAtOnset bool
	// Tenants is the number of tenants that send requests; zero means that requests name no tenant. Requests of the first
	// tenant are held back for TenantDelay before they are sent to a scheduler.
	Tenants     int
	TenantDelay time.Duration
	// CachedShare is the mean share of a prompt that is in the cache of the instance that prefills, up to twice that.
	// CacheLostAtOnset means that nothing is cached from the onset of the incident on.
	CachedShare      float64
	CacheLostAtOnset bool
	// AcceptedDrafts is the average number of drafted tokens that a decode step accepts, in addition to the one that it
	// computes anyway. DraftsLostAtOnset means that it accepts none from the onset of the incident on.
	AcceptedDrafts    float64
	DraftsLostAtOnset bool
	// Cancels is the share of requests whose client cancels between two tokens.
	Cancels float64
	// Impatient is the share of requests whose client leaves after Patience if the first token has not come by then.
	Impatient float64
	// Patience is how long an impatient client waits.
	Patience time.Duration
	// PrefillSkew and DecodeSkew are how far the clocks of the two hosts are ahead of the gateway's. Without a gateway the
	// prefill host's clock is the true one, and PrefillSkew is ignored.
	PrefillSkew, DecodeSkew time.Duration
	// PrefillDrift and DecodeDrift are how much these clocks gain on true time, in ppm (µs per second). Their skew is the one
	// above when the first request arrives. PrefillDrift is ignored if PrefillSkew is.
	PrefillDrift, DecodeDrift float64

	// RanksPerHost is the number of schedulers of an instance per host; the instance uses as many hosts as needed, in the order
	// DP, PP, TP. Zero puts all of them on one.
	RanksPerHost int
	// HostSkew is how far the clock of each further host of an instance is ahead of the previous host's, and HostDrift how much
	// more it gains, in ppm.
	HostSkew  time.Duration
	HostDrift float64
}

// Parallel is the number of ranks of an instance in each dimension. Every DP rank is a replica with a scheduler of its own,
// as in SGLang without DP attention.
type Parallel struct{ TP, PP, DP int }

// Scheduling is how schedulers choose. The zero value is SGLang's default: first come first served, prompts are split if a
// step is full, and the request that loses least is retracted.
type Scheduling struct {
	// ShortestFirst means that the shortest waiting prompt is next.
	ShortestFirst bool
	// RetractAny means that any request of the batch may be retracted when the KV cache is full.
	RetractAny bool
	// WholePrompts means that only prompts longer than a step are split.
	WholePrompts bool
}

// Lengths is a lognormal distribution of token counts, at least 1.
type Lengths struct {
	// Median is the median; the mean is exp(Sigma²/2) times that.
	Median float64
	// Sigma is the standard deviation of the logarithm.
	Sigma float64
	// Max cuts the tail.
	Max int
}

// Incident is a burst of arrivals together with a balancer that, from then on, prefers one DP rank of the instance that
// decodes.
type Incident struct {
	// Onset is the share of the requests that arrive before the incident.
	Onset float64
	// BurstFactor multiplies the rate for BurstLength from the onset on.
	BurstFactor float64
	// BurstLength is how long the burst lasts.
	BurstLength time.Duration
	// DPRank is the preferred rank. It is ignored if there is only one.
	DPRank int
	// DPShare is its share of the requests after the onset; before, all ranks have the same. Zero leaves the balancer
	// unchanged.
	DPShare float64
}

// Hang is a DP rank of the instance that decodes that begins no further step from the onset of the incident on. Requests
// that were sent to it, or are from then on, never end, and neither do their spans.
type Hang struct {
	AtOnset bool
	DP      int
}

// DefaultConfig returns the incident that `sgtrace demo` shows: a PD deployment behind a gateway, in which decode rank
// TP1-DP0 is slow all the time, and from the middle on a burst arrives and DP rank 1 gets most of the requests. It has 300
// requests in about 20 seconds. Sizes are those of a toy, so that a file of a few megabytes has queues, retractions, and
// aborts.
func DefaultConfig(seed uint64) Config {
	return Config{
		Seed:    seed,
		Mode:    PDGateway,
		Model:   "meta-llama/Llama-3.3-70B-Instruct",
		Prefill: Parallel{TP: 2, PP: 1, DP: 1},
		Decode:  Parallel{TP: 2, PP: 1, DP: 2},
		Unified: Parallel{TP: 2, PP: 1, DP: 2},
		Level:   3,

		Start:    time.Unix(1_787_000_000, 0),
		Requests: 300,
		Rate:     12,
		Prompt:   Lengths{Median: 260, Sigma: 1, Max: 3072},
		Output:   Lengths{Median: 11, Sigma: 0.6, Max: 64},

		ChunkTokens: 1024,
		MaxQueued:   16,
		MaxRunning:  32,
		KVTokens:    4096,

		Incident: Incident{
			Onset:       0.5,
			BurstFactor: 3,
			BurstLength: 2 * time.Second,
			DPRank:      1,
			DPShare:     0.8,
		},
		Straggler:       Straggler{TP: 1, Factor: 1.2},
		SlowTransfers:   0.015,
		FailedTransfers: 0.01,
		Cancels:         0.02,
		Impatient:       0.06,
		Patience:        900 * time.Millisecond,
		PrefillSkew:     3217 * time.Microsecond,
		DecodeSkew:      -7841 * time.Microsecond,
	}
}

// serving returns the ranks of the instance that decodes.
func (c *Config) serving() Parallel {
	if c.Mode == Unified {
		return c.Unified
	}
	return c.Decode
}

// SchedulersPerHost returns the number of schedulers of an instance that share a host.
func (c *Config) SchedulersPerHost(ranks int) int {
	return cmp.Or(c.RanksPerHost, ranks)
}

// check returns an error if c cannot be played.
func (c *Config) check() error {
	if c.Mode < PDGateway || c.Mode > Unified {
		return fmt.Errorf("simulator: unknown mode %d", int(c.Mode))
	}
	for _, f := range []struct {
		name string
		ok   bool
		must string
	}{
		{"Level", c.Level >= 0, "be at least 0"},
		{"Start", c.Start.Year() >= 1971 && c.Start.Year() < 2200, "lie between 1971 and 2200"},
		{"Requests", c.Requests >= 1, "be at least 1"},
		{"Rate", c.Rate > 0 && c.Rate < 1e6, "be positive and below a million per second"},
		{"Pace", c.Pace >= 0 && c.Pace < 1000, "lie between 0 and 1000"},
		{"Prompt", c.Prompt.ok(), "have a median of at least 1, a sigma from 0 to 4 and a maximum"},
		{"Output", c.Output.ok(), "have a median of at least 1, a sigma from 0 to 4 and a maximum"},
		{"ChunkTokens", c.ChunkTokens >= 1, "be at least 1"},
		{"MaxQueued", c.MaxQueued >= 1, "be at least 1"},
		{"MaxRunning", c.MaxRunning >= 1, "be at least 1"},
		{"KVTokens", c.KVTokens >= max(c.Prompt.Max, c.LongTokens)+c.Output.Max, "hold the longest request"},
		{"LinkTokens", c.LinkTokens >= 0, "be at least 0"},
		{"LongPrompts", share(c.LongPrompts) && (c.LongPrompts == 0 || c.LongTokens >= 1), "lie between 0 and 1, with LongTokens of at least 1"},
		{"Incident.Onset", share(c.Incident.Onset), "lie between 0 and 1"},
		{"Incident.BurstFactor", c.Incident.BurstLength == 0 || c.Incident.BurstFactor > 0 && c.Incident.BurstFactor < 1e6, "be positive"},
		{"Incident.BurstLength", c.Incident.BurstLength >= 0, "not be negative"},
		{"Incident.DPShare", share(c.Incident.DPShare), "lie between 0 and 1"},
		{"Straggler.Factor", c.Straggler.Factor >= 0 && c.Straggler.Factor < 1000, "lie between 0 and 1000"},
		{"Straggler.Delay", c.Straggler.Delay >= 0 && c.Straggler.Delay < time.Minute, "lie between 0 and a minute"},
		{"Straggler.Share", share(c.Straggler.Share) && c.Straggler.Share < 1, "lie between 0 and 1"},
		{"SlowTransfers", share(c.SlowTransfers), "lie between 0 and 1"},
		{"FailedTransfers", share(c.FailedTransfers), "lie between 0 and 1"},
		{"Tenants", c.Tenants >= 0 && c.Tenants <= 1<<16, "lie between 0 and 65536"},
		{"TenantDelay", c.TenantDelay >= 0 && c.TenantDelay < time.Hour, "be below an hour"},
		{"CachedShare", c.CachedShare >= 0 && c.CachedShare <= 0.5, "lie between 0 and 0.5"},
		{"AcceptedDrafts", c.AcceptedDrafts >= 0 && c.AcceptedDrafts <= 4, "lie between 0 and 4"},
		{"Cancels", share(c.Cancels), "lie between 0 and 1"},
		{"Impatient", share(c.Impatient), "lie between 0 and 1"},
		{"Patience", c.Impatient == 0 || c.Patience >= 100*time.Millisecond, "be at least 100ms, longer than any way to a scheduler"},
		{"PrefillSkew", c.PrefillSkew.Abs() < time.Hour, "be below an hour"},
		{"DecodeSkew", c.DecodeSkew.Abs() < time.Hour, "be below an hour"},
		{"HostSkew", c.HostSkew.Abs() < time.Hour, "be below an hour"},
		{"PrefillDrift", drifts(c.PrefillDrift), "be below 500 ppm"},
		{"DecodeDrift", drifts(c.DecodeDrift), "be below 500 ppm"},
		{"HostDrift", drifts(c.HostDrift), "be below 500 ppm"},
		{"RanksPerHost", c.RanksPerHost >= 0, "be at least 0"},
	} {
		if !f.ok {
			return fmt.Errorf("simulator: Config.%s must %s", f.name, f.must)
		}
	}
	return c.checkRanks()
}

// maxRanks is the largest number of ranks of an instance: a run is held in memory.
const maxRanks = 8192

// checkRanks checks the sizes of the instances, and the ranks named in c.
func (c *Config) checkRanks() error {
	instances := []Parallel{c.Prefill, c.Decode}
	if c.Mode == Unified {
		instances = []Parallel{c.Unified}
	}
	for _, p := range instances {
		if min(p.TP, p.PP, p.DP) < 1 || max(p.TP, p.PP) > 64 || p.TP*p.PP*p.DP > maxRanks {
			return fmt.Errorf("simulator: an instance of TP%d PP%d DP%d: TP and PP must be between 1 and 64, and the number of ranks at most %d",
				p.TP, p.PP, p.DP, maxRanks)
		}
	}
	p := c.serving()
	if in := c.Incident; p.DP > 1 && in.DPShare > 0 && (in.DPRank < 0 || in.DPRank >= p.DP) {
		return fmt.Errorf("simulator: Config.Incident.DPRank is %d, the instance has %d DP ranks", in.DPRank, p.DP)
	}
	if c.Hang.AtOnset && (c.Hang.DP < 0 || c.Hang.DP >= p.DP) {
		return fmt.Errorf("simulator: Config.Hang.DP is %d, the instance has %d DP ranks", c.Hang.DP, p.DP)
	}
	s := c.Straggler
	if s.planted() && (min(s.TP, s.PP, s.DP) < 0 || s.TP >= p.TP || s.PP >= p.PP || s.DP+max(1, s.Replicas) > p.DP) {
		return fmt.Errorf("simulator: straggler TP%d-PP%d-DP%d is not a rank of an instance of TP%d PP%d DP%d",
			s.TP, s.PP, s.DP, p.TP, p.PP, p.DP)
	}
	return nil
}

func (l Lengths) ok() bool {
	return l.Median >= 1 && l.Sigma >= 0 && l.Sigma <= 4 && l.Max >= 1 && l.Max <= 1<<20
}

// drifts reports whether f ppm is a possible drift of a clock; even on the last of many hosts it then still goes forward.
func drifts(f float64) bool { return f > -500 && f < 500 }

// share reports whether f is a share; it is false for a NaN.
func share(f float64) bool { return f >= 0 && f <= 1 }
