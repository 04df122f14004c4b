package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/cmd/sgtrace/internal/reports"
	"github.com/sgtrace/sgtrace/golden/cluster"
)

// biased copies the records of a run, line by line through keep, which returns "" to drop a line.
func biased(t *testing.T, records string, keep func(line string) string) string {
	t.Helper()
	dir := t.TempDir()
	err := filepath.WalkDir(records, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		var b strings.Builder
		for line := range strings.Lines(string(text)) {
			b.WriteString(keep(line))
		}
		return os.WriteFile(filepath.Join(dir, filepath.Base(filepath.Dir(path))+".log"), []byte(b.String()), 0o666)
	})
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// Percentiles of requests come with a note if only slow or failed requests were recorded, and
// without one if all were.
func TestPercentilesOfBiasedSamples(t *testing.T) {
	x := leave(t, "healthy_direct", 3, cluster.Logging{Layout: cluster.Layouts[0]})
	slow := biased(t, x.records, func(line string) string {
		_, rest, _ := strings.Cut(line, `"e2e_latency": `)
		if s, _ := strconv.ParseFloat(rest[:strings.Index(rest, ",")], 64); s < 1 {
			return ""
		}
		return line
	})
	failed := biased(t, x.records, func(line string) string {
		return strings.NewReplacer(`{"type": "stop"}`, `{"type": "abort", "message": "x"}`, `{"type": "length"}`, `{"type": "abort", "message": "x"}`).Replace(line)
	})
	commands := [][]string{{"requests"}, {"report"}, {"diff", slow}}
	for _, r := range reports.All {
		if r.Needs == reports.Requests && !strings.Contains(r.Usage, "`") {
			commands = append(commands, []string{"report", "--" + r.Name})
		}
	}
	noted := map[string]int{}
	for code, dir := range map[string]string{"records-slow-only": slow, "records-failed-only": failed, "": x.records} {
		for _, args := range commands {
			r := sgtrace(t, dir, append(args, "--format", "json", dir)...)
			var d struct {
				Tables []struct {
					Name    string
					Columns []struct{ Name string }
					Rows    []any
					Notes   []string
				}
			}
			if err := json.Unmarshal([]byte(r.out), &d); err != nil {
				continue // needs steps or a latency goal
			}
			for _, table := range d.Tables {
				percentiles := false
				for _, c := range table.Columns {
					percentiles = percentiles || strings.HasPrefix(c.Name, "p50") || strings.HasPrefix(c.Name, "p99")
				}
				said := strings.Contains(strings.Join(table.Notes, " "), "[records-")
				if said && (code == "" && args[0] != "diff" || code != "" && !strings.Contains(strings.Join(table.Notes, " "), code) && args[0] != "diff") {
					t.Errorf("%v: table %s of %q says %q", args, table.Name, code, table.Notes)
				}
				if percentiles && len(table.Rows) > 0 && !said && code != "" && !strings.HasPrefix(table.Name, "metrics.") {
					t.Errorf("%v: table %s says nothing of its sample [%s]", args, table.Name, code)
				}
				if said {
					noted[code]++
				}
			}
		}
	}
	if noted["records-slow-only"] < 5 || noted["records-failed-only"] < 3 {
		t.Errorf("%v", noted)
	}
}
