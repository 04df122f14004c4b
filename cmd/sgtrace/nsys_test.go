package main

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/cmd/sgtrace/internal/reports"
	"github.com/sgtrace/sgtrace/golden/nsys"
)

// nsysSecret is a secret that exports contain.
const nsysSecret = "hf_SECRETSECRET"

// nsysExport writes an export of one rank, with secrets wherever nsys puts them.
func nsysExport(t *testing.T, path string) {
	t.Helper()
	db, err := nsys.Create(path, nsys.Schema2026)
	if err != nil {
		t.Fatal(err)
	}
	pair := func(table, name, value string) {
		db.Insert(table, "name", name, "value", value)
	}
	pair("META_DATA_EXPORT", "EXPORT_PRODUCT_VERSION", "2026.2.1.210")
	pair("META_DATA_EXPORT", "EXPORT_PARAM_INPUT_PATH_ABS", "/home/"+nsysSecret)
	pair("META_DATA_CAPTURE", "PROCESS_0:ENVIRONMENT_VARIABLE", `HF_TOKEN="`+nsysSecret+`"`)
	pair("META_DATA_CAPTURE", "PROCESS_0:ENVIRONMENT_VARIABLE", `RANK="`+nsysSecret+`"`)
	pair("META_DATA_CAPTURE", "PROCESS_0:COMMAND", "serve --key "+nsysSecret)
	pair("TARGET_INFO_SYSTEM_ENV", "Hostname", "node7")
	pair("TARGET_INFO_SYSTEM_ENV", "DeviceEnvironment", nsysSecret)
	db.Insert("TARGET_INFO_SESSION_START_TIME", "utcEpochNs", int64(1787000000e9))
	db.Insert("ANALYSIS_FILE", "filename", nsysSecret, "contentId", nsys.ID("key="+nsysSecret))
	db.Insert("ProcessStreams", "filenameId", nsys.ID("/tmp/"+nsysSecret), "contentId", nsys.ID("stdout "+nsysSecret))
	db.Insert("DIAGNOSTIC_EVENT", "severity", 1, "text", "loaded "+nsysSecret)
	const pid = 1<<48 | 700<<24
	db.Insert("PROCESSES", "globalPid", pid, "name", "sglang::scheduler_TP0")
	kernels, calls := db.Table("CUPTI_ACTIVITY_KIND_KERNEL"), db.Table("CUPTI_ACTIVITY_KIND_RUNTIME")
	for i := range int64(400) {
		kernels.Insert("start", 1e9+i*1e6, "end", 1e9+i*1e6+500, "globalPid", pid, "correlationId", i+1,
			"demangledName", nsys.ID(fmt.Sprintf("gemm_%d", i%7)), "shortName", nsys.ID("gemm"))
		calls.Insert("start", 1e9+i*1e6-900, "end", 1e9+i*1e6-100, "globalTid", pid|700, "correlationId", i+1,
			"nameId", nsys.ID("cudaLaunchKernel_v7000"))
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

// Secrets of an export reach neither an output nor a message.
func TestNsysSecrets(t *testing.T) {
	dir := t.TempDir()
	export := filepath.Join(dir, "node7.sqlite")
	nsysExport(t, export)
	if data, err := os.ReadFile(export); err != nil || strings.Count(string(data), nsysSecret) < 9 {
		t.Fatalf("the export has no secrets: %v", err)
	}
	commands := [][]string{
		{"merge", export, "-o", filepath.Join(dir, "out.json"), "--clock-report", filepath.Join(dir, "clocks.json")},
		{"merge", export, "-o", filepath.Join(dir, "out.pftrace")},
		{"inspect", export}, {"inspect", "--format", "json", export}, {"inspect", "--format", "markdown", export},
		{"inspect", "--table", "tables", "--format", "csv", export}, {"inspect", "--table", "processes", "--format", "csv", export},
	}
	for _, r := range reports.All {
		if r.Needs != reports.Profiles {
			continue
		}
		commands = append(commands, []string{"report", "--" + r.Name, "--format", "json", export})
	}
	for _, args := range commands {
		var out, errOut bytes.Buffer
		if status := run(append([]string{"sgtrace"}, args...), nil, &out, &errOut); status != exitOK {
			t.Errorf("%v: status %d: %s", args, status, errOut.String())
		}
		if strings.Contains(out.String()+errOut.String(), nsysSecret) {
			t.Errorf("%v shows what must stay secret:\n%s%s", args, out.String(), errOut.String())
		}
	}
	for _, name := range []string{"out.json", "out.pftrace", "clocks.json"} {
		if data, err := os.ReadFile(filepath.Join(dir, name)); err != nil || bytes.Contains(data, []byte(nsysSecret)) {
			t.Errorf("%s has a secret: %v", name, err)
		}
	}
}

// Relative times count from the first event of an export, not from the start of its session, which
// may be minutes earlier. A window without events is an error that says so.
func TestNsysWindow(t *testing.T) {
	dir := t.TempDir()
	nsysExport(t, filepath.Join(dir, "node7.sqlite")) // calls and kernels begin 1 s into the session
	for report, column := range map[string]int{"--kernels": 2, "--launches": 1, "--api": 2} {
		count := 0
		for _, row := range csvOf(t, dir, "report "+report+" --from +0s --to +99500us --format csv node7.sqlite") {
			n, err := strconv.Atoi(row[column])
			if err != nil {
				t.Fatal(err)
			}
			count += n
		}
		if count != 100 {
			t.Errorf("%s: %d in the first 99.5 of 400 ms, want 100", report, count)
		}
	}
	for _, command := range []string{
		"report --from +1h", "report -o out.html --from +1h", "report --kernels --from +1h", "report --gaps --from +1h", "report --by-rank --from +1h", "report --ops --from +1h", "report --stacks --from +1h", "report --timeline --from +1h",
		"report --memcpy --to +50ms", "report --to 2026-08-17T20:53:20.5Z",
	} {
		if got := sgtrace(t, dir, strings.Fields(command+" node7.sqlite")...); got.status != exitFailed ||
			!strings.Contains(got.err, "--from and --to select no") || !strings.Contains(got.err, "2026-08-17 20:53:20.999 to 20:53:21.399 UTC") {
			t.Errorf("%s: status %d: %s", command, got.status, got.err)
		}
	}
	// One call whose kernel begins after the window.
	got := mustRun(t, dir, "report --from +1ms --to +1000850ns node7.sqlite")
	if !strings.Contains(got.out, "no device kernels or copies are between --from and --to") {
		t.Errorf("a call without its kernel: %s", got.out)
	}
}

// Damaged exports end with status 1 or 3 and a message about the file and what to do. They are not
// modified, no files appear beside them, and no output is partial.
func TestNsysDamage(t *testing.T) {
	dir, outDir := filepath.Join(t.TempDir(), "a b?c#d%20"), t.TempDir()
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	path, out := filepath.Join(dir, "node 7.sqlite"), filepath.Join(outDir, "out.json")
	nsysExport(t, path)
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	whole, _, _ := mergeDamaged(t, path, out)
	statuses := map[int]int{}
	for seed := range uint64(60) {
		data, what := damageExport(good, seed)
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
		written, status, stderr := mergeDamaged(t, path, out)
		statuses[status]++
		switch {
		case status == exitFailed && written == nil && strings.Contains(stderr, path) && strings.Contains(stderr, "again"):
		case status == exitPartial && written != nil && strings.Contains(stderr, path) && strings.Contains(stderr, "again"):
		case status == exitOK && bytes.Equal(written, whole):
		default:
			t.Errorf("%s: status %d, %d bytes written: %s", what, status, len(written), stderr)
		}
		after, err := os.ReadFile(path)
		if beside, _ := os.ReadDir(dir); err != nil || !bytes.Equal(after, data) || len(beside) != 1 {
			t.Errorf("%s: the input was touched: %v, %v", what, err, beside)
		}
		if left, _ := os.ReadDir(outDir); len(left) > 0 {
			t.Errorf("%s: left %v", what, left)
		}
	}
	t.Logf("statuses: %v", statuses)
}

// mergeDamaged merges an export, and returns and removes the output, which is nil if nothing was
// written.
func mergeDamaged(t *testing.T, path, out string) (written []byte, status int, stderr string) {
	var stdout, errOut bytes.Buffer
	status = run([]string{"sgtrace", "merge", "--nsys", path, "-o", out}, nil, &stdout, &errOut)
	written, _ = os.ReadFile(out)
	os.Remove(out)
	return written, status, errOut.String()
}

// damageExport cuts a file, or clears a page or a page's beginning.
func damageExport(good []byte, seed uint64) (data []byte, what string) {
	const page = 4096
	rng := rand.New(rand.NewPCG(seed, 3))
	data = bytes.Clone(good)
	number := rng.IntN(len(data) / page)
	if seed%4 == 3 {
		number = max(number, 1) // the first page identifies the format
	}
	switch seed % 4 {
	case 0:
		at := rng.IntN(len(data))
		return data[:at], fmt.Sprintf("cut at %d", at)
	case 1:
		clear(data[number*page : (number+1)*page])
		return data, fmt.Sprintf("page %d cleared", number+1)
	case 2:
		for i := range 16 {
			data[number*page+i] = 0xff
		}
		return data, fmt.Sprintf("page %d begins with ff", number+1)
	}
	return append(data[:number*page], data[(number+1)*page:]...), fmt.Sprintf("page %d is missing", number+1)
}
