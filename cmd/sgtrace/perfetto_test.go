package main

import (
	"encoding/csv"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/testkit/readback"
	"github.com/sgtrace/sgtrace/testkit/testinput"
)

// These tests ask Perfetto's own importer, where there is one, what it thinks of the
// timelines that commands write. Scripts and mutants ask it as well.

// timelines are commands that draw a simulated run, one for each thing that can be drawn
// differently. The first request is FIRST.
var timelines = []string{
	"convert otel2perfetto otel.jsonl",
	"convert otel2perfetto otel.jsonl --requests all --keep-secrets",
	"convert otel2perfetto otel.jsonl --requests 3 --view request --redact",
	"convert otel2perfetto otel.jsonl --view thread --slowest 5:ttft --no-findings",
	"convert otel2perfetto otel.jsonl --rid FIRST --level 1",
	"convert nsys2perfetto nsys",
	"convert nsys2perfetto nsys --cat kernel,nvtx",
	"merge otel.jsonl torch nsys",
	"merge otel.jsonl torch nsys --requests all --layout compare",
	"merge otel.jsonl torch nsys --layout ranks --args none",
	"merge otel.jsonl torch nsys --from +1s --to +2s",
	"merge torch nsys --from +20ms --to +60ms",
	"merge otel.jsonl torch nsys --around FIRST",
	"merge otel.jsonl torch --split 1s",
	"merge otel.jsonl torch --no-align --offset prefill-0=+1.2ms --drift decode-0=2ppm",
	"merge otel.jsonl nsys --no-findings",
	"merge torch nsys --name nvjet",
	"merge torch",
	"merge dataset",
	"merge dataset --without-originals --requests all",
	"merge dataset --around FIRST",
}

func TestTimelinesImport(t *testing.T) {
	processor := readback.Processor(t)
	dir := recordedOf(t, 1, 60)
	mustRun(t, dir, "extract . -o dataset")
	rows, err := csv.NewReader(strings.NewReader(mustRun(t, dir, "requests --format csv otel.jsonl").out)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	rid := rows[1][slices.Index(rows[0], "rid")]
	for _, command := range timelines {
		command = strings.ReplaceAll(command, "FIRST", rid)
		t.Run(command, func(t *testing.T) {
			if n := importsOf(t, processor, dir, strings.Fields(command)); n == 0 {
				t.Error("nothing was written")
			}
		})
	}
}

// Names that do harm elsewhere do none here.
func TestHostileNamesImport(t *testing.T) {
	processor := readback.Processor(t)
	dir := t.TempDir()
	writeHostile(t, dir)
	importsOf(t, processor, dir, []string{"merge", "otel.jsonl", "rank.json", "--requests", "all", "--keep-secrets"})
}

// Every file among the shared data that can be drawn is imported, alone and with the others
// in its folder.
func TestSharedDataImports(t *testing.T) {
	processor := readback.Processor(t)
	root := testinput.Shared(t, "data")
	drawn := 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch name := d.Name(); {
		case name == "stats" || name == "hta_expected": // what other tools say of it
			return fs.SkipDir
		case path == root || !d.IsDir() && !slices.Contains([]string{".json", ".jsonl", ".gz", ".zst", ".bin", ".sqlite"}, filepath.Ext(name)):
			return err
		}
		args := []string{"merge", path}
		if !d.IsDir() {
			args = append(args, "--requests", "all")
		}
		t.Run(strings.TrimPrefix(path, root+string(filepath.Separator)), func(t *testing.T) { drawn += importsOf(t, processor, t.TempDir(), args) })
		return err
	})
	if err != nil || drawn == 0 {
		t.Errorf("%d timelines; %v", drawn, err)
	}
}

// importsOf runs a command that writes a timeline, in both formats, and returns how many
// files that were. What was imported of each is what the command says it has written.
func importsOf(t *testing.T, processor, dir string, args []string) (files int) {
	t.Helper()
	t.Chdir(dir)
	for _, ext := range []string{".pftrace", ".json.gz"} {
		var out, errOut strings.Builder
		status := run(append(append([]string{"sgtrace"}, args...), "--verify", "-o", "imported"+ext), strings.NewReader(""), &out, &errOut)
		if status != exitOK && status != exitPartial {
			t.Logf("status %d: %s", status, errOut.String())
			continue
		}
		for _, m := range wrote.FindAllStringSubmatch(out.String()+errOut.String(), -1) {
			checkImported(t, processor, m[1], m[2:])
			os.Remove(m[1])
			files++
		}
	}
	return files
}

// wrote is what --verify says of a file.
var wrote = regexp.MustCompile(`(?m)^(imported\S*) verified: (\d+) slices, (\d+) instants, (\d+) samples, and (\d+) arrows on (\d+) tracks`)

// checkImported compares what was imported of a file with the numbers of [wrote].
func checkImported(t *testing.T, processor, file string, numbers []string) {
	t.Helper()
	var n [5]int
	for i := range n {
		n[i], _ = strconv.Atoi(numbers[i])
	}
	want := readback.Import{Slices: n[0] + n[1], Samples: n[2], Arrows: n[3], Tracks: n[4]}
	if filepath.Ext(file) == ".pftrace" {
		decoded, err := readback.Decode(readFile(t, file))
		if err != nil {
			t.Fatal(err)
		}
		want.Tracks = decoded.Shown()
	}
	if got, err := readback.ImportFile(processor, file); err != nil || got != want {
		t.Errorf("%s: trace_processor has %+v, written are %+v; %v", file, got, want, err)
	}
}
