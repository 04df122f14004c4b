package gaps

import (
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/gpu"
	"github.com/sgtrace/sgtrace/analyze/host"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/testkit/testset"
	"github.com/sgtrace/sgtrace/trace"
)

// whyever accepts every reason.
func whyever(gpu.Reason) bool { return true }

// Copies of pageable memory are summed over all places, and reported unless the
// finding about the largest cause already covers them.
func TestPageableCopies(t *testing.T) {
	const ms = 1_000_000
	copies := func(ns int64, frame string) Cause {
		return Cause{Reason: gpu.HostWork, Activity: host.CopyingPageable, Call: "cudaMemcpyAsync", Frame: frame, Time: ns, Gaps: 40, LongestPart: ns / 2}
	}
	python := Cause{Reason: gpu.HostWork, Activity: host.InPython, Frame: "a.py(1): f", Time: 200 * ms, Gaps: 40}
	for _, c := range []struct {
		name   string
		causes []Cause
		want   string // "" is no finding
	}{
		{"two places", []Cause{python, copies(15*ms, "b.py(2): g"), copies(10*ms, "c.py(3): h")}, "the GPU is idle for 2 % of the time (25 ms) while the host copies pageable memory"},
		{"too little", []Cause{python, copies(10*ms, "b.py(2): g")}, ""},
		{"the worst anyway", []Cause{copies(150*ms, "b.py(2): g"), python}, ""},
		{"none", []Cause{python}, ""},
	} {
		g := &Gaps{Causes: c.causes, Recorded: host.RecordedFrames{host.PythonFrame: true}}
		found, check := g.Pageable(1000*ms, whyever)
		switch {
		case check.State() != finding.LookedAt && c.want != "", len(found) > 1, (len(found) == 1) != (c.want != ""):
			t.Errorf("%s: found %v, %v", c.name, found, check)
		case len(found) == 1 && (found[0].Text != c.want || found[0].Cost != 0.025 || found[0].Evidence[0].Value != 15*ms || !strings.Contains(found[0].Evidence[1].Text, "h() (c.py:3)")):
			t.Errorf("%s: %+v", c.name, found[0])
		}
		if found, _ := g.Pageable(1000*ms, func(r gpu.Reason) bool { return r == gpu.BetweenSteps }); len(found) > 0 {
			t.Errorf("%s: none is between steps: %+v", c.name, found)
		}
	}
}

// If only calls were recorded, a call that accounts for most of the gaps' time is reported.
// Launches, and calls that are reasons for gaps by themselves, are not.
func TestOnlyCallsRecorded(t *testing.T) {
	const ms = 1_000_000
	cause := func(did host.Activity, call string, ns int64) Cause {
		return Cause{Reason: gpu.HostWork, Activity: did, Call: call, Time: ns, Gaps: 40, LongestPart: ns / 2}
	}
	allocates := cause(host.Allocating, "cudaMalloc", 150*ms)
	allocates.Reason = gpu.Allocation
	copies, launches := cause(host.CopyingPageable, "cudaMemcpyAsync", 150*ms), cause(host.Launching, "cudaLaunchKernel", 50*ms)
	for _, causes := range [][]Cause{{allocates, launches}, {cause(host.Launching, "cudaLaunchKernel", 150*ms), cause(host.NotRecorded, "", 50*ms)}} {
		if found, check := (&Gaps{Causes: causes}).Findings(1000 * ms); len(found) > 0 || check.Reason == "" {
			t.Errorf("%+v, %v", found, check)
		}
	}
	const want = "75 % of the wait for the host is a copy of pageable memory: cudaMemcpyAsync"
	if found, check := (&Gaps{Causes: []Cause{copies, launches}}).Findings(1000 * ms); len(found) != 1 || found[0].Text != want || found[0].Cost != 0.15 {
		t.Errorf("%+v, %v; want %q", found, check, want)
	}
}

// System calls within a launch are part of that launch.
func TestSystemCallsInLaunches(t *testing.T) {
	syms := trace.NewSymbols()
	s := &testset.RowStream{}
	event := func(name string, from, to trace.Time, correlation int64) profile.Event {
		return profile.Event{Start: from, End: to, Name: syms.Intern(name), Correlation: correlation, PID: 1}
	}
	for i, at := range []trace.Time{1000, 200_000} { // the second launch begins before the first kernel ends
		s.CallRows = append(s.CallRows, profile.Call{Event: event("cudaLaunchKernel", at, at+100_000, int64(i)+1), TID: 1})
		s.KernelRows = append(s.KernelRows, profile.Kernel{Event: event("k", at+101_000, at+101_000+trace.Time(1-i)*100_000, int64(i)+1)})
	}
	s.FrameRows = append(s.FrameRows, profile.Frame{Event: event("fopen", 201_000, 203_000, 0), TID: 1, Kind: profile.SystemFrame})
	set := testset.SetOf(syms, []string{"TP0"}, s)
	collector := Collect(set)
	gpu.Measure(set, gpu.Options{Gaps: collector.Add})
	causes := collector.Measure(Options{}).Causes
	if len(causes) == 0 || causes[0].Call != "cudaLaunchKernel" || causes[0].Reason != gpu.HostWork || causes[0].Time != 99_000 {
		t.Errorf("%+v", causes)
	}
}

// Allocations count if the code makes them repeatedly, but not while the process starts.
func TestAllocations(t *testing.T) {
	const ms = 1_000_000
	allocates := func(ns int64, call string, gaps int64) Cause {
		return Cause{Reason: gpu.Allocation, Activity: host.Allocating, Call: call, Time: ns, Gaps: gaps, LongestPart: ns / gaps}
	}
	python := Cause{Reason: gpu.HostWork, Activity: host.InPython, Frame: "a.py(1): f", Time: 200 * ms, Gaps: 40}
	for _, c := range []struct {
		name   string
		causes []Cause
		cold   int64
		want   string // "" is no finding
	}{
		{"in each step", []Cause{python, allocates(15*ms, "cudaMalloc", 25), allocates(10*ms, "cudaFree", 25)}, 0,
			"the GPU is idle for 2 % of the time (25 ms) while the host repeatedly allocates or frees memory"},
		{"at many places, but once", []Cause{python, allocates(15*ms, "cudaMalloc", 4), allocates(40*ms, "cudaHostAlloc", 9)}, 0, ""},
		{"while the process starts", []Cause{python, allocates(25*ms, "cudaMalloc", 25)}, 10 * ms, ""},
		{"the worst anyway", []Cause{allocates(150*ms, "cudaMalloc", 25), python}, 0, ""},
	} {
		g := &Gaps{Causes: c.causes, Recorded: host.RecordedFrames{host.PythonFrame: true}}
		found, check := g.Allocations(1000*ms, c.cold, whyever)
		if len(found) > 1 || (len(found) == 1) != (c.want != "") || len(found) == 1 && (found[0].Text != c.want || found[0].Cost != 0.025) {
			t.Errorf("%s: %+v, %v", c.name, found, check)
		}
	}
}

// Calls with one name are separated by the kind of memory that they copied.
func TestPageableCalls(t *testing.T) {
	syms := trace.NewSymbols()
	s := &testset.RowStream{}
	event := func(name string, from, to trace.Time, correlation int64) profile.Event {
		return profile.Event{Start: from, End: to, Name: syms.Intern(name), Correlation: correlation, PID: 1}
	}
	kernel := func(from, to trace.Time, correlation int64) {
		s.KernelRows = append(s.KernelRows, profile.Kernel{Event: event("k", from, to, correlation)})
		s.CallRows = append(s.CallRows, profile.Call{Event: event("cudaLaunchKernel", from-10, from-5, correlation), TID: 1})
	}
	memory := map[int64]profile.Memory{2: profile.PinnedMemory, 4: profile.PageableMemory}
	for correlation, from := range map[int64]trace.Time{2: 1000, 4: 3000} { // copies in gaps of 900 ns
		s.CallRows = append(s.CallRows, profile.Call{Event: event("cudaMemcpyAsync", from+100, from+800, correlation), TID: 1})
		s.CopyRows = append(s.CopyRows, profile.Copy{Event: event("[CUDA memcpy Host-to-Device]", from+850, from+900, correlation),
			Kind: profile.CopyKind{From: memory[correlation], To: profile.DeviceMemory}})
		kernel(from-500, from, correlation-1)
	}
	kernel(5000, 5100, 9)
	set := testset.SetOf(syms, []string{"TP0"}, s)
	collector := Collect(set)
	gpu.Measure(set, gpu.Options{Gaps: collector.Add})
	times := map[host.Activity]int64{}
	for _, c := range collector.Measure(Options{}).Causes {
		if c.Call == "cudaMemcpyAsync" {
			times[c.Activity] += c.Time
		}
	}
	if len(times) != 2 || times[host.Copying] != 750 || times[host.CopyingPageable] != 750 { // from the call to the copy
		t.Errorf("%v", times)
	}
}
