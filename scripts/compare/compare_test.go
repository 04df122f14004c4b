package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// fakeProgram writes a shell script that is called sgtrace.
func fakeProgram(t *testing.T, script string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), program)
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script+"\n"), 0o777); err != nil {
		t.Fatal(err)
	}
	return path
}

// fakeInputs are the folders of inputs, with nothing in them.
func fakeInputs(t *testing.T) inputs {
	t.Helper()
	in := inputs{dir: t.TempDir()}
	for _, name := range inputNames {
		if err := os.Mkdir(filepath.Join(in.dir, name), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	return in
}

func TestDifferencesAreFound(t *testing.T) {
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip("no sh")
	}
	const base = "echo one; echo two; echo oops >&2; printf 'a\\0b' >out.bin; mkdir -p dir; echo x >dir/part"
	for _, test := range []struct {
		name, script string
		want         string // in what is printed; "" if nothing is
	}{
		{"equal", base, ""},
		{"stdout", strings.Replace(base, "two", "too", 1), "stdout differs from byte 6, line 2, on:\n    - two\n    + too\n"},
		{"stderr", strings.Replace(base, "oops", "oops!", 1), "stderr differs from byte 5, line 1, on:\n    - oops\n    + oops!\n"},
		{"more", base + "; echo three", "    - (end)\n    + three\n"},
		{"status", base + "; exit 3", "  exit status was 0, is 3\n"},
		{"bytes", strings.Replace(base, "0b", "1b", 1), "  out.bin differs from byte 2, line 1, on:\n    - \"a\\x00b\"\n    + \"a\\x01b\"\n"},
		{"folder", strings.Replace(base, "echo x", "echo y", 1), "  dir/part differs from byte 1"},
		{"less", base + "; rm out.bin", "  out.bin is not written any more\n"},
		{"new", base + "; echo >new", "  new is new\n"},
		{"left behind", base + "; echo >tmp/sgtrace-1", "  tmp/sgtrace-1 is new\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var out strings.Builder
			c := &comparison{base: fakeProgram(t, base), changed: fakeProgram(t, test.script), inputs: fakeInputs(t), work: t.TempDir(), keep: t.TempDir(), out: &out}
			var err error
			if c.known, err = openCache(t.TempDir(), c.base, c.inputs); err != nil {
				t.Fatal(err)
			}
			for range 2 { // the base is known the second time
				out.Reset()
				n := c.runAll(t.Context(), []string{"sgtrace report"}, 2)
				if differs := test.want != ""; differs != (n == 1) || !strings.Contains(out.String(), test.want) || !differs && out.Len() > 0 {
					t.Errorf("%d differ:\n%s", n, &out)
				}
			}
			for _, side := range []string{"base", "new"} {
				_, err := os.Stat(filepath.Join(c.keep, "0001", side, stdoutName))
				if kept := err == nil; kept != (test.want != "") {
					t.Errorf("kept what %s has written: %t", side, kept)
				}
			}
		})
	}
}

func TestUnsteadyBase(t *testing.T) {
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip("no sh")
	}
	var out strings.Builder
	unsteady := fakeProgram(t, "echo $$")
	c := &comparison{base: unsteady, changed: unsteady, inputs: fakeInputs(t), work: t.TempDir(), out: &out}
	var err error
	if c.known, err = openCache(t.TempDir(), c.base, c.inputs); err != nil {
		t.Fatal(err)
	}
	if n := c.runAll(t.Context(), []string{"sgtrace"}, 1); n != 1 || !strings.Contains(out.String(), "the base itself does something else") {
		t.Errorf("%d differ:\n%s", n, &out)
	}
}

func TestCacheStays(t *testing.T) {
	dir, base := t.TempDir(), fakeProgram(t, "")
	c, err := openCache(dir, base, inputs{})
	if err != nil {
		t.Fatal(err)
	}
	want := result{Status: 3, Files: []file{{Name: stdoutName, Size: 1, Sum: "a"}}}
	c.put("sgtrace", want)
	if err := c.save(); err != nil {
		t.Fatal(err)
	}
	if c, err = openCache(dir, base, inputs{}); err != nil {
		t.Fatal(err)
	}
	if got, ok := c.get("sgtrace"); !ok || !got.equal(want) {
		t.Errorf("%+v, %t", got, ok)
	}
	if c, err = openCache(dir, base, inputs{print: "other"}); err != nil {
		t.Fatal(err)
	}
	if _, ok := c.get("sgtrace"); ok {
		t.Error("it holds for other inputs, too")
	}
}

func TestCommands(t *testing.T) {
	in := fakeInputs(t)
	opt := options{run: regexp.MustCompile("")}
	all, err := commands(in, opt)
	if err != nil {
		t.Fatal(err)
	}
	opt.quick = true
	quick, err := commands(in, opt)
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 500 || len(quick) < 30 || len(quick) > 100 {
		t.Errorf("%d commands, %d of them quick", len(all), len(quick))
	}
	for _, line := range all {
		if ofShared.MatchString(line) || !strings.Contains(line, program) {
			t.Error(line)
		}
	}
}

func TestExpand(t *testing.T) {
	sets := map[string][]string{"a": {"1", "2"}, "b": {"'x y'"}}
	for _, test := range []struct {
		line  string
		first bool
		want  string
	}{
		{"none", false, "none"},
		{"@a-@b-@a", false, "1-'x y'-1|2-'x y'-2"},
		{"@a-@b", true, "1-'x y'"},
	} {
		got, err := expand(test.line, sets, test.first)
		if err != nil || strings.Join(got, "|") != test.want {
			t.Errorf("%s: %q, %v", test.line, got, err)
		}
	}
	if _, err := expand("@c", sets, false); err == nil {
		t.Error("a set that is not there")
	}
}
