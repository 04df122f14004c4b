package slow

import (
	"math"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/telemetry"
	"github.com/sgtrace/sgtrace/analyze/telemetry/held"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
)

// One retraction costs one more computation, however far apart scrapes are.
func TestOneRetractionInACounter(t *testing.T) {
	set := series.New(trace.NewSymbols(), &trace.Diags{})
	f := set.Fill("metrics.json", "Prometheus range")
	p := f.Place(series.Place{Server: f.Server(series.Server{Name: "a", Engine: "vLLM"}), Rank: trace.NoRank, GPU: series.NoGPU})
	for i := range 20 {
		at, n := trace.Time(1_700_000_000+15*i)*1e9, 0.0
		if i >= 10 {
			n = 1
		}
		f.Add(f.Series(series.Running, p), at, 30)
		f.Add(f.SeriesOf(series.Series{Metric: series.TTFT, Place: p, Most: math.Inf(1)}), at, float64(100*i))
		f.Add(f.Series(f.Metric(series.Metric{Name: "vllm:num_preemptions_total", Kind: series.Counter}), p), at, n)
	}
	set.Finish(series.Known{})
	found, _ := held.Retractions(telemetry.Measure(set, telemetry.Options{}))
	if len(found) != 1 || found[0].Metric.After != 1 || found[0].Cost > 0.002 {
		t.Error(found)
	}
}

// A server that counts no retractions shows them in its gauge, and they wait although its queue is empty: since the 60th of 120
// scrapes, its KV cache is full.
func TestRetractedRequestsInAGauge(t *testing.T) {
	const begin, every = trace.Time(1_700_000_000e9), trace.Time(15e9)
	for retracted, want := range map[float64]string{0: "", 4: "unified has up to 4 retracted requests, between 22:28:20 and 22:43:05: its KV cache is full"} {
		set := series.New(trace.NewSymbols(), &trace.Diags{})
		f := set.Fill("metrics.json", "Prometheus range")
		p := f.Place(series.Place{Server: f.Server(series.Server{Name: "a", Engine: "SGLang"}), Rank: trace.NoRank, GPU: series.NoGPU})
		for i := range 120 {
			at, usage, n := begin+every*trace.Time(i), 45.0, 0.0
			if i >= 60 {
				usage, n = 99, retracted
			}
			f.Add(f.Series(series.Running, p), at, 30)
			f.Add(f.Series(series.Queued, p), at, 0)
			f.Add(f.Series(series.KVUsage, p), at, usage)
			f.Add(f.Series(series.RetractedQueue, p), at, n)
		}
		set.Finish(series.Known{})
		l := telemetry.Measure(set, telemetry.Options{})
		found, _ := held.Retractions(l)
		var got string
		for _, f := range found {
			got += f.Text
		}
		full, ok := noRoom(l, &l.Ranks[0])
		if got != want || ok != (want != "") || ok && (full.Since < begin+59*every || full.Since > begin+60*every) {
			t.Errorf("%g: %q, full %v since %v", retracted, got, ok, full.Since-begin)
		}
	}
}
