package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// docs/FORMATS.md matches the source.
func TestPageIsFresh(t *testing.T) {
	root := ".."
	page, err := formatsPage(root)
	if err != nil {
		t.Fatal(err)
	}
	have, err := os.ReadFile(filepath.Join(root, "docs", "FORMATS.md"))
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Equal(page, have) {
		return
	}
	want := strings.Split(string(page), "\n")
	for i, line := range strings.Split(string(have), "\n") {
		if i >= len(want) || line != want[i] {
			t.Fatalf("docs/FORMATS.md is not what the source says: 'make docs' writes it again\nline %d has %q, want %q", i+1, line, append(want, "")[min(i, len(want))])
		}
	}
	t.Fatal("docs/FORMATS.md ends too early: 'make docs' writes it again")
}

// Every format in the source is on the page.
func TestFormatsAreOnThePage(t *testing.T) {
	root := ".."
	formats := map[string][]string{} // by folder
	variable := regexp.MustCompile(`(?m)^var (\w+) = &format\.Format\{`)
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(file) != ".go" || strings.HasSuffix(file, "_test.go") {
			return err
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		folder, err := filepath.Rel(root, filepath.Dir(file))
		for _, m := range variable.FindAllSubmatch(text, -1) {
			formats[filepath.ToSlash(folder)] = append(formats[filepath.ToSlash(folder)], string(m[1]))
		}
		return err
	})
	if err != nil || len(formats) == 0 {
		t.Fatal(len(formats), err)
	}
	for folder, names := range formats {
		for _, name := range names {
			one := fmt.Sprintf("{{odd %q}}", folder)
			if its := fmt.Sprintf("{{odd %q %q}}", folder, name); !strings.Contains(formatsTemplate, its) && (len(names) > 1 || !strings.Contains(formatsTemplate, one)) {
				t.Errorf("docs/FORMATS.md does not have %s.%s: in scripts/FORMATS.md.tmpl, add a row to the table of inputs, and a section with %s, "+
					"which prints the list under \"# What is odd\" in the comment of the variable; then make docs", folder, name, its)
			}
		}
	}
}

func TestReadable(t *testing.T) {
	for pattern, want := range map[string]string{
		`rank(?P<rank>\d+)_trace`:                      "rank{rank}_trace",
		`(?P<run>.+_batch\d+)(?:_(?P<stage>a|b))?`:     "*_batchN[_{stage}]",
		`(?P<host>[a-z0-9.-]+)_(?P<pid>\d{1,10})\.x`:   "{host}_{pid}.x",
		`(?:(?P<run>.*?)[-_])??TP-(?P<tp>\d+)(?:-\d)*`: "[{run}-]TP-{tp}-N...",
	} {
		if have, err := readable(pattern); err != nil || have != want {
			t.Errorf("%s: %q (%v), want %q", pattern, have, err, want)
		}
	}
}

func TestConstantWords(t *testing.T) {
	for _, test := range []struct{ name, kind, want string }{
		{"PrefillPhase", "Phase", "prefill"},
		{"OtherPhase", "Phase", "other"},
		{"argGroupSize", "argRole", "group size"},
		{"laneAny", "lane", ""},
		{"Aborted", "Status", "aborted"},
		{"KindSync", "Kind", "sync"},
		{"inResourceSpans", "level", "in resource spans"},
	} {
		if have := constantWords(test.name, test.kind); have != test.want {
			t.Errorf("%s of type %s: %q, want %q", test.name, test.kind, have, test.want)
		}
	}
}

// A comment applies to the rows below it, up to a blank line or the next comment.
func TestRows(t *testing.T) {
	dir := t.TempDir()
	const text = `package x

type entry struct{ name string; n int }

var table = []entry{
	// First group.
	{"a", 1}, // of a
	{"b", 2},
	// Second group,
	// on two lines.
	{name: "c", n: 3},

	{"d", 4}, // alone
}
`
	if err := os.WriteFile(filepath.Join(dir, "x.go"), []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	have, err := newSource(dir).table(".", "table", "`name`: name; n: n; about: why")
	if err != nil {
		t.Fatal(err)
	}
	const want = "| name | n | about |\n|---|---|---|\n| `a` | 1 | First group: of a |\n| `b` | 2 | First group |\n" +
		"| `c` | 3 | Second group, on two lines |\n| `d` | 4 | alone |"
	if have != want {
		t.Errorf("have\n%s\nwant\n%s", have, want)
	}
}

// A table is found in any folder below, exported or not, and may use types and constants of other
// packages.
func TestTableBelow(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"a/ground/types.go": "package ground\n\ntype Kind int\n\nconst FirstKind Kind = 1\n\ntype Entry struct{ Name string; Kind Kind }\n",
		"a/b/table.go": "package b\n\nimport \"github.com/sgtrace/sgtrace/a/ground\"\n\n" +
			"var Table = []ground.Entry{{\"x\", ground.FirstKind}}\n",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	have, err := newSource(dir).table("a", "table", "`name`: name; kind: kind")
	if want := "| name | kind |\n|---|---|\n| `x` | first |"; err != nil || have != want {
		t.Errorf("have\n%s (%v)\nwant\n%s", have, err, want)
	}
}
