package inputs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/trace"
)

// Files that are not inputs are described if they are named explicitly. In folders, they are left
// out, and source code that quotes a dump is not a dump.
func TestFilesThatAreNoInputs(t *testing.T) {
	const dump = `{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"5b8efff798038103d269b633813fc60c","spanId":"eee19b7ec3c1b174","name":"a","startTimeUnixNano":"1","endTimeUnixNano":"2"}]}]}]}`
	dir := t.TempDir()
	files := map[string][2]string{
		"a.png":        {"\x89PNG\r\n\x1a\n0000IHDR", "is a picture"},
		"s.pickle":     {"\x80\x04\x95abc", "is a pickle of Python"},
		"a.out":        {"\x7fELF\x02", "is a program"},
		"start.log":    {"/usr/lib/python3/site-packages/sglang/srt/layers/awq.py:77: UserWarning: no AWQ\n", "not a format that sgtrace reads"},
		"run.nsys-rep": {"garbage\x00\x01", "does not begin as one"},
		"x_test.go":    {"package x\n\nconst dump = `" + dump + "`\n", "is source code or text"},
		"README.md":    {"# Dumps\n\n    " + dump + "\n", "is source code or text"},
		"b.py":         {"#!/usr/bin/env python3\nd = '''" + dump + "'''\n", "is source code or text"},
	}
	for name, f := range files {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(f[0]), 0o666); err != nil {
			t.Fatal(err)
		}
		found, err := Find([]string{path})
		if err != nil {
			t.Fatal(err)
		}
		var diags trace.Diags
		_, _ = Load(found, Options{}, &diags)
		if all := diags.All(); len(all) == 0 || !strings.Contains(all[0].Msg, f[1]) {
			t.Errorf("%s: %v, want %q", name, all, f[1])
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "otel.jsonl"), []byte(dump+"\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	found, err := Find([]string{dir})
	if err != nil {
		t.Fatal(err)
	}
	var diags trace.Diags
	in, err := Load(found, Options{}, &diags)
	if err != nil || len(in.Used) != 1 || filepath.Base(in.Used[0].Name) != "otel.jsonl" {
		t.Fatalf("taken are %v, %v", in, err)
	}
	for _, d := range diags.All() {
		if d.Severity > trace.Notice {
			t.Errorf("%s", d)
		}
	}
}
