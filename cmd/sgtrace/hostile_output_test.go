//go:build unix

package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A series of files appears completely or not at all.
func TestSeriesIsWhole(t *testing.T) {
	e := newEvidence(t)
	c := child{dir: e.dir}
	series := []string{"merge", "part-003.json", "--split", "1s", "-o", "part.json"}
	if err := os.Rename(filepath.Join(e.dir, e.otel), filepath.Join(e.dir, "part-003.json")); err != nil {
		t.Fatal(err)
	}
	before := snapshot(t, e.dir)
	c.run(t, series...).check(t, exitUsage, "part-003.json is also an input")
	checkOnly(t, e.dir, before)

	c.run(t, append(series[:len(series)-1], "whole.json")...).check(t, exitOK)
	parts, err := filepath.Glob(filepath.Join(e.dir, "whole-*.json"))
	if err != nil || len(parts) < 2 {
		t.Fatalf("the series is %v, %v", parts, err)
	}
	var sizes []int64
	for _, name := range parts {
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		sizes = append(sizes, info.Size())
	}
	if sizes[0] == slices.Max(sizes) {
		t.Fatalf("the first part is the largest: %d", sizes)
	}
	before = snapshot(t, e.dir)
	c.limits = fmt.Sprintf("ulimit -f %d", (slices.Max(sizes)-1)/512)
	c.run(t, append(series[:len(series)-1], "other.json")...).check(t, exitFailed, "other-001.json: ", "file too large")
	checkOnly(t, e.dir, before)
}

// The mode of an output follows umask, or is that of the file it replaces.
func TestModeOfOutput(t *testing.T) {
	e := newEvidence(t)
	for _, test := range []struct {
		umask string
		old   fs.FileMode // 0 if there is none
		want  fs.FileMode
	}{
		{"022", 0, 0o644},
		{"077", 0, 0o600},
		{"002", 0, 0o664},
		{"077", 0o644, 0o644},
		{"022", 0o600, 0o600},
	} {
		name := filepath.Join(e.dir, "out.pftrace")
		if err := os.RemoveAll(name); err != nil {
			t.Fatal(err)
		}
		if test.old != 0 {
			if err := os.WriteFile(name, nil, test.old); err != nil {
				t.Fatal(err)
			}
		}
		child{dir: e.dir, limits: "umask " + test.umask}.run(t, "merge", e.torch, "-o", "out.pftrace").check(t, exitOK)
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode() != test.want {
			t.Errorf("umask %s, before %v: %v, want %v", test.umask, test.old, info.Mode(), test.want)
		}
	}
}

// The key of --redact-key is read like an input, and no output overwrites it.
func TestKeyIsNoOutput(t *testing.T) {
	e := newEvidence(t)
	if err := os.WriteFile(filepath.Join(e.dir, "key.json"), bytes.Repeat([]byte("key"), 20), 0o600); err != nil {
		t.Fatal(err)
	}
	before := snapshot(t, e.dir)
	for _, args := range [][]string{
		{"-o", "key.json"},
		{"-o", "out.json", "--clock-report", "./key.json"},
	} {
		args = append([]string{"merge", e.otel, "--redact-key", "key.json"}, args...)
		child{dir: e.dir}.run(t, args...).check(t, exitUsage, "is also an input")
		checkOnly(t, e.dir, before)
	}
}

// Output names are as hostile as any other names when printed.
func TestNamesOfOutputs(t *testing.T) {
	e := newEvidence(t)
	for _, args := range [][]string{
		{"merge", e.otel, "--verify"},
		{"merge", e.otel, "--split", "1m"},
		{"convert", "otel2perfetto", e.otel},
	} {
		r := child{dir: e.dir}.run(t, append(args, "-o", "a\x1b[31m\nb.pftrace")...)
		r.check(t, exitOK, "[31m")
		if strings.Contains(r.err, "\x1b") || strings.Contains(r.err, "\nb") {
			t.Errorf("%v prints %q", args, r.err)
		}
	}
}
