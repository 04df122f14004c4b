package chrometrace

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// Device work of producers without categories is recognized by the names of processes and rows.
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

// An Ascend collective is one event on the row of its group, which acts as a stream of its device.
// The waits and copies it consists of are on another stream, and do not count as work.
func TestCollectivesOfAscend(t *testing.T) {
	const base = 437 << 10 // CANN's pid: process, then layer, then device
	device := func(layer, number int) int { return base | layer<<5 | number }
	var lines []string
	add := func(format string, values ...any) { lines = append(lines, fmt.Sprintf(format, values...)) }
	slice := func(name string, pid, tid, ts, dur int) {
		add(`{"ph":"X","name":%q,"pid":%d,"tid":%d,"ts":"1704161511%06d.25","dur":%d}`, name, pid, tid, ts, dur)
	}
	add(`{"ph":"M","name":"process_name","pid":437,"tid":0,"args":{"name":"Python"}}`)
	for number := range 2 {
		for layer, process := range map[int]string{7: "CANN", 13: "Ascend Hardware", 15: "HCCL"} {
			add(`{"ph":"M","name":"process_name","pid":%d,"tid":0,"args":{"name":%q}}`, device(layer, number), process)
			labels := map[bool]string{false: "NPU", true: "CPU"}[layer == 7]
			add(`{"ph":"M","name":"process_labels","pid":%d,"tid":0,"args":{"labels":%q}}`, device(layer, number), labels)
		}
		add(`{"ph":"M","name":"thread_name","pid":%d,"tid":0,"args":{"name":"Group 0 Communication"}}`, device(15, number))
		add(`{"ph":"M","name":"thread_name","pid":%d,"tid":1,"args":{"name":"Plane 0"}}`, device(15, number))
		slice("MatMulV2", device(13, number), 0, 10, 20)
		for _, part := range []string{"Write Value", "Notify Wait", "SDMA"} {
			slice(part, device(13, number), 4, 30, 40)
		}
		slice("hcom_allReduce__586_0_1", device(15, number), 0, 30, 40)
		slice("Memcpy", device(15, number), 1, 30, 10)
		for at, task := range []string{`"Notify_Wait" 1 5 20`, `"Notify_Wait" 1 3 6`, `"Notify_Wait" 1 5 4`, `"Notify_Wait" 1 4294967295 9`, `"Reduce_Inline" 1 7 30`, `"Notify_Wait" 1 3 500`} {
			part := strings.Fields(task)
			add(`{"ph":"X","name":%s,"pid":%d,"tid":1,"ts":"1704161511%06d.25","dur":%s,"args":{"src rank":%s,"dst rank":%s}}`, part[0], device(15, number), 30+8*at, part[3], part[1], part[2])
		}
		slice("AscendCL@hcom_allReduce_", device(7, number), 5, 5, 10)
	}
	slice("main", 437, 5, 0, 100)
	syms := trace.NewSymbols()
	p, err := Read("npu.json", strings.NewReader("["+strings.Join(lines, ",")+"]"), Options{Syms: syms, Args: trace.NewArgs(), Diags: &trace.Diags{}})
	if err != nil {
		t.Fatal(err)
	}
	streams := map[string]bool{}
	for _, e := range p.Events {
		name, row := syms.Name(e.Name), p.Rows[e.Place.Row()]
		kernel := name == "MatMulV2" || name == "hcom_allReduce__586_0_1"
		if kernel != (e.Place.Kind() == profile.KernelSlice) || e.Place.Kind() == profile.CopySlice {
			t.Errorf("%s is of kind %v", name, e.Place.Kind())
		}
		if kernel {
			streams[fmt.Sprint(row.PID-int64(device(13, 0)), row.TID)] = true
		}
		if name == "AscendCL@hcom_allReduce_" && row.PID != 437 {
			t.Errorf("%s is of process %d", name, row.PID)
		}
	}
	if want := map[string]bool{"0 0": true, "0 5": true, "1 0": true, "1 5": true}; !maps.Equal(streams, want) {
		t.Errorf("devices and streams with work are %v, want %v", streams, want)
	}
	for i := range p.Collectives.Len() {
		if c := p.Collectives.At(i); syms.Name(c.Op) != "allreduce" || syms.Name(c.Group) != "HCCL 586" || c.Dur != 40_000 || !c.OnGPU ||
			c.Tasks != (profile.CollectiveTasks{Member: 2, Awaited: 6, AwaitedNs: 24_000, AtLeast: 8}) { // the last task is behind it
			t.Errorf("collective %+v", c)
		}
	}
	if n := p.Collectives.Len(); n != 2 {
		t.Errorf("%d collectives", n)
	}
	if name, pid, n := p.ProcessOf(""); name != "Python" || pid != 437 || n != 1 {
		t.Errorf("the process is %q %d of %d", name, pid, n)
	}
}
