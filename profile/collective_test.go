package profile

import (
	"testing"

	"github.com/sgtrace/sgtrace/trace"
)

// A kernel gets its operation from the innermost annotation around its launch, and its step kind
// likewise, even if annotations have a separate row. Each part of a file has its own correlations.
func TestPlaceCollectives(t *testing.T) {
	syms := trace.NewSymbols()
	toAll, reduce := syms.Intern("all_to_all"), syms.Intern("all_reduce")
	p := &Profile{
		Rows: []Row{{PID: 1, TID: 5, TIDText: "5 API"}, {PID: 1, TID: 5, TIDText: "5 NVTX"}, {PID: 1, TID: 6, TIDText: "6 API"}, {Kind: RowStream, TID: 7}, {PID: 1, TID: 5, Part: "b"}, {Kind: RowStream, TID: 7, Part: "b"}},
		Steps: []Step{
			{Row: 1, Time: 0, Dur: 100, Kind: StepPrefill}, {Row: 1, Time: 200, Dur: 100, Kind: StepDecode}, {Row: 1, Time: 0, Dur: 400},
			{Row: 1, Time: 0, Dur: 400, Kind: StepDecode, OnGPU: true},
		},
	}
	for _, c := range []Collective{{Row: 3, Correlation: 1}, {Row: 3, Correlation: 2, Op: reduce}, {Row: 3, Correlation: 3}, {Row: 3, Correlation: 4},
		{Row: 5, Correlation: 1}, {Row: 3}, {Row: 3, Correlation: 99}, {Row: 0, Correlation: 1}} {
		c.OnGPU = p.Rows[c.Row].Kind == RowStream
		p.Collectives.Add(&c)
	}
	launches := []Launch{
		{Time: 20, Row: 0, Correlation: 1}, {Time: 250, Row: 0, Correlation: 2}, {Time: 20, Row: 2, Correlation: 3}, {Time: 350, Row: 0, Correlation: 4}, {Time: 60, Row: 4, Correlation: 1},
	}
	p.PlaceCollectives(launches, []CollectiveAnnotation{
		{Row: 0, Time: 10, Dur: 50, Op: reduce}, {Row: 0, Time: 15, Dur: 10, Op: toAll}, {Row: 0, Time: 240, Dur: 20, Op: toAll}, {Row: 4, Time: 40, Dur: 30, Op: toAll},
	})
	want := []Collective{{Op: toAll, Step: StepPrefill}, {Op: reduce, Step: StepDecode}, {}, {}, {Op: toAll}, {}, {}, {}}
	for i, w := range want {
		if c := p.Collectives.At(i); c.Op != w.Op || c.Step != w.Step {
			t.Errorf("%d: %s in a step of kind %d, want %s, %d", i, syms.Name(c.Op), c.Step, syms.Name(w.Op), w.Step)
		}
	}
}
