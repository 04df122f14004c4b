package failed

import (
	"fmt"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/telemetry"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
)

// A server that takes far longer for its weights than the others is told of; one of two, and one that takes a little longer, are not.
func TestSlowStarts(t *testing.T) {
	const sec, begin = trace.Time(1e9), trace.Time(1_700_000_000e9)
	for _, test := range []struct {
		took []float64
		want string
	}{
		{[]float64{27, 26, 240, 28}, "c took 240 s for its weights, until 22:17:20, and the others 27 s"},
		{[]float64{27, 26, 70, 28}, ""},
		{[]float64{27, 240}, ""},
		{[]float64{270, 260, 400, 280}, ""},
	} {
		set := series.New(trace.NewSymbols(), &trace.Diags{})
		for i, took := range test.took {
			name := string(rune('a' + i))
			f := set.Fill(name+".log", "server log")
			server := f.Server(series.Server{Name: name, Role: "unified", Engine: "SGLang"})
			for tp := range 2 {
				rank := trace.NoRank
				rank.TP = int16(tp)
				p := f.Place(series.Place{Server: server, Rank: rank, GPU: series.NoGPU})
				f.Instant(series.Instant{Time: begin, Kind: series.Starting, Place: p}, "loads weights")
				f.Instant(series.Instant{Time: begin + trace.Time(took)*sec, Kind: series.Starting, Place: p}, fmt.Sprintf("has its weights, after %.0f s", took))
			}
			f.Saw(begin + 1000*sec)
		}
		set.Finish(series.Known{})
		found, _ := Lives(telemetry.Measure(set, telemetry.Options{}))
		var got string
		for _, f := range found {
			got += f.Text
		}
		if got != test.want {
			t.Errorf("%v: %q", test.took, got)
		}
		if len(found) > 0 && (found[0].Cost < 0.05 || found[0].Cost > 0.06) { // 213 of 1000 s of one of four
			t.Errorf("costs %g", found[0].Cost)
		}
	}
}
