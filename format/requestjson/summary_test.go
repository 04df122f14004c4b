package requestjson

import (
	"io"
	"math"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/format"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
)

// Each summary that bench_serving prints is a run. A truncated one has the values that were printed.
func TestSummary(t *testing.T) {
	const text = `user@host:~$ python3 -m sglang.bench_serving
============ Serving Benchmark Result ============
Backend:                                 sglang
Traffic request rate:                    12.0
Max request concurrency:                 not set
Successful requests:                     400
Benchmark duration (s):                  200.00
Total input tokens:                      1000
Total generated tokens:                  2000
---------------Time to First Token----------------
Mean TTFT (ms):                          93000.00
Median TTFT (ms):                        92500.00
P99 TTFT (ms):                           188000.00
==================================================
Successful requests:                     7
============ Serving Benchmark Result ============
Successful requests:                     30
Failed requests:                         2
Maximum request concurrency:             16
Request rate configured (RPS):           1.50
Benchmark duration (s):                  20.00
Median E2EL (ms):                        1500.00
`
	if !Summary.Sniff([]byte(text)) {
		t.Error("not recognized")
	}
	diags := &trace.Diags{}
	set := series.New(trace.NewSymbols(), diags)
	in := &format.Input{Name: "bench.txt", Open: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(text)), nil }}
	if _, err := Summary.Index(in, &format.Options{Syms: set.Syms, Diags: diags, Series: set}); err != nil || len(diags.All()) != 0 || len(set.Runs) != 2 {
		t.Fatalf("%v, %v, %+v", err, diags.All(), set.Runs)
	}
	x, y := set.Runs[0], set.Runs[1]
	if x.Line != 2 || x.Backend != "sglang" || x.Rate != 12 || x.Concurrency != 0 || x.Completed != 400 || x.Duration != 200 || x.Input != 1000 || x.Output != 2000 ||
		x.TTFT.Mean != 93 || x.TTFT.Median != 92.5 || x.TTFT.P99 != 188 || !math.IsNaN(x.TTFT.P90) || !math.IsNaN(x.E2E.Median) {
		t.Errorf("%+v", x)
	}
	if y.Line != 16 || y.Rate != 1.5 || y.Concurrency != 16 || y.Completed != 30 || y.Failed != 2 || y.Duration != 20 || y.E2E.Median != 1.5 {
		t.Errorf("%+v", y)
	}
}
