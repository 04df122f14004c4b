package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"io/fs"
	"time"
)

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
