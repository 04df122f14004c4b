package diff

import (
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/diff/compare"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/internal/significance"
)

// If all kernels are slower by the same factor, the clock may be lower. That does not hold for one
// slow kernel, nor for changes that may be chance.
func TestLikeClock(t *testing.T) {
	names := []string{"gemm", "rms_norm", "silu_and_mul", "flash_fwd_kernel", "ncclDevKernel_AllReduce_Sum_bf16_RING_LL"}
	for name, c := range map[string]struct {
		factors [5]float64
		sure    finding.Confidence
		want    string
	}{
		"all":            {[5]float64{1.5, 1.5, 1.45, 1, 0.5}, finding.Certain, "lower"},
		"faster":         {[5]float64{0.7, 0.7, 0.72, 1, 2}, finding.Certain, "higher"},
		"one of them":    {[5]float64{1.5, 1, 1, 1, 1.5}, finding.Certain, ""},
		"unlike":         {[5]float64{1.5, 2.5, 1.1, 1.5, 1.5}, finding.Certain, ""},
		"a few percent":  {[5]float64{1.05, 1.05, 1.05, 1.05, 1.05}, finding.Certain, ""},
		"may be chance":  {[5]float64{1.5, 1.5, 1.5, 1.5, 1.5}, "", ""},
		"nothing at all": {[5]float64{1, 1, 1, 1, 1}, finding.Certain, ""},
	} {
		d := &Diff{}
		for i, f := range c.factors {
			r := Row{Before: Stat{N: 100, Mean: 1000}, After: Stat{N: 100, Mean: int64(1000 * f)}}
			r.Kind, r.Name = Kernel, names[i]
			r.Mean = compare.Change{Change: significance.Change{Ratio: f}, Sure: c.sure}
			d.Rows = append(d.Rows, r)
		}
		if got := d.likeClock(); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// Kernels that become slower within one capture are reported before totals over the whole capture,
// unless both captures have the same change.
func TestDevicesWithin(t *testing.T) {
	was := recorded{rank: "r", steps: 400, bare: true, runs: map[string]func(int) int64{"gemm": about(300)}}
	became := was
	became.runs = map[string]func(int) int64{"gemm": func(step int) int64 { return about(300)(step) * int64(1+step/200) }}
	const want = "during AFTER, kernels take 1.99 times as long on r since 00:00:00.00020: "
	d := Compare(was.capture(), became.capture(), Options{})
	if before, _, _ := strings.Cut(d.verdict, want); before == d.verdict || strings.Contains(before, "compute total") {
		t.Errorf("%s, want %s", d.verdict, want)
	}
	if d := Compare(became.capture(), became.capture(), Options{}); len(d.After.Within) > 0 {
		t.Errorf("%+v", d.After.Within)
	}
}
