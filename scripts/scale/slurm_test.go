//go:build linux

package main

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func TestSlurm(t *testing.T) {
	cache := os.Getenv("SGTRACE_SCALE")
	if cache == "" {
		t.Skip("$SGTRACE_SCALE is not set: 'make scale' sets it")
	}
	dir := t.TempDir()
	c, err := startSlurm(t.Context(), filepath.Join(cache, "slurm"), dir)
	if errors.Is(err, errNoSlurm) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer c.stop()
	out := filepath.Join(dir, "out.%a")
	array, err := c.submit("--array=0-3", "--output="+out, "--wrap", "echo task $SLURM_ARRAY_TASK_ID")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.submit("--wait", "--dependency=afterok:"+array, "--output="+filepath.Join(dir, "sum"), "--wrap", "cat "+dir+"/out.*"); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(dir, "sum"))
	if want := "task 0\ntask 1\ntask 2\ntask 3\n"; err != nil || string(got) != want {
		t.Errorf("%q, %v; want %q", got, err, want)
	}
}
