package convert

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/sgtrace/sgtrace/convert/drawing"
	"github.com/sgtrace/sgtrace/convert/inputs"
	"github.com/sgtrace/sgtrace/testkit/testinput"
	"github.com/sgtrace/sgtrace/trace"
)

// nsysExport writes an export of two ranks of one server, like nsys 2024: both use the same
// correlation ids, and the second has an unclosed range.
func nsysExport(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	b.WriteString(`
CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);
CREATE TABLE TARGET_INFO_SESSION_START_TIME (utcEpochNs INTEGER, utcTime TEXT, localTime TEXT);
CREATE TABLE TARGET_INFO_SYSTEM_ENV (globalVid INTEGER, devStateName TEXT, name TEXT, nameEnum INTEGER, value TEXT);
CREATE TABLE ANALYSIS_DETAILS (globalVid INTEGER, duration INTEGER, startTime INTEGER, stopTime INTEGER);
CREATE TABLE PROCESSES (globalPid INTEGER, pid INTEGER, name TEXT);
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, deviceId INTEGER, contextId INTEGER, streamId INTEGER,
	correlationId INTEGER, globalPid INTEGER, demangledName INTEGER, shortName INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER, end INTEGER, eventClass INTEGER, globalTid INTEGER, correlationId INTEGER,
	nameId INTEGER, returnValue INTEGER);
CREATE TABLE NVTX_EVENTS (start INTEGER, end INTEGER, eventType INTEGER, text TEXT, globalTid INTEGER, domainId INTEGER);
INSERT INTO StringIds VALUES (1, 'gemm'), (2, 'ncclDevKernel_AllReduce_Sum_bf16_RING_LL'), (3, 'cudaLaunchKernel_v7000');
INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES (1787000000000000000, '', '');
INSERT INTO TARGET_INFO_SYSTEM_ENV VALUES (0, '', 'Hostname', 0, 'node0');
INSERT INTO ANALYSIS_DETAILS VALUES (0, 1000000000, 0, 1000000000);
`)
	for rank := range int64(2) {
		pid := (700+rank)<<24 | 1<<48
		fmt.Fprintf(&b, "INSERT INTO PROCESSES VALUES (%d, %d, 'sglang::scheduler_TP%d');\n", pid, 700+rank, rank)
		for i := range int64(10) {
			at := 1_000_000 + i*1_000_000
			fmt.Fprintf(&b, "INSERT INTO NVTX_EVENTS VALUES (%d, %d, 59, 'step[DECODE bs=4]', %d, 0);\n", at, at+900_000, pid|(700+rank))
			fmt.Fprintf(&b, "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (%d, %d, 0, %d, %d, 3, 0);\n", at+10_000, at+20_000, pid|(700+rank), i+1)
			fmt.Fprintf(&b, "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (%d, %d, 0, 1, 7, %d, %d, 1, 1);\n", at+30_000, at+300_000+rank*50_000, i+1, pid)
			fmt.Fprintf(&b, "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (%d, %d, 0, 1, 20, 0, %d, 2, 2);\n", at+400_000+rank*50_000, at+500_000, pid)
		}
	}
	fmt.Fprintf(&b, "INSERT INTO NVTX_EVENTS VALUES (%d, %d, 59, 'forever', %d, 0);\n", 500, 1_000_000_000, int64(701)<<24|1<<48|701)
	path := filepath.Join(t.TempDir(), "node0.sqlite")
	conn, err := sqlite.OpenConn(path, sqlite.OpenReadWrite, sqlite.OpenCreate)
	if err != nil {
		t.Fatal(err)
	}
	if err := sqlitex.ExecuteScript(conn, b.String(), nil); err != nil {
		t.Fatal(err)
	}
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// An export with two ranks gives two ranks, and launches are joined to kernels by process and id.
func TestNsysExport(t *testing.T) {
	m, tr := mergeAll(t, nsysExport(t))
	if names := rankNames(m); len(names) != 2 || names[0] != "TP0" || names[1] != "TP1" {
		t.Fatalf("ranks: %v", names)
	}
	got := paths(tr)
	for path, n := range map[string]int{
		"By rank > TP0 > thread 700 > CUDA API":                    10,
		"By rank > TP0 > thread 700 > NVTX":                        10,
		"By rank > TP1 > thread 701 > NVTX":                        11,
		"By rank > TP1 > CUDA > GPU 0 > stream 7 (compute)":        10,
		"By rank > TP1 > CUDA > GPU 0 > stream 20 (communication)": 10,
		"Side by side > Steps > steps · TP0":                       10,
		"Side by side > Steps on the GPU > steps on the GPU · TP0": 10,
		"Side by side > Communication > communication · TP1":       10,
	} {
		if got[path] != n {
			t.Errorf("%s has %d slices, want %d; there are %v", path, got[path], n, got)
		}
	}
	launches := 0
	for _, f := range tr.Flows {
		if tr.Syms.Name(f.Name) != "launch" {
			continue
		}
		launches++
		if rankOf(tr, f.From) != rankOf(tr, f.To) {
			t.Fatal("a launch is joined to a kernel of another process")
		}
	}
	if launches != 20 {
		t.Errorf("%d arrows of launches, want 20", launches)
	}
	if first, _, _ := tr.Bounds(); first != 1787000000_000000500 {
		t.Errorf("the first event is at %d", first)
	}
}

// A window of an export contains the events that overlap it.
func TestNsysWindow(t *testing.T) {
	m, _ := readAll(t, inputs.Options{}, nsysExport(t))
	if err := m.align(nil, true); err != nil {
		t.Fatal(err)
	}
	from := trace.Time(1787000000_003000000)
	if err := m.readWindow(from, from+1_999_999); err != nil {
		t.Fatal(err)
	}
	tr := m.layout(drawing.Options{Ranks: drawing.LayoutRanks})
	if err := trace.Validate(tr); err != nil {
		t.Fatal(err)
	}
	if n := paths(tr)["By rank > TP0 > thread 700 > NVTX"]; n != 2 {
		t.Errorf("%d steps of TP0 in the window, want 2", n)
	}
}

// Every shared export can be drawn.
func TestSharedNsysExports(t *testing.T) {
	for _, kind := range []string{"real", "synth"} {
		names, _ := filepath.Glob(filepath.Join(testinput.Shared(t, "data", "nsys", kind), "*.sqlite"))
		for _, name := range names {
			t.Run(filepath.Base(name), func(t *testing.T) {
				_, tr := mergeAll(t, name)
				if len(tr.Slices) < 2 {
					t.Error("nothing is drawn")
				}
			})
		}
	}
}
