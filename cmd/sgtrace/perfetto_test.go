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

// These tests import the timelines that commands write into Perfetto's own trace processor, where
// it is installed. Scripts and mutants do so, too.

// timelines are commands that draw a simulated run, one per variant of drawing. FIRST stands for
// the first request.
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

// Names that are harmful elsewhere are harmless in Perfetto.
func TestHostileNamesImport(t *testing.T) {
	processor := readback.Processor(t)
	dir := t.TempDir()
	writeHostile(t, dir)
	importsOf(t, processor, dir, []string{"merge", "otel.jsonl", "rank.json", "--requests", "all", "--keep-secrets"})
}

// Every shared file that can be drawn is imported, alone and with the other files in its folder.
func TestSharedDataImports(t *testing.T) {
	processor := readback.Processor(t)
	root := testinput.Shared(t, "data")
	drawn := 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch name := d.Name(); {
		case name == "stats" || name == "hta_expected": // output of other tools
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

// importsOf runs a command that writes a timeline in both formats, and returns the number of files.
// The importer must find what the command says it wrote.
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

// wrote matches what --verify reports about a file.
var wrote = regexp.MustCompile(`(?m)^(imported\S*) verified: (\d+) slices, (\d+) instants, (\d+) samples, and (\d+) arrows on (\d+) tracks`)

// checkImported compares the import of a file with the counts that [wrote] matched.
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
