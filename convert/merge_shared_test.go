package convert

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/sgtrace/sgtrace/convert/inputs"
	"github.com/sgtrace/sgtrace/testkit/testinput"
	"github.com/sgtrace/sgtrace/trace"
)

// Eight ranks on two hosts, generated from a real trace by other code: the second host's clock is
// ahead and drifts.
func TestSharedRanksAlign(t *testing.T) {
	dir := testinput.Shared(t, "data", "torch", "tp8_skew_2host")
	var truth struct {
		Offsets []float64 `json:"clock_offset_ns"`
		Drifts  []float64 `json:"clock_drift_ppm"`
		T0      int64     `json:"clock_t0_ns"` // relative to the base of the files
	}
	data, err := os.ReadFile(filepath.Join(dir, "ground_truth.json"))
	if err == nil {
		err = json.Unmarshal(data, &truth)
	}
	if err != nil {
		t.Fatal(err)
	}
	mean := func(of []float64) float64 { return (of[0] + of[1] + of[2] + of[3]) / 4 }
	m, _ := readAll(t, inputs.Options{}, filepath.Join(dir, "*.json.gz"))
	if err := m.align(nil, true); err != nil {
		t.Fatal(err)
	}
	if len(m.clocks.HostClocks) != 2 || len(m.of.Tracks) != 8 {
		t.Fatalf("%d clocks, %d ranks", len(m.clocks.HostClocks), len(m.of.Tracks))
	}
	fit, base := m.clocks.HostClocks[1].Fit, m.of.Files[0].Meta.Base
	middle := (fit.From + fit.To) / 2
	have := float64(fit.Offset) + float64(fit.DriftPPB)*float64(middle-fit.T0)/1e9
	want := mean(truth.Offsets[4:]) - mean(truth.Offsets) + mean(truth.Drifts[4:])*float64(middle-base-truth.T0)/1e6
	drift := mean(truth.Drifts[4:]) - mean(truth.Drifts)
	t.Logf("offset %.0f ns, want %.0f; drift %.2f ppm, want %.2f; bound %d ns", have, want, float64(fit.DriftPPB)/1e3, drift, fit.Bound)
	if math.Abs(have-want) > 500 || math.Abs(have-want) > float64(fit.BoundAt(middle)) {
		t.Errorf("in the middle of the trace the offset is %.0f ns off", have-want)
	}
	if math.Abs(float64(fit.DriftPPB)/1e3-drift) > 0.5 {
		t.Errorf("the drift is %.2f ppm, want %.2f", float64(fit.DriftPPB)/1e3, drift)
	}
	for _, r := range m.of.Tracks[:4] {
		if at := trace.Time(truth.T0) + 12345; r.Captures[0].Time(at) != at {
			t.Errorf("%s, on the reference host, was moved", r.Name)
		}
	}
}

// The gateway's spans bound the clock of the decode host, which is 3 ms ahead.
func TestSharedRequestsAlign(t *testing.T) {
	m, _ := readAll(t, inputs.Options{}, testinput.Shared(t, "data", "otel", "b_pd_smg_tp2.jsonl.zst"))
	if err := m.align(nil, true); err != nil {
		t.Fatal(err)
	}
	found := false
	for i, c := range m.clocks.HostClocks {
		if i == m.clocks.Reference || c.Fit.Offset < 1e6 {
			continue
		}
		found = true
		const truth, low, high = 3.0e6, 2.70e6, 3.55e6
		at := float64(c.Fit.Offset)
		if at < low || at > high || math.Abs(at-truth) > float64(c.Fit.Bound) || float64(c.Fit.Bound) > (high-low)/2 {
			t.Errorf("the decode host is %.0f ns ahead within %d; the truth is %.0f, the gateway's spans say %.0f to %.0f", at, c.Fit.Bound, truth, low, high)
		}
	}
	if !found {
		t.Error("no host is found to be ahead")
	}
}
