package slow

import (
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/analyze/telemetry"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
)

// A KV cache that fills up while the number of running requests is constant, and these come and go, is
// reported. One that is full because more requests run, or because the first ones just grow, is not.
func TestKVCacheFills(t *testing.T) {
	const sec, begin = trace.Time(1e9), trace.Time(1_700_000_000e9)
	for _, test := range []struct {
		name        string
		usage, runs func(at float64) float64
		comes       float64 // requests per second; 0 is unknown, and negative means that no prompt is computed
		want        string
	}{
		{"a leak", func(at float64) float64 { return 10 + 89*at/600 }, func(float64) float64 { return 10 }, 1, "fills up, from 25 % to 97 % at 22:23:19, while about as many requests run (10)"},
		{"a batch that grows", func(at float64) float64 { return 10 + 89*at/600 }, func(float64) float64 { return 10 }, 0.01, ""},
		{"nothing tells what comes", func(at float64) float64 { return 10 + 89*at/600 }, func(float64) float64 { return 10 }, 0, "fills up, from 25 % to 97 %"},
		{"no prompt is computed", func(at float64) float64 { return 10 + 89*at/600 }, func(float64) float64 { return 10 }, -1, ""},
		{"more run", func(at float64) float64 { return 10 + 89*at/600 }, func(at float64) float64 { return 5 + at/20 }, 1, ""},
		{"it is as full as always", func(float64) float64 { return 95 }, func(float64) float64 { return 10 }, 1, ""},
	} {
		set := series.New(trace.NewSymbols(), &trace.Diags{})
		f := set.Fill("a.log", "server log")
		p := f.Place(series.Place{Server: f.Server(series.Server{Name: "a", Role: "unified", Engine: "SGLang"}), Rank: trace.NoRank, GPU: series.NoGPU})
		came := 0.0
		for s := range 600 {
			f.Line(int64(s) + 1)
			at := begin + trace.Time(s)*sec
			f.Add(f.Series(series.Running, p), at, test.runs(float64(s)))
			f.Add(f.Series(series.KVUsage, p), at, test.usage(float64(s)))
			f.Add(f.Series(series.Queued, p), at, 0)
			if test.comes < 0 {
				f.Add(f.Series(series.PrefillRate, p), at, 0)
			}
			for came += test.comes; came >= 1; came-- {
				f.Add(f.Series(series.NewSeqs, p), at, 1)
			}
		}
		set.Finish(series.Known{})
		found, _ := Limits(telemetry.Measure(set, telemetry.Options{}))
		switch {
		case test.want == "" && len(found) == 0:
		case len(found) != 1 || test.want == "" || !strings.Contains(found[0].Text, test.want) || found[0].Cost != 0:
			t.Errorf("%s: %v", test.name, found)
		}
	}
}

// Repeated interruptions of a scheduler that began with a change are reported with it, and those that were there before are not.
func TestWhatBeganWithAChange(t *testing.T) {
	const sec, begin = trace.Time(1e9), trace.Time(1_700_000_000e9)
	for first, want := range map[int]bool{301: true, 10: false} {
		set := series.New(trace.NewSymbols(), &trace.Diags{})
		f := set.Fill("a.log", "server log")
		p := f.Place(series.Place{Server: f.Server(series.Server{Name: "a", Role: "unified", Engine: "SGLang"}), Rank: trace.NoRank, GPU: series.NoGPU})
		for s := range 600 {
			f.Line(int64(s) + 1)
			f.Add(f.Series(series.Running, p), begin+trace.Time(s)*sec, 3)
			if s >= first && s%20 == 1 {
				f.Instant(series.Instant{Time: begin + trace.Time(s)*sec, Kind: series.Halt, Place: p}, "a LoRA adapter is loaded")
			}
		}
		set.Finish(series.Known{})
		l := telemetry.Measure(set, telemetry.Options{})
		list := withHalts(l, []finding.Finding{{Text: "it is slow", Since: begin + 300*sec, At: place.Location{Host: "a"}}, {Text: "it is slow", Since: begin + 300*sec, At: place.Location{Host: "b"}}})
		if got := strings.Contains(list[0].Text, "; from 22:18:21 on, a LoRA adapter is loaded, 15 times"); got != want || list[1].Text != "it is slow" {
			t.Errorf("from %d on: %v", first, list)
		}
	}
}
