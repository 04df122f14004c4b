package requestjson

import (
	"math"
	"testing"

	"github.com/sgtrace/sgtrace/series"
)

// Reports of load generators give the offered and served load of each run. Rates are computed from counts and times.
func TestReports(t *testing.T) {
	const guideLLM = `{"metadata":{"version":2,"guidellm_version":"0.8.0"},"benchmarks":[
 {"type_":"generative_benchmark","config":{"strategy":{"type_":"poisson","rate":4.0,"max_concurrency":10240}},"duration":50.0,"metrics":{"request_totals":{"successful":100,"errored":3,"incomplete":1},
 "time_to_first_token_ms":{"successful":{"mean":2e3,"median":1500.0,"percentiles":{"p90":2500.0,"p99":NaN}},"errored":{"median":9}},"request_latency":{"successful":{"mean":2.5,"median":2.0}},"output_token_count":{"successful":{"total_sum":5000}}}},
 {"args":{"strategy":{"type_":"concurrent","streams":8}},"request_totals":{"successful":10,"errored":0},"start_time":100.0,"end_time":120.0,"requests":{"successful":[{"prompt":"CANARY ]}"}]},"metrics":{}},
 {"args":{"strategy":{"type_":"throughput","max_concurrency":null}},"request_totals":{"successful":7},"start_time":1.0,"end_time":2.0,"metrics":{}}]}`
	const inferencePerf = `{
  "benchmark_time_seconds": 20.0,
  "load_summary": {"count": 90, "requested_rate": 5.0, "achieved_rate": 5.0},
  "successes": {"count": 80, "latency": {"time_to_first_token": {"mean": 0.3, "median": 0.25, "p90": 0.4, "p99": 0.5}}, "throughput": {"input_tokens_per_sec": 100, "output_tokens_per_sec": 10, "requests_per_sec": 4.0}},
  "failures": {"count": 10}
}`
	const older = `{"load_summary":{"count":8,"concurrency":16,"requested_rate":9},"successes":{"count":8,"throughput":{"requests_per_sec":4.0}},"failures":{"count":0}}`
	const aiPerf = `{"request_throughput":{"unit":"requests/sec","avg":2.0},"request_latency":{"unit":"ms","avg":900.0,"p50":800.0},"request_count":{"unit":"requests","avg":40.0},"error_request_count":null,
"time_to_first_token":{"unit":"ms","avg":30.0,"p50":25.0,"p90":40.0,"p99":50.0},"output_sequence_length":{"unit":"tokens","avg":10.0},"input_config":{"endpoint":{"type":"chat"},"perf_analyzer":{"stimulus":{"concurrency":4}}}}`
	for _, test := range []struct {
		kind, text string
		want       []series.Run // only the compared fields
	}{
		{"GuideLLM report", guideLLM, []series.Run{
			{Rate: 4, Completed: 100, Failed: 3, Duration: 50, Output: 5000, TTFT: series.Spread{Mean: 2, Median: 1.5, P90: 2.5, P99: math.NaN()}, E2E: series.Spread{Median: 2}},
			{Rate: math.NaN(), Concurrency: 8, Completed: 10, Duration: 20, Output: math.NaN(), TTFT: series.Spread{Median: math.NaN()}, E2E: series.Spread{Median: math.NaN()}},
			{Rate: math.Inf(1), Completed: 7, Duration: 1, Output: math.NaN(), TTFT: series.Spread{Median: math.NaN()}, E2E: series.Spread{Median: math.NaN()}}}},
		{"inference-perf report", inferencePerf, []series.Run{{Rate: 5, Completed: 80, Failed: 10, Duration: 20, Output: 200, TTFT: series.Spread{Median: 0.25}, E2E: series.Spread{Median: math.NaN()}}}},
		{"inference-perf report", older, []series.Run{{Rate: math.NaN(), Concurrency: 16, Completed: 8, Duration: 2, Output: math.NaN(), TTFT: series.Spread{Median: math.NaN()}, E2E: series.Spread{Median: math.NaN()}}}},
		{"AIPerf summary", aiPerf, []series.Run{{Rate: math.NaN(), Concurrency: 4, Completed: 40, Duration: 20, Output: 400, TTFT: series.Spread{Median: 0.025}, E2E: series.Spread{Median: 0.8}}}},
	} {
		if k := kindOf([]byte(test.text)); k == nil || k.encoding != test.kind {
			t.Errorf("%s is taken for %v", test.kind, k)
			continue
		}
		_, set, diags := read(t, test.text)
		if len(set.Runs) != len(test.want) || len(diags.All()) != 0 {
			t.Errorf("%s: %+v, %v", test.kind, set.Runs, diags.All())
			continue
		}
		for i, want := range test.want {
			x := set.Runs[i]
			for what, pair := range map[string][2]float64{"rate": {x.Rate, want.Rate}, "duration": {x.Duration, want.Duration}, "output": {x.Output, want.Output}, "TTFT": {x.TTFT.Median, want.TTFT.Median}, "E2E": {x.E2E.Median, want.E2E.Median},
				"completed": {float64(x.Completed), float64(want.Completed)}, "failed": {float64(x.Failed), float64(want.Failed)}, "at once": {float64(x.Concurrency), float64(want.Concurrency)}} {
				if pair[0] != pair[1] && !(math.IsNaN(pair[0]) && math.IsNaN(pair[1])) {
					t.Errorf("%s, run %d: %s %g, want %g", test.kind, i, what, pair[0], pair[1])
				}
			}
		}
	}
}
