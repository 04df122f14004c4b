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

// kernelEvent matches an event of a kernel in a trace of PyTorch, up to its name. All of
// them have the category in front of the name.
var kernelEvent = regexp.MustCompile(`"cat": ?"kernel", ?"name": ?"((?:[^"\\]|\\.)*)"`)

// Of every kernel of real captures, one parse says the same as what is asked for by its whole
// name: whether it communicates, and how.
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
