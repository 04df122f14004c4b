package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"io"
	"io/fs"
	"testing"
	"time"
)

// An archive has the same bytes every time, in every time zone, and contains its files.
func TestPack(t *testing.T) {
	changed := time.Date(2026, 8, 17, 20, 53, 20, 0, time.UTC)
	files := []file{{"sgtrace", 0o755, bytes.Repeat([]byte("program"), 1000)}, {"completions/sgtrace.bash", 0o644, []byte("complete")}}
	for _, asZip := range []bool{false, true} {
		first := archive{name: "sgtrace-v1", changed: changed, files: files}
		second := archive{name: "sgtrace-v1", changed: changed.In(time.FixedZone("east", 9*3600)).UTC(), files: files}
		name, data, err := first.pack(asZip)
		if err != nil {
			t.Fatal(err)
		}
		if _, again, err := second.pack(asZip); err != nil || !bytes.Equal(data, again) {
			t.Errorf("%s: two runs differ (%v)", name, err)
		}
		have := unpack(t, data, asZip)
		for _, f := range files {
			got, ok := have["sgtrace-v1/"+f.name]
			if !ok || !bytes.Equal(got.data, f.data) || got.mode != f.mode {
				t.Errorf("%s: %s came back with mode %v and %d bytes", name, f.name, got.mode, len(got.data))
			}
		}
		if len(have) != len(files) {
			t.Errorf("%s holds %d files, want %d", name, len(have), len(files))
		}
	}
}

func unpack(t *testing.T, data []byte, asZip bool) map[string]file {
	t.Helper()
	files := map[string]file{}
	add := func(name string, mode fs.FileMode, r io.Reader) {
		data, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		files[name] = file{name, mode, data}
	}
	if asZip {
		r, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range r.File {
			content, err := f.Open()
			if err != nil {
				t.Fatal(err)
			}
			add(f.Name, f.Mode(), content)
		}
		return files
	}
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if err == io.EOF {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		add(h.Name, h.FileInfo().Mode(), r)
	}
}

// Packages of later commits have later versions, made of numbers only.
func TestPackageVersion(t *testing.T) {
	changed := time.Date(2026, 8, 17, 20, 53, 20, 0, time.UTC)
	for described, want := range map[string]string{
		"v1.2.0": "1.2.0", "v1.2.0-7-g0123456": "1.2.0.7", "v1.2.0-7-g0123456-dirty": "1.2.0.7", "v1.2.0-dirty": "1.2.0",
		"0123456": "0.0.20260817", "0123456-dirty": "0.0.20260817", "v2-rc1": "0.0.20260817",
	} {
		if got := packageVersion(described, changed); got != want {
			t.Errorf("%s: %s, want %s", described, got, want)
		}
	}
}
