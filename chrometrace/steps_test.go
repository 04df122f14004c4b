package chrometrace

import (
	"fmt"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// Steps are annotations, though they had no category of their own before 2022; parts of
// steps count where no server annotated the whole ones.
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
