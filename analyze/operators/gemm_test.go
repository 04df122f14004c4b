package operators

import (
	"math"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/profilewalk"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/testkit/testinput"
	"github.com/sgtrace/sgtrace/testkit/testset"
)

// Matrices and FLOPs in a real trace match TraceLens (GEMM.csv of its tests: calls,
// GFLOPS_first, Kernel Time (us)_sum).
func TestGEMMsOfTraceLens(t *testing.T) {
	path := testinput.Shared(t, "data", "torch", "real", "tracelens+tests__traces__h100__Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz")
	set, _ := testset.TorchSet(t, path)
	set.GPUs = []string{"NVIDIA H100 80GB HBM3"}
	got := Sum(set, profilewalk.Options{}).GEMMs
	for i, want := range []struct {
		name            string
		b, m, n, k      int64
		calls           int64
		gflop, time, of float64 // of is the share of the peak, by hand
	}{
		{"aten::mm", 1, 8944, 2816, 1024, 48, 51.581550592, 4055.252, 0.617},
		{"aten::addmm", 1, 8944, 1024, 1024, 72, 18.766086144, 2329.076, 0.586},
		{"aten::mm", 1, 8944, 1024, 2816, 24, 51.581550592, 1835.287, 0.682},
		{"aten::mm", 1, 8944, 1024, 1024, 24, 18.756927488, 778.142, 0.585},
		{"aten::bmm", 1, 32, 559, 1, 1, 3.5776e-05, 3.520, math.NaN()}, // 32-bit numbers
	} {
		g := got[i]
		gflop, of := g.FLOPs/float64(g.Working)/1e9, g.achieved()/g.peak()
		if g.Row.Row.Name != want.name || g.B != want.b || g.M != want.m || g.N != want.n || g.K != want.k || g.Working != want.calls ||
			math.Abs(gflop-want.gflop) > 1e-9 || math.Abs(float64(g.GPU)/1e3-want.time) > 0.01 {
			t.Errorf("%+v, want %+v", g, want)
		}
		if math.Abs(of-want.of) > 0.001 || math.IsNaN(of) != math.IsNaN(want.of) {
			t.Errorf("%s: %.3f of the peak, want %.3f", g.Row.Row.Name, of, want.of)
		}
	}
	if len(got) != 5 {
		t.Errorf("%d rows", len(got))
	}
}

// An operator is a GEMM if its shapes fit and its calls launched work: those that
// were captured into a graph did not.
func TestGEMMsOfShapes(t *testing.T) {
	for _, c := range []struct {
		name, shapes string
		working      int64
		b, m, n, k   int64 // 0 is none
		flops        float64
	}{
		{"aten::mm", "[[2,3],[3,5]]", 2, 1, 2, 5, 3, 2 * 60},
		{"aten::baddbmm", "[[7,2,5],[7,2,3],[7,3,5],[],[]]", 1, 7, 2, 5, 3, 7 * (60 + 10)},
		{"_C::cutlass_scaled_mm", "[[2,5],[2,3],[3,5],[2,1],[1,5],[]]", 1, 1, 2, 5, 3, 60},
		{"aten::mm", "[[2,3],[3,5]]", 0, 0, 0, 0, 0, 0},
		{"aten::mm", "[[2,3],[4,5]]", 1, 0, 0, 0, 0, 0},
		{"aten::bmm", "[[7,2,3],[8,3,5]]", 1, 0, 0, 0, 0, 0},
		{"aten::mm", "[[2,3]]", 1, 0, 0, 0, 0, 0},
		{"aten::mm", "[[[2,3]],[[3,5]]]", 1, 0, 0, 0, 0, 0},
		{"aten::mm", "", 1, 0, 0, 0, 0, 0},
		{"aten::linear", "[[2,3],[5,3],[]]", 1, 0, 0, 0, 0, 0},
	} {
		g, ok := gemmOf(&Row{Row: profilewalk.Row{Name: c.name}, Shapes: c.shapes, Calls: 3, Working: c.working, GPU: 1000}, "")
		if ok != (c.b > 0) || g.B != c.b || g.M != c.m || g.N != c.n || g.K != c.k || g.FLOPs != c.flops {
			t.Errorf("%s %s: %+v, %v", c.name, c.shapes, g, ok)
		}
	}
}

func TestPeaks(t *testing.T) {
	for _, c := range []struct {
		gpu, typ string
		want     float64 // 0 is unknown
	}{
		{"NVIDIA H100 80GB HBM3", "c10::BFloat16", 989.5},
		{"NVIDIA H100 80GB HBM3", "c10::Float8_e4m3fn", 1979},
		{"NVIDIA H100 80GB HBM3", "float", 0},
		{"NVIDIA H100 PCIe", "c10::Half", 756.5},
		{"NVIDIA H20", "c10::Half", 148},
		{"NVIDIA A100-SXM4-80GB", "c10::Half", 312},
		{"NVIDIA A100-SXM4-80GB", "c10::Float8_e4m3fn", 0},
		{"NVIDIA L4", "c10::Half", 121},
		{"AMD Instinct MI300X VF", "c10::Float8_e4m3fnuz", 2614.9},
		{"NVIDIA GB200", "c10::Half", 0},
		{"", "c10::Half", 0},
	} {
		if got := peakOf(c.gpu, c.typ); got != c.want && !(c.want == 0 && math.IsNaN(got)) {
			t.Errorf("%s, %s: %v, want %v", c.gpu, c.typ, got, c.want)
		}
	}
}

// The GPU of a set is known if all ranks have the same.
func TestGPUOfSet(t *testing.T) {
	for _, c := range []struct {
		gpus []string
		all  string
	}{{nil, ""}, {[]string{"H100"}, "H100"}, {[]string{"H100", "H100"}, "H100"}, {[]string{"H100", "H200"}, ""}, {[]string{"H100", ""}, ""}} {
		set := profile.Set{GPUs: c.gpus}
		if got := set.GPU(profilewalk.NoRank); got != c.all {
			t.Errorf("%v: %q", c.gpus, got)
		}
	}
}
