package main

import (
	"encoding/csv"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/internal/tablefile"
)

// A dataset is solved once for its current captures, and the results equal the output of commands.
func TestSolve(t *testing.T) {
	dir := t.TempDir()
	mustRun(t, dir, "demo --requests 40 demo")
	mustRun(t, dir, "extract -o demo.dataset demo")
	for _, state := range []string{"written", "is up to date"} {
		if r := mustRun(t, dir, "dataset solve demo.dataset"); !strings.Contains(r.err, ": "+state) {
			t.Errorf("want %q: %s", state, r.err)
		}
	}
	before := solvedFolder(t, dir)
	for column, name := range map[int]string{1: "rid", 13: "ttft_ns", 15: "unaccounted_ns"} {
		var want []string
		for _, record := range csvOf(t, dir, "requests --format csv demo") {
			want = append(want, record[column])
		}
		if got := columnOf(t, filepath.Join(before, "requests-0.parquet"), name); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
	kernels := 0
	for _, record := range csvOf(t, dir, "report --kernels --format csv demo") {
		n, _ := strconv.Atoi(record[2])
		kernels += n
	}
	if got := countedKernels(t, dir, before); got != kernels {
		t.Errorf("%d kernels count, want %d", got, kernels)
	}

	dump := filepath.Join(dir, "demo", "otel.jsonl")
	if err := os.WriteFile(dump, append(readFile(t, dump), '\n'), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, again := range []bool{true, false} { // views only change for new captures
		if r := mustRun(t, dir, "extract -o demo.dataset demo"); strings.Contains(r.err, "run 'sgtrace sql' again") != again {
			t.Errorf("extracted again: %s", r.err)
		}
	}
	mustRun(t, dir, "dataset solve demo.dataset")
	if solvedFolder(t, dir) == before {
		t.Error("not solved again, although a capture has changed")
	}
}

// countedKernels counts the kernels of all captures, without those repeated in another capture.
func countedKernels(t *testing.T, dir, solved string) (n int) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "demo.dataset", "v1", "capture=*", "slices-kernels.parquet"))
	if err != nil || len(files) == 0 {
		t.Fatal("no kernels", err)
	}
	for _, file := range files {
		n += len(columnOf(t, file, "start"))
	}
	for _, kind := range columnOf(t, filepath.Join(solved, "repeated-0.parquet"), "kind") {
		if kind == "kernel" || kind == "graph" {
			n--
		}
	}
	return n
}

// solvedFolder returns the only folder with results over all captures.
func solvedFolder(t *testing.T, dir string) string {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(dir, "demo.dataset", "v1", "solved=*"))
	if err != nil || len(all) != 1 {
		t.Fatalf("solved: %v, %v", all, err)
	}
	return all[0]
}

// csvOf returns the CSV records that a command prints.
func csvOf(t *testing.T, dir, command string) [][]string {
	t.Helper()
	records, err := csv.NewReader(strings.NewReader(mustRun(t, dir, command).out)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	return records[1:]
}

// batchesOf calls do with each batch of a column of a file.
func batchesOf(t *testing.T, path, name string, do func(b *tablefile.Batch)) {
	t.Helper()
	f, err := tablefile.OpenParquet(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r := f.Column(f.Find(name), 0)
	defer r.Close()
	for {
		b, err := r.Next()
		if err == io.EOF {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		do(b)
	}
}

// columnOf returns a column of a file as text, "" for null.
func columnOf(t *testing.T, path, name string) (cells []string) {
	t.Helper()
	batchesOf(t, path, name, func(b *tablefile.Batch) {
		for i := range b.N {
			switch {
			case b.Null(i):
				cells = append(cells, "")
			case b.Ints != nil:
				cells = append(cells, strconv.FormatInt(b.Ints[i], 10))
			default:
				cells = append(cells, string(b.Bytes(i)))
			}
		}
	})
	return cells
}
