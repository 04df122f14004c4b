package gpu

import (
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/profile/kernelname"
	"github.com/sgtrace/sgtrace/testkit/testset"
	"github.com/sgtrace/sgtrace/trace"
)

// A plantedRow is a kernel on a stream during [from, to), launched by a call at the given time.
type plantedRow struct {
	name             string
	stream           uint32
	from, to, called int64
}

// planted measures kernels on one device, with ranges on the launching thread.
func planted(rows []plantedRow, ranges map[string][2]int64) *GPUs {
	syms := trace.NewSymbols()
	s := &testset.RowStream{}
	event := func(name string, from, to int64, correlation int) profile.Event {
		return profile.Event{Start: trace.Time(from), End: trace.Time(to), Correlation: int64(correlation), Name: syms.Intern(name), PID: 1}
	}
	for i, r := range rows {
		s.CallRows = append(s.CallRows, profile.Call{Event: event("cudaLaunchKernel", r.called, r.called+1, i+1), TID: 1})
		s.KernelRows = append(s.KernelRows, profile.Kernel{Event: event(r.name, r.from, r.to, i+1), Stream: r.stream})
	}
	for name, at := range ranges {
		s.RangeRows = append(s.RangeRows, profile.Range{Event: event(name, at[0], at[1], 0), TID: 1})
	}
	return Measure(testset.SetOf(syms, []string{"TP0"}, s), Options{})
}

// A kernel that was launched ahead of time and waits for an all-reduce on its stream neither computes nor
// hides it. One on another stream does, and so does a branch of a graph that ends before the all-reduce.
func TestEarlyKernels(t *testing.T) {
	const allReduce = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL"
	for name, c := range map[string]struct {
		rows                    []plantedRow
		compute, exposed, early int64
		waited                  int64 // by the first compute kernel
	}{
		"ahead":           {[]plantedRow{{allReduce, 7, 0, 1000, 0}, {"norm", 7, 100, 1050, 1}, {"gemm", 7, 1050, 1200, 2}}, 200, 1000, 900, 900},
		"two ahead":       {[]plantedRow{{allReduce, 7, 0, 1000, 0}, {"norm", 7, 100, 1050, 1}, {"gemm", 7, 900, 1200, 2}}, 200, 1000, 1000, 900},
		"another stream":  {[]plantedRow{{allReduce, 7, 0, 1000, 0}, {"norm", 8, 100, 1050, 1}}, 950, 100, 0, 0},
		"branch of graph": {[]plantedRow{{allReduce, 7, 0, 1000, 0}, {"norm", 7, 100, 600, 1}}, 500, 500, 0, 0},
		"behind":          {[]plantedRow{{allReduce, 7, 0, 1000, 0}, {"norm", 7, 1000, 1100, 1}}, 100, 1000, 0, 0},
		"until the end":   {[]plantedRow{{allReduce, 7, 0, 1000, 0}, {"norm", 7, 100, 1000, 1}}, 0, 1000, 900, 900},
		"all at once":     {[]plantedRow{{allReduce, 7, 0, 1000, 0}, {"norm", 7, 0, 1500, 1}}, 1500, 0, 0, 0},
	} {
		gpus := planted(c.rows, nil)
		g := &gpus.GPUs[0]
		if g.Time(kernelname.ClassCompute) != c.compute || g.Exposed(kernelname.ClassCommunication) != c.exposed || g.Early != c.early {
			t.Errorf("%s: computes %d, exposed %d, early %d; want %d, %d, %d", name, g.Time(kernelname.ClassCompute), g.Exposed(kernelname.ClassCommunication), g.Early, c.compute, c.exposed, c.early)
		}
		for _, k := range gpus.Kernels {
			if k.Name == "norm" && k.Waited != c.waited {
				t.Errorf("%s: norm waited %d, want %d", name, k.Waited, c.waited)
			}
		}
	}
}

// Kernels that no rule knows are listed by name, and count as communication if an annotation says so.
func TestUnknownKernels(t *testing.T) {
	gpus := planted([]plantedRow{
		{"mystery(float*)", 7, 0, 300, 1}, {"enigma", 7, 300, 400, 11}, {"gemm", 7, 400, 1000, 21}, {"mystery(float*)", 7, 1000, 1100, 31},
	}, map[string][2]int64{"nccl:all_reduce": {10, 20}, "my annotation": {0, 5}})
	g := &gpus.GPUs[0]
	if g.Time(kernelname.ClassCommunication) != 100 || g.UnknownTime != 400 || g.KernelTime != 1100 {
		t.Errorf("communicates %d ns, %d ns of %d ns unknown", g.Time(kernelname.ClassCommunication), g.UnknownTime, g.KernelTime)
	}
	notes := strings.Join(gpus.Report().Footnotes, "\n")
	if want := "36.4 % of kernel time is from kernels that match no rule and count as compute: `mystery` 36.4 %"; !strings.Contains(notes, want) {
		t.Errorf("%s\nwant %s", notes, want)
	}
	few := planted([]plantedRow{{"mystery", 7, 0, 9, 1}, {"gemm", 7, 9, 1000, 2}}, nil)
	if notes := strings.Join(few.Report().Footnotes, "\n"); strings.Contains(notes, "match no rule") {
		t.Errorf("of less than a percent: %s", notes)
	}
}

// Time belongs to the step that launched the work that started last; a gap belongs
// to the step that launched the work that ended it.
func TestStepShares(t *testing.T) {
	gpus := planted([]plantedRow{
		{"gemm", 7, 0, 100, 1}, {"ncclDevKernel_AllReduce", 8, 50, 200, 2}, // prefill
		{"gemm", 7, 260, 300, 11}, // decode, after a gap
		{"gemm", 7, 310, 330, 40}, // no step
	}, map[string][2]int64{"step[EXTEND bs=1 toks=9]": {0, 10}, "step[DECODE bs=3]": {10, 20}})
	want := []struct {
		kind                          profile.StepKind
		total, compute, exposed, idle int64
	}{
		{profile.StepPrefill, 200, 100, 100, 0}, {profile.StepDecode, 100, 40, 0, 60}, {profile.StepOther, 30, 20, 0, 10},
	}
	got := gpus.StepShares()
	if len(got) != len(want) {
		t.Fatalf("%+v", got)
	}
	for i, w := range want {
		g := got[i]
		if g.Kind != w.kind || g.Total() != w.total || g.Time(kernelname.ClassCompute) != w.compute || g.Exposed(kernelname.ClassCommunication) != w.exposed || g.Idle.Total() != w.idle {
			t.Errorf("%+v, want %+v", g, w)
		}
	}
	if shares := planted([]plantedRow{{"gemm", 7, 0, 100, 1}}, nil).StepShares(); shares != nil {
		t.Errorf("without steps: %+v", shares)
	}
}
