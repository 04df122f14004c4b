package gaps

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/gpu"
	"github.com/sgtrace/sgtrace/analyze/host"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/testkit/testset"
	"github.com/sgtrace/sgtrace/trace"
)

// launchesWith returns 1,000 kernels of 5 us in 10 steps. Each is launched a random 10 to 40 us after
// the previous one ended, or after the time that before returns, in a call of that name unless it is "".
func launchesWith(t *testing.T, before func(i int) (ns int64, call string)) (*profile.Set, *Gaps, *gpu.GPUs) {
	t.Helper()
	r := rand.New(rand.NewPCG(3, 4))
	syms := trace.NewSymbols()
	s := &testset.RowStream{}
	event := func(name string, from, to, correlation int64) profile.Event {
		return profile.Event{Start: trace.Time(from), End: trace.Time(to), Name: syms.Intern(name), Correlation: correlation, PID: 1}
	}
	at, step := int64(gpu.Absolute), int64(gpu.Absolute)
	for i := range 1000 {
		gap, call := before(i)
		if gap == 0 {
			gap = 10_000 + r.Int64N(30_000)
		}
		if call != "" {
			s.CallRows = append(s.CallRows, profile.Call{Event: event(call, at+1000, at+gap-1000, 0), TID: 1})
		}
		at += gap
		n := int64(i + 1)
		s.CallRows = append(s.CallRows, profile.Call{Event: event("cudaLaunchKernel", at, at+2000, n), TID: 1})
		s.KernelRows = append(s.KernelRows, profile.Kernel{Event: event("k", at+3000, at+8000, n)})
		at += 8000
		if i%100 == 99 {
			s.RangeRows = append(s.RangeRows, profile.Range{Event: event("decode_step", step, at, 0), TID: 1})
			step = at
		}
	}
	s.FrameRows = append(s.FrameRows, profile.Frame{Event: event("aten::linear", int64(gpu.Absolute)+5000, int64(gpu.Absolute)+6000, 0), TID: 1, Kind: profile.OperatorFrame})
	set := testset.SetOf(syms, []string{"TP0"}, s)
	collector := Collect(set)
	gpus := gpu.Measure(set, gpu.Options{Gaps: collector.Add})
	return set, collector.Measure(Options{}), gpus
}

// Pauses are found by the usual cadence of the host, and reported with their number, lengths, and times.
func TestPauses(t *testing.T) {
	const ms = 1_000_000
	every := func(n int, ns int64) func(int) (int64, string) {
		return func(i int) (int64, string) {
			if i%n == n-1 {
				return ns, ""
			}
			return 0, ""
		}
	}
	for _, c := range []struct {
		name   string
		before func(int) (int64, string)
		n      int
		paused int64  // ns
		says   string // in the finding about host wait; "" is no mention of pauses
	}{
		{"one", every(600, 900*ms), 1, 900 * ms, "is 1 pause in decode_step in which the launching thread recorded nothing: 900 ms at "},
		{"one long and shorter ones", func(i int) (int64, string) {
			return map[int]int64{300: 900 * ms, 500: 60 * ms, 700: 70 * ms}[i], ""
		}, 3, 1030 * ms, "is 3 pauses, one in every 2nd decode_step, in which the launching thread recorded nothing: 900 ms at 01:46:40.009, the others at most 70 ms"},
		{"one in each step", every(100, 8*ms), 10, 80 * ms, "is 10 pauses, about one in each decode_step, in which the launching thread recorded nothing: 8 ms each, one every 11"},
		{"regular", every(200, 20*ms), 5, 100 * ms, "is 5 pauses, one in every 2nd decode_step, in which the launching thread recorded nothing: 20 ms each, one every 2"},
		{"in differing steps", func(i int) (int64, string) {
			return map[int]int64{150: 20 * ms, 350: 20 * ms, 650: 20 * ms, 850: 20 * ms}[i], ""
		}, 4, 80 * ms, "is 4 pauses in decode_step in which the launching thread recorded nothing: 20 ms each"},
		{"no pause", func(int) (int64, string) { return 0, "" }, 0, 0, ""},
		{"most gaps are long: that is the cadence", every(2, 20*ms), 0, 0, ""},
		{"a tail without a break", func(i int) (int64, string) { return 20_000 + int64(i%60)*5000, "" }, 0, 0, ""},
		{"a call explains it", func(i int) (int64, string) {
			if i%100 == 50 {
				return 20 * ms, "cudaMalloc"
			}
			return 0, ""
		}, 0, 0, ""},
	} {
		_, g, gpus := launchesWith(t, c.before)
		paused := g.Paused(0, 0)
		// During a pause, nothing is recorded except the launch.
		if len(g.pauses) != c.n || paused != c.paused {
			t.Errorf("%s: %d pauses of %d ns, want %d of %d", c.name, len(g.pauses), paused, c.n, c.paused)
		}
		sum := int64(0)
		for i := range g.Causes {
			if g.Causes[i].Pause {
				sum += g.Causes[i].Time
			}
		}
		if sum != paused {
			t.Errorf("%s: rows of pauses add up to %d ns, want %d", c.name, sum, paused)
		}
		found, _ := g.Findings(gpus.Length())
		text := ""
		if len(found) > 0 {
			text = found[0].Text
		}
		if c.says == "" && strings.Contains(text, "pause") || !strings.Contains(text, c.says) {
			t.Errorf("%s: %q", c.name, text)
		}
	}
}

// Without ranges and frames, calls alone still show a pause of the host. Without a pause, they do not show what it does.
func TestPauseWithoutCode(t *testing.T) {
	for pause, want := range map[int64]string{900_000_000: "is 1 pause in which the launching thread recorded nothing: 900 ms at ", 0: ""} {
		set, _, _ := launchesWith(t, func(i int) (int64, string) { return map[int]int64{600: pause}[i], "" })
		s := set.Streams[0].(*testset.RowStream)
		s.RangeRows, s.FrameRows = nil, nil
		collector := Collect(set)
		gpus := gpu.Measure(set, gpu.Options{Gaps: collector.Add})
		found, check := collector.Measure(Options{}).Findings(gpus.Length())
		if pause == 0 && (len(found) > 0 || check.Reason == "") || pause != 0 && (len(found) != 1 || !strings.Contains(found[0].Text, want)) {
			t.Errorf("%d ns: %+v, %+v, want %s", pause, found, check, want)
		}
	}
}

// A wait for requests is no pause, and neither is a wait for another thread.
func TestNoPause(t *testing.T) {
	for _, c := range []struct {
		reason gpu.Reason
		did    host.Activity
		want   bool
	}{
		{gpu.HostWork, host.NotRecorded, true}, {gpu.AfterSync, host.InRange, true}, {gpu.HostWork, host.InOperator, true}, {gpu.HostWork, host.InPython, false},
		{gpu.BetweenSteps, host.NotRecorded, false}, {gpu.Unseen, host.InRange, false}, {gpu.Compiling, host.InRange, false},
		{gpu.HostWork, host.Sleeping, false}, {gpu.HostWork, host.Locked, false}, {gpu.HostWork, host.OffCPU, false}, {gpu.HostWork, host.Launching, false},
	} {
		if got := (&cause{reason: c.reason, at: site{did: c.did}}).mayPause(); got != c.want {
			t.Errorf("%s, %s: %v", gpu.ReasonWords[c.reason], c.did, got)
		}
	}
}

// A thread that waits for the interpreter lock stands still for slightly more than 5
// ms, or for multiples of it. Other waits have other lengths.
func TestInterpreterLock(t *testing.T) {
	const ms = 1_000_000
	r := rand.New(rand.NewPCG(5, 6))
	for _, c := range []struct {
		name string
		gap  func(i int) int64
		want bool
	}{
		{"every launch waits a turn, and some two", func(i int) int64 { return 5*ms + r.Int64N(ms) + int64(i%3/2)*5*ms }, true},
		{"half of them", func(i int) int64 { return int64(i%2) * (5*ms + r.Int64N(ms) + int64(i%6/5)*5*ms) }, true},
		{"it sleeps for 6 ms each time", func(i int) int64 { return 6*ms + r.Int64N(ms/4) }, false},
		{"it sleeps for 5 or 8 ms", func(i int) int64 { return int64(5+i%2*3)*ms + r.Int64N(ms/4) }, false},
		{"as many stretches are shorter than a turn", func(int) int64 { return 2*ms + r.Int64N(8*ms) }, false},
		{"all are longer", func(int) int64 { return 7*ms + r.Int64N(8*ms) }, false},
		{"few", func(i int) int64 { return int64(i%50/49) * 5 * ms }, false},
		{"none", func(int) int64 { return 0 }, false},
	} {
		_, g, gpus := launchesWith(t, func(i int) (int64, string) { return c.gap(i), "" })
		found, _ := g.Findings(gpus.Length())
		told := len(found) > 0 && strings.Contains(found[0].Text, "interpreter lock")
		if told != c.want || told && found[0].Confidence != finding.Likely {
			t.Errorf("%s: %+v, %+v", c.name, found, g.turns)
		}
	}
}
