package overview

import (
	"strings"
	"testing"
	"time"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/gpu"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/testkit/testset"
	"github.com/sgtrace/sgtrace/trace"
)

// Messages of a profiler about its recording concern every number; errors come first.
func TestProfilerWarnings(t *testing.T) {
	diags := &trace.Diags{}
	diags.Add(trace.NsysWarning.Of("a.sqlite", "buffers 49 of 50"))
	diags.Add(trace.NsysError.Of("b.sqlite", "Not all CUDA events might have been collected"))
	diags.Add(trace.NsysBackwards.Of("a.sqlite"))
	o := New(Input{Diags: diags})
	if len(o.Warnings) != 2 || o.Warnings[0].Text != "b.sqlite: the profiler says: Not all CUDA events might have been collected [nsys-error]" ||
		o.Warnings[1].Text != "a.sqlite: the profiler says: buffers 49 of 50 [nsys-warning]" {
		t.Errorf("%+v", o.Warnings)
	}
}

func TestAbsenceWarnings(t *testing.T) {
	for want, absence := range map[string]profile.MissingRanks{
		"traces of only 7 of 8 ranks, so whether they wait for the missing rank is unknown; missing: TP2":                             {Seen: 7, Size: 8, Missing: []string{"TP2"}},
		"traces of only 1 of at least 7 ranks, so who waits for whom in collectives is unknown; missing: rank 0 to rank 3 and 2 more": {Seen: 1, Size: 7, AtLeast: true, Missing: []string{"rank 0 to rank 3"}, More: 2},
		"traces of only 6 of 8 ranks, so whether they wait for missing ranks is unknown; missing: TP2, TP3":                           {Seen: 6, Size: 8, Missing: []string{"TP2", "TP3"}},
	} {
		o := New(Input{Profiles: &profile.Set{MissingRanks: []profile.MissingRanks{absence}}})
		if len(o.Warnings) != 1 || o.Warnings[0].Text != want {
			t.Errorf("%+v, want %q", o.Warnings, want)
		}
	}
}

// If ranks are missing, captures that repeat others are named.
func TestRepeatedCaptures(t *testing.T) {
	o := &Overview{}
	o.Diags = &trace.Diags{}
	o.Diags.Add(trace.CaptureRepeated.At(trace.Pos{File: "TP1.json", Offset: -1}, "it", "events", "TP0.json"))
	for _, missing := range [][]profile.MissingRanks{nil, {{Seen: 1, Size: 2}}} {
		o.Profiles = &profile.Set{MissingRanks: missing}
		got := o.profilerWarnings()
		if len(got) != len(missing) || len(got) > 0 && got[0].Text != "TP1.json: it has the same events as TP0.json; left out [capture-repeated]" {
			t.Errorf("%v: %+v", missing, got)
		}
	}
}

// Ranks whose captures lack kernels are named if the host was recorded; processes that are not ranks are not.
func TestRanksWithoutKernels(t *testing.T) {
	g := &gpu.GPUs{GPUs: []gpu.GPU{{Rank: "TP0", RankIndex: 0, Rows: 9, Called: 9}}}
	for _, c := range []struct {
		hosts []int32 // indices of the ranks with operators
		want  string
	}{
		{nil, ""}, {[]int32{0, 0}, ""}, {[]int32{3}, ""},
		{[]int32{0, 1, 1}, "the capture of TP1 has no kernels or copies, unlike those of other ranks: what its GPU did is not known"},
		{[]int32{2, 1}, "the captures of TP1, TP2 have no kernels or copies, unlike those of other ranks: what their GPUs did is not known"},
	} {
		s := &testset.RowStream{}
		for _, rank := range c.hosts {
			s.FrameRows = append(s.FrameRows, profile.Frame{Event: profile.Event{Rank: rank}})
		}
		set := testset.SetOf(trace.NewSymbols(), []string{"TP0", "TP1", "TP2", "tokenizer"}, s)
		set.Numbers = []int32{0, 1, 2, -1}
		var text string
		for _, w := range hostOnlyWarnings(set, g) {
			text += w.Text
		}
		if text != c.want {
			t.Errorf("%v: %q, want %q", c.hosts, text, c.want)
		}
	}
}

// Captures of several runs are listed separately, and clocks with another epoch are pointed out.
func TestCapturesOfSeveralRuns(t *testing.T) {
	second := trace.Time(time.Second)
	day := 86_400 * second
	start := 1_787_000_000 * second
	for _, c := range []struct {
		runs          []request.Interval
		time, warning string
	}{
		{[]request.Interval{{From: start, To: start + second}}, "2026-08-17 20:53:20 to 20:53:21 UTC (1 s)", ""},
		{[]request.Interval{{From: start, To: start + second}, {From: start + day, To: start + day + second}},
			"2 runs: 2026-08-17 20:53:20 to 20:53:21 UTC (1 s); 2026-08-18 20:53:20 to 20:53:21 UTC (1 s)", "2 runs that do not overlap, and"},
		{[]request.Interval{{From: second, To: 2 * second}, {From: start, To: start + second}},
			"2 runs: 1 s; the files do not say when: times count from an unknown start; 2026-08-17 20:53:20 to 20:53:21 UTC (1 s)", "as far as their clocks tell"},
	} {
		g := &gpu.GPUs{Runs: c.runs}
		o := &Overview{From: c.runs[0].From, To: c.runs[0].To}
		o.GPUs = g
		said := ""
		for _, w := range runWarnings(g) {
			said += w.Text
		}
		if got := o.timeText(); got != c.time || !strings.Contains(said, c.warning) || c.warning == "" && said != "" {
			t.Errorf("%s; %s", got, said)
		}
	}
}

// Launched kernels that are missing in the files cause a warning, unless they may be
// among the kernels without a known call.
func TestLaunchedKernelsThatAreMissing(t *testing.T) {
	for _, c := range []struct {
		launches, lost, rows, called int64
		windowed                     bool
		want                         string // prefix of the warning; "" is none
	}{
		{0, 0, 0, 0, false, "the profiles have no device kernels or copies: 'sgtrace report --nvtx' says"},
		{260, 260, 0, 0, false, "the profiles have no device kernels or copies, though 260 calls launched kernels: "},
		{260, 260, 0, 0, true, "no device kernels or copies are between --from and --to"},
		{1000, 200, 800, 800, false, "200 of 1,000 calls launched kernels that are not in the files: "},
		{1000, 200, 800, 800, true, ""},
		{1000, 99, 901, 901, false, ""},
		{1000, 200, 850, 800, false, "150 of 1,000 calls launched kernels that are not in the files: "},
		{1000, 1000, 1000, 0, false, "the launch calls of all kernels and copies are missing from the files"},
	} {
		g := &gpu.GPUs{Unran: gpu.Unran{Launches: c.launches, Lost: c.lost}}
		if c.rows > 0 {
			g.GPUs = []gpu.GPU{{Rows: c.rows, Called: c.called}}
		}
		warnings := deviceWarnings(g, false, c.windowed)
		if (len(warnings) == 1) != (c.want != "") || c.want != "" && !strings.HasPrefix(warnings[0].Text, c.want) {
			t.Errorf("%+v: %+v", c, warnings)
		}
	}
}

// If one of several ranks lost many of its launches, it is named, even if these are few overall.
func TestKernelsThatOneRankLost(t *testing.T) {
	g := &gpu.GPUs{Unran: gpu.Unran{Launches: 1000, Lost: 60}, Cuts: []gpu.Cut{{Rank: "TP2", Unran: gpu.Unran{Launches: 100, Lost: 60}}}, GPUs: []gpu.GPU{{Rows: 940, Called: 940}}}
	warnings := deviceWarnings(g, false, false)
	if len(warnings) != 1 || !strings.HasPrefix(warnings[0].Text, "60 of 100 calls of TP2 launched kernels that are not in the files: ") {
		t.Errorf("%+v", warnings)
	}
}

// If kernels of no known class take much of the kernel time, the breakdown of GPU time is in doubt.
func TestUnclassifiedKernels(t *testing.T) {
	for _, c := range []struct {
		unknown, devices int64
		more, warned     bool
	}{{0, 2, true, false}, {249, 2, true, false}, {250, 2, false, true}, {1000, 2, false, true}, {1000, 1, false, false}, {1000, 1, true, true}} {
		g := &gpu.GPUs{GPUs: make([]gpu.GPU, c.devices),
			Kernels: []gpu.RankKernel{{Name: "mystery", Summary: distribution.Summary{Total: c.unknown}, Unknown: true}}}
		g.GPUs[0] = gpu.GPU{Rows: 1, Called: 1, KernelTime: 1000, UnknownTime: c.unknown}
		warnings := deviceWarnings(g, c.more, false)
		if got := len(warnings) == 1; got != c.warned || got && (!strings.Contains(warnings[0].Text, "kernel time is from kernels that match no rule") || !strings.Contains(warnings[0].Text, "`mystery`")) {
			t.Errorf("%+v: %+v", c, warnings)
		}
	}
}

// A rank that writes so many spans that tracing may slow it down causes a warning; a
// rank with fewer spans does not.
func TestCostOfTracing(t *testing.T) {
	for _, x := range []struct {
		steps int // of each of two ranks, per second
		want  string
	}{
		{1000, ""},
		{1500, "tracing itself may take 6.0 % of the time of TP0 and 5 % or more of 1 other rank (1,503 spans/s at about 40 us each): "},
	} {
		var d testset.Dump
		root := testset.Span{Trace: "00000000000000000000000000000001", Name: " Req 11111111", From: 0, To: 1_000_000,
			Attrs: testset.Attrs{"rid": "11111111", "module": "sglang::request"}}
		id := d.Add(root)
		for tp := range 2 {
			stages := []testset.Span{{Name: "decode_forward", From: 0, To: 1_000_000}}
			for i := range x.steps {
				stages = append(stages, testset.Span{Name: "decode_loop", Parent: "^", From: float64(i * 600), To: float64((i + 1) * 600), Attrs: testset.Attrs{"decode_ct": i}})
			}
			d.Thread(root, id, testset.PrefillHost, "Scheduler", tp, 88+tp, stages...)
		}
		got := ""
		for _, w := range costWarnings(d.Set(t)) {
			got += w.Text
		}
		if x.want == "" && got != "" || !strings.HasPrefix(got, x.want) {
			t.Errorf("%d steps: %q, want %q", x.steps, got, x.want)
		}
	}
}

// Times that are plausible in another unit than OTLP's cause a warning.
func TestUnitWarnings(t *testing.T) {
	for from, want := range map[trace.Time]string{
		1787000000e9: "", 1787000000e6: "microseconds", 1787000000e3: "milliseconds", 5e9: "", 0: "",
	} {
		o := Overview{From: from}
		warnings := o.unitWarnings()
		if (want == "") != (len(warnings) == 0) || want != "" && !strings.Contains(warnings[0].Text, want) {
			t.Errorf("from %d: %v, want %s", from, warnings, want)
		}
	}
}

// Among processes that used no device, ranks are named; many others are only counted.
func TestIdleProcesses(t *testing.T) {
	for want, names := range map[string][]string{
		"python3 7":                       {"python3 7"},
		"2 processes: bash 1, sh 2":       {"bash 1", "sh 2"},
		"1,200 processes":                 make([]string, 1200),
		"rank 3":                          {"systemd 1", "bash 2", "rank 3", "other processes"},
		"4 ranks: rank 0, ... rank 3":     {"bash 2", "rank 0", "rank 1", "rank 2", "rank 3"},
		"2 ranks: decode TP0, decode TP1": {"decode TP0", "decode TP1", "systemd 1"},
	} {
		if got := idleText(names); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// No report can say what hosts did in a timeline that another program wrote, but operators alone are enough.
func TestForeignEvents(t *testing.T) {
	syms := trace.NewSymbols()
	event := profile.Event{Start: 1000, End: 2000, Name: syms.Intern("aten::mm")}
	for want, rows := range map[string]*testset.RowStream{
		"no event has a category":             {},
		"the profiles have no device kernels": {FrameRows: []profile.Frame{{Event: event}}},
	} {
		set := testset.SetOf(syms, []string{"TP0"}, rows)
		o := New(Input{Profiles: set})
		if len(o.Warnings) != 1 || !strings.HasPrefix(o.Warnings[0].Text, want) {
			t.Errorf("%+v, want %q", o.Warnings, want)
		}
	}
	set := testset.SetOf(syms, []string{"TP0"}, &testset.RowStream{})
	set.Exports = true // Nsight Systems knows which events are whose, if there are any
	if o := New(Input{Profiles: set}); len(o.Warnings) != 1 || !strings.HasPrefix(o.Warnings[0].Text, "the profiles have no device kernels") {
		t.Errorf("%+v", o.Warnings)
	}
}
