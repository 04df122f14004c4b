package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/scripts/scale/engines"
)

// installed returns the engines that can be had; without any, the test skips.
func installed(t *testing.T) (list []*engines.Engine) {
	cache := os.Getenv("SGTRACE_SCALE")
	if cache == "" {
		t.Skip("$SGTRACE_SCALE is not set: 'make scale' sets it")
	}
	var missing error
	for _, e := range engines.All() {
		err := e.Install(t.Context(), cache)
		switch {
		case err == nil:
			list = append(list, e)
		case errors.Is(err, engines.ErrUnavailable):
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

// Views have the tables of reports, cell by cell.
func TestViewsAreReports(t *testing.T) {
	list, dir := installed(t), t.TempDir()
	mustRun(t, dir, "demo --requests 120 demo")
	mustRun(t, dir, "extract -o demo.dataset demo")
	for _, e := range list {
		statements := mustRun(t, dir, "sql --dialect "+e.Dialect+" "+filepath.Join(dir, "demo.dataset")).out
		differences, err := e.CheckTables(t.Context(), statements, func(command string) ([]byte, error) {
			return []byte(mustRun(t, dir, command+" demo").out), nil
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range differences {
			t.Error(text)
		}
	}
}

// question matches a query of docs/SQL.md with its heading.
var question = regexp.MustCompile("(?s)\n## ([^\n]*\\?)\n.*?```sql\n(.*?);\n```")

// waitedFor and computesSlower are the questions whose answer is planted.
const (
	waitedFor      = "Which rank do the others wait for?"
	computesSlower = "Which GPU computes slower than the others?"
)

// plantedRank is the rank of a demo that the others wait for, as reports name it.
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

// The questions of docs/SQL.md have answers, and the planted rank is that of the right one.
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
			if want := plantedRank(t, dir); (found[i][1] == waitedFor || found[i][1] == computesSlower) && r.Rows[0][0] != want {
				t.Errorf("%s: %s, want %s", found[i][1], r.Rows[0][0], want)
			}
			if ratio, err := strconv.ParseFloat(fmt.Sprint(r.Rows[0][len(r.Rows[0])-1]), 64); found[i][1] == computesSlower && !(err == nil && ratio > 1.2 && ratio < 1.24) {
				t.Errorf("%s: %v, and the report says 22 %%", computesSlower, r.Rows[0])
			}
		}
	}
}
