package requestjson

import (
	"math"
	"strconv"
	"strings"

	"github.com/sgtrace/sgtrace/internal/jsonscan"
	"github.com/sgtrace/sgtrace/series"
)

// newRun returns an empty run, at a line of the current input.
func newRun(set *series.Set, line int) series.Run {
	unknown := series.Spread{Mean: math.NaN(), Median: math.NaN(), P90: math.NaN(), P99: math.NaN()}
	return series.Run{Source: uint32(len(set.Sources) - 1), Line: uint32(line), Rate: math.NaN(), Duration: math.NaN(), Input: math.NaN(), Output: math.NaN(),
		TTFT: unknown, ITL: unknown, TPOT: unknown, E2E: unknown}
}

// bench reads bench_serving's results of a run.
func (r *clientReader) bench(b []byte) bool {
	x := newRun(r.f.Set, r.at)
	known := false
	_, err := jsonscan.Members(b, 0, func(key, value []byte) {
		switch name := string(key); name {
		case "backend", "endpoint_type":
			x.Backend = short(value)
		case "dataset_name":
			x.Dataset = short(value)
		case "server_info", "generated_texts":
		default:
			known = known || name == "completed"
			if v, err := strconv.ParseFloat(strings.Trim(string(value[:min(len(value), longestNumber)]), `"`), 64); err == nil { // NaN, Infinity, and "inf" are among them
				setNumber(&x, name, v)
			}
		}
	})
	if err != nil || !known {
		return false
	}
	r.f.Set.Runs = append(r.f.Set.Runs, x)
	return true
}

// longestNumber is the length of the longest number, in bytes.
const longestNumber = 40

// setNumber sets a number of a run by its key, "completed" or "median_ttft_ms".
func setNumber(x *series.Run, name string, v float64) {
	switch {
	case math.IsNaN(v):
	case name == "request_rate":
		x.Rate = v
	case name == "max_concurrency":
		x.Concurrency = requests(v)
	case name == "completed":
		x.Completed = requests(v)
	case name == "failed":
		x.Failed = requests(v)
	case name == "duration":
		x.Duration = v
	case name == "total_input_tokens":
		x.Input = v
	case name == "total_output_tokens":
		x.Output = v
	default:
		setSpread(x, name, v/1e3)
	}
}

// setSpread sets the number named like "median_ttft_ms", in s.
func setSpread(x *series.Run, name string, seconds float64) {
	which, rest, _ := strings.Cut(name, "_")
	what, ms := strings.CutSuffix(rest, "_ms")
	to := map[string]*series.Spread{"ttft": &x.TTFT, "itl": &x.ITL, "tpot": &x.TPOT, "e2e_latency": &x.E2E, "e2el": &x.E2E}[what]
	if to == nil || !ms {
		return
	}
	switch which {
	case "mean":
		to.Mean = seconds
	case "median", "p50":
		to.Median = seconds
	case "p90":
		to.P90 = seconds
	case "p99":
		to.P99 = seconds
	}
}

// short returns a name that is too short to be a prompt.
func short(value []byte) string {
	const longest = 64
	name := jsonscan.Quoted(value)
	return string(name[:min(len(name), longest)])
}
