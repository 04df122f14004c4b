package series

// Kind says what kind of values a metric has.
type Kind uint8

const (
	// Gauge is a level: it holds from its sample until the next one.
	Gauge Kind = iota
	// Counter only grows, and restarts at 0 with its process.
	Counter
	// Amount is the increase since the previous sample: the sum of amounts is a total.
	Amount
	// Bucket is a Counter of the observations that were at most Series.Most, which may be +Inf.
	Bucket
	// Mean is a rate or a mean over the time since the previous sample.
	Mean
	// Shown is a value that a user exported under a name that is meaningless here.
	Shown
)

// String returns the word used in tables.
func (k Kind) String() string {
	return [...]string{"gauge", "counter", "amount", "bucket", "mean", "shown"}[k]
}

// A Metric is a quantity that is measured.
type Metric struct {
	Name string // as in tables, without a unit
	Unit string // "" is a count, "%", "tokens/s", "ns"; a share is in "%"
	Kind Kind
	Doc  string
}

// A MetricID is an index into [Metrics] or, beyond these, a metric that only its producer knows.
type MetricID int32

// Metrics that logs or metrics of servers report, under whatever name, and that reports use.
const (
	Running MetricID = iota
	Queued
	KVUsage
	KVTokens
	SwaUsage
	MambaUsage
	Generation
	PrefillRate
	NewSeqs
	NewTokens
	CachedTokens
	PendingTokens
	Bootstrapping
	Sending
	Preallocated
	PreallocatedUsage
	Receiving
	RetractedQueue
	Graphed
	AcceptLength
	AcceptRate
	StepTime
	Preemptions
	HitRate
	SMClock
	MemoryClock
	GPUTemperature
	Power
	Throttling
	Xid
	GPUUtil
	ServerErrors
	Refused
	TTFT
	ITL
	TPOT
	E2E
	QueueTime
	Balancedness
	ExpertTokens
	TransferSpeed
	Answers
	KnownMetrics // number of known metrics
)

// Batches are the metrics that show that a place runs batches. Ranked are those that make a place a rank: an export may have
// nothing but a queue.
var (
	Batches = []MetricID{Running, NewTokens, NewSeqs, Generation}
	Ranked  = append(Batches[:len(Batches):len(Batches)], Queued, KVUsage)
)

// Metrics describes the metrics that reports know.
var Metrics = [KnownMetrics]Metric{
	Running:           {"running", "", Gauge, "requests in the running batch"},
	Queued:            {"queued", "", Gauge, "queued requests"},
	KVUsage:           {"KV usage", "%", Gauge, "share of the KV cache in use, for the fullest pool"},
	KVTokens:          {"KV tokens", "tokens", Gauge, "tokens in the KV cache"},
	SwaUsage:          {"SWA usage", "%", Gauge, "share of the sliding-window pool in use"},
	MambaUsage:        {"mamba usage", "%", Gauge, "share of the state (mamba) pool in use"},
	Generation:        {"generation", "tokens/s", Mean, "generation throughput in tokens per second"},
	PrefillRate:       {"prefill rate", "tokens/s", Mean, "prefill throughput in tokens per second"},
	NewSeqs:           {"new sequences", "", Amount, "requests admitted by a prefill batch"},
	NewTokens:         {"new tokens", "tokens", Amount, "prompt tokens computed by a prefill batch"},
	CachedTokens:      {"cached tokens", "tokens", Amount, "prompt tokens of a prefill batch found in the cache"},
	PendingTokens:     {"pending tokens", "tokens", Gauge, "prompt tokens waiting to be computed"},
	Bootstrapping:     {"bootstrap queue", "", Gauge, "prefill server: requests waiting to connect to their decode server"},
	Sending:           {"transfer queue out", "", Gauge, "prefill server: requests whose KV cache is being sent"},
	Preallocated:      {"preallocation queue", "", Gauge, "decode server: requests waiting for KV cache space"},
	PreallocatedUsage: {"preallocated", "%", Gauge, "share of the KV cache reserved for transfers"},
	Receiving:         {"transfer queue in", "", Gauge, "decode server: requests whose KV cache is being received"},
	RetractedQueue:    {"retracted queue", "", Gauge, "decode server: retracted requests waiting to resume"},
	Graphed:           {"graphs", "", Gauge, "1 if the batch ran as a CUDA graph"},
	AcceptLength:      {"accept length", "tokens", Mean, "tokens accepted per verification (speculative decoding)"},
	AcceptRate:        {"accept rate", "%", Mean, "share of draft tokens accepted"},
	StepTime:          {"step time", "ns", Amount, "duration of one iteration"},
	Preemptions:       {"preemptions", "", Amount, "requests preempted"},
	HitRate:           {"hit rate", "%", Mean, "share of prompt tokens found in the cache"},
	SMClock:           {"SM clock", "MHz", Gauge, "clock of the multiprocessors of a GPU"},
	MemoryClock:       {"memory clock", "MHz", Gauge, "clock of the memory of a GPU"},
	GPUTemperature:    {"temperature", "°C", Gauge, "temperature of a GPU"},
	Power:             {"power", "W", Gauge, "power that a GPU draws"},
	Throttling:        {"throttle reasons", "", Gauge, "bit mask of the reasons why a GPU lowers its clock"},
	Xid:               {"last Xid", "", Gauge, "code of the last error (Xid) that the driver reported for a GPU"},
	ServerErrors:      {"server errors", "", Amount, "responses with HTTP status 500 or higher"},
	Answers:           {"answers", "", Amount, "responses that the counters of responses counted in all"},
	Refused:           {"refused", "", Amount, "responses with HTTP status 429"},
	TTFT:              {"TTFT", "s", Bucket, "time to first token (histogram)"},
	ITL:               {"ITL", "s", Bucket, "inter-token latency (histogram)"},
	TPOT:              {"time per output token", "s", Bucket, "time per output token of a request (histogram)"},
	E2E:               {"E2E", "s", Bucket, "end-to-end latency of a request (histogram)"},
	QueueTime:         {"queue time", "s", Bucket, "queue time of a request (histogram)"},
	Balancedness:      {"expert balancedness", "%", Gauge, "mean tokens per expert GPU divided by those of the busiest one"},
	ExpertTokens:      {"expert tokens", "tokens", Amount, "tokens routed to experts, over all layers"},
	TransferSpeed:     {"transfer speed", "GB/s", Gauge, "speed of the server's last KV transfer"},
	GPUUtil:           {"GPU busy", "%", Gauge, "share of time with at least one kernel running"},
}

// SinceBegun ends the labels of counts from a single scrape: of all that a counter counted since its process began.
const SinceBegun = " since it began"

// A Worsening is a loss of savings: a change of a metric that gives a server more work, and the sentence that reports
// it.
type Worsening struct {
	Name   string // of what falls, in tables and findings
	Metric MetricID
	// Part says that its values are shares: of the sum of some metrics, or of the lines that report it.
	Part bool
	Of   []MetricID
	// Percent are equivalent metrics in percent, for servers that do not report Metric.
	Percent []MetricID
	// Beside are metrics without which a line does not count.
	Beside []MetricID
	// BetweenBatches says that its values are the share of a scheduler's time in which it neither launches a batch
	// nor waits for one; they come from counters instead of Metric. It is reported only if it costs requests time.
	BetweenBatches bool
	// Matters reports whether a server has much more work, given the values before and after a change.
	Matters func(before, after float64) bool
	// Says is a sentence with {at}, {before}, and {after}, which are in percent for shares, and {times}: by what factor
	// the complement (1 minus the share) grew.
	Says string
}

// AbortedShare is the name of the worsening in which more of a server's requests are aborted, according to its counters.
const AbortedShare = "share of aborted requests"

// Worsenings are searched for in all logs and metrics. Changes that cost nothing are reported as well.
var Worsenings = []Worsening{
	{Name: "share of cached tokens", Metric: CachedTokens, Part: true, Of: []MetricID{CachedTokens, NewTokens}, Percent: []MetricID{HitRate},
		Matters: func(before, after float64) bool { return before-after >= 0.05 && 1-after >= 1.5*(1-before) },
		Says:    "{after} % of the tokens of prompts are cached on {at}, {before} % before: of each prompt, {times} times as many are computed"},
	{Name: "tokens per decode step", Metric: AcceptLength,
		Matters: func(before, after float64) bool { return before >= 1.2*after },
		Says:    "{after} tokens come out of a decode step of {at}, {before} before: fewer drafts are accepted"},
	{Name: "share of steps with graphs", Metric: Graphed, Part: true, Beside: []MetricID{Generation},
		Matters: func(before, after float64) bool { return before-after >= 0.5 },
		Says:    "{after} % of the decode steps of {at} run as a CUDA graph, {before} % before"},
	{Name: "speed of KV transfers", Metric: TransferSpeed,
		Matters: func(before, after float64) bool { return after > 0 && before >= 2*after },
		Says:    "KV transfers of {at} run at {after} GB/s, {before} before"},
	{Name: AbortedShare, Part: true,
		Matters: func(before, after float64) bool { return after-before >= 0.05 && after >= 2*before },
		Says:    "{after} % of the requests that end on {at} are aborted, {before} % before"},
	{Name: "time between batches", BetweenBatches: true, Part: true,
		Matters: func(before, after float64) bool { return after-before >= 0.1 },
		Says:    "the scheduler of {at} spends {after} % of its time on work between batches, {before} % before"},
}

// A Run is a load generator's measurement of a whole run, such as bench_serving's: it does not say when.
type Run struct {
	Source      uint32 // index into Set.Sources
	Line        uint32
	Backend     string  // "sglang", "vllm"
	Dataset     string  // "random", "sharegpt"
	Rate        float64 // offered requests per second; +Inf is all at once; NaN is unknown
	Concurrency int     // maximum number of concurrent requests; 0 is unlimited
	Completed   int
	Failed      int     // 0 is none or unknown
	Duration    float64 // in s
	Input       float64 // tokens; NaN is unknown
	Output      float64
	TTFT        Spread
	ITL         Spread
	TPOT        Spread
	E2E         Spread
}

// A Spread summarizes a duration, in s; NaN is unknown.
type Spread struct{ Mean, Median, P90, P99 float64 }
