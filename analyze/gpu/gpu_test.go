package gpu

import (
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/profilewalk"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/profile/kernelname"
	"github.com/sgtrace/sgtrace/testkit/testset"
	"github.com/sgtrace/sgtrace/trace"
)

// gpuFixture has a decode step on two ranks, small enough to check by eye. Times are us.
//
//	            0    10   20   30   40   50   60   70   80   90   100
//	calls       abc       d                             e
//	stream 7      gemm-      gemm-                        gemm-
//	stream 9         nccl---
//	copy                            copy-
func gpuFixture() *profile.Set {
	syms := trace.NewSymbols()
	s := &testset.RowStream{}
	const us = 1000
	event := func(rank int32, name string, from, to, correlation int64) profile.Event {
		return profile.Event{Start: trace.Time(from * us), End: trace.Time(to * us), Correlation: correlation, Name: syms.Intern(name), Rank: rank, PID: 7}
	}
	for rank := range int32(2) {
		slow := int64(rank) * 2
		s.RangeRows = append(s.RangeRows,
			profile.Range{Event: event(rank, "step[DECODE bs=20]", 0, 40, 0), TID: 1},
			profile.Range{Event: event(rank, "sglang:step[EXTEND bs=1 toks=9]", 40, 100, 0), TID: 1},
			profile.Range{Event: event(rank, "ProfilerStep#3", 0, 100, 0), TID: 1},
			profile.Range{Event: event(rank, "step[DECODE bs=2]", 0, 100, 0), TID: 2}) // launches nothing
		for i, at := range []int64{0, 2, 4, 20, 80} {
			name := "cudaLaunchKernel"
			if i == 3 {
				name = "cudaGraphLaunch"
			}
			s.CallRows = append(s.CallRows, profile.Call{Event: event(rank, name, at, at+1, int64(i+1)), TID: 1})
		}
		s.KernelRows = append(s.KernelRows,
			profile.Kernel{Event: event(rank, "gemm", 5, 15+slow, 1), Stream: 7},
			profile.Kernel{Event: event(rank, "ncclDevKernel_AllReduce", 10+slow, 25, 2), Stream: 9},
			profile.Kernel{Event: event(rank, "gemm", 26, 36+slow, 4), Stream: 7},
			profile.Kernel{Event: event(rank, "gemm", 85, 95+slow, 5), Stream: 7})
		s.CopyRows = append(s.CopyRows, profile.Copy{Event: event(rank, "[CUDA memcpy Host-to-Device]", 40, 50, 3)})
	}
	return testset.SetOf(syms, []string{"TP0", "TP1"}, s)
}

// gpuFixtureReports are the reports on gpuFixture, in a terminal of 120 columns.
var gpuFixtureReports = map[string]string{
	"gpus": `
GPUs by rank

rank  captured [us]  length [us]  busy [%]  compute [%]  total comm [%]  exposed comm [%]  copy [%]  idle [%]
----  -------------  -----------  --------  -----------  --------------  ----------------  --------  --------
TP0           100.0         95.0      52.6         31.6            15.8              10.5      10.5      47.4
TP1           100.0         95.0      56.8         37.9            13.7               8.4      10.5      43.2
`,
	"idle": `
Idle GPUs and launches by rank

rank  idle [us]  host wait [%]  kernel wait [%]  other [%]  delay p50 [us]  delay p99 [us]  graphs [%]
----  ---------  -------------  ---------------  ---------  --------------  --------------  ----------
TP0        45.0           42.1              5.3        0.0            5.00           35.00        22.2
TP1        41.0           40.0              3.2        0.0            5.00           35.00        24.5
`,
	"overlap": `
What ran at the same time

running                    time [us]  share [%]
-------------------------  ---------  ---------
compute                         56.0       53.8
memory                          20.0       19.2
communication                   18.0       17.3
compute and communication       10.0        9.6
`,
	"streams": `
Streams by rank

rank  stream  rows  length [us]  busy [%]  host wait [%]  kernel wait [%]  other [%]
----  ------  ----  -----------  --------  -------------  ---------------  ---------
TP0        0     1         10.0     100.0            0.0              0.0        0.0
TP0        7     3         90.0      33.3           66.7              0.0        0.0
TP0        9     1         15.0     100.0            0.0              0.0        0.0
TP1        0     1         10.0     100.0            0.0              0.0        0.0
TP1        7     3         92.0      39.1           60.9              0.0        0.0
TP1        9     1         13.0     100.0            0.0              0.0        0.0
`,
	"steps": `
Steps by kind, batch size and rank

kind     batch  rank  n  total [us]  p50 [us]  p99 [us]  gpu total [us]  gpu p50 [us]  gpu p99 [us]  gpu busy total [us]
-------  -----  ----  -  ----------  --------  --------  --------------  ------------  ------------  -------------------
prefill  1      TP0   1        60.0      60.0      60.0            10.0          10.0          10.0                 10.0
prefill  1      TP1   1        60.0      60.0      60.0            12.0          12.0          12.0                 12.0
other    -      TP0   1       100.0     100.0     100.0            90.0          90.0          90.0                 50.0
other    -      TP1   1       100.0     100.0     100.0            92.0          92.0          92.0                 54.0
decode   2      TP0   1       100.0     100.0     100.0               -             -             -                    -
decode   2      TP1   1       100.0     100.0     100.0               -             -             -                    -
decode   17-32  TP0   1        40.0      40.0      40.0            45.0          45.0          45.0                 40.0
decode   17-32  TP1   1        40.0      40.0      40.0            45.0          45.0          45.0                 42.0

note: p99 of fewer than 100 values is their maximum: prefill 1 TP0 (n=1), prefill 1 TP1 (n=1), other TP0 (n=1) and 5
      more rows
`,
	"kernels": `
Kernels by rank

rank  excess [us]  total [us]  of median  n  p50 [us]  p99 [us]  kernel
----  -----------  ----------  ---------  -  --------  --------  -----------------------
TP1          6.00       36.00       1.20  3      12.0      12.0  gemm
TP0          2.00       15.00       1.15  1      15.0      15.0  ncclDevKernel_AllReduce
TP0          0.00       30.00       1.00  3      10.0      10.0  gemm
TP1          0.00       13.00       1.00  1      13.0      13.0  ncclDevKernel_AllReduce

note: of median: 1 is the median of the ranks that ran the kernel
note: communication kernels wait for each other: they are short on the rank that the others wait for
`,
}

func TestGPUReports(t *testing.T) {
	gpus := Measure(gpuFixture(), Options{})
	for name, want := range gpuFixtureReports {
		if got := testset.Text(t, gpuReports[name](gpus), table.FormatText, table.Style{Width: 120}); got != want[1:] {
			t.Errorf("%s:\n%s\nwant\n%s", name, got, want[1:])
		}
	}
}

// Whole graphs have no known class. Kernels that share a correlation belong to a
// graph, even if its launch was not recorded.
func TestGraphsOfGPUs(t *testing.T) {
	syms := trace.NewSymbols()
	event := func(name string, from, to trace.Time, correlation int64) profile.Event {
		return profile.Event{Start: from, End: to, Correlation: correlation, Name: syms.Intern(name)}
	}
	set := testset.SetOf(syms, []string{"TP0"}, &testset.RowStream{KernelRows: []profile.Kernel{
		{Event: event("a", 0, 10, 5)}, {Event: event("ncclDevKernel_b", 10, 20, 5)}, // a graph
		{Event: event("a", 20, 30, 6)}, {Event: event("a", 30, 40, 0)}, {Event: event("a", 40, 50, 0)},
		{Event: event("CUDA graph 3", 60, 90, 7), Graph: true},
	}})
	g := Measure(set, Options{})
	gpu := &g.GPUs[0]
	if gpu.GraphKernels != 3 || gpu.GraphTime != 50 || gpu.KernelTime != 80 || gpu.Time(kernelname.ClassOther) != 30 || gpu.Time(kernelname.ClassCommunication) != 10 {
		t.Errorf("%+v", gpu)
	}
	out := testset.Text(t, g.Report(), table.FormatText, table.Style{Width: 120})
	if !strings.Contains(out, "other [%]") || !strings.Contains(out, "37.5 % of the busy time has no known class") {
		t.Error(out)
	}
	if out = testset.Text(t, g.IdleReport(), table.FormatText, table.Style{Width: 120}); !strings.Contains(out, "6 of 6 kernels and copies are not in the files") {
		t.Error(out)
	}
}

func TestBatchBucket(t *testing.T) {
	for batch, want := range map[int32][2]int32{
		-1: {-1, -1}, 0: {0, 0}, 1: {1, 1}, 2: {2, 2}, 3: {3, 4}, 4: {3, 4}, 5: {5, 8}, 32: {17, 32}, 33: {33, 64}, 1<<31 - 1: {1<<30 + 1, 1<<31 - 1},
	} {
		if from, to := profilewalk.BatchBucket(batch); from != want[0] || to != want[1] {
			t.Errorf("%d is in %d-%d, want %v", batch, from, to, want)
		}
	}
}

// If a rank has several devices, each has its own row.
func TestSeveralDevices(t *testing.T) {
	set := gpuFixture()
	s := set.Streams[0].(*testset.RowStream)
	s.KernelRows[0].Device = 1
	out := testset.Text(t, Measure(set, Options{}).Report(), table.FormatText, table.Style{})
	for _, want := range []string{"\nTP0 GPU 0 ", "\nTP0 GPU 1 ", "\nTP1 GPU 0 "} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
}

// Forged times do not overflow any number.
func TestGPUsOfForgedTimes(t *testing.T) {
	const far = 1<<63 - 1
	syms := trace.NewSymbols()
	name := syms.Intern("a")
	set := testset.SetOf(syms, []string{"TP0"}, &testset.RowStream{
		CallRows: []profile.Call{{Event: profile.Event{Start: far - 5, End: far, Correlation: 1, Name: name}}},
		KernelRows: []profile.Kernel{
			{Event: profile.Event{Start: -far, End: -far + 5, Correlation: 1, Name: name}},
			{Event: profile.Event{Start: -far, End: far, Correlation: 2, Name: name}, Stream: 1},
			{Event: profile.Event{Start: far - 9, End: far - 20, Correlation: 3, Name: name}},
		},
	})
	g := Measure(set, Options{})
	gpu := &g.GPUs[0]
	if gpu.Length() != far || gpu.Captured != far || gpu.Busy() < 0 || gpu.Delay.Max < 0 || gpu.Queue < 0 {
		t.Errorf("%+v", gpu)
	}
	for _, report := range gpuReports {
		testset.CSV(t, report(g))
	}
}

// Migrations of unified memory need no call: only the kernel without a call is counted.
func TestMigrationsNeedNoCall(t *testing.T) {
	syms := trace.NewSymbols()
	event := func(name string, at, correlation int64) profile.Event {
		return profile.Event{Start: trace.Time(at), End: trace.Time(at + 10), Correlation: correlation, Name: syms.Intern(name)}
	}
	g := Measure(testset.SetOf(syms, []string{"TP0"}, &testset.RowStream{
		CallRows:   []profile.Call{{Event: event("cudaLaunchKernel", 0, 1)}},
		KernelRows: []profile.Kernel{{Event: event("a", 20, 1)}, {Event: event("b", 40, 0)}},
		CopyRows: []profile.Copy{{Event: event("[CUDA memcpy Unified Host-to-Device]", 60, 0)}, {Event: event("[CUDA memcpy Unified Device-to-Host]", 80, 0)},
			{Event: event("[CUDA memcpy Host-to-Device]", 100, 0)}},
	}), Options{})
	if rows, unknown := g.Launched(); rows != 3 || unknown != 2 {
		t.Errorf("the calls of %d of %d rows are unknown, want 2 of 3", unknown, rows)
	}
}

func TestLaunchesOfGPUs(t *testing.T) {
	gpu := func(calls, kernels []testset.GPURow) *GPU {
		return &Measure(testset.GPUSetOf(calls, kernels, nil), Options{}).GPUs[0]
	}
	// If two calls share a correlation, the outer one counts.
	g := gpu([]testset.GPURow{{Name: "cuLaunchKernel", Start: 10, End: 20, Correlation: 1}, {Name: "cudaLaunchKernel", Start: 10, End: 30, Correlation: 1}, {Name: "cudaLaunchKernel", Start: 12, End: 90, Correlation: 1}}, []testset.GPURow{{Name: "a", Start: 100, End: 110, Correlation: 1}})
	if g.Delay.Max != 70 || g.Called != 1 {
		t.Errorf("delay %+v", g.Delay)
	}
	// Calls may be longer than 32 bits can hold.
	g = gpu([]testset.GPURow{{Name: "cudaLaunchKernel", Start: 10, End: 6e9, Correlation: 1}}, []testset.GPURow{{Name: "a", Start: 6e9 + 5, End: 7e9, Correlation: 1}})
	if g.Delay.Max != 5 {
		t.Errorf("delay %+v", g.Delay)
	}
	// If two kernels end a gap together, the one with a known earlier launch determines the cause.
	g = gpu([]testset.GPURow{{Name: "cudaLaunchKernel", Start: 50, End: 51, Correlation: 2}, {Name: "cudaLaunchKernel", Start: 5, End: 6, Correlation: 3}},
		[]testset.GPURow{{Name: "a", Start: 0, End: 10, Correlation: 0}, {Name: "a", Start: 100, End: 110, Correlation: 0}, {Name: "b", Start: 100, End: 120, Correlation: 2}, {Name: "c", Start: 100, End: 130, Correlation: 3}})
	if g.Idle.Time != [NumCauses]int64{KernelWait: 90} {
		t.Errorf("idle %+v", g.Idle)
	}
	g = gpu([]testset.GPURow{{Name: "cudaLaunchKernel", Start: 50, End: 51, Correlation: 2}}, []testset.GPURow{{Name: "a", Start: 0, End: 10, Correlation: 0}, {Name: "a", Start: 100, End: 110, Correlation: 0}, {Name: "b", Start: 100, End: 120, Correlation: 2}})
	if g.Idle.Time != [NumCauses]int64{HostWait: 90} {
		t.Errorf("idle %+v", g.Idle)
	}
	// A kernel that began before its call did not wait. The others waited for 100 and 200 ns, in 400 ns.
	g = gpu([]testset.GPURow{{Name: "l", Start: 0, End: 10, Correlation: 1}, {Name: "l", Start: 200, End: 210, Correlation: 2}, {Name: "l", Start: 350, End: 360, Correlation: 3}}, []testset.GPURow{{Name: "a", Start: 100, End: 110, Correlation: 1}, {Name: "a", Start: 400, End: 410, Correlation: 2}, {Name: "a", Start: 340, End: 350, Correlation: 3}})
	if g.Queue != 8 || g.Delay.P50 != 90 || g.Delay.Min != 0 {
		t.Errorf("queue %d, delay %+v", g.Queue, g.Delay)
	}
}

// A call belongs to every step around it, even if steps cross each other. Its
// kernels belong to the same steps, whenever they run.
func TestProjectionOfSteps(t *testing.T) {
	set := testset.GPUSetOf(
		[]testset.GPURow{{Name: "l", Start: 0, End: 1, Correlation: 1}, {Name: "l", Start: 60, End: 61, Correlation: 2}, {Name: "l", Start: 98, End: 130, Correlation: 3}, {Name: "l", Start: 150, End: 151, Correlation: 4}, {Name: "l", Start: 500, End: 501, Correlation: 5}},
		[]testset.GPURow{{Name: "a", Start: 1000, End: 1010, Correlation: 1}, {Name: "a", Start: 1020, End: 1030, Correlation: 2}, {Name: "a", Start: 1040, End: 1050, Correlation: 3}, {Name: "a", Start: 1060, End: 1070, Correlation: 4}, {Name: "a", Start: 1080, End: 1090, Correlation: 5}},
		[]testset.GPURow{{Name: "step[EXTEND bs=1]", Start: 0, End: 100, Correlation: 0}, {Name: "step[DECODE bs=1]", Start: 50, End: 150, Correlation: 0}, {Name: "ProfilerStep#1", Start: 150, End: 400, Correlation: 0}, {Name: "other", Start: 0, End: 1000, Correlation: 0}})
	for _, s := range Measure(set, Options{}).Steps {
		want := map[profile.StepKind]int64{profile.StepPrefill: 30, profile.StepDecode: 30, profile.StepOther: 10}[s.Kind]
		if s.Device.Total != want || s.Device.N != 1 {
			t.Errorf("%s: %+v, want %d", profilewalk.StepKinds[s.Kind], s.Device, want)
		}
	}
}

// Parts of steps count if no annotation covers a whole step.
func TestPartsOfSteps(t *testing.T) {
	kinds := func(ranges ...testset.GPURow) (kinds []string) {
		for _, s := range Measure(testset.GPUSetOf(nil, nil, ranges), Options{}).Steps {
			kinds = append(kinds, profilewalk.StepKinds[s.Kind]+s.Batches())
		}
		return kinds
	}
	part, whole := testset.GPURow{Name: "sglang:forward.decode", Start: 5, End: 9, Correlation: 0}, testset.GPURow{Name: "scheduler.step 7 extend bs=3", Start: 0, End: 10, Correlation: 0}
	profiler := testset.GPURow{Name: "ProfilerStep#1", Start: 0, End: 20, Correlation: 0}
	if got := strings.Join(kinds(part, whole, profiler), " "); got != "prefill3-4 other" {
		t.Error(got)
	}
	if got := strings.Join(kinds(part, profiler), " "); got != "other decode" {
		t.Error(got)
	}
}
