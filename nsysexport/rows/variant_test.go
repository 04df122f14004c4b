package rows

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/nsysexport/internal/nsystest"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// TIDs pack ids as nsys does.
func TestIDs(t *testing.T) {
	for _, c := range []struct {
		id       int64
		pid, tid int32
	}{
		{nsystest.TID(4100, 4101), 4100, 4101},
		{nsystest.TID(1<<24-1, 5), 1<<24 - 1, 5},
		{-144115188075855872, -1, -1}, // 0xFE00...: no process
		{-144115188075855872 | 7<<24 | 8, 7, 8},
		{noID, -1, -1},
		{0, -1, -1},
	} {
		if pid, tid := pidOf(c.id), tidOf(c.id); pid != c.pid || tid != c.tid {
			t.Errorf("%#x: %d and %d, want %d and %d", uint64(c.id), pid, tid, c.pid, c.tid)
		}
	}
}

// The oldest exports have no session start, no processes, and few columns; some derived ones have
// names instead of numbers.
func TestOldSchema(t *testing.T) {
	e, names, diags := read(t, nsystest.Database(t, fmt.Sprintf(`
		CREATE TABLE StringIds (id INTEGER, value TEXT);
		INSERT INTO StringIds VALUES (900, 'kernel(int)'), (4000000000, 'cuLaunchKernel');
		CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (shortName, extra BLOB, demangledName, end, start, "odd ""name""");
		INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES ('short', x'00', 900, 30, 10, 1), ('other', NULL, 'as text', '50', '40', 2);
		CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME_V3 (start, end, eventClass, globalTid, correlationId, nameId);
		INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME_V3 VALUES (1, 2, 1, %d, 7, 4000000000);
		CREATE TABLE CUPTI_ACTIVITY_KIND_MEMSET (start, end);
		INSERT INTO CUPTI_ACTIVITY_KIND_MEMSET VALUES (5, 6);
		CREATE TABLE OSRT_API (start, end);
		INSERT INTO OSRT_API VALUES (5, 6);
		CREATE VIEW CUPTI_ACTIVITY_KIND_MEMCPY AS SELECT 1 AS start, 2 AS end;
		CREATE TABLE _other_tool (x);
		INSERT INTO _other_tool VALUES (1), (2);`, nsystest.TID(5, 6))))
	if len(e.Kernels) != 2 || len(e.API) != 1 || len(e.Memsets) != 1 || len(e.Memcpys) != 0 || len(e.OS) != 0 {
		t.Fatalf("%d kernels, %d calls, %d memsets", len(e.Kernels), len(e.API), len(e.Memsets))
	}
	k, other, c := e.Kernels[0], e.Kernels[1], e.API[0]
	if k.Start != 10 || k.End != 30 || k.PID != -1 || k.Device != -1 || names.Name(k.Name) != "kernel(int)" || k.Launch != 0 {
		t.Errorf("kernel %+v %s", k, names.Name(k.Name))
	}
	if other.Start != 40 || other.End != 50 || names.Name(other.Name) != "as text" {
		t.Errorf("kernel %+v", other)
	}
	if c.PID != 5 || c.TID != 6 || c.Class != ClassDriver || c.Correlation != 7 || names.Name(c.Name) != "cuLaunchKernel" {
		t.Errorf("call %+v", c)
	}
	if m := e.Memsets[0]; m.Kind != profile.UnknownMemory {
		t.Errorf("memset %+v", m)
	}
	if e.Meta.Absolute || e.Meta.Duration != -1 || e.Meta.Product != "" {
		t.Errorf("meta %+v", e.Meta)
	}
	if want := []Table{{"OSRT_API", 1}, {"_other_tool", 2}}; !slices.Equal(e.Unread, want) {
		t.Errorf("unread %v", e.Unread)
	}
	codes := ""
	for _, d := range diags {
		codes += d.Code + " "
	}
	if codes != "nsys-no-session-start nsys-no-device nsys-no-device nsys-column-missing " {
		t.Errorf("diagnostics %v", diags)
	}
}

// Tables without devices have those of their contexts, in the list of contexts or in other tables. Waits are on device 0 in exports,
// whatever their context is.
func TestDevicesOfContexts(t *testing.T) {
	for _, c := range []struct {
		list, copies string // rows of the list of contexts, and of the copies
		want         []int32
		code         string
	}{
		{"(40, 1, 2), (50, 1, 3)", "(5, 6, 0, 1, 60)", []int32{2, 3}, "nsys-context-device"},
		{"(70, 1, 2)", "(5, 6, 2, 1, 40), (5, 6, 2, 1, 40), (5, 6, 3, 1, 50)", []int32{2, 3}, "nsys-context-device"},
		{"(40, 1, 2)", "(5, 6, 3, 9, 50)", []int32{2, 3}, "nsys-no-device"},
		{"(40, 1, 2), (50, 2, 3), (50, 3, 4)", "(5, 6, 0, 1, 60)", []int32{2, -1}, "nsys-no-device"},
		{"(40, 1, 2), (40, 1, 3)", "(5, 6, 3, 1, 50)", []int32{-1, 3}, "nsys-no-device"},
	} {
		sql := "CREATE TABLE TARGET_INFO_CUDA_CONTEXT_INFO (processId, contextId, deviceId); INSERT INTO TARGET_INFO_CUDA_CONTEXT_INFO VALUES " + c.list +
			"; CREATE TABLE copies (start, end, deviceId, contextId, pid); INSERT INTO copies VALUES " + c.copies + `;
			CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start, end, deviceId, contextId, globalPid);
			INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY SELECT start, end, deviceId, contextId, 281474976710656+pid*16777216 FROM copies;
			CREATE TABLE CUPTI_ACTIVITY_KIND_SYNCHRONIZATION (start, end, deviceId, contextId, globalPid);
			INSERT INTO CUPTI_ACTIVITY_KIND_SYNCHRONIZATION SELECT 1, 2, 0, 1, globalPid FROM CUPTI_ACTIVITY_KIND_MEMCPY;
			CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start, end, contextId, globalPid);` +
			fmt.Sprintf("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (10, 30, 1, %d), (10, 30, 1, %d);", nsystest.TID(40, 0), nsystest.TID(50, 0))
		e, _, diags := read(t, nsystest.Database(t, sql))
		var got []int32
		for _, k := range e.Kernels {
			got = append(got, k.Device)
		}
		if !slices.Equal(got, c.want) || !slices.ContainsFunc(diags, func(d trace.Diag) bool { return d.Code == c.code }) {
			t.Errorf("%+v: %v %v", c, got, diags)
		}
	}
}

// Times are absolute, without the export's offset, and each process has its host and device.
func TestMeta(t *testing.T) {
	e, names, diags := read(t, nsystest.Database(t, nsystest.Schema2024+fmt.Sprintf(`
		INSERT INTO StringIds VALUES (1, 'k<T>()'), (2, 'k'), (3, 'sglang::scheduler_TP0');
		INSERT INTO META_DATA_EXPORT VALUES ('EXPORT_PRODUCT_VERSION', '2024.5.1'), ('EXPORT_SCHEMA_VERSION', '3.13.2'),
			('EXPORT_CONFIG_TIME_SHIFT', '-250'), ('EXPORT_PARAM_TABLES_TO_EXPORT', 'NVTX');
		INSERT INTO META_DATA_CAPTURE VALUES ('CUDA_GRAPH_TRACE_OPTIONS:MODE', 'Node');
		INSERT INTO TARGET_INFO_SYSTEM_ENV VALUES (0, '', 'Hostname', 619, 'node7'), (0, '', 'NvDriverVersion', 205, '550.54.14');
		INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES (1700000000000000000, '', '');
		INSERT INTO ANALYSIS_DETAILS VALUES (0, 5000, 0, 5000);
		INSERT INTO PROCESSES VALUES (%[1]d, 40, 'nsys-launcher'), (%[2]d, 30, 'b'), (%[1]d, 40, 'python3');
		INSERT INTO ThreadNames VALUES (3, NULL, %[3]d);
		CREATE TABLE TARGET_INFO_GPU (vmId, id, name, busLocation, uuid);
		INSERT INTO TARGET_INFO_GPU VALUES (0, 6, 'H100', '0000:18:00.0', 'u6');
		CREATE TABLE TARGET_INFO_CUDA_DEVICE (gpuId, cudaId, pid, uuid);
		INSERT INTO TARGET_INFO_CUDA_DEVICE VALUES (6, 0, 40, 'u6');
		CREATE TABLE TARGET_INFO_CUDA_STREAM (streamId, processId, contextId, priority);
		INSERT INTO TARGET_INFO_CUDA_STREAM VALUES (7, 40, 1, 0), (13, 40, 1, -5);
		CREATE TABLE TARGET_INFO_CUDA_NULL_STREAM (streamId, processId, contextId);
		INSERT INTO TARGET_INFO_CUDA_NULL_STREAM VALUES (7, 40, 1);
		CREATE TABLE MPI_RANKS (globalPid, rank);
		INSERT INTO MPI_RANKS VALUES (%[1]d, 3);
		INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (1000, 1500, 0, 1, NULL, 13, 77, %[1]d, 1, 2, NULL, 1, 0, 40, 8, 4, 2, 128, 2,
			1, 256, 512, 16, 0, 1, 1024, 99, 0);
		CREATE TABLE DIAGNOSTIC_EVENT (timestamp, timestampType, source, severity, text, globalPid);
		INSERT INTO DIAGNOSTIC_EVENT VALUES (0, 1, 1, 1, 'Loaded /home/me/lib', NULL), (9, 1, 1, 2, 'events lost', %[1]d);`,
		nsystest.TID(40, 0), nsystest.TID(30, 0), nsystest.TID(40, 41))))
	want := Meta{
		Product: "2024.5.1", Schema: "3.13.2", Host: "node7", Absolute: true, SessionStart: 1700000000000000000, Shift: -250,
		Duration: 5000, GraphMode: "Node", Driver: "550.54.14", PartialTables: "NVTX",
		GPUs: []GPU{{6, "H100", "u6"}}, Devices: []Device{{40, 0, 6}},
	}
	if got := fmt.Sprintf("%+v", e.Meta); got != fmt.Sprintf("%+v", want) {
		t.Errorf("meta %s\nwant %+v", got, want)
	}
	if !slices.Equal(e.Processes, []Process{{30, "b"}, {40, "python3"}}) ||
		!slices.Equal(e.Threads, []Thread{{40, 41, "sglang::scheduler_TP0"}}) ||
		!maps.Equal(e.StreamUsers, map[int32]bool{40: true}) ||
		!slices.Equal(e.Ranks, []Rank{{40, 3}}) {
		t.Errorf("processes %v, threads %v, streams %v, ranks %v", e.Processes, e.Threads, e.StreamUsers, e.Ranks)
	}
	k := e.Kernels[0]
	if k.Start != 1700000000000001250 || k.End != k.Start+500 || k.Place != (Place{40, 0, 1, 13, 77}) || k.Node != 99 {
		t.Errorf("kernel %+v", k)
	}
	wantLaunch := Launch{Grid: [3]uint32{8, 4, 2}, Block: [3]uint32{128, 2, 1}, Registers: 40, StaticShared: 256,
		DynamicShared: 512}
	if e.Launches[k.Launch] != wantLaunch {
		t.Errorf("launch %+v", e.Launches[k.Launch])
	}
	if len(e.Messages) != 1 || e.Messages[0] != (Message{1700000000000000259, 40, 2, "events lost"}) {
		t.Errorf("messages %+v", e.Messages)
	}
	if len(diags) != 1 || diags[0].Code != "nsys-partial-export" || names.Name(k.Name) == "" {
		t.Errorf("diagnostics %v", diags)
	}
}

// Environment variables, command lines, and file contents are not read.
func TestSecretsAreNotRead(t *testing.T) {
	e, names, diags := read(t, nsystest.Database(t, nsystest.Schema2024+`
		INSERT INTO StringIds VALUES (0, 'k'), (1, 'SECRET=1'), (2, '/home/SECRET');
		INSERT INTO META_DATA_CAPTURE VALUES ('PROCESS_0:ENVIRONMENT_VARIABLE_0', 'SECRET'), ('PROCESS_0:COMMAND', 'SECRET'),
			('SECRET', 'x');
		INSERT INTO META_DATA_EXPORT VALUES ('EXPORT_USER', 'SECRET'), ('EXPORT_PARAM_INPUT_PATH_ABS', 'SECRET');
		INSERT INTO TARGET_INFO_SYSTEM_ENV VALUES (0, '', 'DeviceEnvironment', 610, 'TOKEN=SECRET');
		CREATE TABLE ProcessStreams (globalPid INTEGER, filenameId INTEGER, contentId INTEGER);
		INSERT INTO ProcessStreams VALUES (1, 2, 1);
		CREATE TABLE ANALYSIS_FILE (id INTEGER, filename TEXT, content TEXT);
		INSERT INTO ANALYSIS_FILE VALUES (1, 'SECRET', 'SECRET');
		CREATE TABLE OSRT_FILE_ACCESS_DESCRIPTORS (fileAccessId INTEGER, filePath TEXT);
		INSERT INTO OSRT_FILE_ACCESS_DESCRIPTORS VALUES (1, 'SECRET');
		INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (1, 2, 0, 1, 1, 0, 0, NULL);`))
	for _, text := range append(names.Names(), fmt.Sprintf("%+v %v", e, diags)) {
		if strings.Contains(text, "SECRET") {
			t.Errorf("%.300s", text)
		}
	}
	if len(e.API) != 1 || len(e.Unread) != 3 {
		t.Errorf("%d calls, unread %v", len(e.API), e.Unread)
	}
}

// A graph launch may have no times, and a wait may have no stream.
func TestGraphsAndSyncs(t *testing.T) {
	e, _, _ := read(t, nsystest.Database(t, nsystest.Schema2024+`
		CREATE TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE (start, end, deviceId, contextId, streamId, correlationId, globalPid, graphId, graphExecId);
		INSERT INTO CUPTI_ACTIVITY_KIND_GRAPH_TRACE VALUES (0, 0, 0, 1, 7, 5, 0, 3, 4), (10, 20, 0, 1, 7, 6, 0, 3, 4);
		CREATE TABLE CUPTI_ACTIVITY_KIND_SYNCHRONIZATION (start, end, deviceId, contextId, streamId, correlationId, globalPid, syncType, eventId);
		INSERT INTO CUPTI_ACTIVITY_KIND_SYNCHRONIZATION VALUES (1, 2, 0, 1, 4294967295, 8, 0, 4, 0), (3, 4, 0, 1, 7, 9, 0, 3, 0);
		CREATE TABLE CUDA_GRAPH_EVENTS (start, end, graphId);
		INSERT INTO CUDA_GRAPH_EVENTS VALUES (1, 2, 3);
		CREATE TABLE CUDA_GPU_MEMORY_USAGE_EVENTS (start, globalPid, deviceId, bytes, memoryOperationType);
		INSERT INTO CUDA_GPU_MEMORY_USAGE_EVENTS VALUES (1, 0, 0, 512, 0), (2, 0, 0, 512, 1);
`))
	if g := e.GraphRuns; len(g) != 2 || g[0].Timed || !g[1].Timed || g[1].End-g[1].Start != 10 || g[1].Graph != 3 || g[1].Exec != 4 {
		t.Errorf("graphs %+v", g)
	}
	if w := e.Syncs; len(w) != 2 || w[0].HasStream || w[0].Kind != 4 || !w[1].HasStream || w[1].Stream != 7 {
		t.Errorf("waits %+v", w)
	}
	if m := e.MemoryEvents; len(m) != 2 || m[0].Bytes != 512 || m[1].Bytes != -512 {
		t.Errorf("memory %+v", m)
	}
	if len(e.GraphNodes) != 0 || !slices.Equal(e.Unread, []Table{{"CUDA_GRAPH_EVENTS", 1}}) {
		t.Errorf("nodes %v, unread %v", e.GraphNodes, e.Unread)
	}
}

// Network devices are named in one of two tables, or not at all; older and newer versions have the
// id of a card, and ports.
func TestNetworkCounters(t *testing.T) {
	tables := nsystest.Schema2024 + nsystest.Tables("NET_IB_SWITCH_METRIC", "TARGET_INFO_NETWORK_METRICS") +
		"INSERT INTO TARGET_INFO_NETWORK_METRICS VALUES (1, 0, 'Bytes sent', '', 'bytes'), (2, 0, 'Congestion', '', '');"
	card, counters := nsystest.Tables("NIC_ID_MAP", "TARGET_INFO_NIC_INFO"), nsystest.Tables("NET_NIC_METRIC")
	for _, c := range []struct{ name, sql, want string }{
		{"names", card + counters + `INSERT INTO TARGET_INFO_NIC_INFO VALUES (9, '', 3, 'mlx5_0', 1, 1, 1); INSERT INTO NIC_ID_MAP VALUES (3, 17);
			INSERT INTO NET_NIC_METRIC VALUES (1, 2, 17, 1, 0, 7), (2, 3, 17, 2, 0, 8), (3, 4, 17, 1, 0, 9);`,
			"mlx5_0: Bytes sent [bytes]; mlx5_0: Congestion; 2=7 of 0; 3=8 of 1; 4=9 of 0"},
		{"no names", counters + "INSERT INTO NET_NIC_METRIC VALUES (1, 2, 17, 5, 6, 7);", "NIC 0x11: metric 6 of list 5; 2=7 of 0"},
		{"old card", "CREATE TABLE TARGET_INFO_NIC_INFO (globalId INTEGER, name TEXT); INSERT INTO TARGET_INFO_NIC_INFO VALUES (17, 'mlx5_1');" +
			counters + "INSERT INTO NET_NIC_METRIC VALUES (1, 2, 17, 1, 0, 7);", "mlx5_1: Bytes sent [bytes]; 2=7 of 0"},
		{"ports", `CREATE TABLE NET_NIC_METRIC (start, end, globalId, portId, metricsListId, metricsIdx, value);
			INSERT INTO NET_NIC_METRIC VALUES (1, 2, 17, 1, 1, 0, 7), (1, 2, 17, 2, 1, 0, 8);`,
			"NIC 0x11 port 1: Bytes sent [bytes]; NIC 0x11 port 2: Bytes sent [bytes]; 2=7 of 0; 2=8 of 1"},
		{"switch", "INSERT INTO NET_IB_SWITCH_METRIC VALUES (1, 2, 17, 1, 0, 7);", "InfiniBand switch 0x11: Bytes sent [bytes]; 2=7 of 0"},
		{"empty", "CREATE TABLE NET_NIC_METRIC (start, end, globalId, nameId, value);", ""},
		{"unknown", "CREATE TABLE NET_NIC_METRIC (start, end, globalId, nameId, value); INSERT INTO NET_NIC_METRIC VALUES (1, 2, 3, 4, 5);", "nsys-column-missing"},
	} {
		e, _, diags := read(t, nsystest.Database(t, tables+c.sql))
		var have []string
		for _, m := range e.Metrics {
			have = append(have, m.Source+": "+m.Name)
		}
		for _, x := range e.Samples {
			have = append(have, fmt.Sprintf("%d=%v of %d", x.Time, x.Value, x.Metric))
		}
		for _, d := range diags {
			if d.Code != "nsys-no-session-start" {
				have = append(have, d.Code)
			}
		}
		if text := strings.Join(have, "; "); text != c.want {
			t.Errorf("%s: %s\nwant %s", c.name, text, c.want)
		}
	}
}

// Sources are read in parts and repeatedly, without data that reports do not need.
func TestBrief(t *testing.T) {
	s, err := Open(nsystest.Database(t, large(100)), Options{Brief: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for k := range s.Within(0, 0).Kernels {
		if k.Name == 0 || k.Launch != 0 {
			t.Fatalf("kernel %+v", k)
		}
	}
	if n := len(s.Launches()); n != 1 {
		t.Errorf("%d launches", n)
	}
	for range 2 {
		n := 0
		for range s.Within(0, 0).Kernels {
			if n++; n == 10 {
				break
			}
		}
		for range s.Within(0, 0).API {
			n++
		}
		if n != 110 {
			t.Errorf("%d rows, want 110", n)
		}
	}
}
