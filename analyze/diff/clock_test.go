package diff

import (
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/diff/compare"
	"github.com/sgtrace/sgtrace/analyze/diff/pace"
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

// Kernels of a rank whose steps take as long for the same work have more to do, whatever their launches look like: no clock changed.
func TestClocksOfRanksWithOtherWork(t *testing.T) {
	near := compare.Change{Change: significance.Change{Ratio: 1.001, Low: 0.998, High: 1.004, P: 1}}
	d := &Diff{Paces: []pace.Pace{{Annotated: true, Servers: []string{"prefill TP0"}, Change: near}}}
	found := d.unexplained([]finding.Finding{{Subkind: compare.ClockOf("decode TP0")}, {Subkind: compare.ClockOf("prefill TP0")}})
	if len(found) != 1 || found[0].Subkind != compare.ClockOf("decode TP0") {
		t.Errorf("%+v", found)
	}
}

// A kernel that gave way to another one is named even if there are too few steps to rule out chance.
func TestUnpairedKernels(t *testing.T) {
	row := func(name string, before, after Stat) Row {
		return Row{diffKey: diffKey{Kind: Kernel, Name: name}, Before: before, After: after}
	}
	took := func(ns int64) Stat { return Stat{N: 4, P50: ns, Mean: 10 * ns, PerUnit: 10 * ns} }
	d := &Diff{per: perServerStep, Rows: []Row{row("old", took(2_000_000), Stat{}), row("new", Stat{}, took(2_500_000)), row("small", Stat{}, took(1000)), row("gemm", took(7_000_000), took(7_000_000))}}
	d.addUp()
	if got, want := strings.Join(d.unpaired(), "; "), "old is gone: it took 2.00 ms per step (may be chance); new is new: 2.50 ms per step (may be chance)"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
