package main

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/dataset/tasks"
	"github.com/sgtrace/sgtrace/internal/tablefile"
)

// textsIn returns all texts of a dataset: file names, file metadata, and all columns.
func textsIn(t *testing.T, dir string) map[string]string {
	t.Helper()
	texts := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		name, _ := filepath.Rel(dir, path)
		texts["names"] += name + "\n"
		switch {
		case err != nil || e.IsDir():
		case strings.HasSuffix(path, tablefile.ParquetSuffix):
			texts[name] = textsOf(t, path)
		default:
			text, readErr := os.ReadFile(path)
			texts[name], err = string(text), readErr
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return texts
}

// textsOf returns all texts of a file.
func textsOf(t *testing.T, path string) string {
	t.Helper()
	f, err := tablefile.OpenParquet(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var all strings.Builder
	about, _ := f.About("sgtrace.capture")
	all.WriteString(about + "\n")
	seen := map[string]bool{}
	for i, c := range f.Columns() {
		if c.Kind != tablefile.Bytes {
			continue
		}
		r := f.Column(i, 0)
		for b, err := r.Next(); err != io.EOF; b, err = r.Next() {
			if err != nil {
				t.Fatal(err)
			}
			for row := range b.N {
				if text := b.Bytes(row); !seen[string(text)] {
					seen[string(text)] = true
					all.Write(append(text, '\n'))
				}
			}
		}
		r.Close()
	}
	return all.String()
}

// A redacted dataset contains no host, id, or path of the extracted files, and not the key.
func TestRedactedDatasetNamesNobody(t *testing.T) {
	t.Chdir(t.TempDir())
	secret := incident(t, "acme-incident-7")
	names := append(identities(t, "acme-incident-7"), "acme", secret)
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	names = append(names, here)
	mustRun(t, ".", "extract -o shared --redact --shard 1/2 gpu-acme-17=acme-incident-7")
	mustRun(t, ".", "extract -o shared --redact --shard 0/2 gpu-acme-17=acme-incident-7")
	key := string(readFile(t, tasks.KeyFile("shared")))
	if len(key) < minKey {
		t.Fatalf("a key of %d bytes", len(key))
	}
	for where, text := range textsIn(t, "shared") {
		for _, name := range append(names, strings.TrimSpace(key)) {
			if i := strings.Index(text, name); i >= 0 {
				t.Errorf("%s has %q: ...%q...", where, name, text[max(0, i-80):min(len(text), i+80)])
			}
		}
	}
}

// pseudonyms matches the pseudonyms of --redact, with domains after hosts, and those of traces in a
// dataset.
var pseudonyms = regexp.MustCompile(`(?:host|domain|req|path|text|url)-[a-z2-7]{10}(?:\.domain-[a-z2-7]{10})?(?:\.[a-z.]+)?|\b[0-9a-f]{32}\b`)

// Reports on a redacted dataset equal those on the inputs with --redact, except for which pseudonym
// stands for what.
func TestReportsOfRedactedDataset(t *testing.T) {
	dir := t.TempDir()
	incident(t, filepath.Join(dir, inputsName))
	if err := os.WriteFile(filepath.Join(dir, "key"), []byte("0123456789abcdef"), 0o600); err != nil {
		t.Fatal(err)
	}
	mustRun(t, dir, "extract --redact-key key -o "+datasetName+" "+inputsName)
	for _, command := range []string{"requests", "report --by-rank", "report --kernels --table kernels --by-rank", "report --ops", "report --by host"} {
		want := mustRun(t, dir, command+" --format json --redact-key key "+inputsName)
		got := mustRun(t, dir, command+" --format json "+datasetName)
		anonymous := func(text string) string {
			return pseudonyms.ReplaceAllString(regexp.MustCompile(`"(?:command|inputs|arguments)": ?(?:"[^"]*"|\[[^\]]*\])`).ReplaceAllString(text, ""), "somebody")
		}
		same(t, command, result{out: anonymous(want.out)}, result{out: anonymous(got.out)})
	}
}

// A dataset is redacted with one key, or not at all, and does not reveal where its originals are.
func TestRedactionOfDatasetIsOne(t *testing.T) {
	dir := t.TempDir()
	if err := os.Rename(recorded(t, 6), filepath.Join(dir, inputsName)); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "key"), []byte("0123456789abcdef"), 0o600); err != nil {
		t.Fatal(err)
	}
	mustRun(t, dir, "extract -o plain "+inputsName)
	mustRun(t, dir, "extract -o redacted --redact "+inputsName)
	for _, c := range []struct {
		args string
		want error
	}{
		{"extract -o plain --redact", tasks.ErrNotRedacted},
		{"extract -o redacted", tasks.ErrRedacted},
		{"extract -o redacted --redact-key key", tasks.ErrOtherKey},
	} {
		if r := sgtrace(t, dir, append(strings.Fields(c.args), inputsName)...); r.status == exitOK || !strings.Contains(r.err, c.want.Error()) {
			t.Errorf("%s: status %d: %s", c.args, r.status, r.err)
		}
	}
	if r := mustRun(t, dir, "extract -o redacted --redact "+inputsName); !strings.Contains(r.err, "9 already extracted") {
		t.Errorf("extracted again: %s", r.err)
	}
	if r := sgtrace(t, dir, "merge", "-o", "out.pftrace", "redacted"); r.status == exitOK || !strings.Contains(r.err, "does not say where its originals are") {
		t.Errorf("merge: status %d: %s", r.status, r.err)
	}
	mustRun(t, dir, "merge --without-originals -o out.pftrace redacted")
	for _, args := range []string{"dataset prune --gone", "dataset verify --originals"} {
		if r := sgtrace(t, dir, append(strings.Fields(args), "redacted")...); r.status == exitOK || !strings.Contains(r.err+r.out, "does not say where its originals are") {
			t.Errorf("%s: status %d: %s", args, r.status, r.err)
		}
	}
	mustRun(t, dir, "dataset verify redacted")
}
