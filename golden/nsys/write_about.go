package nsys

import (
	"fmt"
	"strconv"
	"time"

	"github.com/sgtrace/sgtrace/golden/torch"
)

// upTime is how long a machine has been running when its recording begins.
const upTime = int64(76 * time.Hour)

// about writes what an export says about itself and its session.
func (w *writer) about() {
	c := w.host.config
	schema, product := c.Schema.Version()
	for _, name := range []string{"EXPORT_META_DATA", "META_DATA_EXPORT"} { // by generation
		w.pair(name, "EXPORT_PRODUCT_NAME", "NVIDIA Nsight Systems")
		w.pair(name, "EXPORT_PRODUCT_VERSION", product)
		w.pair(name, "EXPORT_SCHEMA_VERSION", schema)
		w.pair(name, "EXPORT_LAZY", "true")
	}
	w.pair("META_DATA_EXPORT", "EXPORT_PARAM_TIME_NORMALIZE", "false")
	w.pair("META_DATA_EXPORT", "EXPORT_PARAM_TIME_SHIFT", strconv.FormatInt(int64(c.Shift), 10))
	w.pair("META_DATA_EXPORT", "EXPORT_CONFIG_TIME_SHIFT", strconv.FormatInt(int64(c.Shift), 10))
	w.pair("META_DATA_EXPORT", "EXPORT_PARAM_INCLUDE_BLOBS", strconv.FormatBool(c.Payloads))
	w.pair("META_DATA_CAPTURE", "CAPTURE_EVENT_TYPE", "Cuda")
	w.pair("META_DATA_CAPTURE", "CAPTURE_EVENT_TYPE", "NvtxEvents")
	mode := "Node"
	if c.GraphTrace == GraphsWhole {
		mode = "Graph"
	}
	w.pair("META_DATA_CAPTURE", "CUDA_GRAPH_TRACE_OPTIONS:MODE", mode)
	w.session()
	w.private()
	t := w.db.Table("DIAGNOSTIC_EVENT")
	for i, m := range c.Messages {
		t.Int("timestamp", w.time(w.from+int64(i)*ms))
		t.Int("timestampType", 1)
		t.Int("source", 3)
		t.Int("severity", int64(m.Severity))
		t.Text("text", m.Text)
		t.Int("globalPid", -1<<57) // no process
		t.Insert()
	}
}

// pair adds a row to a table of names and values.
func (w *writer) pair(table, name, value string) {
	t := w.db.Table(table)
	t.Text("name", name)
	t.Text("value", value)
	t.Insert()
}

// session writes when the session was.
func (w *writer) session() {
	// Until 2026 the analysis counted from a start of its own.
	start := 35 * ms
	if w.db.Schema >= Schema2026 {
		start = w.systemClock()
	}
	start += int64(w.host.config.Shift)
	t := w.db.Table("ANALYSIS_DETAILS")
	t.Int("globalVid", GlobalVID())
	t.Int("duration", w.to-w.from)
	t.Int("startTime", start)
	t.Int("stopTime", start+w.to-w.from)
	t.Insert()
	if !w.clocked() {
		return
	}
	t = w.db.Table("TARGET_INFO_SESSION_START_TIME")
	text := time.Unix(0, w.from).UTC().Format("2006-01-02T15:04:05")
	t.Int("utcEpochNs", w.from)
	t.Text("utcTime", text)
	t.Text("localTime", text)
	t.Int("systemClockNs", w.systemClock())
	t.Insert()
}

// systemClock returns what a clock that began with the machine shows at the start.
func (w *writer) systemClock() int64 { return w.from - w.host.from + upTime }

// private writes what exports hold of environments, commands and outputs.
func (w *writer) private() {
	secret := w.host.config.Secret
	env := w.db.Table("TARGET_INFO_SYSTEM_ENV")
	for _, x := range []struct {
		name   string
		number int64
		value  string
	}{
		{"CpuCores", 1, strconv.Itoa(len(w.host.processes) * coresPerRank)},
		{"DeviceEnvironment", 610, "HOME=/root;HF_TOKEN=" + secret + ";NCCL_DEBUG=WARN"},
		{"Hostname", 619, w.host.host().Name},
		{"NvDriverVersion", 620, w.host.config.Driver},
	} {
		if x.value == "" {
			continue
		}
		env.Int("globalVid", GlobalVID())
		env.Text("devStateName", "Local (CLI)")
		env.Text("name", x.name)
		env.Int("nameEnum", x.number)
		env.Text("value", x.value)
		env.Insert()
	}
	w.pair("META_DATA_CAPTURE", "PROCESS_0:COMMAND", "python3 -m sglang.launch_server")
	w.pair("META_DATA_CAPTURE", "PROCESS_0:ARGUMENT", "--api-key="+secret)
	w.pair("META_DATA_CAPTURE", "PROCESS_0:ENVIRONMENT_VARIABLE", `HF_TOKEN="`+secret+`"`)
	streams, files := w.db.Table("ProcessStreams"), w.db.Table("ANALYSIS_FILE")
	for i, p := range w.host.processes {
		name := fmt.Sprintf("/tmp/nvidia/nsight_systems/streams/pid_%d_stdout.log", p.pid)
		output := fmt.Sprintf("server_args=ServerArgs(api_key='%s', rank='%s')\n", secret, p.capture.Process().Rank)
		streams.Int("globalPid", GlobalPID(p.pid))
		streams.ID("filenameId", name)
		streams.ID("contentId", output)
		streams.Insert()
		files.Int("id", int64(i))
		files.Text("filename", name)
		files.ID("contentId", output)
		files.Int("globalPid", GlobalPID(p.pid))
		files.Insert()
	}
}

// gpuLabel numbers something of a GPU.
func gpuLabel(what string, gpu int) string { return fmt.Sprintf("%s [%d]", what, gpu) }

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
