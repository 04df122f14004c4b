package nsys

import (
	"fmt"

	"github.com/sgtrace/sgtrace/golden/torch"
)

// target writes what was profiled: GPUs, processes, threads and streams.
func (w *writer) target() {
	for _, p := range w.host.processes {
		w.gpu(p)
		w.process(p)
		w.streams(p)
	}
	for _, l := range gpuLabels {
		t := w.db.Table(l.table)
		for i, label := range l.labels {
			t.Int("id", int64(i))
			t.Text("name", fmt.Sprintf("%s_%d", l.table, i))
			t.Text("label", label)
			t.Insert()
		}
	}
}

// gpuLabels are what numbers in other tables stand for.
var gpuLabels = []struct {
	table  string
	labels []string
}{
	{"ENUM_CUDA_MEMCPY_OPER", []string{
		"Unknown", "Host-to-Device", "Device-to-Host", "Host-to-Array", "Array-to-Host", "Array-to-Array", "Array-to-Device",
		"Device-to-Array", "Device-to-Device", "Host-to-Host", "Peer-to-Peer",
	}},
	{"ENUM_CUDA_MEM_KIND", []string{"Pageable", "Pinned", "Device", "Array", "Managed", "Device Static", "Managed Static", "Unknown"}},
	{"ENUM_CUDA_DEV_MEM_EVENT_OPER", []string{"Allocation", "Deallocation"}},
	{"ENUM_CUPTI_SYNC_TYPE", []string{"Unknown", "Event sync", "Stream wait sync", "Stream sync", "Context sync"}},
}

// gpu writes the GPU of a process.
func (w *writer) gpu(p *process) {
	id := p.capture.Device()
	uuid := fmt.Sprintf("%08x-6060-4242-8a8a-%012x", w.host.at, id)
	t := w.db.Table("TARGET_INFO_GPU")
	t.Int("vmId", GlobalVID())
	t.Int("id", int64(id))
	t.Text("name", "NVIDIA H100 80GB HBM3")
	t.Text("busLocation", fmt.Sprintf("0000:%02X:00.0", 0x18+0x11*id))
	t.Int("isDiscrete", 1)
	t.Int("totalMemory", 85_520_809_984)
	t.Int("smCount", 132)
	t.Text("uuid", uuid)
	t.Text("chipName", "GH100")
	t.Int("computeMajor", 9)
	t.Int("computeMinor", 0)
	t.Insert()
	t = w.db.Table("TARGET_INFO_CUDA_DEVICE")
	t.Int("gpuId", int64(id))
	t.Int("cudaId", int64(p.device()))
	t.Int("pid", int64(p.pid))
	t.Text("uuid", uuid)
	t.Int("numMultiprocessors", 132)
	t.Insert()
}

// process writes the names of a process and its threads. A process that the
// profiler has launched is listed under its launcher's name, too.
func (w *writer) process(p *process) {
	t := w.db.Table("PROCESSES")
	for _, name := range []string{"nsys-launcher", p.capture.Title()} {
		t.Int("globalPid", GlobalPID(p.pid))
		t.Int("pid", int64(p.pid))
		t.Text("name", w.host.named(name))
		t.Insert()
	}
	t = w.db.Table("ThreadNames")
	for _, x := range []struct {
		tid  int
		name string
	}{{0, p.capture.Title()}, {ioThread, "ZMQbg/IO/0"}, {watchdogThread, "pt_nccl_watchdg"}} {
		t.ID("nameId", w.host.named(x.name))
		t.Int("priority", 20)
		t.Int("globalTid", GlobalTID(p.pid, p.pid+x.tid))
		t.Insert()
	}
}

// streams writes the streams of a process, the first of which is the default one.
func (w *writer) streams(p *process) {
	for _, name := range []string{"TARGET_INFO_CUDA_NULL_STREAM", "TARGET_INFO_CUDA_CONTEXT_INFO"} { // by generation
		t := w.db.Table(name)
		t.Int("streamId", torch.ComputeStream)
		t.Int("nullStreamId", torch.ComputeStream)
		t.Int("vmId", 1)
		t.Int("processId", int64(p.pid))
		t.Int("deviceId", int64(p.device()))
		t.Int("contextId", cudaContext)
		t.Insert()
	}
	t := w.db.Table("TARGET_INFO_CUDA_STREAM")
	for _, stream := range []int64{torch.CommStream, torch.CopyStream} {
		t.Int("streamId", stream)
		t.Int("vmId", 1)
		t.Int("processId", int64(p.pid))
		t.Int("contextId", cudaContext)
		t.Int("priority", bit(stream == torch.CommStream)*-5)
		t.Int("flag", 2)
		t.Insert()
	}
}
