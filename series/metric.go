package series

// Kind says what the values of a metric are.
type Kind uint8

const (
	// Gauge is a level: it holds from its sample until the next one.
	Gauge Kind = iota
	// Counter only grows, and begins again at 0 when a process does.
	Counter
	// Amount is the increase since the sample before it: adding amounts up gives a total.
	Amount
	// Bucket is a Counter of how many observations were at most Series.Most, +Inf among them.
	Bucket
	// Mean is a rate or a mean over the time since the sample before it.
	Mean
	// Shown is what someone chose to export under a name that says nothing here.
	Shown
)

// String returns the word that tables print.
func (k Kind) String() string {
	return [...]string{"gauge", "counter", "amount", "bucket", "mean", "shown"}[k]
}

// A Metric is what is measured.
type Metric struct {
	Name string // as tables print it, without a unit
	Unit string // "" is a number of things, "%", "tokens/s", "ns"; a share is in "%"
	Kind Kind
	Doc  string
}

// A MetricID is a place in [Metrics], or, behind these, a metric that only its producer knows.
type MetricID int32

// What logs and metrics of servers both say, by whatever name, and reports look for.
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
	KnownMetrics // how many there are
)

// Batches are the metrics of those who run batches, and Ranked those that make a place a rank: an export may have nothing else than a queue.
var (
	Batches = []MetricID{Running, NewTokens, NewSeqs, Generation}
	Ranked  = append(Batches[:len(Batches):len(Batches)], Queued, KVUsage)
)

// Metrics are the metrics that reports know.
var Metrics = [KnownMetrics]Metric{
	Running:           {"running", "", Gauge, "requests in the running batch"},
	Queued:            {"queued", "", Gauge, "requests that wait to be scheduled"},
	KVUsage:           {"KV usage", "%", Gauge, "part of the KV cache in use, that of the fullest pool"},
	KVTokens:          {"KV tokens", "tokens", Gauge, "tokens in the KV cache"},
	SwaUsage:          {"SWA usage", "%", Gauge, "part of the pool for sliding windows in use"},
	MambaUsage:        {"mamba usage", "%", Gauge, "part of the pool for states in use"},
	Generation:        {"generation", "tokens/s", Mean, "tokens generated"},
	PrefillRate:       {"prefill rate", "tokens/s", Mean, "prompt tokens computed"},
	NewSeqs:           {"new sequences", "", Amount, "requests that a prefill batch takes in"},
	NewTokens:         {"new tokens", "tokens", Amount, "prompt tokens that a prefill batch computes"},
	CachedTokens:      {"cached tokens", "tokens", Amount, "prompt tokens that a prefill batch finds in the cache"},
	PendingTokens:     {"pending tokens", "tokens", Gauge, "prompt tokens that wait to be computed"},
	Bootstrapping:     {"bootstrap queue", "", Gauge, "requests of a prefill server that wait for their decode server"},
	Sending:           {"transfer queue out", "", Gauge, "requests of a prefill server whose KV cache is being sent"},
	Preallocated:      {"preallocation queue", "", Gauge, "requests of a decode server that wait for room in its KV cache"},
	PreallocatedUsage: {"preallocated", "%", Gauge, "part of the KV cache that is kept for transfers"},
	Receiving:         {"transfer queue in", "", Gauge, "requests of a decode server whose KV cache is on its way"},
	RetractedQueue:    {"retracted queue", "", Gauge, "requests of a decode server that were thrown out of the batch and wait to come back"},
	Graphed:           {"graphs", "", Gauge, "1 where the batch ran as a graph"},
	AcceptLength:      {"accept length", "tokens", Mean, "tokens that one verification accepts"},
	AcceptRate:        {"accept rate", "%", Mean, "part of drafted tokens that is accepted"},
	StepTime:          {"step time", "ns", Amount, "how long one iteration took"},
	Preemptions:       {"preemptions", "", Amount, "requests thrown out of the batch"},
	HitRate:           {"hit rate", "%", Mean, "part of prompt tokens that the cache had"},
	SMClock:           {"SM clock", "MHz", Gauge, "clock of the multiprocessors of a GPU"},
	MemoryClock:       {"memory clock", "MHz", Gauge, "clock of the memory of a GPU"},
	GPUTemperature:    {"temperature", "°C", Gauge, "temperature of a GPU"},
	Power:             {"power", "W", Gauge, "power that a GPU draws"},
	Throttling:        {"throttle reasons", "", Gauge, "bits that say why a GPU lowers its clock"},
	Xid:               {"last Xid", "", Gauge, "the last error that the driver reported of a GPU"},
	ServerErrors:      {"server errors", "", Amount, "answers with an HTTP status of 500 or more"},
	Refused:           {"refused", "", Amount, "answers with the HTTP status 429"},
	TTFT:              {"TTFT", "s", Bucket, "time to the first token, in buckets"},
	ITL:               {"ITL", "s", Bucket, "time from a token to the next, in buckets"},
	TPOT:              {"time per output token", "s", Bucket, "mean time per token of a request, in buckets"},
	E2E:               {"E2E", "s", Bucket, "time of a whole request, in buckets"},
	QueueTime:         {"queue time", "s", Bucket, "time that a request waits to be scheduled, in buckets"},
	Balancedness:      {"expert balancedness", "%", Gauge, "mean tokens of a GPU with experts, by those of the busiest one"},
	ExpertTokens:      {"expert tokens", "tokens", Amount, "tokens that experts got, in all layers"},
	TransferSpeed:     {"transfer speed", "GB/s", Gauge, "how fast a server sends or gets the KV cache of a request, that of the last one"},
	GPUUtil:           {"GPU busy", "%", Gauge, "part of the time in which any kernel ran"},
}

// A Worsening is what a server is spared less of: a change of a metric for which it has more to do, and what reports say
// of it.
type Worsening struct {
	Name   string // of what falls, as tables and findings name it
	Metric MetricID
	// Part tells that its values are parts of 1: of the sum of some metrics, or of the lines that say it.
	Part bool
	Of   []MetricID
	// Percent has the same in percent, for servers that do not say Metric.
	Percent []MetricID
	// Beside are metrics without which a line does not count.
	Beside []MetricID
	// BetweenBatches tells that its values are the part of its time in which a scheduler neither launches a batch nor
	// waits for one: counters tell, instead of Metric. It is worth a word only where requests pay for it.
	BetweenBatches bool
	// Matters reports whether a server has much more to do, given the values before and after a change.
	Matters func(before, after float64) bool
	// Says is a sentence, with {at}, {before}, and {after}, which are in percent for parts, and {times}: how many times
	// as large the rest of 1 is.
	Says string
}

// AbortedShare is the name of the worsening of a server more of whose requests are aborted, as its counters have it.
const AbortedShare = "share of aborted requests"

// Worsenings are looked for in all logs and metrics. A change that costs nothing is told of as well.
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

// A Run is what a load generator measured of a whole run, such as bench_serving: it does not tell when.
type Run struct {
	Source      uint32 // index into Set.Sources
	Line        uint32
	Backend     string  // "sglang", "vllm"
	Dataset     string  // "random", "sharegpt"
	Rate        float64 // requests a second that were offered; +Inf is all at once; NaN is unknown
	Concurrency int     // requests at most at once; 0 is no bound
	Completed   int
	Failed      int     // 0 is none, or not told
	Duration    float64 // s
	Input       float64 // tokens; NaN is unknown
	Output      float64
	TTFT        Spread
	ITL         Spread
	TPOT        Spread
	E2E         Spread
}

// A Spread is how long something took, in s; NaN is not told.
type Spread struct{ Mean, Median, P90, P99 float64 }
