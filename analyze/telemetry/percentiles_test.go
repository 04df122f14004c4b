package telemetry

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
)

const second = trace.Time(1e9)

// bounds are the buckets of SGLang's TTFT histogram.
var bounds = []float64{0.1, 0.2, 0.4, 0.6, 0.8, 1, 2, 4, 6, 8, 10, 20, 40, 60, 80, 100, 200, 400, math.Inf(1)}

// Exact percentiles lie within those from buckets, whose limits are adjacent bucket
// bounds. That holds in each interval, and across a restart of the server.
func TestPercentilesAreBetween(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	for range 30 {
		set := series.New(trace.NewSymbols(), &trace.Diags{})
		f := set.Fill("m", "test")
		p := f.Place(series.Place{Server: f.Server(series.Server{Name: "decode-0", Role: "decode"}), Rank: trace.NoRank, GPU: series.NoGPU})
		counts := make([]float64, len(bounds))
		var all []float64
		byTime := map[trace.Time][]float64{}
		for scrape := range 8 {
			at := trace.Time(1787000000+15*scrape) * second
			for range random.IntN(60) {
				v := math.Exp(2*random.NormFloat64() - 1)
				for k, most := range bounds {
					if v <= most {
						counts[k]++
					}
				}
				if scrape > 0 {
					all, byTime[at] = append(all, v), append(byTime[at], v)
				}
			}
			if scrape == 4 { // the server is restarted, and counts from 0
				for k := range counts {
					counts[k] = 0
					for _, v := range byTime[at] {
						if v <= bounds[k] {
							counts[k]++
						}
					}
				}
			}
			for k, most := range bounds {
				f.Add(f.SeriesOf(series.Series{Metric: series.TTFT, Place: p, Most: most}), at, counts[k])
			}
		}
		set.Finish(series.Known{})
		m := MeasureMetrics(set, Options{Bucket: 15e9})
		check := func(c *bucketCounts, values []float64) {
			t.Helper()
			slices.Sort(values)
			if c.N() != int64(len(values)) {
				t.Fatalf("%d observations, want %d", c.N(), len(values))
			}
			for _, p := range []float64{50, 90, 99} {
				v := values[int(math.Ceil(p/100*float64(len(values))))-1]
				least, most := c.between(p)
				if k := slices.Index(bounds, most); v <= least && v > 0 || v > most || k > 0 && bounds[k-1] != least || k == 0 && least != 0 {
					t.Fatalf("p%.0f is %g, said to be above %g and at most %g", p, v, least, most)
				}
			}
		}
		whole := m.counted(false)
		if len(all) == 0 {
			continue
		}
		// A restart is invisible if the counter has already caught up with its previous value.
		if total := whole[0].N(); total != int64(len(all)) {
			t.Logf("%d of %d: a restart was not seen", total, len(all))
			continue
		}
		check(whole[0], all)
		for _, c := range m.counted(true) {
			check(c, byTime[c.To])
		}
	}
}

// A single scrape covers the time since the server started, and the report says so.
func TestOneScrape(t *testing.T) {
	set := series.New(trace.NewSymbols(), &trace.Diags{})
	f := set.Fill("m", "test")
	p := f.Place(series.Place{Server: f.Server(series.Server{Name: "s"}), Rank: trace.NoRank, GPU: series.NoGPU})
	for k, most := range bounds {
		f.Add(f.SeriesOf(series.Series{Metric: series.TTFT, Place: p, Most: most}), 100*second, float64(100*min(k, 7)))
		f.Add(f.SeriesOf(series.Series{Metric: series.QueueTime, Place: p, Most: most}), 100*second, 3)
		f.Add(f.SeriesOf(series.Series{Metric: series.E2E, Place: p, Most: most}), 100*second, 200*float64(k/18))
	}
	set.Finish(series.Known{})
	got := MeasureMetrics(set, Options{}).PercentileWords()
	const want = "TTFT p99 between 2 and 4 s since the server started, E2E p99 above 400 s since the server started, queue time p50 at most 0.1 s since the server started"
	if got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	if strings.Contains(MeasureMetrics(set, Options{From: 200 * second}).PercentileWords(), "TTFT") {
		t.Error("it is outside of the window")
	}
}
