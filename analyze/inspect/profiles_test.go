package inspect

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/convert"
	"github.com/sgtrace/sgtrace/convert/inputs"
	"github.com/sgtrace/sgtrace/format/inventory"
	"github.com/sgtrace/sgtrace/golden/nsys"
	"github.com/sgtrace/sgtrace/testkit/testset"
	"github.com/sgtrace/sgtrace/trace"
)

// secret is content of files that must never be shown.
const secret = "hf_SECRETSECRET"

// writeExport writes an export of two ranks and other processes.
func writeExport(t *testing.T, path string, schema nsys.Schema) {
	t.Helper()
	db, err := nsys.Create(path, schema)
	if err != nil {
		t.Fatal(err)
	}
	pair := func(table, name, value string) {
		db.Insert(table, "name", name, "value", value)
	}
	version, product := schema.Version()
	if schema >= nsys.Schema2024 {
		pair("META_DATA_EXPORT", "EXPORT_SCHEMA_VERSION", version)
		pair("META_DATA_EXPORT", "EXPORT_PRODUCT_VERSION", product)
		pair("META_DATA_EXPORT", "EXPORT_PARAM_TABLES_TO_EXPORT", "CUPTI_ACTIVITY_KIND_KERNEL,NVTX_EVENTS")
		pair("META_DATA_CAPTURE", "CUDA_GRAPH_TRACE_OPTIONS:MODE", "Node")
		pair("META_DATA_CAPTURE", "PROCESS_0:ENVIRONMENT_VARIABLE", `HF_TOKEN="`+secret+`"`)
		db.Insert("TARGET_INFO_SESSION_START_TIME", "utcEpochNs", int64(1787000000e9))
		message := db.Table("DIAGNOSTIC_EVENT")
		message.Insert("timestamp", 500, "severity", 2, "text", "CUDA device-side events were dropped")
		message.Insert("severity", 1, "text", "loaded "+secret)
	}
	pair("TARGET_INFO_SYSTEM_ENV", "Hostname", "node7")
	pair("TARGET_INFO_SYSTEM_ENV", "DeviceEnvironment", secret)
	const first = 1<<48 | 700<<24
	for i, name := range []string{"sglang::scheduler_TP0", "sglang::scheduler_TP1", "bash", "bash", "nsys"} {
		db.Insert("PROCESSES", "globalPid", first+int64(i)<<24, "name", name)
	}
	for i := range int64(2) {
		db.Insert("TARGET_INFO_GPU", "id", i, "name", "NVIDIA H100 80GB HBM3")
		db.Insert("TARGET_INFO_CUDA_DEVICE", "gpuId", i, "pid", 700+i)
	}
	kernel := db.Table("CUPTI_ACTIVITY_KIND_KERNEL")
	for i := range int64(5) {
		kernel.Insert("start", 1e9+i*1e6, "end", 1e9+i*1e6+500, "globalPid", first, "demangledName", nsys.ID("gemm"))
	}
	db.Insert("ProcessStreams", "contentId", nsys.ID(secret))
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

const chromeTrace = `{"schemaVersion": 1, "cuda_runtime_version": 12090, "with_stack": 1, "HF_TOKEN": "` + secret + `", "traceName": "/home/` + secret + `",
"deviceProperties": [{"id": 0, "name": "NVIDIA H100"}, {"id": 1, "name": "NVIDIA H100"}, {"id": 2, "name": "NVIDIA H100"}],
"distributedInfo": {"backend": "nccl", "rank": 3, "world_size": 8}, "host_name": "node9", "baseTimeNanoseconds": 1787000000000000000, "traceEvents": [
{"ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllReduce", "pid": 0, "tid": 7, "ts": 5.000, "dur": 1.000, "args": {"stream": 7, "token": "` + secret + `"}},
{"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 15.000, "dur": 1.000, "args": {"stream": 7}},
{"ph": "X", "cat": "user_annotation", "name": "step[DECODE bs=4]", "pid": 88, "tid": 88, "ts": 1.000, "dur": 30.000},
{"ph": "i", "name": "mark", "pid": 88, "tid": 88, "ts": 2.000, "s": "t"}
]}`

// inspected returns the tables of inputs of all kinds.
func inspected(t *testing.T) []*table.Table {
	t.Helper()
	t.Chdir(t.TempDir())
	writeExport(t, "node7.sqlite", nsys.Schema2026)
	writeExport(t, "old.sqlite", nsys.Schema2021)
	if err := os.WriteFile("rank3.json", []byte(chromeTrace), 0o644); err != nil {
		t.Fatal(err)
	}
	files, err := inputs.Find([]string{"node7.sqlite", "old.sqlite", "rank3.json"})
	if err != nil {
		t.Fatal(err)
	}
	var v inventory.Inventory
	diags := &trace.Diags{}
	requests, _, err := convert.Inspect(files, inputs.Options{}, diags, &v)
	if err != nil || requests != nil {
		t.Fatalf("%v, %v", requests, err)
	}
	return All(&v, nil, diags.All())
}

func TestGoldenInspectProfiles(t *testing.T) {
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	reports := inspected(t)
	t.Chdir(dir)
	for _, f := range table.Formats {
		t.Run(string(f), func(t *testing.T) {
			got := ""
			for _, r := range reports {
				got += testset.Text(t, r, f, table.Style{}) + "\n"
			}
			if strings.Contains(got, secret) {
				t.Errorf("shows what must stay secret:\n%s", got)
			}
			testset.CompareGolden(t, "inspect_profiles."+string(f), got)
		})
	}
}

// Every table has a name that the command knows.
func TestInspectTables(t *testing.T) {
	for _, r := range append(inspected(t), inspectSet(testset.Fixture(t))...) {
		if !slices.Contains(Tables, r.Name()) {
			t.Errorf("no name for %s", r.Schema)
		}
		if b := testset.Text(t, r, table.FormatJSON, table.Style{}); !json.Valid([]byte(b)) {
			t.Errorf("%s is no JSON", r.Schema)
		}
	}
}

func TestList(t *testing.T) {
	for want, numbers := range map[string][]int64{"": nil, "3": {3}, "0, 1": {1, 0}, "0-7": {0, 1, 2, 3, 4, 5, 6, 7}, "0, 2-4, 9": {9, 2, 3, 4, 4, 0}} {
		if got := list(numbers); got != want {
			t.Errorf("%v: %q, want %q", numbers, got, want)
		}
	}
}
