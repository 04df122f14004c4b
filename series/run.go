package series

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
