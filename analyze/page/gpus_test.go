package page

import (
	"math"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/page/chart"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/gpu"
)

// The parts of a device's bar equal what GPUs.Report prints, and add up to the whole.
func TestBarsOfGPUs(t *testing.T) {
	gpus := sampleGPUs(2, 1, hostileName)
	bars := GPUs(gpus, Source{}).Figures[0].Body.(*chart.Bars)
	want := map[string]float64{
		"compute": 0.65, "exposed communication": 0.1, "exposed copy": 0.025, "exposed other": 0,
		"idle: host wait": 0.15, "idle: kernel wait": 0.005, "idle: other": 0.07,
	}
	for _, row := range bars.Rows {
		sum := 0.0
		for i, p := range bars.Parts {
			sum += row.Values[i]
			if math.Abs(row.Values[i]-want[p.Name]) > 1e-12 {
				t.Errorf("%s: %s is %g, want %g", row.Name, p.Name, row.Values[i], want[p.Name])
			}
		}
		if math.Abs(sum-1) > 1e-12 {
			t.Errorf("%s: parts are %g in all", row.Name, sum)
		}
	}
}

func TestNamesOfDevices(t *testing.T) {
	gpus := &gpu.GPUs{GPUs: []gpu.GPU{{Rank: "TP0"}, {Rank: "TP1"}}}
	if got := gpuNames(gpus); got[0] != "TP0" || got[1] != "TP1" {
		t.Errorf("one device each: %q", got)
	}
	gpus.GPUs = append(gpus.GPUs, gpu.GPU{Rank: "TP1", Device: 1})
	if got := gpuNames(gpus); got[0] != "TP0 GPU 0" || got[2] != "TP1 GPU 1" {
		t.Errorf("several devices: %q", got)
	}
}

// Kernels that only one rank ran are not compared, and a rank without a kernel has an empty cell.
func TestKernelsOfRanks(t *testing.T) {
	gpus := sampleGPUs(3, 4, func(i int) string { return string(rune('a' + i)) })
	gpus.Kernels = gpus.Kernels[:len(gpus.Kernels)-1] // the last rank runs no d
	gpus.Kernels = append(gpus.Kernels, gpu.RankKernel{Rank: gpus.GPUs[0].Rank, Name: "alone", Ranks: 1, RelTotal: -1, Summary: distribution.Summary{Total: 1e12}})
	heat := kernelFigure(gpus, nil, Source{}).Body.(*chart.Heatmap)
	if len(heat.Rows) != 4 || heat.Rows[0] != "a" || heat.Rows[3] != "d" {
		t.Fatalf("rows are %q", heat.Rows)
	}
	if got := heat.Cells[0][2].Value; got != 1.06 {
		t.Errorf("the slow rank is at %g", got)
	}
	if got := heat.Cells[3][2].Value; !math.IsNaN(got) {
		t.Errorf("a kernel that did not run is at %g", got)
	}
	if f := kernelFigure(sampleGPUs(1, 4, hostileName), nil, Source{}); f != nil {
		t.Error("one rank is compared")
	}
}
