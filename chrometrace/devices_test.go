package chrometrace

import (
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// What devices of producers without categories ran is told by the names of processes and rows.
func TestDevicesByName(t *testing.T) {
	const meta = `{"ph":"M","name":"process_name","pid":2,"args":{"name":"Ascend Hardware"}},{"ph":"M","name":"process_name","pid":3,"args":{"name":"/device:TPU:0"}},` +
		`{"ph":"M","name":"thread_name","pid":3,"tid":1,"args":{"name":"XLA Ops"}},{"ph":"M","name":"thread_name","pid":3,"tid":2,"args":{"name":"XLA Modules"}},`
	slice := func(name, pid, tid string) string {
		return `{"ph":"X","name":"` + name + `","ts":"1699529623000.5","dur":2,"pid":` + pid + `,"tid":` + tid + `}`
	}
	file := "[" + meta + strings.Join([]string{slice("MatMulV2", "2", "10"), slice("MEMCPY_ASYNC", "2", "10"), slice("EVENT_WAIT", "2", "10"),
		slice("fusion.1", "3", "1"), slice("jit_step", "3", "2"), slice("main", "1", "1"), slice("ProfilerStep#3", "1", "1")}, ",") + "]"
	syms := trace.NewSymbols()
	p, err := Read("npu.json", strings.NewReader(file), Options{Syms: syms, Args: trace.NewArgs(), Diags: &trace.Diags{}})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"MatMulV2": profile.KernelCategory, "MEMCPY_ASYNC": "gpu_memcpy", "EVENT_WAIT": "", "fusion.1": profile.KernelCategory,
		"jit_step": "", "main": "", "ProfilerStep#3": profile.AnnotationCategory}
	for i := range p.Events {
		if name := syms.Name(p.Events[i].Name); syms.Name(p.Events[i].Cat) != want[name] {
			t.Errorf("%s has category %q, want %q", name, syms.Name(p.Events[i].Cat), want[name])
		}
	}
	if len(p.Events) != len(want) {
		t.Errorf("%d events", len(p.Events))
	}
}
