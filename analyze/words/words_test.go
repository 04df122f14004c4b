package words

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// A shell splits command lines into the original arguments.
func TestQuoteShell(t *testing.T) {
	args := []string{"plain-1.0_x/y@z", "", "two words", "it's", `"$HOME"`, "*.json", "~", "#no", "a;b|c&d", "`id`", "back\\slash", "umlaut ä", "雪",
		"line\nbreak\ttab", "esc\x1b[31m'quote'\\", "bell\u0007\u202e", "{a,b}", "!x", "x=y", "-flag", "[a]"}
	quoted := QuoteShell(args)
	if strings.ContainsFunc(quoted, Hidden) {
		t.Errorf("not safe to print: %q", quoted)
	}
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("no bash to ask")
	}
	cmd := exec.Command(bash, "-c", `printf '%s\0' `+quoted)
	cmd.Env = []string{"LC_ALL=C.UTF-8"}
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00"); !slices.Equal(got, args) {
		t.Errorf("got  %q\nwant %q", got, args)
	}
}

func TestNearly(t *testing.T) {
	for ns, want := range map[int64]string{
		1500: "1.50 us", 13e6: "13 ms", 12960000: "13 ms", 13040000: "13 ms", 13060000: "13.1 ms", 999_499: "999 us", 999_500: "1 ms", 999_999_999: "1 s", -999_900: "-1 ms", 999e9: "999 s", 1000e9: "16.7 min", 7199e9: "120 min",
		7200e9: "2 h", 172799e9: "48 h", 1791011e9: "20.7 days", -172800e9: "-2 days",
	} {
		if got := Nearly(ns); got != want {
			t.Errorf("%d: %s, want %s", ns, got, want)
		}
	}
}

func TestCounted(t *testing.T) {
	for want, of := range map[string]func() string{
		"1 kernel of 1 MB or more":      func() string { return Counted(1, "kernel of 1 MB or more") },
		"1,000 kernels of 1 MB or more": func() string { return Counted(1000, "kernel of 1 MB or more") },
		"2 batches":                     func() string { return Counted(2, "batch") },
	} {
		if got := of(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
