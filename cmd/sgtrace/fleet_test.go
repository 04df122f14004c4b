package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sgtrace/sgtrace/dataset"
	"github.com/sgtrace/sgtrace/golden"
	"github.com/sgtrace/sgtrace/internal/tablefile"
)

// Two servers are recorded for three days and extracted day by day. The report names the GPU that is slow every
// day and the versions that arrived on the second day, and prints the same for the files as for the dataset.
func TestFleet(t *testing.T) {
	dir := t.TempDir()
	c := golden.DefaultWeeks(3, 2)
	c.SlowEvery = 1
	for day := range c.Days {
		if err := c.WriteDay(filepath.Join(dir, inputsName), day); err != nil {
			t.Fatal(err)
		}
		mustRun(t, dir, "extract --quiet -o "+datasetName+" "+golden.DayDir(inputsName, day))
	}
	want := mustRun(t, dir, "report --format json --fleet "+inputsName)
	got := mustRun(t, dir, "report --format json --fleet "+datasetName)
	same(t, "fleet", asInputs(want), asInputs(got))

	tables := rowsOf(t, got.out)
	rows := tables["fleet.offenders"]
	if len(rows) == 0 {
		t.Fatalf("no offenders in %s", got.out)
	}
	// This GPU, one of eight, is a straggler in all three runs; p is 8 * (1/8)^3.
	for key, value := range map[string]any{"what": "gpu", "name": "GPU 2 of unified-1", "found": 3., "of": 3., "sure": "likely", "host": "unified-1", "gpu": 2., "kinds": "straggler", "p": 8. / 512} {
		if rows[0][key] != value {
			t.Errorf("the first offender has %s %v, want %v", key, rows[0][key], value)
		}
	}
	after := map[string]any{}
	for _, row := range tables["fleet.versions"] {
		after[row["version"].(string)] = row["after"]
	}
	if after[golden.Releases[1]] != golden.Releases[0] || after[golden.Drivers[1]] != golden.Drivers[0] {
		t.Errorf("versions came after others: %v", after)
	}
	if found := tables["findings"]; len(found) != 1 || found[0]["kind"] != "repeat" || found[0]["host"] != "unified-1" {
		t.Errorf("findings are %v", found)
	}
	if n := len(tables["fleet.runs"]); n != 3 {
		t.Errorf("%d runs, want 3", n)
	}
	redacted := rowsOf(t, mustRun(t, dir, "report --format json --redact --fleet "+datasetName).out)["fleet.offenders"]
	if uuid := redacted[0]["uuid"].(string); !strings.HasPrefix(uuid, "gpu-") {
		t.Errorf("the pseudonym of a GPU is %q", uuid)
	}
	first := mustRun(t, dir, "report --fleet --to 2026-03-02T00:00:00Z "+datasetName)
	if !strings.Contains(first.out, "Not judged: repeat offenders: 1 run, 3 needed\n") {
		t.Errorf("of the first day it says\n%s", first.out)
	}
}

// The summary reports what repeats across runs, for files as for a dataset. Known findings can be
// muted, and --fail-on and HTML pages have the findings, too.
func TestFindingsOfWeeks(t *testing.T) {
	dir := t.TempDir()
	c := golden.DefaultWeeks(3, 2)
	c.SlowEvery, c.Recorded = 1, 200*time.Millisecond
	for day := range c.Days {
		if err := c.WriteDay(filepath.Join(dir, inputsName), day); err != nil {
			t.Fatal(err)
		}
	}
	mustRun(t, dir, "extract --quiet -o "+datasetName+" "+inputsName)
	want, got := mustRun(t, dir, "report --all-findings "+inputsName), mustRun(t, dir, "report --all-findings "+datasetName)
	same(t, "summary", asInputs(want), asInputs(got))
	const sentence = "GPU 2 of unified-1"
	facts, _, _ := strings.Cut(got.out, "\ntrust")
	if !strings.Contains(strings.Join(strings.Fields(facts), " "), " runs 3; from 2026-03-01 to 2026-03-03; "+sentence+" was late or slow in 3 of") {
		t.Errorf("the head of the summary says\n%s", facts)
	}
	if got := mustRun(t, dir, "report --fleet --mute repeat@GPU "+datasetName); strings.Contains(got.out, sentence+" (") || !strings.Contains(got.out, "Muted: 1 finding: 1 repeat") {
		t.Errorf("muted, it says\n%s", got.out)
	}
	failed := sgtrace(t, dir, "report", "--fleet", "--fail-on", "repeat", "-o", "page.html", datasetName)
	page, err := os.ReadFile(filepath.Join(dir, "page.html"))
	if failed.status != exitGate || err != nil {
		t.Fatalf("--fail-on repeat: status %d, %v", failed.status, err)
	}
	for _, part := range []string{sentence + " (", `id="table-fleet.offenders"`, `id="losses-by-day"`, `id="steps-by-day"`, "sglang went from 0.5.2 to 0.5.3", `id="gate"`} {
		if !strings.Contains(string(page), part) {
			t.Errorf("the page has no %q", part)
		}
	}
}

// A time window opens no captures of other days, and --rank opens none of other hosts.
func TestOtherCapturesStayClosed(t *testing.T) {
	dir := t.TempDir()
	c := golden.DefaultWeeks(2, 2)
	c.Recorded = 200 * time.Millisecond
	for day := range c.Days {
		if err := c.WriteDay(filepath.Join(dir, inputsName), day); err != nil {
			t.Fatal(err)
		}
	}
	mustRun(t, dir, "extract --quiet -o "+datasetName+" "+inputsName)
	commands := []string{"report --kernels --by-rank --format json --rank DP1 --from 2026-03-02T00:00:00Z", "report --by-rank --format json --rank DP1 --from 2026-03-02T00:00:00Z --to 2026-03-03T00:00:00Z"}
	var want []result
	for _, command := range commands {
		of := mustRun(t, dir, command+" "+inputsName)
		same(t, command, asInputs(of), asInputs(mustRun(t, dir, command+" "+datasetName)))
		want = append(want, asInputs(of))
	}
	captures, err := dataset.Captures(filepath.Join(dir, datasetName))
	if err != nil {
		t.Fatal(err)
	}
	damaged := 0
	for _, c := range captures {
		if c.Name == filepath.Join(golden.DayDir(inputsName, 1), "nsys", "unified-1.sqlite") {
			continue
		}
		for _, name := range []string{"slices-kernels", "slices-calls", "slices-ranges"} {
			path := filepath.Join(c.Dir, name+tablefile.ParquetSuffix)
			if _, err := os.Stat(path); err == nil {
				damaged++
				if err := os.WriteFile(path, []byte("not a Parquet file"), 0o666); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	if damaged != 9 {
		t.Fatalf("%d files are damaged", damaged)
	}
	for i, command := range commands {
		same(t, command, want[i], asInputs(mustRun(t, dir, command+" "+datasetName)))
	}
}

// rowsOf returns the rows of each table in a JSON document.
func rowsOf(t *testing.T, text string) map[string][]map[string]any {
	t.Helper()
	var d struct {
		Tables []struct {
			Name string
			Rows []map[string]any
		}
	}
	if err := json.Unmarshal([]byte(text), &d); err != nil {
		t.Fatal(err)
	}
	rows := map[string][]map[string]any{}
	for _, table := range d.Tables {
		rows[table.Name] = table.Rows
	}
	return rows
}

// With very many ranks, the text shows those that findings name and sums up the others, by the
// groups in a file if there is one. JSON and --all-ranks have them all.
func TestManyRanks(t *testing.T) {
	dir := t.TempDir()
	c := golden.DefaultWeeks(1, 18)
	c.Recorded = 200 * time.Millisecond
	if err := c.WriteDay(filepath.Join(dir, inputsName), 0); err != nil {
		t.Fatal(err)
	}
	groups := "host,rack\n"
	for server := range c.Servers {
		groups += fmt.Sprintf("unified-%d,r%d\n", server, server/6)
	}
	if err := os.WriteFile(filepath.Join(dir, "hosts.csv"), []byte(groups), 0o666); err != nil {
		t.Fatal(err)
	}
	command := "report --by-rank --table collectives.ranks "
	ofRanks := func(flags string) []string {
		var names []string
		for _, line := range strings.Split(mustRun(t, dir, command+flags+inputsName).out, "\n") {
			if strings.HasPrefix(line, "DP") || strings.Contains(line, "other ranks") || strings.HasPrefix(line, "rack ") {
				name, _, _ := strings.Cut(line, "  ")
				names = append(names, name)
			}
		}
		return names
	}
	others := []string{"71 other ranks on 18 hosts: least", "71 other ranks on 18 hosts: p50", "71 other ranks on 18 hosts: most"}
	for flags, want := range map[string][]string{
		"":                   slices.Concat([]string{"DP9 TP2"}, others),
		"--hosts hosts.csv ": slices.Concat([]string{"DP9 TP2", "rack r0: p50", "rack r1: p50", "rack r2: p50"}, others),
	} {
		if got := ofRanks(flags); !slices.Equal(got, want) {
			t.Errorf("with %q there are %q, want %q", flags, got, want)
		}
	}
	if n := len(ofRanks("--all-ranks ")); n != 72 {
		t.Errorf("--all-ranks lists %d ranks", n)
	}
	if n := len(rowsOf(t, mustRun(t, dir, command+"--format json "+inputsName).out)["collectives.ranks"]); n != 72 {
		t.Errorf("JSON has %d ranks", n)
	}
}
