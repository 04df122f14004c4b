package operators

import (
	"math"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/profilewalk"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/testkit/testinput"
	"github.com/sgtrace/sgtrace/testkit/testset"
	"github.com/sgtrace/sgtrace/trace"
)

// GPU times in a real trace match TraceLens (ops_summary.csv of its tests, in us),
// for the operators alone and including nested ones.
func TestGPUTimesOfTraceLens(t *testing.T) {
	path := testinput.Shared(t, "data", "torch", "real", "tracelens+tests__traces__h100__Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz")
	set, _ := testset.TorchSet(t, path)
	o := Sum(set, profilewalk.Options{})
	rows := map[string]Row{}
	all := 0.0
	for _, r := range o.Names {
		rows[r.Row.Name] = r
		if r.Calls > 0 {
			all += float64(r.SelfGPU) / 1e3
		}
	}
	for _, want := range []struct {
		name      string
		self, gpu float64
		calls     int64
	}{
		{"aten::mul", 6752.900, 6752.900, 220},
		{"aten::mm", 6668.682, 6668.682, 96},
		{"aten::copy_", 5101.935, 5101.935, 197},
		{"aten::_flash_attention_forward", 2722.704, 2722.704, 24},
		{"aten::add", 2607.515, 2607.515, 145},
	} {
		r := rows[want.name]
		if math.Abs(float64(r.SelfGPU)/1e3-want.self) > 0.01 || math.Abs(float64(r.GPU)/1e3-want.gpu) > 0.01 || r.Calls != want.calls {
			t.Errorf("%s: %+v, want %+v", want.name, r, want)
		}
	}
	if want := 31905.5; math.Abs(all-want) > 0.1 {
		t.Errorf("operators launched %.1f us, want %.1f", all, want)
	}
	if len(o.Shapes) == 0 || o.Shapes[0].Row.Name != "aten::mm" || o.Shapes[0].Shapes != "[[8944,1024],[1024,2816]]" || o.Shapes[0].Calls != 48 {
		t.Errorf("shapes: %+v", o.Shapes[0])
	}
}

// A window selects the operators and the work in it. Work in the window counts for
// its operator even if that ran before the window.
func TestOperatorsInWindow(t *testing.T) {
	syms := trace.NewSymbols()
	event := func(from, to trace.Time, correlation int64, name string) profile.Event {
		return profile.Event{Start: from, End: to, Correlation: correlation, Name: syms.Intern(name)}
	}
	s := &testset.RowStream{
		FrameRows:  []profile.Frame{{Event: event(0, 40, 0, "early")}, {Event: event(100, 140, 0, "late")}, {Event: event(110, 130, 0, "within")}},
		CallRows:   []profile.Call{{Event: event(10, 20, 1, "cudaLaunchKernel")}, {Event: event(112, 120, 2, "cudaLaunchKernel")}},
		KernelRows: []profile.Kernel{{Event: event(50, 60, 1, "k")}, {Event: event(150, 157, 1, "k")}, {Event: event(160, 165, 2, "k")}},
	}
	o := Sum(testset.SetOf(syms, []string{"TP0"}, s), profilewalk.Options{From: 135, To: 170})
	want := map[string]tally{"early": {selfGPU: 7, gpu: 7, work: 1}, "late": {calls: 1, selfCPU: 20, cpu: 40, gpu: 5}, "within": {selfGPU: 5, gpu: 5, work: 1}}
	compare(t, 0, "window", o.Names, want)
}

// What an operator costs is a share of the time of its rank, which is not always in operators.
func TestLargestOfRankTime(t *testing.T) {
	for gap, want := range map[trace.Time]float64{0: 0.72, 900_000: 0.072} {
		syms := trace.NewSymbols()
		frame := func(name string, from, to trace.Time) profile.Frame {
			return profile.Frame{Event: profile.Event{Start: from, End: to, Name: syms.Intern(name)}}
		}
		s := &testset.RowStream{FrameRows: []profile.Frame{frame("aten::mm", 0, 72_000), frame("aten::add", gap+72_000, gap+100_000)}}
		found, _ := Largest(testset.SetOf(syms, []string{"rank 0"}, s), profilewalk.Options{})
		if len(found) != 1 || math.Abs(found[0].Cost-want) > 1e-9 || !strings.Contains(found[0].Text, "1 operator takes 72 % of all operator time") ||
			strings.Contains(found[0].Evidence[0].Text, "100 us or 10 % of the time from the first operator to the last") != (gap > 0) {
			t.Errorf("%d: %+v", gap, found)
		}
	}
}

// For data that was not recorded, the report says what would have recorded it.
func TestMissingIsTold(t *testing.T) {
	syms := trace.NewSymbols()
	frame := profile.Frame{Event: profile.Event{Start: 1, End: 2, Name: syms.Intern("aten::mm")}}
	kernel := profile.Kernel{Event: profile.Event{Start: 1, End: 2, Name: syms.Intern("k")}}
	for _, c := range []struct {
		stream testset.RowStream
		table  int
		says   string
	}{
		{testset.RowStream{KernelRows: []profile.Kernel{kernel}}, 0, "ProfilerActivity.CPU"},
		{testset.RowStream{FrameRows: []profile.Frame{frame}}, 1, "record_shapes=True"},
		{testset.RowStream{FrameRows: []profile.Frame{frame}, KernelRows: []profile.Kernel{kernel}}, 0, "the rows in parentheses"},
	} {
		notes := Sum(testset.SetOf(syms, []string{"TP0"}, &c.stream), profilewalk.Options{}).Reports()[c.table].Footnotes
		if text := strings.Join(notes, "\n"); !strings.Contains(text, c.says) {
			t.Errorf("%q does not say %q", text, c.says)
		}
	}
}
