package screen

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
)

// A pager receives the whole text and may exit early; its failure is an error.
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
	if err := PageThrough("tr a-z A-Z", &out, &errOut, long); err != nil || strings.Count(out.String(), "\n") != 100_000 || !strings.HasSuffix(out.String(), "LINE 99999\n") {
		t.Errorf("the pager wrote %d bytes: %v", out.Len(), err)
	}
	out.Reset()
	if err := PageThrough("head -n 1", &out, &errOut, long); err != nil || out.String() != "line 0\n" {
		t.Errorf("a reader who has seen enough: %q, %v", out.String(), err)
	}
	if err := PageThrough("cat >/dev/null; exit 1", &out, &errOut, long); err == nil {
		t.Error("a pager that fails is no error")
	}
	broken := errors.New("broken")
	if err := PageThrough("cat", &out, &errOut, func(io.Writer) error { return broken }); !errors.Is(err, broken) {
		t.Errorf("the error of the text is lost: %v", err)
	}
}

// The environment selects the pager.
func TestWhichPager(t *testing.T) {
	for _, c := range []struct{ mine, all, want, name string }{
		{"mine", "all", "mine", "its own"},
		{"", "all", "all", "that of all programs"},
		{"cat", "all", "", "cat is none"},
	} {
		env := map[string]string{"SGTRACE_PAGER": c.mine, "PAGER": c.all}
		if got := pager(func(name string) string { return env[name] }); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
