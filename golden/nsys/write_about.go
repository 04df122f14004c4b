package nsys

import (
	"fmt"
	"strconv"
	"time"

	"github.com/sgtrace/sgtrace/golden/torch"
)

// upTime is how long a machine has been running when its recording begins.
const upTime = int64(76 * time.Hour)

// about writes an export's description of itself and its session.
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
		t.Set("timestamp", w.time(w.from+int64(i)*ms), "timestampType", 1, "source", 3, "severity", int64(m.Severity), "text", m.Text)
		t.Set("globalPid", -1<<57) // not a process
		t.Insert()
	}
}

// pair adds a row to a table of names and values.
func (w *writer) pair(table, name, value string) {
	w.db.Insert(table, "name", name, "value", value)
}

// session writes the start of the session.
func (w *writer) session() {
	// Until 2026 the analysis had a start of its own.
	start := 35 * ms
	if w.db.Schema >= Schema2026 {
		start = w.systemClock()
	}
	start += int64(w.host.config.Shift)
	t := w.db.Table("ANALYSIS_DETAILS")
	t.Insert("globalVid", GlobalVID(), "duration", w.to-w.from, "startTime", start, "stopTime", start+w.to-w.from)
	if !w.clocked() {
		return
	}
	t = w.db.Table("TARGET_INFO_SESSION_START_TIME")
	text := time.Unix(0, w.from).UTC().Format("2006-01-02T15:04:05")
	t.Insert("utcEpochNs", w.from, "utcTime", text, "localTime", text, "systemClockNs", w.systemClock())
}

// systemClock returns the reading at the start of a clock that began with the machine.
func (w *writer) systemClock() int64 { return w.from - w.host.from + upTime }

// private writes the environments, commands, and outputs that exports contain.
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
		env.Insert("globalVid", GlobalVID(), "devStateName", "Local (CLI)", "name", x.name, "nameEnum", x.number, "value", x.value)
	}
	w.pair("META_DATA_CAPTURE", "PROCESS_0:COMMAND", "python3 -m sglang.launch_server")
	w.pair("META_DATA_CAPTURE", "PROCESS_0:ARGUMENT", "--api-key="+secret)
	w.pair("META_DATA_CAPTURE", "PROCESS_0:ENVIRONMENT_VARIABLE", `HF_TOKEN="`+secret+`"`)
	streams, files := w.db.Table("ProcessStreams"), w.db.Table("ANALYSIS_FILE")
	for i, p := range w.host.processes {
		name := fmt.Sprintf("/tmp/nvidia/nsight_systems/streams/pid_%d_stdout.log", p.pid)
		output := fmt.Sprintf("server_args=ServerArgs(api_key='%s', rank='%s')\n", secret, p.capture.Process().Rank)
		streams.Insert("globalPid", GlobalPID(p.pid), "filenameId", ID(name), "contentId", ID(output))
		files.Insert("id", int64(i), "filename", name, "contentId", ID(output), "globalPid", GlobalPID(p.pid))
	}
}

// gpuLabel numbers a thing of a GPU.
func gpuLabel(what string, gpu int) string { return fmt.Sprintf("%s [%d]", what, gpu) }

// target writes the profiled GPUs, processes, threads, and streams.
func (w *writer) target() {
	for _, p := range w.host.processes {
		w.gpu(p)
		w.process(p)
		w.streams(p)
	}
	for _, l := range gpuLabels {
		t := w.db.Table(l.table)
		for i, label := range l.labels {
			t.Insert("id", int64(i), "name", fmt.Sprintf("%s_%d", l.table, i), "label", label)
		}
	}
}

// gpuLabels explain numbers in other tables.
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
	t.Insert("vmId", GlobalVID(), "id", int64(id), "name", "NVIDIA H100 80GB HBM3",
		"busLocation", fmt.Sprintf("0000:%02X:00.0", 0x18+0x11*id), "isDiscrete", 1, "totalMemory", 85_520_809_984,
		"smCount", 132, "uuid", uuid, "chipName", "GH100", "computeMajor", 9, "computeMinor", 0)
	t = w.db.Table("TARGET_INFO_CUDA_DEVICE")
	t.Insert("gpuId", int64(id), "cudaId", int64(p.device()), "pid", int64(p.pid), "uuid", uuid, "numMultiprocessors", 132)
}

// process writes the names of a process and its threads. A process that the profiler launched is also listed under the
// launcher's name.
func (w *writer) process(p *process) {
	t := w.db.Table("PROCESSES")
	for _, name := range []string{"nsys-launcher", p.capture.Title()} {
		t.Insert("globalPid", GlobalPID(p.pid), "pid", int64(p.pid), "name", w.host.named(name))
	}
	t = w.db.Table("ThreadNames")
	for _, x := range []struct {
		tid  int
		name string
	}{{0, p.capture.Title()}, {ioThread, "ZMQbg/IO/0"}, {watchdogThread, "pt_nccl_watchdg"}} {
		t.Insert("nameId", ID(w.host.named(x.name)), "priority", 20, "globalTid", GlobalTID(p.pid, p.pid+x.tid))
	}
}

// streams writes the streams of a process, the first of which is the default one.
func (w *writer) streams(p *process) {
	for _, name := range []string{"TARGET_INFO_CUDA_NULL_STREAM", "TARGET_INFO_CUDA_CONTEXT_INFO"} { // by generation
		w.db.Insert(name, "streamId", torch.ComputeStream, "nullStreamId", torch.ComputeStream, "vmId", 1, "processId", int64(p.pid),
			"deviceId", int64(p.device()), "contextId", cudaContext)
	}
	t := w.db.Table("TARGET_INFO_CUDA_STREAM")
	for _, stream := range []int64{torch.CommStream, torch.CopyStream} {
		t.Insert("streamId", stream, "vmId", 1, "processId", int64(p.pid), "contextId", cudaContext,
			"priority", bit(stream == torch.CommStream)*-5, "flag", 2)
	}
}
