package main

import (
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/cmd/sgtrace/internal/reports"
	"github.com/sgtrace/sgtrace/convert/inputs"
	"github.com/sgtrace/sgtrace/dataset"
	"github.com/sgtrace/sgtrace/internal/tablefile"
	"github.com/sgtrace/sgtrace/testkit/testinput"
)

// A dataset prints the same output as its inputs. The two names have the same length, so that
// tables have the same width.
const (
	inputsName  = "an-inputs"
	datasetName = "a-dataset"
)

// leftOutNote matches notes about files that are not inputs, which a search finds in folders but
// not in a dataset.
var leftOutNote = regexp.MustCompile(`; left out [^"\n]*?( \[|")`)

// asInputs rewrites the result of a run on a dataset into that of a run on its inputs.
func asInputs(r result) result {
	for _, text := range []*string{&r.out, &r.err, &r.file} {
		*text = leftOutNote.ReplaceAllString(strings.ReplaceAll(*text, datasetName, inputsName), "$1")
	}
	return r
}

// extractAll makes a dataset of the inputs in a folder.
func extractAll(t *testing.T, dir string) result {
	t.Helper()
	r := sgtrace(t, dir, "extract", "-o", datasetName, inputsName)
	if r.status != exitOK && r.status != exitPartial {
		t.Fatalf("extract: status %d: %s", r.status, r.err)
	}
	return r
}

// everyReport lists commands that cover every report, plus requests, inspect, and merge.
func everyReport() (commands []string) {
	for _, r := range reports.All {
		command := "report --format json --" + r.Name + " " + flagSamples[r.Name]
		if r.Name == "kernels" { // datasets do not hold how kernels are launched
			command += "--table kernels"
		}
		commands = append(commands, strings.TrimSpace(command))
	}
	return append(commands, "report --kernels --format csv", "report --gaps --format markdown", "requests --format json", "inspect --format json",
		"report --kernels --table kernels --by-rank --rank TP0", "report --format json --rank TP0 --from +1s --to +1500ms", "report --kernels --table kernels --from +1100ms --to +1200ms", "report --memcpy --from +1100ms", "report --by-stage --slowest 3", "report --timeline --from +1s --to +3s", "report --stacks --format folded",
		"merge -o out.pftrace", "merge --from +1s --to +2s -o out.pftrace")
}

// sameOnDataset checks that commands print the same for the inputs in a folder and for the dataset
// extracted from them.
func sameOnDataset(t *testing.T, dir string, commands []string) {
	t.Helper()
	extractAll(t, dir)
	for _, command := range commands {
		want := sgtrace(t, dir, append(strings.Fields(command), inputsName)...)
		got := sgtrace(t, dir, append(strings.Fields(command), datasetName)...)
		want, got = asInputs(want), asInputs(got)
		if want != got {
			same(t, command, want, got)
			t.Errorf("%s differs on the dataset", command)
		}
	}
}

// inputsIn returns a folder in which inputsName links to the given folder.
func inputsIn(t *testing.T, of string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Symlink(of, filepath.Join(dir, inputsName)); err != nil {
		t.Skip(err)
	}
	return dir
}

// Every report prints the same for a dataset as for its inputs.
func TestDatasetOfRun(t *testing.T) {
	dir := inputsIn(t, recorded(t, 5))
	sameOnDataset(t, dir, everyReport())
	checkColumns(t, dir)
}

// The same holds for real captures, whole or damaged. Set SGTRACE_DATASETS to try all of them,
// which takes an hour.
func TestDatasetOfSharedData(t *testing.T) {
	folders := []string{"merge", "otel/damaged", "torch/malformed"}
	if os.Getenv("SGTRACE_DATASETS") != "" {
		folders = []string{"merge", "nsys/real", "nsys/synth", "otel", "reality/dlrm", "reality/nsys", "reality/trace_diff", "torch/malformed", "torch/real", "torch/tp8_skew_2host"}
	}
	commands := []string{"report --format json", "requests --format json", "inspect --format json", "report --kernels --format csv"}
	if os.Getenv("SGTRACE_DATASETS") != "" {
		commands = everyReport()
	}
	for _, folder := range folders {
		t.Run(folder, func(t *testing.T) { sameOnDataset(t, inputsIn(t, testinput.Shared(t, "data", folder)), commands) })
	}
}

// Extracting again, in shards, or after an extraction was killed gives the same dataset, and a file
// that has grown counts once.
func TestExtractAgain(t *testing.T) {
	dir := t.TempDir()
	if err := os.Rename(recorded(t, 6), filepath.Join(dir, inputsName)); err != nil {
		t.Fatal(err)
	}
	for _, shard := range []string{"0/3", "2/3"} {
		mustRun(t, dir, "extract --shard "+shard+" -o "+datasetName+" "+inputsName)
	}
	for _, args := range []string{"extract --shard 0/2 -o " + datasetName + " " + inputsName, "dataset verify " + datasetName, "requests " + datasetName} {
		if r := sgtrace(t, dir, strings.Fields(args)...); r.status == exitOK || !strings.Contains(r.err+r.out, " 3") || !strings.Contains(r.err+r.out, " ended") {
			t.Errorf("%s without a shard: status %d: %s", args, r.status, r.err)
		}
	}
	mustRun(t, dir, "extract --shard 1/3 -o "+datasetName+" "+inputsName)
	mustRun(t, dir, "dataset verify "+datasetName)
	sharded := filesIn(t, filepath.Join(dir, datasetName))
	os.MkdirAll(filepath.Join(dir, datasetName, "v1", ".unfinished-ABC"), 0o777)
	if r := extractAll(t, dir); !strings.Contains(r.err, "9 inputs, 9 already extracted") {
		t.Errorf("extracted again: %s", r.err)
	}
	if again := filesIn(t, filepath.Join(dir, datasetName)); !slices.Equal(again, sharded) {
		t.Errorf("extracted again, there are\n%v\nbefore\n%v", again, sharded)
	}
	want := mustRun(t, dir, "requests --format json "+inputsName)
	same(t, "after shards", asInputs(want), asInputs(mustRun(t, dir, "requests --format json "+datasetName)))

	dump := filepath.Join(dir, inputsName, "otel.jsonl")
	whole := readFile(t, dump)
	lines := strings.SplitAfter(string(whole), "\n")
	for _, part := range [][]string{lines[:len(lines)/2], lines} {
		if err := os.WriteFile(dump, []byte(strings.Join(part, "")), 0o666); err != nil {
			t.Fatal(err)
		}
		if r := extractAll(t, dir); !strings.Contains(r.err, "1 replaced by a newer state") {
			t.Errorf("after it changed: %s", r.err)
		}
		want := mustRun(t, dir, "requests --format json "+inputsName)
		same(t, "after it changed", asInputs(want), asInputs(mustRun(t, dir, "requests --format json "+datasetName)))
	}
}

// A timeline opens the original files that it needs, and names one that is gone.
func TestOriginalGone(t *testing.T) {
	dir := t.TempDir()
	if err := os.Rename(recorded(t, 8), filepath.Join(dir, inputsName)); err != nil {
		t.Fatal(err)
	}
	extractAll(t, dir)
	gone := largestFile(t, dir, inputsName, "torch")
	if err := os.Remove(gone); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		command string
		status  int
	}{{"merge -o out.pftrace", exitPartial}, {"merge --to +10ms -o out.pftrace", exitOK}, {"report --kernels", exitOK},
		{"merge --without-originals -o out.pftrace", exitOK}, {"merge --without-originals --from +1s --to +2s -o out.pftrace", exitOK}} {
		r := sgtrace(t, dir, append(strings.Fields(c.command), datasetName)...)
		if told := strings.Contains(r.err, filepath.Base(gone)+", which a timeline needs"); r.status != c.status || told != (c.status == exitPartial) {
			t.Errorf("%s: status %d, want %d: %s", c.command, r.status, c.status, r.err)
		}
	}
}

// Archives are extracted by their contents, and timelines find the members again. Changes to a
// dataset are detected.
func TestDatasetOfArchive(t *testing.T) {
	dir := t.TempDir()
	run := recorded(t, 9)
	if err := exec.Command("tar", "-czf", filepath.Join(dir, inputsName), "-C", run, "torch", "otel.jsonl").Run(); err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { inputs.RemoveUnpacked() })
	sameOnDataset(t, dir, []string{"report --by-rank --format json", "merge -o out.pftrace"})
	mustRun(t, dir, "dataset verify --originals "+datasetName)
	mustRun(t, dir, "dataset prune --gone "+datasetName)
	files := glob(t, dir, datasetName, dataset.Version, "*", "threads-0.parquet")
	rewrite(t, files[0], func(b []byte) []byte { b[len(b)/2] ^= 1; return b })
	os.Remove(files[1])
	os.WriteFile(files[2]+".copy", nil, 0o666)
	os.WriteFile(filepath.Join(dir, datasetName, dataset.Version, "notes.txt"), nil, 0o666)
	r := sgtrace(t, dir, "dataset", "verify", datasetName)
	if r.status != exitFailed || !strings.Contains(r.err, "4 problems") {
		t.Errorf("status %d of a damaged dataset: %s%s", r.status, r.out, r.err)
	}
	os.Remove(filepath.Join(dir, inputsName))
	if r := mustRun(t, dir, "dataset prune --gone "+datasetName); strings.Count(r.out, "its original is gone") != 7 {
		t.Errorf("pruned %s", r.out)
	}
}

// A damaged dataset is reported, or read up to the damage; nothing crashes the program.
func TestDamagedDataset(t *testing.T) {
	dir := inputsIn(t, recorded(t, 10))
	extractAll(t, dir)
	files := glob(t, dir, datasetName, dataset.Version, "capture=*", "*")
	rng := rand.New(rand.NewPCG(10, 21))
	for seed := range uint64(14) {
		name := files[rng.IntN(len(files))]
		whole := readFile(t, name)
		s := testinput.Subject{Data: whole}
		m := s.Mutate(seed)
		if err := os.WriteFile(name, m.Data, 0o666); err != nil {
			t.Fatal(err)
		}
		command := []string{"report --format json", "requests", "report --ops", "report --stacks --format folded"}[rng.IntN(4)]
		r := sgtrace(t, dir, append(strings.Fields(command), datasetName)...)
		if r.status == exitUsage || r.status == exitPartial && !strings.Contains(r.err, "[input-unusable]") && !strings.Contains(r.err, "[input-damaged]") {
			t.Errorf("%s of %s, damaged (%s): status %d: %s", command, name, m.Name, r.status, r.err)
		}
		if err := os.WriteFile(name, whole, 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

// filesIn lists the files below a folder.
func filesIn(t *testing.T, dir string) (names []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			names = append(names, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// checkColumns compares the columns of all files with those documented in docs/DATASET.md.
func checkColumns(t *testing.T, dir string) {
	t.Helper()
	columns := map[string][]dataset.Column{} // by file
	for i := range dataset.Tables {
		for _, part := range dataset.Tables[i].Parts {
			columns[dataset.Tables[i].Name+"-"+part+tablefile.ParquetSuffix] = dataset.Tables[i].Columns
		}
	}
	for _, path := range glob(t, dir, datasetName, dataset.Version, "capture=*", "*") {
		f, err := tablefile.OpenParquet(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		want := columns[filepath.Base(path)]
		if !slices.EqualFunc(f.Columns(), want, func(a tablefile.Column, b dataset.Column) bool { return a.Name == b.Name && a.Optional == b.Null }) {
			t.Errorf("%s has columns\n%v\nwant\n%v", path, f.Columns(), want)
		}
	}
}
