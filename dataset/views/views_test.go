package views

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

var viewName = regexp.MustCompile(`(?m)^create or replace (?:temporary )?view (\w+) as$`)

// All dialects have the same views, one statement each, and none contains syntax of another engine.
func TestDialects(t *testing.T) {
	foreign := map[string]string{"duckdb": "Int64|percentile|quantileExact|parquet\\.", "clickhouse": "//|hugeint|bigint|quantile_disc|parquet\\.", "spark": "//|hugeint|Int64|quantile|file\\("}
	var first []string
	for _, d := range Dialects {
		var b strings.Builder
		if err := Write(&b, d, "/data/week", "/data/week/v1/solved=0"); err != nil {
			t.Fatal(err)
		}
		text := b.String()
		var names []string
		for _, m := range viewName.FindAllStringSubmatch(text, -1) {
			names = append(names, m[1])
		}
		if first == nil {
			first = names
		}
		if len(names) < 15 || !slices.Equal(names, first) {
			t.Errorf("%s has the views %v, want %v", d.Name, names, first)
		}
		if statements := strings.Count(text, ";\n"); statements != len(names)+len(d.macros) {
			t.Errorf("%s: %d statements for %d views", d.Name, statements, len(names))
		}
		for _, bad := range []string{foreign[d.Name], "%!|<no value>|\\{\\{"} {
			if m := regexp.MustCompile(bad).FindString(text); m != "" {
				t.Errorf("%s has %q", d.Name, m)
			}
		}
	}
}

func TestFolderThatIsAPattern(t *testing.T) {
	if err := Write(&strings.Builder{}, Dialects[0], "/data/run[1]", "solved=0"); err == nil {
		t.Error("no error for a folder that engines take for a pattern")
	}
}
