package testset

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/testkit/testinput"
)

var update = flag.Bool("update", false, "rewrite the files in testdata with what the code prints")

// CompareGolden compares got with testdata/name, in which long lines are folded.
func CompareGolden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(testinput.Fold(got)), 0o666); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	gotLines, wantLines := strings.SplitAfter(got, "\n"), strings.SplitAfter(testinput.Unfold(string(want)), "\n")
	for i := range max(len(gotLines), len(wantLines)) {
		g, w := line(gotLines, i), line(wantLines, i)
		if g != w {
			t.Fatalf("%s:%d differs (go test -update rewrites it):\n got %q\nwant %q", path, i+1, g, w)
		}
	}
}

func line(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return ""
}
