package nsysexport

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
)

// ErrForeign is wrapped by errors about files that are no Nsight Systems export
// at all, damaged or not.
var ErrForeign = errors.New("not an Nsight Systems export")

const (
	magic      = "SQLite format 3\x00"
	headerSize = 100
	// sniffSize is how many bytes have to be zero before they are taken for an
	// interrupted export: the smallest page that SQLite has.
	sniffSize = 512
)

// Sniff tells whether head, the first bytes of a file, may be an export: a SQLite
// database, or one whose first page is still missing. Which database it is shows
// when it is opened.
func Sniff(head []byte) bool {
	return bytes.HasPrefix(head, []byte(magic)) || unwritten(head)
}

// unwritten tells whether head is the first page of an export that was
// interrupted: nsys writes that page last.
func unwritten(head []byte) bool {
	return len(head) >= sniffSize && len(bytes.TrimLeft(head[:sniffSize], "\x00")) == 0
}

// A header is what the first 100 bytes of a database say.
// See https://www.sqlite.org/fileformat.html#the_database_header.
type header struct {
	size int64 // of the file
	want int64 // what size should be at least; 0 is unknown
}

// cut tells whether the end of the file is missing.
func (h header) cut() bool { return h.size < h.want }

// checkFile reads the header of the file and looks at what lies beside it. Its
// errors tell what to do.
func checkFile(path string) (header, error) {
	h := header{}
	f, err := os.Open(path)
	if err != nil {
		return h, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return h, err
	}
	if !info.Mode().IsRegular() {
		return h, errors.New("is no regular file, and SQLite can read nothing else: copy it to a disk")
	}
	h.size = info.Size()
	head := make([]byte, sniffSize)
	n, err := io.ReadFull(f, head)
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return h, err
	}
	if h.want, err = checkHeader(head[:n]); err != nil {
		return h, err
	}
	return h, checkBeside(path)
}

// checkHeader returns how long the file says that it is, 0 if it does not.
func checkHeader(head []byte) (int64, error) {
	switch {
	case len(head) == 0:
		return 0, errors.New("the file is empty (0 bytes): copy it again, or run nsys export again")
	case unwritten(head):
		return 0, errors.New("nsys export was interrupted before it wrote the first page: " +
			"run nsys export again (the .nsys-rep is still good)")
	case !bytes.HasPrefix(head, []byte(magic)):
		return 0, fmt.Errorf("no SQLite database: %w", ErrForeign)
	case len(head) < headerSize:
		return 0, fmt.Errorf("the file is cut off after %d bytes: copy it again, or run nsys export again", len(head))
	}
	page := int64(binary.BigEndian.Uint16(head[16:]))
	if page == 1 {
		page = 1 << 16
	}
	encoding, format := binary.BigEndian.Uint32(head[56:]), binary.BigEndian.Uint32(head[44:])
	if page < 512 || page&(page-1) != 0 || encoding > 3 || format > 4 {
		return 0, errors.New("the header of the file is damaged: copy it again, or run nsys export again")
	}
	// The number of pages counts only if who wrote last knew this field.
	if !bytes.Equal(head[24:28], head[92:96]) {
		return 0, nil
	}
	return int64(binary.BigEndian.Uint32(head[28:])) * page, nil
}

// checkBeside refuses a database that was not closed: opened as immutable it would
// read as if what is in its journal had never been written, or as garbage.
func checkBeside(path string) error {
	const walHeader = 32 // no frames follow
	if info, err := os.Stat(path + "-wal"); err == nil && info.Size() > walHeader {
		return fmt.Errorf("rows of it are still in %[1]s-wal: close the program that has it open, or run "+
			"sqlite3 '%[1]s' 'pragma wal_checkpoint(truncate)'", path)
	}
	journal, err := os.Open(path + "-journal")
	if err != nil {
		return nil
	}
	defer journal.Close()
	// A finished transaction leaves a journal that is empty, or has a header of
	// zeros.
	var head [28]byte
	if n, _ := io.ReadFull(journal, head[:]); n == 0 || head == [28]byte{} {
		return nil
	}
	return fmt.Errorf("a program was interrupted while it wrote to it and left %[1]s-journal: "+
		"run nsys export again, or sqlite3 '%[1]s' 'pragma quick_check', which rolls it back", path)
}
