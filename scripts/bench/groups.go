package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// groups are the inputs, and what is measured on each.
var groups = []group{
	{"dumps", "OTLP dumps", []size{dump(750, "23 MB"), dump(6000, "186 MB"), dump(largeDump, "2.04 GB")}, []section{
		{"All of it:", 0, wholeDump},
		{"A twelfth of the time, or some of the requests:", 0, partOfDump},
		{"With a limit:", 2, limitedDump},
	}, false},
	{"huge", "OTLP dumps of 20 GB", []size{repeated(10, "20.4 GB")}, []section{
		{"All of it, and a tenth:", 0, hugeDump},
	}, true},
	{"traces", "PyTorch traces of eight ranks", []size{traces(10, "83 MB"), traces(104, "832 MB"), traces(500, "4 GB")}, []section{
		{"All of it:", 0, wholeTraces},
		{"A twelfth of the time:", 0, partOfTraces},
	}, false},
	{"exports", "Nsight Systems exports of eight ranks", []size{export(125e3, "19 MB"), export(1250e3, "186 MB"), export(12500e3, "1.86 GB")}, []section{
		{"All of it:", 0, wholeExport},
		{"A twelfth of the time:", 0, partOfExport},
	}, false},
}

// dump simulates a dump, also as zstd.
func dump(requests int, name string) size {
	return size{name, func(b *bench, dir string) error {
		if err := run(b.program, "demo", "--quiet", "--requests", fmt.Sprint(requests), dir); err != nil {
			return err
		}
		return run("zstd", "-q", filepath.Join(dir, "otel.jsonl"))
	}}
}

// largeDump is how many requests the largest simulated dump has.
const largeDump = 66000

// repeated writes the largest simulated dump so many times, one behind the other.
func repeated(times int, name string) size {
	return size{name, func(b *bench, dir string) error {
		if err := dump(largeDump, "").make(b, filepath.Join(dir, "once")); err != nil {
			return err
		}
		return run("sh", "-c", fmt.Sprintf("go run ./scripts/simulate repeat -times %d %[2]s/once/otel.jsonl >%[2]s/otel.jsonl && rm -r %[2]s/once", times, dir))
	}}
}

// traces writes eight PyTorch traces of so many megabytes of JSON each.
func traces(mb int, name string) size {
	return size{name, func(_ *bench, dir string) error {
		return run("go", "run", "./scripts/simulate", "traces", "-mb", fmt.Sprint(mb), dir)
	}}
}

// export writes an Nsight Systems export with so many kernels and calls.
func export(rows int, name string) size {
	return size{name, func(_ *bench, dir string) error {
		return run("go", "run", "./scripts/simulate", "export", "-rows", fmt.Sprint(rows), dir)
	}}
}

func run(name string, args ...string) error {
	cmd := exec.Command(name, args...)
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	return cmd.Run()
}

// sgtrace returns rows for command lines that read input, each with extra at its end.
func sgtrace(input, extra string, lines ...string) (rows []row) {
	for _, line := range lines {
		rows = append(rows, row{line, "exec $SGTRACE " + line + extra + " --quiet " + input + " >/dev/null"})
	}
	return rows
}

func wholeDump(b *bench, dir string) ([]row, error) {
	rid, err := b.slowest(dir, "otel.jsonl")
	if err != nil {
		return nil, err
	}
	rows := []row{
		{"cat", "exec cat otel.jsonl >/dev/null"},
		{"zstd -dc", "exec zstd -qdc otel.jsonl.zst >/dev/null"},
		{"json.loads of each line, Python", `exec python3 -c '
import json
for line in open("otel.jsonl", "rb"): json.loads(line)'`},
	}
	rows = append(rows, sgtrace("otel.jsonl", "", "report", "report --by-stage", "report --by-rank", "report --tail", "report --timeline",
		"report -o out.html", "requests", "inspect", "convert otel2perfetto -o out.pftrace",
		"convert otel2perfetto --requests all -o out.pftrace", "convert otel2perfetto --requests all --no-findings -o out.pftrace",
		"merge -o out.pftrace")...)
	return append(rows,
		requestRow(rid),
		row{"diff with itself", "exec $SGTRACE diff --quiet otel.jsonl otel.jsonl >/dev/null"},
		row{"extract", "rm -rf out.dataset; exec $SGTRACE extract --quiet -o out.dataset otel.jsonl"},
		row{"report of that dataset", "exec $SGTRACE report --quiet out.dataset >/dev/null"}), nil
}

func requestRow(rid string) row {
	return row{"request ID", "exec $SGTRACE request --quiet " + rid + " otel.jsonl >/dev/null"}
}

func partOfDump(b *bench, dir string) ([]row, error) {
	window, err := b.window(dir, "otel.jsonl")
	if err != nil {
		return nil, err
	}
	rid, err := b.slowest(dir, "otel.jsonl")
	if err != nil {
		return nil, err
	}
	rows := sgtrace("otel.jsonl", window, "report", "requests", "convert otel2perfetto -o out.pftrace", "merge -o out.pftrace", "report -o out.html")
	rows = append(rows, row{"report, through a pipe", "cat otel.jsonl | $SGTRACE report --quiet" + window + " - >/dev/null"})
	rows = append(rows, sgtrace("otel.jsonl", "", "requests --slowest 20", "requests --sample 0.02")...)
	return append(rows, row{"requests --rid ID", "exec $SGTRACE requests --quiet --rid " + rid + " otel.jsonl >/dev/null"}), nil
}

func limitedDump(*bench, string) (rows []row, err error) {
	for _, limit := range []string{"300MB", "500MB", "1GB"} {
		for _, line := range []string{"report", "requests", "convert otel2perfetto -o out.pftrace", "merge -o out.pftrace", "report -o out.html"} {
			rows = append(rows, sgtrace("otel.jsonl", "", line+" --max-memory "+limit)...)
		}
		rows = append(rows, sgtrace("otel.jsonl otel.jsonl", "", "diff --max-memory "+limit)...)
	}
	return rows, nil
}

// hugeDump has repeats that begin six hours after each other.
func hugeDump(b *bench, dir string) ([]row, error) {
	const oneRepeat = " --from +30h --to +32h"
	rid, err := b.slowest(dir, "otel.jsonl", "--from", "+30h", "--to", "+30h5m")
	if err != nil {
		return nil, err
	}
	lines := []string{"report", "requests", "convert otel2perfetto -o out.pftrace", "merge -o out.pftrace", "report -o out.html"}
	rows := append(sgtrace("otel.jsonl", "", lines...), requestRow(rid))
	for _, r := range sgtrace("otel.jsonl", oneRepeat, lines...) {
		r.name += oneRepeat
		rows = append(rows, r)
	}
	return rows, nil
}

func wholeTraces(*bench, string) ([]row, error) {
	rows := []row{{"gzip -dc", "exec gzip -dc torch/*.gz >/dev/null"}}
	return append(rows, sgtrace("torch", "", "report", "report --by-rank", "report -o out.html", "report --kernels", "report --ops",
		"report --gaps", "report --stacks", "report --timeline", "inspect", "merge -o out.pftrace", "merge -o out.pftrace.gz",
		"merge -o out.json", "merge --cat kernel --args none -o out.pftrace")...), nil
}

func partOfTraces(b *bench, dir string) ([]row, error) {
	window, err := b.window(dir, "torch")
	return sgtrace("torch", window, "report", "report --kernels", "merge -o out.pftrace"), err
}

func wholeExport(*bench, string) ([]row, error) {
	rows := []row{{"cat", "exec cat node0.sqlite >/dev/null"}}
	return append(rows, sgtrace("node0.sqlite", "", "report", "report --by-rank", "report -o out.html", "report --kernels",
		"report --launches", "report --api", "report --memcpy", "report --nvtx", "report --nvtx-kernels", "report --ops",
		"report --gaps", "report --stacks", "report --timeline", "inspect", "merge -o out.pftrace")...), nil
}

func partOfExport(b *bench, dir string) ([]row, error) {
	window, err := b.window(dir, "node0.sqlite")
	return sgtrace("node0.sqlite", window, "report", "report --kernels", "merge -o out.pftrace"), err
}
