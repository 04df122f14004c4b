package failed

import (
	"fmt"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/telemetry"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
)

// Counters of failed transfers are reported. The end whose peers have no failures leads. TP ranks of a server count
// the same requests, SGLang's counters only appear with the first failure, and timeouts that both ends see count once.
func TestCountedTransfers(t *testing.T) {
	const begin, every = trace.Time(1787000000e9), trace.Time(15e9)
	for _, c := range []struct {
		name    string
		scrapes int
		fill    func(add func(host, role string, tp int, name string, from int, value float64))
		want    []string
	}{
		{"one decode server", 40, func(add func(string, string, int, string, int, float64)) {
			for tp := range 2 {
				add("dec-1", "decode", tp, "sglang:num_transfer_failed_reqs_total", 20, 5)
			}
			add("dec-0", "decode", 0, "sglang:num_transfer_failed_reqs_total", 0, 0)
			add("dec-1", "decode", 0, "sglang:kv_transfer_timeouts_total", 20, 5)
			add("pre-0", "prefill", 0, "sglang:num_transfer_failed_reqs_total", 20, 5)
		}, []string{"dec-1 counts 5 failed KV transfers at 20:58:20", "others of its role count none: dec-0", "pre-0 counts 5 failed KV transfers"}},
		{"timeouts alone", 40, func(add func(string, string, int, string, int, float64)) {
			add("dec-0", "decode", 0, "sglang:kv_transfer_timeouts_total", 20, 1)
		}, []string{"dec-0 counts 1 KV transfer timeout at 20:58:20"}},
		{"counted before", 40, func(add func(string, string, int, string, int, float64)) {
			add("dec-0", "decode", 0, "sglang:num_transfer_failed_reqs_total", 0, 7)
		}, nil},
		{"one scrape", 1, func(add func(string, string, int, string, int, float64)) {
			add("dec-0", "decode", 0, "vllm:nixl_num_failed_transfers_total", 0, 7)
		}, []string{"dec-0 counts 7 failed KV transfers since it began, by the only scrape"}},
	} {
		set := series.New(trace.NewSymbols(), &trace.Diags{})
		f := set.Fill("metrics.json", "Prometheus range")
		c.fill(func(host, role string, tp int, name string, from int, value float64) {
			rank := trace.NoRank
			rank.TP = int16(tp)
			p := f.Place(series.Place{Server: f.Server(series.Server{Host: host, Role: role, Engine: "SGLang"}), Rank: rank, GPU: series.NoGPU})
			running, of := f.Series(series.Running, p), f.Series(f.Metric(series.Metric{Name: name, Kind: series.Counter}), p)
			for k := range c.scrapes {
				f.Add(running, begin+every*trace.Time(k), 4)
				if k >= from {
					f.Add(of, begin+every*trace.Time(k), value)
				}
			}
		})
		set.Finish(series.Known{})
		found, counted := countedTransfers(telemetry.Measure(set, telemetry.Options{}))
		var got []string
		for i := range found {
			got = append(append(got, found[i].Text), finding.Sentences(found[i].Evidence)...)
		}
		if len(got) > 0 {
			got = got[:len(got)-1] // without the hint where to look
		}
		if fmt.Sprint(got) != fmt.Sprint(c.want) || !counted {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
