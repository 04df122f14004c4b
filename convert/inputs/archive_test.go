package inputs

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/sgtrace/sgtrace/trace"
)

// An entry is a file in an archive; a link has a target and no content.
type entry struct{ name, content, target string }

func tarOf(entries ...entry) string {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, e := range entries {
		h := &tar.Header{Name: e.name, Size: int64(len(e.content)), Mode: 0o644, Typeflag: tar.TypeReg}
		if e.target != "" {
			h.Typeflag, h.Linkname = tar.TypeSymlink, e.target
		}
		w.WriteHeader(h)
		io.WriteString(w, e.content)
	}
	w.Close()
	return b.String()
}

func zipOf(entries ...entry) string {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, e := range entries {
		f, _ := w.Create(e.name)
		io.WriteString(f, e.content)
	}
	w.Close()
	return b.String()
}

func gzipOf(content string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	io.WriteString(w, content)
	w.Close()
	return b.String()
}

func zstdOf(content string) string {
	w, _ := zstd.NewWriter(nil)
	defer w.Close()
	return string(w.EncodeAll([]byte(content), nil))
}

// An archive is read like the folder it was made from.
func TestArchives(t *testing.T) {
	folder := []entry{{name: "host1/a.json", content: aTrace}, {name: "host2/b.json", content: aDump}, {name: "notes.txt", content: "x"}}
	inner := entry{name: "inner.tgz", content: gzipOf(tarOf(entry{name: "c.json", content: aDump}))}
	for _, c := range []struct {
		file, content string
		names         string // of the files found
		says          string
		worst         trace.Severity
	}{
		{"i.tar", tarOf(folder...), "host1/a.json host2/b.json notes.txt", "1 OTLP dump, 1 PyTorch trace; left out 1 .txt", trace.Info},
		{"i.tar.gz", gzipOf(tarOf(folder...)), "host1/a.json host2/b.json notes.txt", "1 OTLP dump, 1 PyTorch trace; left out 1 .txt", trace.Info},
		{"i.tar.zst", zstdOf(tarOf(folder...)), "host1/a.json host2/b.json notes.txt", "1 OTLP dump, 1 PyTorch trace; left out 1 .txt", trace.Info},
		{"i.zip", zipOf(folder...), "host1/a.json host2/b.json notes.txt", "1 OTLP dump, 1 PyTorch trace; left out 1 .txt", trace.Info},
		{"any name", zipOf(folder...), "host1/a.json host2/b.json notes.txt", "1 OTLP dump, 1 PyTorch trace; left out 1 .txt", trace.Info},
		{"nested.tar", tarOf(inner), "inner.tgz/c.json", "1 OTLP dump", trace.Info},
		{"outside.tar", tarOf(entry{name: "../evil.json", content: aDump}, entry{name: "/evil.json", content: aDump}, folder[1]),
			"host2/b.json", "1 OTLP dump; left out 2 files outside of its archive (evil.json, evil.json)", trace.Info},
		{"links.tar", tarOf(entry{name: "up", target: ".."}, entry{name: "up/evil.json", content: aDump}, folder[1]),
			"host2/b.json up/evil.json", "2 OTLP dumps; left out 1 special file", trace.Notice}, // the spans are equal,
		{"cut.tar", tarOf(folder...)[:1024+512+700], "host1/a.json host2/b.json", "reading stopped here: unexpected EOF; everything before this is used", trace.DataLoss},
	} {
		t.Run(c.file, func(t *testing.T) {
			t.Chdir(t.TempDir())
			t.Cleanup(func() { RemoveUnpacked() })
			if err := os.WriteFile(c.file, []byte(c.content), 0o666); err != nil {
				t.Fatal(err)
			}
			found, err := Find([]string{c.file})
			if err != nil {
				t.Fatal(err)
			}
			var want []string
			for _, name := range strings.Fields(c.names) {
				want = append(want, filepath.Join(c.file, name))
			}
			if got := Names(found); !slices.Equal(got, want) {
				t.Errorf("found %q, not %q", got, want)
			}
			diags := &trace.Diags{}
			m, err := Load(found, Options{}, diags)
			if err != nil {
				t.Fatal(err)
			}
			defer m.Close()
			if text := fmt.Sprint(diags.All()); !strings.Contains(text, c.says) || diags.Worst() != c.worst {
				t.Errorf("%s, not %q", text, c.says)
			}
			if escaped, _ := filepath.Glob("*.json"); len(escaped) > 0 {
				t.Errorf("written outside: %q", escaped)
			}
		})
	}
}

// The folder that an archive was unpacked to is removed, and bombs are not unpacked.
func TestArchiveBombs(t *testing.T) {
	t.Chdir(t.TempDir())
	t.Setenv("TMPDIR", t.TempDir())
	many := make([]entry, 100_001)
	for i := range many {
		many[i] = entry{name: "x", target: "y"} // links are not extracted, but counted
	}
	deep := zipOf(entry{name: "b.zip", content: zipOf(entry{name: "c.zip", content: zipOf(entry{name: "d.json", content: aDump})})})
	for name, c := range map[string]struct{ content, says string }{
		"many.tar.gz": {gzipOf(tarOf(many...)), "has more than 100000 entries"},
		"deep.zip":    {deep, "1 zip archive"},
		"cut.zip":     {deep[:len(deep)-30], "it was cut off"},
	} {
		if err := os.WriteFile(name, []byte(c.content), 0o666); err != nil {
			t.Fatal(err)
		}
		diags := &trace.Diags{}
		found, err := Find([]string{name})
		if err == nil {
			_, err = Load(found, Options{}, diags)
		}
		if text := fmt.Sprint(err, diags.All()); !strings.Contains(text, c.says) {
			t.Errorf("%s: %s", name, text)
		}
		if err := RemoveUnpacked(); err != nil {
			t.Error(err)
		}
	}
	if left, _ := os.ReadDir(os.TempDir()); len(left) > 0 {
		t.Errorf("left in TMPDIR: %v", left)
	}
}
