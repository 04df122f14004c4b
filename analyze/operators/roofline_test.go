package operators

import (
	"math"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/profilewalk"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/testkit/testset"
	"github.com/sgtrace/sgtrace/trace"
)

// productSet returns a large matrix product that one kernel computes in 1 ms on an H100.
func productSet(typ, kernel string) (*profile.Set, *testset.RowStream) {
	syms := trace.NewSymbols()
	in := syms.Intern("[[4096,4096],[4096,4096]]")
	s := &testset.RowStream{}
	s.FrameRows = []profile.Frame{{Event: profile.Event{Start: 1000, End: 9000, Name: syms.Intern("aten::mm"), PID: 1}, TID: 1, Shapes: in, Types: syms.Intern(`["` + typ + `","` + typ + `"]`)}}
	s.CallRows = []profile.Call{{Event: profile.Event{Start: 2000, End: 3000, Name: syms.Intern("cudaLaunchKernel"), PID: 1, Correlation: 5}, TID: 1}}
	s.KernelRows = []profile.Kernel{{Event: profile.Event{Start: 10_000, End: 1_010_000, Name: syms.Intern(kernel), PID: 1, Correlation: 5}, Stream: 7}}
	set := testset.SetOf(syms, []string{"rank 0"}, s)
	set.GPUs = []string{"NVIDIA H100 80GB HBM3"}
	return set, s
}

func sumRooflines(set *profile.Set, beside Beside) *Rooflines {
	sum := NewRooflineSum(set, nil, beside, profilewalk.Options{})
	for i, s := range set.Streams {
		sum.Add(i, s, profilewalk.ReadKernelSteps(set, s))
	}
	return sum.Rooflines()
}

// roofOf returns the only row, and the notes.
func roofOf(t *testing.T, set *profile.Set, beside Beside) (*Roofed, string) {
	t.Helper()
	o := sumRooflines(set, beside)
	if len(o.Rows) != 1 {
		t.Fatalf("%d rows: %+v", len(o.Rows), o.Rows)
	}
	return &o.Rows[0], strings.Join(o.Report().Footnotes, "\n")
}

// The name of the kernel determines the peak for products of 32-bit numbers; otherwise, the peak is unknown.
func TestRoofOfSingles(t *testing.T) {
	const flop = 2 * 4096.0 * 4096 * 4096
	for _, c := range []struct {
		typ, kernel string
		peak        float64 // TFLOP/s; 0 is unknown
	}{
		{"float", "sm80_xmma_gemm_f32f32_tf32f32_f32_tn_n_tilesize128x128x16", 494.7},
		{"float", "cutlass_80_tensorop_s1688gemm_256x128_16x4_tn_align4", 494.7},
		{"float", "ampere_sgemm_128x64_tn", 66.9},
		{"float", "sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize128x128x8_stage3_warpsize2x2x1_ffma_aligna4", 66.9},
		{"float", "some_gemm", 0},
		{"c10::BFloat16", "ampere_bf16_s1688gemm_bf16_128x128_ldg8_f2f_tn", 989.5},
	} {
		set, _ := productSet(c.typ, c.kernel)
		row, _ := roofOf(t, set, Beside{})
		if want := flop / c.peak / 1e3; c.peak == 0 && !math.IsNaN(row.Roof) || c.peak != 0 && math.Abs(row.Roof/want-1) > 1e-9 {
			t.Errorf("%s: %v ns, want %v", c.kernel, row.Roof, want)
		}
	}
}

// At half the clock, a product takes at least twice as long, whatever the source of
// the clock. Samples in the recording itself take precedence.
func TestClockOfRoof(t *testing.T) {
	const flop, boost, half = 2 * 4096.0 * 4096 * 4096, 989.5, 915.1
	want := func(row *Roofed, clock float64) bool {
		return math.Abs(row.Roof/(flop/(boost*clock/1830.1)/1e3)-1) < 1e-3
	}
	set, s := productSet("c10::BFloat16", "nvjet_tst")
	if row, note := roofOf(t, set, Beside{}); !want(row, 1830.1) || !strings.Contains(note, "at boost clock") {
		t.Errorf("%v ns: %s", row.Roof, note)
	}
	if row, note := roofOf(t, set, Beside{Clocks: []float64{half}}); !want(row, half) || !strings.Contains(note, "from 1830 MHz to the clock that was measured, 915") {
		t.Errorf("%v ns: %s", row.Roof, note)
	}
	for i, v := range []float64{1400, 1410, 345} {
		s.CounterRows = append(s.CounterRows, profile.CounterValue{Time: trace.Time(10_000 + i), Source: set.Syms.Intern("GPU 0"), Name: set.Syms.Intern("GPC Clock Frequency"), Unit: set.Syms.Intern("MHz"), Value: v, Kind: profile.DeviceCounter})
	}
	if row, note := roofOf(t, set, Beside{Clocks: []float64{half}}); !want(row, 1400) {
		t.Errorf("%v ns: %s", row.Roof, note)
	}
	s.CounterRows[1].Source = set.Syms.Intern("GPU 1") // which of the two GPUs the rank uses is unknown
	if row, note := roofOf(t, set, Beside{}); !want(row, 1830.1) {
		t.Errorf("%v ns: %s", row.Roof, note)
	}
}

// A product of experts has the weights of which its operator made a view just before the
// launch. Only kernels for products have such weights.
func TestRoofOfExpertProducts(t *testing.T) {
	syms := trace.NewSymbols()
	s := &testset.RowStream{}
	frame := func(from, to trace.Time, name, shapes, types string) {
		s.FrameRows = append(s.FrameRows, profile.Frame{Event: profile.Event{Start: from, End: to, Name: syms.Intern(name), PID: 1}, TID: 1, Shapes: syms.Intern(shapes), Types: syms.Intern(types)})
	}
	const bf16 = `"c10::BFloat16"`
	frame(1000, 9000, "vllm::moe_forward", "[[4,64],[4,8],[],[]]", "["+bf16+","+bf16+`,"",""]`)
	launch := func(at trace.Time, id int64, kernel string) {
		s.CallRows = append(s.CallRows, profile.Call{Event: profile.Event{Start: at, End: at + 10, Name: syms.Intern("hipModuleLaunchKernel"), PID: 1, Correlation: id}, TID: 1})
		s.KernelRows = append(s.KernelRows, profile.Kernel{Event: profile.Event{Start: 10_000 * trace.Time(id), End: 10_000*trace.Time(id) + 5000, Name: syms.Intern(kernel), PID: 1, Correlation: id}, Stream: 7})
	}
	frame(1100, 1110, "aten::view", "[[8,64,96],[]]", `["c10::BFloat16","ScalarList"]`)
	frame(1200, 1210, "aten::view", "[[1,8,48],[]]", `["c10::BFloat16","ScalarList"]`)
	launch(1300, 1, "_matmul_ogs_NNT_bf16xbf16xbf16_16x128x256x1_swiglu")
	launch(1400, 2, "_matmul_ogs_NNT_bf16xbf16xbf16_16x128x256x1") // no view was made since the last launch
	frame(1500, 1510, "aten::view", "[[8,64,96],[]]", `["c10::BFloat16","ScalarList"]`)
	frame(1520, 1530, "aten::view", "[[1,8,48],[]]", `["c10::BFloat16","ScalarList"]`)
	launch(1600, 3, "_finalize_matmul_scatter_bf16")
	set := testset.SetOf(syms, []string{"rank 0"}, s)
	set.GPUs = []string{"AMD Instinct MI300X"}
	known := 0
	for _, r := range sumRooflines(set, Beside{}).Rows {
		switch {
		case math.IsNaN(r.Of()):
		case !strings.HasSuffix(r.Kernel, "_swiglu") || r.Work.FLOPs != 2*8*64*96 || r.Row.Name != "vllm::moe_forward":
			t.Errorf("%+v", r)
		default:
			known++
		}
	}
	if known != 1 {
		t.Errorf("%d products are known, want 1", known)
	}
}
