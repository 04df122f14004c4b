package matching

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/profile/kernelname"
	"github.com/sgtrace/sgtrace/testkit/testinput"
)

// kernelEvent matches a kernel event in a trace of PyTorch, up to its name. In all
// of them, the category precedes the name.
var kernelEvent = regexp.MustCompile(`"cat": ?"kernel", ?"name": ?"((?:[^"\\]|\\.)*)"`)

// For every kernel in real captures, the parsed name and the full name give the same
// answer: whether it communicates, and how.
func TestNamesOfCaptures(t *testing.T) {
	seen := map[string]bool{}
	for _, pattern := range []string{"reality2/*.zst", "reality/dlrm/*.gz", "torch/real/*.gz"} {
		files, _ := filepath.Glob(testinput.Shared(t, "data", filepath.FromSlash(pattern)))
		for _, file := range files {
			read := testinput.ReadZstd
			if strings.HasSuffix(file, ".gz") {
				read = testinput.Gunzip
			}
			for _, m := range kernelEvent.FindAllSubmatch(read(t, file), -1) {
				seen[string(m[1])] = true
			}
		}
	}
	if len(seen) < 500 {
		t.Fatalf("only %d names", len(seen))
	}
	for name := range seen {
		n := kernelname.Parse(name)
		if n.Bare == "" || strings.ContainsAny(n.Path(), "<>()*& ") || !strings.Contains(kernelname.Demangle(name), n.Bare) {
			t.Errorf("%s: %q", name, n)
		}
		if again := kernelname.Parse(n.Path()); again != n || kindOf(n.Path()) != kindOf(name) || profile.BareName(name) != n.Bare {
			t.Errorf("%s: %q, and again %q; kind %d, of the whole %d", name, n, again, kindOf(n.Path()), kindOf(name))
		}
		if kernelname.IsCommunication(n.Path()) && !kernelname.IsCommunication(name) {
			t.Errorf("%s: communicates by its path only", name)
		}
	}
}
