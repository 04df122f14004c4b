package gaps

import (
	"cmp"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/gpu"
	"github.com/sgtrace/sgtrace/analyze/host"
	"github.com/sgtrace/sgtrace/trace"
)

// If a host waits for work that was not recorded, it is not late: the device was busy.
func TestUnrecordedWorkIsNoHostWait(t *testing.T) {
	for reason, want := range map[gpu.Reason]bool{gpu.Unseen: false, gpu.BlockingCopy: true, gpu.AfterSync: true} {
		cause := Cause{Reason: reason, Activity: host.Copying, Call: "hipMemcpyWithStream"}
		if cause.counts() != want {
			t.Errorf("%s: %v", gpu.ReasonWords[reason], cause.counts())
		}
	}
}

// Between steps, a host that waits for requests is not a cause, whatever its other
// threads do. One that waits for a working thread is.
func TestCausesBetweenSteps(t *testing.T) {
	for _, c := range []struct {
		did   host.Activity
		other string
		want  bool
	}{
		{host.Locked, "encode.py(1): encode", true}, {host.Locked, "", false}, {host.Sleeping, "encode.py(1): encode", false}, {host.Sleeping, "", false},
		{host.NotRecorded, "encode.py(1): encode", false}, {host.InPython, "", false}, {host.Collecting, "", true}, {host.CopyingPageable, "", true}, {host.OnDevice, "", false},
	} {
		cause := Cause{Reason: gpu.BetweenSteps, Activity: c.did, Other: c.other}
		if cause.counts() != c.want {
			t.Errorf("%s, while %q: %v", c.did, c.other, cause.counts())
		}
	}
}

// If a thread waits for another, the finding says so. Only Python frames show that Python code was running.
func TestSentencesOfOtherThreads(t *testing.T) {
	for _, c := range []struct {
		cause Cause
		want  string
	}{
		{Cause{Activity: host.OtherThread, Call: "futex"}, "is waiting for another thread: futex"},
		{Cause{Activity: host.OtherThread, Frame: "scheduler.py(9): loop"}, "is Python in loop() (scheduler.py:9)"},
		{Cause{Activity: host.LoadingData, Range: "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"}, "is waiting for the data loader, which has workers: enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"},
		{Cause{Activity: host.LoadingData, Range: "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"},
			"is the data loader, which has no workers and so loads in the launching thread: enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"},
	} {
		if got := c.cause.sentence(); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

// A thread in the annotation of a data loader waits for the loader, whatever function of PyTorch it is in. A
// function of the program is reported by its own name.
func TestDataLoader(t *testing.T) {
	const loader = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
	syms := trace.NewSymbols()
	names := host.NewNames(syms)
	at := func(frames ...host.Frame) (s site) {
		for i := range frames {
			s = within(names, s, &frames[i])
		}
		return s
	}
	frame := func(kind host.Kind, name string) host.Frame { return host.Frame{Kind: kind, Name: syms.Intern(name)} }
	loop, load := frame(host.PythonFrame, "train.py(30): epoch"), frame(host.RangeFrame, loader)
	library := frame(host.PythonFrame, "/usr/lib/python3/dist-packages/torch/utils/data/dataloader.py(631): __next__")
	for _, c := range []struct {
		frames []host.Frame
		did    host.Activity
		name   string // of the frame, or of the range if there is no frame
	}{
		{[]host.Frame{loop, load}, host.LoadingData, loader},
		{[]host.Frame{frame(host.OperatorFrame, loader)}, host.LoadingData, loader},
		{[]host.Frame{loop, load, library, frame(host.PythonFrame, "/usr/lib/python3.12/queue.py(154): get")}, host.LoadingData, loader},
		{[]host.Frame{loop, load, library, frame(host.PythonFrame, "data.py(12): __getitem__")}, host.InPython, "data.py(12): __getitem__"},
		{[]host.Frame{loop, load, library, frame(host.OperatorFrame, "aten::stack")}, host.InOperator, loader},
		{[]host.Frame{loop}, host.InPython, "train.py(30): epoch"},
	} {
		s := at(c.frames...)
		if got := syms.Name(cmp.Or(s.frame, s.span)); s.did != c.did || got != c.name {
			t.Errorf("%v: %s in %q, want %s in %q", c.frames, s.did, got, c.did, c.name)
		}
	}
	if at(loop, load).did.Idle() || (&cause{reason: gpu.HostWork, at: site{did: host.LoadingData}}).standsStill() {
		t.Error("a data loader explains why a thread does not move on")
	}
}

// Operators in the annotation of a data loader count as its work, but a function of the program is reported by its own name.
func TestAllOfADataLoader(t *testing.T) {
	const loader, ms = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 1_000_000
	cause := func(did host.Activity, ns int64, operator, frame, span string) Cause {
		return Cause{Reason: gpu.HostWork, Activity: did, Operator: operator, Frame: frame, Range: span, Time: ns, Gaps: 10}
	}
	waits := cause(host.LoadingData, 40*ms, "", "", loader)
	for _, c := range []struct {
		causes []Cause
		time   int64
		says   string
	}{
		{[]Cause{waits, cause(host.InOperator, 30*ms, "aten::div", "", loader), cause(host.InOperator, 20*ms, "aten::stack", "", loader)}, 90 * ms, "which has no workers and so loads in the launching thread: " + loader},
		{[]Cause{waits, cause(host.InOperator, 50*ms, "aten::conv2d", "", "forward")}, 40 * ms, "which has no workers and so loads in the launching thread: " + loader},
		{[]Cause{waits, cause(host.InPython, 70*ms, "", "data.py(12): __getitem__", "")}, 70 * ms, "is Python in __getitem__() (data.py:12)"},
	} {
		g := &Gaps{Causes: c.causes}
		if s := g.worst(); s.time != c.time || !strings.HasSuffix(s.text, c.says) {
			t.Errorf("%d ns %s, want %d %s", s.time, s.text, c.time, c.says)
		}
	}
}

// If nothing that a host did has a name, nothing is said of it, rather than that it did nothing.
func TestNamelessHosts(t *testing.T) {
	g := Gaps{Causes: []Cause{{Reason: gpu.HostWork, Activity: host.NotRecorded, Time: 5e9, Gaps: 40}}}
	if list, check := g.Findings(10e9); len(list) > 0 || check.Reason == "" {
		t.Errorf("%+v, %+v", list, check)
	}
}
