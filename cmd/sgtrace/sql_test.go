package main

import (
	"errors"
	"os"
	"path/filepath"
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
