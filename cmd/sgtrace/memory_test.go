//go:build linux

package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/testkit/testinput"
)

// within runs the program in a process limited to kB of data.
func within(kB int, args ...string) (output string, status int) {
	script := fmt.Sprintf(`ulimit -d %d && exec sgtrace "$@"`, kB)
	cmd := exec.Command("sh", append([]string{"-c", script, "sh"}, args...)...)
	cmd.Env = append(os.Environ(), asUsersRun()...)
	out, _ := cmd.CombinedOutput()
	return string(out), cmd.ProcessState.ExitCode()
}

// peakOf runs the program in its own process, and returns its output, its status, and its peak
// memory in bytes.
func peakOf(t *testing.T, args ...string) (output string, status int, bytes int64) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "peak")
	cmd := exec.Command("peak", append([]string{file}, args...)...)
	cmd.Env = append(os.Environ(), asUsersRun()...)
	out, _ := cmd.CombinedOutput()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err, string(out))
	}
	if bytes, err = strconv.ParseInt(string(text), 10, 64); err != nil {
		t.Fatal(err)
	}
	return string(out), cmd.ProcessState.ExitCode(), bytes
}

// --max-memory is obeyed: a merge then takes less memory and writes the same output.
func TestMaxMemory(t *testing.T) {
	if withRace() {
		t.Skip("the race detector needs more memory than the limit")
	}
	dir := t.TempDir()
	trace, all, some := filepath.Join(dir, "trace.json"), filepath.Join(dir, "all.pftrace"), filepath.Join(dir, "some.pftrace")
	writeEvents(t, trace, 700_000, func(i int) string { return "kernel_" + strconv.Itoa(i%100) })
	out, status, most := peakOf(t, "merge", "--torch", trace, "-o", all)
	if status != exitOK || strings.Contains(out, "memory-spilled") {
		t.Fatal(status, out)
	}
	out, status, less := peakOf(t, "merge", "--torch", trace, "-o", some, "--max-memory", "128MB")
	if status != exitOK || !strings.Contains(out, "memory-spilled") {
		t.Fatal(status, out)
	}
	if less > most*7/8 {
		t.Errorf("a limit of 128 MB, and %d bytes; without it %d", less, most)
	}
	want, err := os.ReadFile(all)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(some); err != nil || string(got) != string(want) {
		t.Errorf("the outputs differ: %v", err)
	}
}

// A large dump stays within the limit and gives the same rows. A busy machine may page in the
// temporary file faster than pages are released, hence the margin of a quarter.
func TestMaxMemoryOfDump(t *testing.T) {
	if withRace() {
		t.Skip("the race detector needs more memory than the limit")
	}
	const limit = 150_000_000
	dump := testinput.Shared(t, "data", "otel", "d_big_tp2.jsonl.zst")
	want, status, _ := peakOf(t, "requests", dump)
	if status != exitOK {
		t.Fatal(status, want)
	}
	got, status, most := peakOf(t, "requests", "--max-memory", "150MB", dump)
	if status != exitOK || most > limit/4*5 {
		t.Errorf("status %d, %d bytes", status, most)
	}
	if rows, _, _ := strings.Cut(got, "notice:"); rows != want {
		t.Errorf("other rows than without a limit: %s", got)
	}
}

// A limit too low for large inputs is refused before they are read, and the message has the minimum.
func TestMaxMemoryRefused(t *testing.T) {
	dir := t.TempDir()
	for _, test := range []struct {
		name  string
		bytes int64
		limit string
		least string // "" if the limit is accepted
	}{
		{"small.jsonl", 10_000_000, "127MB", "128.0 MB"},
		{"small.jsonl", 10_000_000, "128MB", ""},
		{"large.jsonl", 400_000_000, "200MB", "250.0 MB"},
		{"large.jsonl.zst", 40_000_000, "200MB", "250.0 MB"},
		{"large.jsonl", 400_000_000, "250MB", ""},
	} {
		file := filepath.Join(dir, test.name)
		if err := errors.Join(os.WriteFile(file, nil, 0o600), os.Truncate(file, test.bytes)); err != nil {
			t.Fatal(err)
		}
		out, status := within(1_000_000, "inspect", "--max-memory", test.limit, file)
		if refused := status == exitUsage && strings.Contains(out, test.least+" is the minimum"); refused != (test.least != "") {
			t.Errorf("%s of %d bytes with %s: status %d: %s", test.name, test.bytes, test.limit, status, out)
		}
	}
}

// If the data that must stay in memory exceeds the limit, the run ends and leaves no files.
func TestMaxMemoryExceeded(t *testing.T) {
	if withRace() {
		t.Skip("the race detector needs more memory than the limit")
	}
	dir := t.TempDir()
	trace := filepath.Join(dir, "trace.json")
	writeEvents(t, trace, 1_000_000, func(i int) string { return "a_kernel_with_a_name_of_its_own_" + strconv.Itoa(i) })
	out, status := within(1_000_000, "merge", "--max-memory", "128MB", "--torch", trace, "-o", filepath.Join(dir, "none.pftrace"))
	if status != exitFailed || !strings.Contains(out, "need more than 128.0 MB (--max-memory 128MB)") {
		t.Error(status, out)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("%v is left: %v", left, err)
	}
}

func TestMaxMemorySizes(t *testing.T) {
	for text, want := range map[string]int64{"2GB": 2e9, "800 MB": 8e8, "1.5GiB": 3 << 29, "300000000": 3e8, "1t": 1e12,
		"": 0, "2XB": 0, "-1GB": 0, "1kB": 0, "GB": 0, "1e30GB": 0, "nan": 0} {
		if got, err := parseSize(text); got != want || (err == nil) != (want != 0) {
			t.Errorf("%q: %d, %v; want %d", text, got, err, want)
		}
	}
}

// writeEvents writes a PyTorch trace of n kernels, with the names that kernel returns.
func writeEvents(t *testing.T, name string, n int, kernel func(i int) string) {
	t.Helper()
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	w := bufio.NewWriterSize(f, 1<<20)
	fmt.Fprint(w, `{"schemaVersion":1,"traceEvents":[`)
	for i := range n {
		if i > 0 {
			fmt.Fprint(w, ",\n")
		}
		w.WriteString(`{"ph":"X","cat":"kernel","name":"` + kernel(i) + `","pid":0,"tid":7,"ts":` + strconv.Itoa(2*i) + `,"dur":1}`)
	}
	fmt.Fprint(w, "]}")
	if err := errors.Join(w.Flush(), f.Close()); err != nil {
		t.Fatal(err)
	}
}
