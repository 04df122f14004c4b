package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// packages makes packages for Linux's package managers with nfpm, as packaging/nfpm.yaml says.
type packages struct {
	nfpm    string // MODULE@VERSION
	version string // of the checkout, as git describes it
	changed time.Time
}

// managers are those that packages are made for.
var managers = []string{"deb", "rpm", "apk"}

// write lays the files of an archive out in root and writes their packages into dir. It
// returns the names of these.
func (p packages) write(dir, root, arch string, files []file) ([]string, error) {
	for _, f := range files {
		if strings.HasPrefix(f.name, "man/") {
			packed, err := gzipped(f.data)
			if err != nil {
				return nil, err
			}
			f = file{name: f.name + ".gz", mode: f.mode, data: packed}
		}
		path := filepath.Join(root, filepath.FromSlash(f.name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return nil, err
		}
		if err := os.WriteFile(path, f.data, f.mode); err != nil {
			return nil, err
		}
		if err := os.Chtimes(path, p.changed, p.changed); err != nil {
			return nil, err
		}
	}
	var names []string
	for _, manager := range managers {
		name := fmt.Sprintf("sgtrace-%s-linux-%s.%s", p.version, arch, manager)
		cmd := exec.Command("go", "run", p.nfpm, "package", "--config", "packaging/nfpm.yaml", "--packager", manager, "--target", filepath.Join(dir, name))
		cmd.Env = append(os.Environ(), "NFPM_ROOT="+root, "NFPM_ARCH="+arch, "NFPM_VERSION="+packageVersion(p.version, p.changed),
			fmt.Sprintf("SOURCE_DATE_EPOCH=%d", p.changed.Unix()))
		if out, err := cmd.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("%s: %w\n%s", name, err, out)
		}
		names = append(names, name)
	}
	return names, nil
}

// gzipped compresses a manual page as package managers want it.
func gzipped(page []byte) ([]byte, error) {
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestCompression) // without a name and a time
	if err != nil {
		return nil, err
	}
	if _, err := z.Write(page); err != nil {
		return nil, err
	}
	err = z.Close()
	return b.Bytes(), err
}

var tagged = regexp.MustCompile(`^v(\d+(?:\.\d+)*)(?:-(\d+)-g[0-9a-f]+)?(?:-dirty)?$`)

// packageVersion returns a version that all package managers order alike: numbers and dots. That
// of a commit after a tag, v1.2.0-7-g0123456, is 1.2.0.7; without a tag it is the day of the
// commit, 0.0.20260817.
func packageVersion(described string, changed time.Time) string {
	m := tagged.FindStringSubmatch(described)
	if m == nil {
		return "0.0." + changed.UTC().Format("20060102")
	}
	return strings.TrimSuffix(m[1]+"."+m[2], ".")
}

// A file is one of an archive.
type file struct {
	name string
	mode fs.FileMode
	data []byte
}

// An archive holds files in one folder of its own name. It says nothing about the
// machine that made it: owners are nobody, and all files have the same time.
type archive struct {
	name    string
	changed time.Time
	files   []file
}

// pack returns the name and content of the archive: zip for Windows, else tar.gz.
func (a *archive) pack(asZip bool) (name string, data []byte, err error) {
	var b bytes.Buffer
	if asZip {
		err = a.zip(&b)
		return a.name + ".zip", b.Bytes(), err
	}
	err = a.tar(&b)
	return a.name + ".tar.gz", b.Bytes(), err
}

func (a *archive) tar(b *bytes.Buffer) error {
	z, err := gzip.NewWriterLevel(b, gzip.BestCompression) // without a name and a time
	if err != nil {
		return err
	}
	w := tar.NewWriter(z)
	for _, f := range a.files {
		err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: a.name + "/" + f.name, Mode: int64(f.mode),
			Size: int64(len(f.data)), ModTime: a.changed, Format: tar.FormatUSTAR})
		if err != nil {
			return err
		}
		if _, err := w.Write(f.data); err != nil {
			return err
		}
	}
	if err := w.Close(); err != nil {
		return err
	}
	return z.Close()
}

func (a *archive) zip(b *bytes.Buffer) error {
	w := zip.NewWriter(b)
	for _, f := range a.files {
		header := &zip.FileHeader{Name: a.name + "/" + f.name, Method: zip.Deflate, Modified: a.changed}
		header.SetMode(f.mode)
		entry, err := w.CreateHeader(header)
		if err != nil {
			return err
		}
		if _, err := entry.Write(f.data); err != nil {
			return err
		}
	}
	return w.Close()
}
