package readback

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// ErrUnavailable means that an engine is not available here: there is no Node.js, or no reachable registry.
var ErrUnavailable = errors.New("the SQL engine is not available")

// An SQLEngine is a database that reads Parquet files.
type SQLEngine struct {
	Dialect string // its name in 'sgtrace sql --dialect'
	pkg     string // of npm
	script  []byte
	file    string // of the script
	cache   string
}

//go:embed duckdb.mjs
var duckdb []byte

//go:embed clickhouse.cjs
var clickhouse []byte

// SQLEngines returns the engines, not yet installed.
func SQLEngines() []*SQLEngine {
	return []*SQLEngine{
		{Dialect: "duckdb", pkg: "@duckdb/node-api@1.5.6-r.1", script: duckdb, file: "duckdb.mjs"},
		{Dialect: "clickhouse", pkg: "chdb@3.4.0", script: clickhouse, file: "clickhouse.cjs"},
	}
}

// Install installs the engine into a folder below cache, unless it is there.
func (e *SQLEngine) Install(ctx context.Context, cache string) error {
	e.cache = filepath.Join(cache, e.Dialect)
	done := filepath.Join(e.cache, "installed "+filepath.Base(e.pkg))
	if _, err := os.Stat(done); err != nil {
		if err := os.MkdirAll(e.cache, 0o755); err != nil {
			return err
		}
		// Find out at once that a registry is unreachable: npm install would try for a quarter of an hour.
		probe := exec.CommandContext(ctx, "npm", "view", "--fetch-retries=0", "--fetch-timeout=20000", e.pkg, "version")
		if out, err := probe.CombinedOutput(); err != nil {
			return fmt.Errorf("%w: npm view %s: %v\n%s", ErrUnavailable, e.pkg, err, out)
		}
		npm := exec.CommandContext(ctx, "npm", "install", "--no-audit", "--no-fund", "--prefix", e.cache, e.pkg)
		if out, err := npm.CombinedOutput(); err != nil {
			return fmt.Errorf("%w: npm install %s: %v\n%s", ErrUnavailable, e.pkg, err, out)
		}
		if err := os.WriteFile(done, nil, 0o644); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(e.cache, e.file), e.script, 0o644)
}

// A Result is the result of a query. Cells are JSON values: numbers as numbers, or as strings if the engine writes them
// that way to be safe; null is nil.
type Result struct {
	Columns []string
	Rows    [][]any
}

// Query runs statements, such as those that create views, and then queries.
func (e *SQLEngine) Query(ctx context.Context, statements string, queries ...string) ([]*Result, error) {
	in, err := json.Marshal(map[string]any{"statements": statements, "queries": queries})
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, "node", filepath.Join(e.cache, e.file))
	cmd.Stdin = bytes.NewReader(in)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %v\n%s", e.Dialect, err, stderr.Bytes())
	}
	d := json.NewDecoder(bytes.NewReader(out))
	d.UseNumber()
	var results []*Result
	if err := d.Decode(&results); err != nil {
		return nil, fmt.Errorf("%s: %v", e.Dialect, err)
	}
	return results, nil
}
