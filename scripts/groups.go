package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
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
	{"traces", "PyTorch traces of eight ranks", []size{simulated("83 MB", "traces -mb 10"), simulated("832 MB", "traces -mb 104"), simulated("4 GB", "traces -mb 500")}, []section{
		{"All of it:", 0, wholeTraces},
		{"A twelfth of the time:", 0, partOfTraces},
	}, false},
	{"exports", "Nsight Systems exports of eight ranks", []size{
		simulated("19 MB", "export -rows 125000"), simulated("186 MB", "export -rows 1250000"), simulated("1.86 GB", "export -rows 12500000"),
	}, []section{
		{"All of it:", 0, wholeExport},
		{"A twelfth of the time:", 0, partOfExport},
	}, false},
	{"ranks", "Many ranks with small PyTorch traces, and the dump of their requests", []size{
		simulated("64 ranks", "ranks -ranks 64"), simulated("512 ranks", "ranks -ranks 512"), simulated("4,096 ranks", "ranks -ranks 4096"),
	}, []section{{"Extracted, a process for each host:", 0, shardsOfRanks}}, true},
	{"collectives", "Ranks that have nothing but 5,000 collectives each; one is 300 us late", []size{
		collectives(64, "64 ranks"), collectives(512, "512 ranks"), collectives(4096, "4,096 ranks"),
	}, []section{{"Who is late:", 0, whoIsLate}}, true},
	{"days", "Days of servers with four GPUs each, of which one is slow every third day", []size{
		simulated("30 days of 20 servers", "days -days 30 -servers 20"),
	}, []section{{"Extracted day by day:", 0, dayByDay}}, true},
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
		return run("sh", "-c", fmt.Sprintf("go run ./scripts simulate repeat -times %d %[2]s/once/otel.jsonl >%[2]s/otel.jsonl && rm -r %[2]s/once", times, dir))
	}}
}

// simulated is what simulate.go writes into a folder, called with these words.
func simulated(name, words string) size {
	return size{name, func(_ *bench, dir string) error {
		return run("go", append(strings.Fields("run ./scripts simulate "+words), dir)...)
	}}
}

// collectives is a dataset of the traces of so many ranks, made of a few at a time: the disk may be too
// small for all. Those of the last ones stay in traces.
func collectives(ranks int, name string) size {
	const batch = 64
	return size{name, func(b *bench, dir string) error {
		traces := filepath.Join(dir, "traces")
		for from := 0; from < ranks; from += batch {
			if err := os.RemoveAll(traces); err != nil {
				return err
			}
			words := fmt.Sprintf("collectives -from %d -to %d -of %d", from, from+batch, ranks)
			if err := simulated("", words).make(b, traces); err != nil {
				return err
			}
			if err := run(b.program, "extract", "--quiet", "-o", filepath.Join(dir, "late.dataset"), traces); err != nil {
				return err
			}
		}
		return nil
	}}
}

func run(name string, args ...string) error {
	cmd := exec.Command(name, args...)
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	return cmd.Run()
}

// sgtrace returns rows for command lines that read input, each with extra at its end.
func sgtrace(input, extra string, lines ...string) (rows []benchRow) {
	for _, line := range lines {
		rows = append(rows, benchRow{line, "exec $SGTRACE " + line + extra + " --quiet " + input + " >/dev/null"})
	}
	return rows
}

func wholeDump(b *bench, dir string) ([]benchRow, error) {
	rid, err := b.slowest(dir, "otel.jsonl")
	if err != nil {
		return nil, err
	}
	rows := []benchRow{
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
		benchRow{"diff with itself", "exec $SGTRACE diff --quiet otel.jsonl otel.jsonl >/dev/null"},
		benchRow{"extract", "rm -rf out.dataset; exec $SGTRACE extract --quiet -o out.dataset otel.jsonl"},
		benchRow{"report of that dataset", "exec $SGTRACE report --quiet out.dataset >/dev/null"}), nil
}

func requestRow(rid string) benchRow {
	return benchRow{"request ID", "exec $SGTRACE request --quiet " + rid + " otel.jsonl >/dev/null"}
}

func partOfDump(b *bench, dir string) ([]benchRow, error) {
	window, err := b.window(dir, "otel.jsonl")
	if err != nil {
		return nil, err
	}
	rid, err := b.slowest(dir, "otel.jsonl")
	if err != nil {
		return nil, err
	}
	rows := sgtrace("otel.jsonl", window, "report", "requests", "convert otel2perfetto -o out.pftrace", "merge -o out.pftrace", "report -o out.html")
	rows = append(rows, benchRow{"report, through a pipe", "cat otel.jsonl | $SGTRACE report --quiet" + window + " - >/dev/null"})
	rows = append(rows, sgtrace("otel.jsonl", "", "requests --slowest 20", "requests --sample 0.02")...)
	return append(rows, benchRow{"requests --rid ID", "exec $SGTRACE requests --quiet --rid " + rid + " otel.jsonl >/dev/null"}), nil
}

func limitedDump(*bench, string) (rows []benchRow, err error) {
	for _, limit := range []string{"300MB", "500MB", "1GB"} {
		for _, line := range []string{"report", "requests", "convert otel2perfetto -o out.pftrace", "merge -o out.pftrace", "report -o out.html"} {
			rows = append(rows, sgtrace("otel.jsonl", "", line+" --max-memory "+limit)...)
		}
		rows = append(rows, sgtrace("otel.jsonl otel.jsonl", "", "diff --max-memory "+limit)...)
	}
	return rows, nil
}

// hugeDump has repeats that begin six hours after each other.
func hugeDump(b *bench, dir string) ([]benchRow, error) {
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

func wholeTraces(*bench, string) ([]benchRow, error) {
	rows := []benchRow{{"gzip -dc", "exec gzip -dc torch/*.gz >/dev/null"}}
	return append(rows, sgtrace("torch", "", "report", "report --by-rank", "report -o out.html", "report --kernels", "report --ops",
		"report --gaps", "report --stacks", "report --timeline", "inspect", "merge -o out.pftrace", "merge -o out.pftrace.gz",
		"merge -o out.json", "merge --cat kernel --args none -o out.pftrace")...), nil
}

func partOfTraces(b *bench, dir string) ([]benchRow, error) {
	window, err := b.window(dir, "torch")
	return sgtrace("torch", window, "report", "report --kernels", "merge -o out.pftrace"), err
}

func wholeExport(*bench, string) ([]benchRow, error) {
	rows := []benchRow{{"cat", "exec cat node0.sqlite >/dev/null"}}
	return append(rows, sgtrace("node0.sqlite", "", "report", "report --by-rank", "report -o out.html", "report --kernels",
		"report --launches", "report --api", "report --memcpy", "report --nvtx", "report --nvtx-kernels", "report --ops",
		"report --gaps", "report --stacks", "report --timeline", "inspect", "merge -o out.pftrace")...), nil
}

func partOfExport(b *bench, dir string) ([]benchRow, error) {
	window, err := b.window(dir, "node0.sqlite")
	return sgtrace("node0.sqlite", window, "report", "report --kernels", "merge -o out.pftrace"), err
}

func shardsOfRanks(_ *bench, dir string) ([]benchRow, error) {
	traces, err := filepath.Glob(filepath.Join(dir, "torch", "*"))
	shards := max(1, len(traces)/8)
	rows := []benchRow{
		{"extract", fmt.Sprintf("rm -rf out.dataset; for i in $(seq 0 %d); do $SGTRACE extract --quiet -o out.dataset --shard $i/%d otel.jsonl torch || exit; done", shards-1, shards)},
		{"report of that dataset", "exec $SGTRACE report --quiet out.dataset >/dev/null"},
		{"dataset solve", "exec $SGTRACE dataset solve --quiet out.dataset >/dev/null"},
	}
	return append(rows, sgtrace("otel.jsonl torch", "", "report")...), err
}

func whoIsLate(*bench, string) ([]benchRow, error) {
	rows := []benchRow{{"extract of 64 ranks", "rm -rf out.dataset; exec $SGTRACE extract --quiet -o out.dataset traces"}}
	return append(rows, sgtrace("late.dataset", "", "report --by-rank --table collectives.ranks", "report")...), nil
}

func dayByDay(*bench, string) ([]benchRow, error) {
	rows := []benchRow{{"extract", "rm -rf out.dataset; for day in day*; do $SGTRACE extract --quiet -o out.dataset $day || exit; done"}}
	return append(rows, sgtrace("out.dataset", "", "report --fleet")...), nil
}
