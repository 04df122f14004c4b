package main

import (
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/testkit/readback"
)

// installed returns the installed SQL engines, and skips the test if there are none.
func installed(t *testing.T) (list []*readback.SQLEngine) {
	cache := os.Getenv("SGTRACE_SCALE")
	if cache == "" {
		t.Skip("$SGTRACE_SCALE is not set: 'make scale' sets it")
	}
	var missing error
	for _, e := range readback.SQLEngines() {
		err := e.Install(t.Context(), cache)
		switch {
		case err == nil:
			list = append(list, e)
		case errors.Is(err, readback.ErrUnavailable):
			missing = err
		default:
			t.Fatal(err)
		}
	}
	if len(list) == 0 {
		t.Skip(missing)
	}
	return list
}

// Views equal the tables of reports, cell by cell.
func TestViewsAreReports(t *testing.T) {
	list := installed(t)
	dir := os.Getenv("SGTRACE_SCALE_RUN") // a dataset of many ranks, made by scripts/scale.sh
	if dir == "" {
		dir = t.TempDir()
		mustRun(t, dir, "demo --requests 120 traces-in")
		mustRun(t, dir, "extract -o traces-ds traces-in")
	}
	dumps := filepath.Join(t.TempDir(), "dumps-ds")
	mustRun(t, dir, "extract -o "+dumps+" traces-in/otel.jsonl")
	for _, e := range list {
		for dataset, ofDumps := range map[string]bool{filepath.Join(dir, "traces-ds"): false, dumps: true} {
			statements := mustRun(t, dir, "sql --dialect "+e.Dialect+" "+dataset).out
			differences, err := e.CheckTables(t.Context(), statements, ofDumps, func(command string) ([]byte, error) {
				return []byte(mustRun(t, dir, command+" traces-in").out), nil
			})
			if err != nil {
				t.Fatal(err)
			}
			for _, text := range differences {
				t.Error(text)
			}
		}
	}
}

// question matches a question in docs/SQL.md and its query.
var question = regexp.MustCompile("(?s)\n## ([^\n]*\\?)\n.*?```sql\n(.*?);\n```")

// waitedFor and computesSlower are the questions whose answer is planted.
const (
	waitedFor      = "Which rank do the others wait for?"
	computesSlower = "Which GPU computes slower than the others?"
)

// plantedRank returns the straggler planted in a demo, as reports name it.
func plantedRank(t *testing.T, dir string) string {
	t.Helper()
	var truth struct {
		Straggler struct{ Role, Rank string }
	}
	if err := json.Unmarshal(readFile(t, filepath.Join(dir, "demo", "truth.json")), &truth); err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(truth.Straggler.Rank, "-") // TP1-PP0-DP0
	return truth.Straggler.Role + " " + parts[2] + " " + parts[0]
}

// An answer is the report that answers the same question: names are the columns that identify its
// rows, and value is the column that the question gives in its column number in.
type answer struct {
	report string
	names  []string
	value  string
	in     int
	of     float64 // the question divides the report's number by this
}

var answers = map[string]answer{
	"Where does the time go?":                     {"report --by-stage --format csv demo", []string{"stage"}, "p50_ns", 2, 1e6},
	"Which requests are slow, and in which part?": {"requests --format csv demo", []string{"rid"}, "e2e_ns", 2, 1e6},
	waitedFor:                 {"report --by-rank --table collectives.ranks --format csv demo", []string{"rank"}, "last", 1, 1},
	"Is load divided evenly?": {"report --by-rank --table ranks --format csv demo", []string{"role", "rank"}, "requests", 1, 1},
	"Do steps of one size take longer on some ranks?": {"report --by-rank --table steps --format csv demo", []string{"rank", "kind", "batch"}, "p50_ns", 4, 1e6},
}

// sameAsReport compares the rows that answer a question with those of the report, which contains
// all of them by name.
func sameAsReport(t *testing.T, question string, answered [][]any, dir string, a answer) {
	t.Helper()
	cells, err := csv.NewReader(strings.NewReader(mustRun(t, dir, a.report).out)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	at := func(column string) int { return slices.Index(cells[0], column) }
	printed := map[string]string{}
	for _, row := range cells[1:] {
		var name []string
		for _, column := range a.names {
			name = append(name, row[at(column)])
		}
		printed[strings.Join(name, " ")] = row[at(a.value)]
	}
	compared := 0
	for _, given := range answered {
		var row []string
		for _, cell := range given {
			row = append(row, fmt.Sprint(cell))
		}
		name := row[0]
		if len(a.names) > 1 && a.names[0] != "role" {
			name = strings.Join(row[:len(a.names)], " ")
		}
		want, err := strconv.ParseFloat(printed[name], 64)
		if err != nil {
			continue
		}
		compared++
		if got, err := strconv.ParseFloat(row[a.in], 64); err != nil || math.Abs(got-want/a.of) > 1e-6*math.Abs(got) {
			t.Errorf("%s: %v, and %s says %v", question, row, a.report, want/a.of)
		}
	}
	if compared < 4 {
		t.Errorf("%s: the report %s has %d of its %d rows", question, a.report, compared, len(answered))
	}
}

// The queries in docs/SQL.md return rows that equal those of reports, and the right one names the planted rank.
func TestQuestions(t *testing.T) {
	found := question.FindAllStringSubmatch(string(readFile(t, "../../docs/SQL.md")), -1)
	if len(found) != 10 {
		t.Fatalf("%d questions, want 10", len(found))
	}
	pythonPage := string(readFile(t, "../../docs/PYTHON.md"))
	list, dir := installed(t), t.TempDir()
	mustRun(t, dir, "demo demo")
	mustRun(t, dir, "extract -o demo.dataset demo")
	var queries []string
	for _, m := range found {
		queries = append(queries, m[2])
	}
	python := regexp.MustCompile(`db\.sql\("(.*?)"\)`).FindStringSubmatch(pythonPage)
	if python == nil {
		t.Fatal("docs/PYTHON.md has no query")
	}
	found = append(found, []string{"", "docs/PYTHON.md"})
	queries = append(queries, python[1])
	for _, e := range list {
		if e.Dialect != "duckdb" {
			continue
		}
		results, err := e.Query(t.Context(), mustRun(t, dir, "sql "+filepath.Join(dir, "demo.dataset")).out, queries...)
		if err != nil {
			t.Fatal(err)
		}
		for i, r := range results {
			t.Log(found[i][1], r.Columns, r.Rows[:min(2, len(r.Rows))])
			if len(r.Rows) == 0 {
				t.Fatalf("%s: no rows", found[i][1])
			}
			if answer, ok := answers[found[i][1]]; ok {
				sameAsReport(t, found[i][1], r.Rows, dir, answer)
			}
			if want := plantedRank(t, dir); (found[i][1] == waitedFor || found[i][1] == computesSlower) && r.Rows[0][0] != want {
				t.Errorf("%s: %s, want %s", found[i][1], r.Rows[0][0], want)
			}
			if ratio, err := strconv.ParseFloat(fmt.Sprint(r.Rows[0][len(r.Rows[0])-1]), 64); found[i][1] == computesSlower && !(err == nil && ratio > 1.2 && ratio < 1.24) {
				t.Errorf("%s: %v, and the report says 22 %%", computesSlower, r.Rows[0])
			}
		}
	}
}
