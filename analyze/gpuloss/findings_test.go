package gpuloss

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/gpu"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/profile/kernelname"
	"github.com/sgtrace/sgtrace/testkit/testset"
	"github.com/sgtrace/sgtrace/trace"
)

const ms = 1_000_000

// gpuOf returns a device of 100 ms, with ms of exposed communication and exposed
// copies, and idle ms by reason; the rest is compute.
func gpuOf(comm, copies int64, idle map[gpu.Reason]int64) gpu.GPU {
	g := gpu.GPU{Rank: "TP0", Last: 100 * ms, Rows: 100}
	compute := 100 - comm - copies
	for reason, t := range idle {
		g.Waits.Time[reason], g.Waits.Gaps[reason] = t*ms, 1
		g.Activity.Idle.Time[gpu.OtherWait] += t * ms
		compute -= t
	}
	g.Running[1<<kernelname.ClassCommunication] = comm * ms
	g.Running[1<<kernelname.ClassMemory] = copies * ms
	g.Running[1<<kernelname.ClassCompute] = compute * ms
	return g
}

// notPaused is for hosts that never pause.
func notPaused(int32, int32) int64 { return 0 }

// all returns the findings of a report.
func all(g *gpu.GPUs) []finding.Finding {
	idle, _ := Idle(g, notPaused)
	between, _ := IdleBetweenSteps(g)
	exposed, _ := Exposure(g, nil)
	copies, _ := ExposedCopies(g)
	return slices.Concat(idle, between, exposed, copies)
}

// Findings on devices, by subkind and cost.
func TestFindings(t *testing.T) {
	type found struct {
		subkind string
		weight  float64
	}
	few := gpuOf(0, 0, map[gpu.Reason]int64{gpu.HostWork: 90})
	few.Rows = 7
	for _, test := range []struct {
		name string
		gpus []gpu.GPU
		want []found
	}{
		{"busy", []gpu.GPU{gpuOf(10, 5, map[gpu.Reason]int64{gpu.HostWork: 9, gpu.LaunchGap: 14})}, nil},
		{"the host is late", []gpu.GPU{gpuOf(10, 0, map[gpu.Reason]int64{gpu.HostWork: 40})}, []found{{"host", 0.4}}},
		{"each reason is small, the sum is not", []gpu.GPU{gpuOf(0, 0, map[gpu.Reason]int64{gpu.HostWork: 18, gpu.LaunchGap: 16})}, []found{{"host", 0.34}}},
		{"gaps of other reasons", []gpu.GPU{gpuOf(0, 0, map[gpu.Reason]int64{gpu.Dependency: 50, gpu.NotRecorded: 14})}, []found{{"idle", 0.64}}},
		{"perhaps no requests", []gpu.GPU{gpuOf(10, 0, map[gpu.Reason]int64{gpu.BetweenSteps: 45})}, nil},
		{"most of the time between steps", []gpu.GPU{gpuOf(0, 0, map[gpu.Reason]int64{gpu.BetweenSteps: 60})}, []found{{"steps", 0.6}}},
		{"a tenth without gaps between kernels", []gpu.GPU{gpuOf(0, 0, map[gpu.Reason]int64{gpu.AfterSync: 7, gpu.HostWork: 5, gpu.LaunchGap: 4})}, []found{{"host", 0.16}}},
		{"communicates", []gpu.GPU{gpuOf(20, 0, nil), gpuOf(40, 0, nil)}, []found{{"communication", 0.3}}},
		{"copies", []gpu.GPU{gpuOf(0, 97, nil)}, []found{{"copies", 0.97}}},
		{"a few operations, which is exact all the same", []gpu.GPU{few}, []found{{"host", 0.9}}},
		{"no device", nil, nil},
	} {
		var got []found
		for _, f := range all(&gpu.GPUs{GPUs: test.gpus, Steps: make([]gpu.StepTime, 1)}) {
			got = append(got, found{f.Subkind, f.Cost})
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: %v, want %v", test.name, got, test.want)
		}
	}
}

// Decode steps without a graph cost the time that they take beyond those with one.
func TestGraphFindings(t *testing.T) {
	const us = 1000
	measure := func(steps, everyEager int) *gpu.GPUs {
		syms := trace.NewSymbols()
		s := &testset.RowStream{}
		event := func(name string, from, to, correlation int64) profile.Event {
			return profile.Event{Start: trace.Time(from), End: trace.Time(to), Correlation: correlation, Name: syms.Intern(name), PID: 7}
		}
		for i := range int64(steps) {
			at, took, call := i*2000*us, int64(1000*us), "cudaGraphLaunch"
			if everyEager > 0 && int(i)%everyEager == 0 {
				took, call = 1500*us, "cudaLaunchKernel"
			}
			s.RangeRows = append(s.RangeRows, profile.Range{Event: event("step[DECODE bs=32]", at, at+100*us, 0), TID: 1})
			s.CallRows = append(s.CallRows, profile.Call{Event: event(call, at+10*us, at+20*us, i+1), TID: 1})
			s.KernelRows = append(s.KernelRows, profile.Kernel{Event: event("gemm", at+30*us, at+30*us+took, i+1)})
		}
		return gpu.Measure(testset.SetOf(syms, []string{"TP0"}, s), gpu.Options{})
	}
	of := func(g *gpu.GPUs) []finding.Finding {
		found, _ := EagerSteps(g)
		return found
	}
	if got := of(measure(200, 0)); got != nil {
		t.Errorf("all steps are graphs: %v", got)
	}
	if got := of(measure(200, 1)); got != nil {
		t.Errorf("no step is a graph: %v", got)
	}
	g := measure(200, 5)
	got := of(g)
	if want := 40 * 500.0 * us / float64(g.GPUs[0].Length()); len(got) != 1 || math.Abs(got[0].Cost-want) > 1e-9 {
		t.Fatalf("%v, want one of weight %v", got, want)
	}
	const text = "40 of 200 decode steps ran without a CUDA graph, though others of that batch size have one"
	if got[0].Text != text || got[0].Evidence[0].Text != "decode of 17-32 requests on TP0: median 1 ms with a graph, 1.50 ms without" {
		t.Errorf("%q %v", got[0].Text, got[0].Evidence)
	}
}

// Recording slows hosts down. Findings about waits for the host mention that, and no others do.
func TestCaveatsOfRecording(t *testing.T) {
	host, device := gpuOf(0, 0, map[gpu.Reason]int64{gpu.HostWork: 40}), gpuOf(0, 0, map[gpu.Reason]int64{gpu.Dependency: 40})
	for _, c := range []struct {
		name     string
		recorded []string
		capture  bool
		gpu      gpu.GPU
		want     int
	}{
		{"nothing beside events", nil, false, host, 0},
		{"stacks", []string{"shapes", "stacks"}, false, host, 1},
		{"at startup", nil, true, host, 1},
		{"both", []string{"stacks"}, true, host, 2},
		{"the host is not late", []string{"stacks"}, true, device, 0},
	} {
		g := &gpu.GPUs{GPUs: []gpu.GPU{c.gpu}, Steps: make([]gpu.StepTime, 1), Recorded: c.recorded, GraphCapture: c.capture}
		found := all(g)
		if len(found) != 1 {
			t.Fatalf("%s: %d findings", c.name, len(found))
		}
		n := 0
		for _, e := range found[0].Evidence {
			if strings.Contains(e.Text, "slows the host") && strings.Contains(e.Text, strings.Join(c.recorded, ", ")) || strings.Contains(e.Text, "graph capture at startup") {
				n++
			}
		}
		if n != c.want {
			t.Errorf("%s: %d caveats, want %d: %+v", c.name, n, c.want, found[0].Evidence)
		}
	}
}

// Steps that have no graph are evidence of late hosts.
func TestNoGraphs(t *testing.T) {
	steps := func(eager, graph, beyond int) gpu.GraphUse {
		return gpu.GraphUse{Eager: distribution.Summary{N: eager}, Graph: distribution.Summary{N: graph}, Beyond: beyond}
	}
	for _, test := range []struct {
		uses []gpu.GraphUse
		want string
	}{
		{nil, ""},
		{[]gpu.GraphUse{steps(1, 1, 0)}, ""}, // the smaller one can be padded to a graph
		{[]gpu.GraphUse{steps(1, 0, 0), steps(1, 0, 0)}, "none of 2 decode steps ran as a CUDA graph: the host launches each kernel separately"},
		{[]gpu.GraphUse{steps(1, 1, 1), steps(0, 1, 0), steps(1, 0, 1)}, "2 of 4 decode steps had more requests than any that ran as a CUDA graph"},
	} {
		if got := noGraphs(&gpu.GPUs{Graphs: test.uses}).Text; got != test.want {
			t.Errorf("%q, want %q", got, test.want)
		}
	}
}

// A reason for less than half of the idle time is not called the main one.
func TestHowMuch(t *testing.T) {
	for part, want := range map[float64]string{0.32: "partly ", 0.5: "mostly ", 0.89: "mostly ", 0.9: ""} {
		if got := howMuch(part); got != want {
			t.Errorf("%g: %q", part, got)
		}
	}
}

// Idle time in steps and between steps adds up to the idle time in the table.
func TestIdleBetweenStepsIsApart(t *testing.T) {
	for between, want := range map[int64]string{
		0:  "the GPU is idle 15 % of the time, because the host launches kernels too late",
		3:  "the GPU is idle 15 % of the time in steps, because the host launches kernels too late",
		12: "the GPU is idle 12 % of the time between steps and 15 % in them, because the host launches kernels too late",
	} {
		found, _ := Idle((&gpu.GPUs{GPUs: []gpu.GPU{gpuOf(0, 0, map[gpu.Reason]int64{gpu.HostWork: 15, gpu.BetweenSteps: between})}, Steps: make([]gpu.StepTime, 1)}), notPaused)
		if len(found) != 1 || found[0].Text != want || found[0].Cost != 0.15 {
			t.Errorf("%d ms between steps: %+v, want %s", between, found, want)
		}
	}
}

// The longest gap may have any reason, which is named if it is not the main one.
// Gaps between steps and at a cold start are reported elsewhere.
func TestLongestGap(t *testing.T) {
	g := gpuOf(0, 0, map[gpu.Reason]int64{gpu.HostWork: 20, gpu.Dependency: 10})
	for reason, length := range map[gpu.Reason]trace.Time{gpu.HostWork: 2 * ms, gpu.Dependency: 9 * ms, gpu.BetweenSteps: 30 * ms, gpu.Modules: 40 * ms} {
		g.Waits.Longest[reason] = gpu.Gap{To: length}
	}
	find := func() []finding.Finding { f, _ := Idle(&gpu.GPUs{GPUs: []gpu.GPU{g}}, notPaused); return f }
	tells := func(text string) bool {
		return slices.ContainsFunc(find()[0].Evidence, func(e finding.Evidence) bool { return e.Text == text })
	}
	if !tells("longest gap 9 ms: waiting for other work") {
		t.Errorf("%+v", find())
	}
	if g.Waits.Longest[gpu.HostWork].To = 10 * ms; !tells("longest gap 10 ms") {
		t.Errorf("%+v", find())
	}
}

// If at least a tenth of the kernel time is launched outside of annotated steps, idle time
// between steps is called idle time outside of annotated steps.
func TestIdleOutsideOfSteps(t *testing.T) {
	for outside, want := range map[int64]string{5: "", 20: "the GPU is idle 30 % of the time outside of annotated steps, where hosts launch 20 % of the kernels' time"} {
		g := gpuOf(0, 0, map[gpu.Reason]int64{gpu.BetweenSteps: 30})
		g.KernelTime, g.OutsideTime = 100, outside
		found, _ := IdleBetweenSteps(&gpu.GPUs{GPUs: []gpu.GPU{g}, Steps: make([]gpu.StepTime, 1)})
		if len(found) != 0 && want == "" || want != "" && (len(found) != 1 || found[0].Text != want || found[0].Cost != 0.3) {
			t.Errorf("%d %% outside: %+v, want %q", outside, found, want)
		}
	}
}

// A device that is idle far more than the others is named.
func TestOutlier(t *testing.T) {
	for _, c := range []struct {
		idle []int64
		want string
	}{{[]int64{35, 6}, " (TP0 35 %, the other 6 %)"}, {[]int64{6, 35, 8}, " (TP1 35 %, no other more than 8 %)"},
		{[]int64{6, 35, 8, 40}, " (TP3 40 %, TP1 35 %, no other more than 8 %)"}, {[]int64{35, 6, 38}, " (TP2 38 %, TP0 35 %, the other 6 %)"}, {[]int64{35, 36, 37, 8}, ""},
		{[]int64{20, 35}, ""}, {[]int64{6, 1}, ""}, {[]int64{35}, ""}} {
		g := &gpu.GPUs{}
		for i, ms := range c.idle {
			d := gpuOf(0, 0, map[gpu.Reason]int64{gpu.HostWork: ms})
			d.Rank = fmt.Sprint("TP", i)
			g.GPUs = append(g.GPUs, d)
		}
		if got := outlier(g, (*gpu.GPU).IdleTime); got != c.want {
			t.Errorf("%v: %q, want %q", c.idle, got, c.want)
		}
	}
}

// A device that waits alone is named, while its peers work.
func TestIdleAlone(t *testing.T) {
	waits, works := gpuOf(0, 0, map[gpu.Reason]int64{gpu.BetweenSteps: 90}), gpuOf(0, 0, map[gpu.Reason]int64{gpu.BetweenSteps: 20})
	waits.Rank, works.Rank = "TP1", "TP0"
	g := &gpu.GPUs{GPUs: []gpu.GPU{works, waits}, Steps: make([]gpu.StepTime, 1)}
	found, _ := IdleBetweenSteps(g)
	if want := "TP1 alone is idle 90 % of the time between steps"; len(found) != 1 || !strings.HasPrefix(found[0].Text, want) || found[0].Cost != 0.55 {
		t.Errorf("%+v, want %s", found, want)
	}
	g.GPUs[0] = waits
	if found, _ = IdleBetweenSteps(g); len(found) != 1 || !strings.HasPrefix(found[0].Text, "the 2 GPUs are idle 90 %") {
		t.Errorf("both wait: %+v", found)
	}
}

// In a filtered recording with communication only, it is unknown whether devices idle or compute between collectives.
func TestOnlyCommunication(t *testing.T) {
	filtered := gpuOf(60, 0, map[gpu.Reason]int64{gpu.NotRecorded: 40})
	called := filtered // a complete recording of a collective benchmark
	called.Called = called.Rows
	for _, test := range []struct {
		gpu  gpu.GPU
		want []string
	}{
		{filtered, []string{"the GPU spends 60 % of the time on communication"}},
		{called, []string{"the GPU is idle 40 % of the time, for unknown reasons: the launches were not recorded",
			"the GPU spends 60 % of the time on exposed communication (not overlapped by compute)"}},
	} {
		var got []string
		for _, f := range all(&gpu.GPUs{GPUs: []gpu.GPU{test.gpu}}) {
			got = append(got, f.Text)
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%q, want %q", got, test.want)
		}
	}
}

// A device that ran anything at all is not reported as idle all of the time.
func TestNearlyAllIdle(t *testing.T) {
	g := gpuOf(0, 0, map[gpu.Reason]int64{gpu.HostWork: 99})
	g.Running[1<<kernelname.ClassCompute], g.Waits.Time[gpu.HostWork] = ms/2, 99*ms+ms/2
	found := all(&gpu.GPUs{GPUs: []gpu.GPU{g}})
	if len(found) != 1 || !strings.HasPrefix(found[0].Text, "the GPU is idle 99.5 % of the time, ") {
		t.Errorf("%+v", found)
	}
}

// Devices without kernels only copied, unless calls launched kernels that were not recorded.
func TestCopiesWithoutKernels(t *testing.T) {
	blind := gpuOf(0, 97, nil)
	blind.Blind = true
	for want, g := range map[string]*gpu.GPUs{
		"no kernel was recorded: the GPU only copied or filled memory":                                                  {GPUs: []gpu.GPU{gpuOf(0, 97, nil)}},
		"no kernel was recorded, though calls launched some: the GPU spends 97 % of the time copying or filling memory": {GPUs: []gpu.GPU{gpuOf(0, 97, nil)}, Cuts: []gpu.Cut{{Rank: "TP0"}}},
		"no kernel was recorded, and neither were calls: the GPU spends 97 % of the time copying or filling memory":     {GPUs: []gpu.GPU{blind}},
	} {
		found, _ := ExposedCopies(g)
		if len(found) != 1 || found[0].Text != want || !AboutExposed(&finding.Finding{Kind: finding.GPU, Metric: found[0].Metric}) {
			t.Errorf("%+v, want %s", found, want)
		}
	}
}

// Whether devices are idle is not known if the files lack all of their kernels. Those of which they don't are judged.
func TestBlindDevicesAreNotIdle(t *testing.T) {
	works, blind := gpuOf(0, 0, map[gpu.Reason]int64{gpu.HostWork: 40}), gpuOf(0, 1, map[gpu.Reason]int64{gpu.HostWork: 99})
	blind.Blind = true
	if found, check := Idle(&gpu.GPUs{GPUs: []gpu.GPU{blind, blind}}, notPaused); len(found) > 0 || check.State() != finding.TooLittle {
		t.Errorf("all are blind: %+v, %s", found, check.String())
	}
	found, _ := Idle(&gpu.GPUs{GPUs: []gpu.GPU{works, blind}}, notPaused)
	if len(found) != 1 || !strings.HasPrefix(found[0].Text, "the GPU is idle 40 %") {
		t.Errorf("one is blind: %+v", found)
	}
}
