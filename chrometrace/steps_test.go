package chrometrace

import (
	"fmt"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// Steps are annotations, though they had no separate category before 2022. Parts of steps count
// only if the server annotated no whole steps.
func TestStepsOfProducers(t *testing.T) {
	event := func(cat, name string, ts int) string {
		return fmt.Sprintf(`{"ph": "X", "cat": %q, "name": %q, "pid": 1, "tid": 1, "ts": %d, "dur": 50}`, cat, name, ts)
	}
	for _, c := range []struct {
		name   string
		events []string
		steps  string
	}{
		{"2021", []string{event("Operator", "ProfilerStep#3", 1000), event("Operator", "aten::mm", 1010), event("Operator", "ProfilerStep#4", 1100)}, "ProfilerStep#3 ProfilerStep#4"},
		{"vLLM, whole and part", []string{event("user_annotation", "execute_new_0_cached_4", 1000), event("user_annotation", "gpu_model_runner: forward", 1010)}, "execute_new_0_cached_4"},
		{"vLLM, part alone", []string{event("user_annotation", "gpu_model_runner: preprocess", 1000), event("user_annotation", "gpu_model_runner: forward", 1010)}, "gpu_model_runner: forward"},
		{"a part in a profiler's step", []string{event("user_annotation", "ProfilerStep#1", 1000), event("user_annotation", "gpu_model_runner: forward", 1010)}, "ProfilerStep#1 gpu_model_runner: forward"},
	} {
		syms := trace.NewSymbols()
		p, err := Read("steps.json", strings.NewReader("["+strings.Join(c.events, ",")+"]"), Options{Syms: syms, Args: trace.NewArgs(), Diags: &trace.Diags{}})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, s := range p.Steps {
			got = append(got, syms.Name(s.Name))
			if cat := syms.Name(p.Events[s.Event].Cat); cat != profile.AnnotationCategory {
				t.Errorf("%s: a step is of the category %s", c.name, cat)
			}
		}
		if strings.Join(got, " ") != c.steps {
			t.Errorf("%s: steps are %v", c.name, got)
		}
	}
}

// A recording ends where libkineto says, unless something began, or ran on a device, later. Ranges
// that threads were in extend past that end in the file, and are open for reports.
func TestEndOfRecording(t *testing.T) {
	const window = `,{"ph": "i", "s": "g", "name": "Record Window End", "pid": "", "tid": "", "ts": 1100}`
	event := func(cat, name string, ts, dur int) string {
		return fmt.Sprintf(`,{"ph": "X", "cat": %q, "name": %q, "pid": 1, "tid": 1, "ts": %d, "dur": %d}`, cat, name, ts, dur)
	}
	for _, c := range []struct {
		name   string
		events string
		until  trace.Time // us; 0 if not recorded, or equal to the end of the last event
		open   bool
	}{
		{"a step that goes on", event("kernel", "gemm", 1010, 5) + window, 1100, true},
		{"a kernel that ends later", event("kernel", "gemm", 1010, 200) + window, 1210, true},
		{"an operator that begins later", event("cpu_op", "aten::mm", 1300, 200) + window, 1300, true},
		{"nobody says so", event("kernel", "gemm", 1010, 5), 0, false},
		{"a kernel that ends last", event("kernel", "gemm", 1010, 9000) + window, 0, false},
		{"a file that is cut off", event("kernel", "gemm", 1010, 5) + event("cpu_op", "aten::mm", 1300, 200) + `,{"ph": "X", "na`, 1015, true},
		{"a file that is cut off before all kernels", event("cpu_op", "aten::mm", 1300, 200) + `,{"ph": "X", "na`, 0, false},
	} {
		syms := trace.NewSymbols()
		text := "[" + event("user_annotation", "ProfilerStep#1", 1000, 5000)[1:] + c.events + "]"
		p, err := Read("window.json", strings.NewReader(text), Options{Syms: syms, Args: trace.NewArgs(), Diags: &trace.Diags{}})
		if err != nil {
			t.Fatal(err)
		}
		if p.Meta.Until != c.until*1000 {
			t.Errorf("%s: recorded until %d", c.name, p.Meta.Until)
		}
		stream := p.Stream(syms, trace.NewArgs(), func(string) (int32, int32) { return 0, 1 })
		stream.Frames(func(f *profile.Frame) bool {
			if p.Meta.Until != 0 && f.Start > p.Meta.Until {
				t.Errorf("%s: an operator begins at %d, after the end of the recording", c.name, f.Start)
			}
			return true
		})
		stream.Ranges(func(r *profile.Range) bool {
			if end := p.Meta.Cut(6_000_000); r.End != end || r.Open != c.open {
				t.Errorf("%s: the step ends at %d, open %v", c.name, r.End, r.Open)
			}
			return true
		})
	}
}
