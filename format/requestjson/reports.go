package requestjson

import (
	"cmp"
	"math"
	"strconv"

	"github.com/sgtrace/sgtrace/internal/jsonscan"
	"github.com/sgtrace/sgtrace/series"
)

// within returns the value at a path of keys in nested objects; nil if there is none.
func within(b []byte, path ...string) []byte {
	for _, name := range path {
		var found []byte
		if i := jsonscan.Space(b, 0); i >= len(b) || b[i] != '{' {
			return nil
		} else if _, err := jsonscan.Members(b, i, func(key, value []byte) {
			if string(key) == name {
				found = value
			}
		}); err != nil {
			return nil
		}
		b = found
	}
	return b
}

// numberIn returns the first number among some members of an object; NaN if there is none.
func numberIn(b []byte, names ...string) float64 {
	for _, name := range names {
		if v := number(within(b, name)); !math.IsNaN(v) {
			return v
		}
	}
	return math.NaN()
}

// number parses a number in Python's format, which may be NaN or Infinity; NaN if it is not one.
func number(value []byte) float64 {
	if v, err := strconv.ParseFloat(string(value[:min(len(value), longestNumber)]), 64); err == nil {
		return v
	}
	return math.NaN()
}

// spreadIn reads statistics of a duration, under any generator's names; unit is their unit in s.
func spreadIn(b []byte, unit float64) series.Spread {
	of := func(names ...string) float64 {
		v := numberIn(b, names...)
		if math.IsNaN(v) {
			v = numberIn(within(b, "percentiles"), names...)
		}
		return v * unit
	}
	return series.Spread{Mean: of("mean", "avg"), Median: of("median", "p50"), P90: of("p90"), P99: of("p99")}
}

// requests converts a number of requests; 0 is none, or unknown.
func requests(v float64) int {
	const most = 1 << 40
	if math.IsNaN(v) {
		return 0
	}
	return int(max(0, min(v, most)))
}

// end stores a complete run, and reports whether it contains how much was served.
func (r *clientReader) end(x series.Run) bool {
	if x.Completed == 0 && x.Failed == 0 || !(x.Duration > 0) {
		return false
	}
	r.f.Set.Runs = append(r.f.Set.Runs, x)
	return true
}

// guideLLM reads a report of GuideLLM, benchmarks.json: a run for each rate. The offered load is in "args" until 0.3, and
// in "config" since. TTFT, ITL, and TPOT are in ms, latencies in s.
func (r *clientReader) guideLLM(b []byte) bool {
	list := within(b, "benchmarks")
	if len(list) == 0 || list[0] != '[' {
		return false
	}
	all := true
	for i := jsonscan.Space(list, 1); i < len(list) && list[i] == '{'; i = jsonscan.Space(list, i) {
		next, err := jsonscan.Value(list, i)
		if err != nil {
			return false
		}
		all = r.guideLLMRun(list[i:next]) && all
		if i = jsonscan.Space(list, next); i < len(list) && list[i] == ',' {
			i++
		}
	}
	return all
}

func (r *clientReader) guideLLMRun(b []byte) bool {
	var member struct{ config, metrics, totals []byte }
	x := newRun(r.f.Set, r.at)
	x.Backend = "GuideLLM"
	from, to := math.NaN(), math.NaN()
	if _, err := jsonscan.Members(b, 0, func(key, value []byte) { // in one pass: requests may take hundreds of MB
		switch string(key) {
		case "config", "args":
			member.config = value
		case "metrics":
			member.metrics = value
		case "request_totals":
			member.totals = value
		case "duration":
			x.Duration = number(value)
		case "start_time":
			from = number(value)
		case "end_time":
			to = number(value)
		}
	}); err != nil {
		return false
	}
	if math.IsNaN(x.Duration) {
		x.Duration = to - from
	}
	strategy := within(member.config, "strategy")
	switch short(within(strategy, "type_")) {
	case "throughput":
		x.Rate, x.Concurrency = math.Inf(1), requests(numberIn(strategy, "max_concurrency"))
	case "synchronous":
		x.Concurrency = 1
	case "concurrent":
		x.Concurrency = requests(numberIn(strategy, "streams"))
	default:
		x.Rate = numberIn(strategy, "rate")
	}
	if member.totals == nil {
		member.totals = within(member.metrics, "request_totals")
	}
	x.Completed, x.Failed = requests(numberIn(member.totals, "successful")), requests(numberIn(member.totals, "errored"))
	of := func(name string) []byte { return within(member.metrics, name, "successful") }
	x.Input, x.Output = numberIn(of("prompt_token_count"), "total_sum"), numberIn(of("output_token_count"), "total_sum")
	x.TTFT, x.ITL, x.TPOT = spreadIn(of("time_to_first_token_ms"), 1e-3), spreadIn(of("inter_token_latency_ms"), 1e-3), spreadIn(of("time_per_output_token_ms"), 1e-3)
	x.E2E = spreadIn(of("request_latency"), 1)
	return r.end(x)
}

// inferencePerf reads the report of Kubernetes's inference-perf for a stage, stage_1_lifecycle_metrics.json, or for all of
// them.
func (r *clientReader) inferencePerf(b []byte) bool {
	load, good := within(b, "load_summary"), within(b, "successes")
	x := newRun(r.f.Set, r.at)
	x.Backend = "inference-perf"
	if x.Concurrency = requests(numberIn(load, "concurrency")); x.Concurrency == 0 {
		x.Rate = numberIn(load, "requested_rate")
	}
	x.Completed, x.Failed = requests(numberIn(good, "count")), requests(numberIn(within(b, "failures"), "count"))
	rates, took := within(good, "throughput"), within(good, "latency")
	if x.Duration = numberIn(b, "benchmark_time_seconds"); math.IsNaN(x.Duration) { // until 2026
		x.Duration = float64(x.Completed) / numberIn(rates, "requests_per_sec")
	}
	x.Input, x.Output = numberIn(rates, "input_tokens_per_sec")*x.Duration, numberIn(rates, "output_tokens_per_sec")*x.Duration
	x.TTFT, x.ITL = spreadIn(within(took, "time_to_first_token"), 1), spreadIn(within(took, "inter_token_latency"), 1)
	x.TPOT, x.E2E = spreadIn(within(took, "time_per_output_token"), 1), spreadIn(within(took, "request_latency"), 1)
	return r.end(x)
}

// genAIPerf reads the summary of AIPerf, profile_export_aiperf.json, or of its predecessor GenAI-Perf: an object for each
// number, with its unit. Latencies are in ms.
func (r *clientReader) genAIPerf(b []byte) bool {
	x := newRun(r.f.Set, r.at)
	value := func(name string) float64 { return numberIn(within(b, name), "avg") }
	config := within(b, "input_config")
	x.Backend = cmp.Or(short(within(config, "endpoint", "type")), "GenAI-Perf")
	for _, path := range [][]string{{"loadgen"}, {"perf_analyzer", "stimulus"}, {}} {
		offered := within(config, path...)
		if math.IsNaN(x.Rate) {
			x.Rate = numberIn(offered, "request_rate")
		}
		if x.Concurrency == 0 {
			x.Concurrency = requests(numberIn(offered, "concurrency"))
		}
	}
	x.Completed, x.Failed = requests(value("request_count")), requests(value("error_request_count"))
	if x.Duration = value("benchmark_duration"); math.IsNaN(x.Duration) {
		x.Duration = float64(x.Completed) / value("request_throughput")
	}
	x.Input, x.Output = value("input_sequence_length")*float64(x.Completed), value("output_sequence_length")*float64(x.Completed)
	x.TTFT, x.ITL = spreadIn(within(b, "time_to_first_token"), 1e-3), spreadIn(within(b, "inter_token_latency"), 1e-3)
	x.E2E = spreadIn(within(b, "request_latency"), 1e-3)
	return r.end(x)
}
