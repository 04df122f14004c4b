package analyze

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the files in testdata with what the code prints")

// compareGolden compares got with testdata/name.
func compareGolden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o666); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	gotLines, wantLines := strings.SplitAfter(got, "\n"), strings.SplitAfter(string(want), "\n")
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

func TestGoldenReports(t *testing.T) {
	s := fixture(t)
	reports := map[string]func() *Report{
		"stages":   func() *Report { return GroupStages(s, mustParse(t, "stage")).Report() },
		"ranks":    func() *Report { return GroupStages(s, mustParse(t, "rank")).Report() },
		"latency":  func() *Report { return MeasureLatencies(s).Report() },
		"requests": func() *Report { return Requests(s) },
		"request":  func() *Report { return NewWaterfall(s, 0).Report() },
	}
	for name, make := range reports {
		for _, f := range Formats {
			t.Run(name+"."+string(f), func(t *testing.T) {
				compareGolden(t, name+"."+string(f), text(t, make(), f, Style{}))
			})
		}
	}
}

func TestGoldenInspect(t *testing.T) {
	for _, f := range []Format{FormatText, FormatJSON} {
		t.Run(string(f), func(t *testing.T) {
			got := ""
			for _, r := range inspectSet(fixture(t)) {
				got += text(t, r, f, Style{}) + "\n"
			}
			compareGolden(t, "inspect."+string(f), got)
		})
	}
}

func TestGoldenWaterfall(t *testing.T) {
	s := fixture(t)
	for name, style := range map[string]Style{
		"waterfall.text": {}, "waterfall_80_ascii.text": {Width: 80, ASCII: true},
	} {
		t.Run(name, func(t *testing.T) {
			var b bytes.Buffer
			for r := range s.Requests {
				if err := NewWaterfall(s, r).Write(&b, style); err != nil {
					t.Fatal(err)
				}
				b.WriteString("\n")
			}
			compareGolden(t, name, b.String())
		})
	}
}
