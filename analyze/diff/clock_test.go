package diff

import (
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/diff/compare"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/internal/significance"
)

// If all kernels are slower by the same factor, the clock may be lower, or all have more to do, which the grids of their
// launches tell apart. That does not hold for one slow kernel, nor for changes that may be chance.
func TestWhyAlike(t *testing.T) {
	names := []string{"gemm", "rms_norm", "silu_and_mul", "flash_fwd_kernel", "ncclDevKernel_AllReduce_Sum_bf16_RING_LL"}
	for name, c := range map[string]struct {
		factors [5]float64
		blocks  [5]float64 // after, 100 before
		sure    finding.Confidence
		want    string
	}{
		"all":            {[5]float64{1.5, 1.5, 1.45, 1, 0.5}, [5]float64{}, finding.Certain, "as if the GPU clock were lower, or each had more to do"},
		"as many blocks": {[5]float64{1.5, 1.5, 1.45, 1, 0.5}, [5]float64{100, 100, 101, 200, 200}, finding.Certain, "launched with as many blocks, as if the GPU clock were lower"},
		"more blocks":    {[5]float64{1.5, 1.5, 1.45, 1, 0.5}, [5]float64{160, 150, 140, 100, 100}, finding.Certain, "launched with 1.50 times as many blocks (median): they have more to do"},
		"fewer blocks":   {[5]float64{0.7, 0.7, 0.72, 1, 2}, [5]float64{75, 75, 75, 75, 75}, finding.Certain, "launched with 0.750 times as many blocks (median): they have less to do"},
		"some have more": {[5]float64{1.5, 1.5, 1.45, 1, 0.5}, [5]float64{150, 100, 100, 100, 100}, finding.Certain, "as if the GPU clock were lower, or each had more to do"},
		"faster":         {[5]float64{0.7, 0.7, 0.72, 1, 2}, [5]float64{}, finding.Certain, "as if the GPU clock were higher, or each had less to do"},
		"one of them":    {[5]float64{1.5, 1, 1, 1, 1.5}, [5]float64{}, finding.Certain, ""},
		"unlike":         {[5]float64{1.5, 2.5, 1.1, 1.5, 1.5}, [5]float64{}, finding.Certain, ""},
		"a few percent":  {[5]float64{1.05, 1.05, 1.05, 1.05, 1.05}, [5]float64{}, finding.Certain, ""},
		"may be chance":  {[5]float64{1.5, 1.5, 1.5, 1.5, 1.5}, [5]float64{}, "", ""},
		"nothing at all": {[5]float64{1, 1, 1, 1, 1}, [5]float64{}, finding.Certain, ""},
	} {
		d := &Diff{}
		for i, f := range c.factors {
			r := Row{Before: Stat{N: 100, Mean: 1000, Blocks: 100}, After: Stat{N: 100, Mean: int64(1000 * f), Blocks: c.blocks[i]}}
			r.Kind, r.Name = Kernel, names[i]
			r.Mean = compare.Change{Change: significance.Change{Ratio: f}, Sure: c.sure}
			d.Rows = append(d.Rows, r)
		}
		if got := d.whyAlike(); got != c.want {
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
