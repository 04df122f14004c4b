package requestjson

import (
	"math"
	"strconv"
	"strings"

	"github.com/sgtrace/sgtrace/internal/jsonscan"
	"github.com/sgtrace/sgtrace/series"
)

// bench reads what bench_serving says of a run.
func (r *clientReader) bench(b []byte) bool {
	unknown := series.Spread{Mean: math.NaN(), Median: math.NaN(), P90: math.NaN(), P99: math.NaN()}
	x := series.Run{Source: uint32(len(r.f.Set.Sources) - 1), Line: uint32(r.at), Rate: math.NaN(), Duration: math.NaN(), Input: math.NaN(), Output: math.NaN(),
		TTFT: unknown, ITL: unknown, TPOT: unknown, E2E: unknown}
	known := false
	_, err := jsonscan.Members(b, 0, func(key, value []byte) {
		name := string(key)
		number := func() float64 {
			v, err := strconv.ParseFloat(strings.Trim(string(value), `"`), 64) // NaN, Infinity, and "inf" are among them
			if err != nil || math.IsNaN(v) {
				return math.NaN()
			}
			return v
		}
		switch name {
		case "backend", "endpoint_type":
			x.Backend = short(value)
		case "dataset_name":
			x.Dataset = short(value)
		case "request_rate":
			x.Rate = number()
		case "max_concurrency":
			x.Concurrency = int(max(0, whole(value)))
		case "completed":
			x.Completed, known = int(max(0, whole(value))), true
		case "failed":
			x.Failed = int(max(0, whole(value)))
		case "duration":
			x.Duration = number()
		case "total_input_tokens":
			x.Input = number()
		case "total_output_tokens":
			x.Output = number()
		default:
			setSpread(&x, name, number)
		}
	})
	if err != nil || !known {
		return false
	}
	r.f.Set.Runs = append(r.f.Set.Runs, x)
	return true
}

// setSpread reads "median_ttft_ms" and the like.
func setSpread(x *series.Run, name string, number func() float64) {
	which, rest, _ := strings.Cut(name, "_")
	what, ms := strings.CutSuffix(rest, "_ms")
	to := map[string]*series.Spread{"ttft": &x.TTFT, "itl": &x.ITL, "tpot": &x.TPOT, "e2e_latency": &x.E2E, "e2el": &x.E2E}[what]
	if to == nil || !ms {
		return
	}
	seconds := number() / 1e3
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

// short returns a name that no prompt can be.
func short(value []byte) string {
	const longest = 64
	name := jsonscan.Quoted(value)
	return string(name[:min(len(name), longest)])
}
