package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
)

// A pager gets all of the text, may end early, and its failure is an error.
func TestPager(t *testing.T) {
	long := func(w io.Writer) error {
		for i := range 100_000 {
			if _, err := fmt.Fprintln(w, "line", i); err != nil {
				return err
			}
		}
		return nil
	}
	var out, errOut bytes.Buffer
	if err := pageThrough("tr a-z A-Z", &out, &errOut, long); err != nil || strings.Count(out.String(), "\n") != 100_000 || !strings.HasSuffix(out.String(), "LINE 99999\n") {
		t.Errorf("the pager wrote %d bytes: %v", out.Len(), err)
	}
	out.Reset()
	if err := pageThrough("head -n 1", &out, &errOut, long); err != nil || out.String() != "line 0\n" {
		t.Errorf("a reader who has seen enough: %q, %v", out.String(), err)
	}
	if err := pageThrough("cat >/dev/null; exit 1", &out, &errOut, long); err == nil {
		t.Error("a pager that fails is no error")
	}
	broken := errors.New("broken")
	if err := pageThrough("cat", &out, &errOut, func(io.Writer) error { return broken }); !errors.Is(err, broken) {
		t.Errorf("the error of the text is lost: %v", err)
	}
}

// The pager is that of the environment, for terminals only.
func TestWhichPager(t *testing.T) {
	for _, c := range []struct {
		paged      bool
		mine, all  string
		want, name string
	}{
		{true, "mine", "all", "mine", "its own"},
		{true, "", "all", "all", "that of all programs"},
		{true, "cat", "all", "", "cat is none"},
		{false, "mine", "all", "", "not a terminal"},
	} {
		env := map[string]string{"SGTRACE_PAGER": c.mine, "PAGER": c.all}
		if got := (&command{paged: c.paged, env: func(name string) string { return env[name] }}).pager(); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
