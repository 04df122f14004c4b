package storage

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// Errors of files without a valid first page.
var (
	errUnwritten = errors.New("begins with zeros: the program that wrote it was interrupted before it wrote the first page, or is still writing; " +
		"if this is an export, run nsys export again (the .nsys-rep is still good), otherwise copy the file again")
	errHeader = errors.New("the header of the file is damaged: copy it again, or run nsys export again")
)

const (
	magic = "SQLite format 3\x00"
	// reportMagic is the beginning of .nsys-rep and .qdrep files.
	reportMagic = "NVIDIA Tegra Profiler Report"
	headerSize  = 100
	// sniffSize is the number of zero bytes that are taken for an interrupted export: the smallest page size of
	// SQLite.
	sniffSize = 512
)

// IsDatabase reports whether head, the first bytes of a file, may be from an export: a SQLite database, or one
// whose first page is still missing. Opening it shows which database it is. IsDatabase also accepts a report
// that has to be exported first.
func IsDatabase(head []byte) bool {
	return bytes.HasPrefix(head, []byte(magic)) || unwritten(head) || IsReport(head)
}

// IsReport reports whether head is the beginning of a report that was not exported.
func IsReport(head []byte) bool { return bytes.HasPrefix(head, []byte(reportMagic)) }

// unwritten reports whether head is the first page of an export that was
// interrupted: nsys writes that page last.
func unwritten(head []byte) bool {
	return len(head) >= sniffSize && len(bytes.TrimLeft(head[:sniffSize], "\x00")) == 0
}

// A header is the information in the first 100 bytes of a database. See
// https://www.sqlite.org/fileformat.html#the_database_header.
type header struct {
	size int64 // of the file
	page int64 // page size
	// changed is the time of the last write to the file.
	changed time.Time
	want    int64 // the smallest correct size; 0 is unknown
	// plain means that texts are UTF-8, and that pages have no reserved bytes at their ends.
	plain bool
}

// cut reports whether the end of the file is missing.
func (h header) cut() bool { return h.size < h.want }

// pages returns the number of pages.
func (h header) pages() int64 {
	if h.want != 0 {
		return h.want / h.page
	}
	return h.size / h.page
}

// checkFile reads the header of the file and checks the files next to it. Its errors say what to do.
func checkFile(f *os.File, path string) (header, error) {
	info, err := f.Stat()
	if err != nil {
		return header{}, err
	}
	h := header{size: info.Size(), changed: info.ModTime()}
	head := make([]byte, sniffSize)
	n, err := io.ReadFull(f, head)
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return h, err
	}
	if err := checkBeside(path); err != nil {
		return h, err
	}
	return h, h.read(head[:n])
}

// read reads the first bytes of the file.
func (h *header) read(head []byte) error {
	switch {
	case len(head) == 0:
		return errors.New("the file is empty (0 bytes): copy it again, or run nsys export again")
	case unwritten(head):
		return errUnwritten
	case !bytes.HasPrefix(head, []byte(magic)):
		return fmt.Errorf("not a SQLite database: %w", ErrForeign)
	case len(head) < headerSize:
		return fmt.Errorf("the file is cut off after %d bytes: copy it again, or run nsys export again", len(head))
	}
	if h.page = int64(binary.BigEndian.Uint16(head[16:])); h.page == 1 {
		h.page = 1 << 16
	}
	encoding, format := binary.BigEndian.Uint32(head[56:]), binary.BigEndian.Uint32(head[44:])
	if h.page < 512 || h.page&(h.page-1) != 0 || encoding > 3 || format > 4 {
		return errHeader
	}
	h.plain = encoding <= 1 && head[20] == 0
	// The number of pages is valid only if the last writer knew this field.
	if bytes.Equal(head[24:28], head[92:96]) {
		h.want = int64(binary.BigEndian.Uint32(head[28:])) * h.page
	}
	return nil
}

// checkBeside refuses a database that was not closed: opened as immutable, it would read as if its journal had
// never been written, or as garbage.
func checkBeside(path string) error {
	const walHeader = 32 // no frames follow
	if info, err := os.Stat(path + "-wal"); err == nil && info.Size() > walHeader {
		return fmt.Errorf("some of its rows are still in %s-wal: close the program that has it open, or run "+
			"sqlite3 %s 'pragma wal_checkpoint(truncate)'", path, ShellQuote(path))
	}
	journal, err := os.Open(path + "-journal")
	if err != nil {
		return nil
	}
	defer journal.Close()
	// A finished transaction leaves an empty journal, or one with a header of zeros.
	var head [28]byte
	if n, _ := io.ReadFull(journal, head[:]); n == 0 || head == [28]byte{} {
		return nil
	}
	return fmt.Errorf("a program is writing to it, or was interrupted while writing, and left %s-journal: "+
		"run nsys export again, or roll it back with sqlite3 %s 'pragma quick_check'", path, ShellQuote(path))
}

// ShellQuote makes one word of a path in a shell.
func ShellQuote(path string) string { return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'" }
