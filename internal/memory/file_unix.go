//go:build unix

package memory

import (
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// spillFile is the temporary file of the process. It has no name, so that it disappears with the process,
// however that ends.
type spillFile struct {
	mu     sync.Mutex
	file   *os.File
	failed bool // no file, or a full disk: everything stays in memory from then on
	size   int64

	inOrder, apart room // see [Apart]
	given          map[unsafe.Pointer]givenTable

	// A lock of its own, since making room for a table may wait for the disk.
	mappedMu sync.Mutex
	mapped   [][]byte
	used     atomic.Bool // mapped is not empty
}

// regionSize is the size of the mappings that small tables share: a process can have only some ten thousand
// mappings.
const regionSize = 16 << 20

var file = &spillFile{}

// A room is the part of the file whose tables lie in pages of one size.
type room struct {
	region []byte // the unused rest of a mapping
	free   areas  // given up by tables; their pages already have space on the disk
}

// A givenTable is a table in use; given has them by address.
type givenTable struct {
	size int
	in   *room
}

// The kernel keeps data that is written to the file at once together, up to a large page, and maps all of it
// when one byte is touched. On a virtual machine, mapping a page costs microseconds, whatever its size: a
// sequential walk wants large pages. Random access would soon map many of them, for a few rows of each.
const (
	largePage = FarApart
	smallPage = 64 << 10
)

// room returns the room for tables that are walked in order, or for those whose rows are looked at far apart.
func (s *spillFile) room(apart bool) *room {
	if apart {
		return &s.apart
	}
	return &s.inOrder
}

// pageOf returns the page size of a room in bytes.
func (s *spillFile) pageOf(in *room) int64 {
	if in == &s.apart {
		return smallPage
	}
	return largePage
}

// table returns a mapping of size zero bytes, or nil if there is no room for it.
func (s *spillFile) table(size int64, apart bool) []byte {
	s.mu.Lock()
	table, used := s.cut(size, s.room(apart))
	s.mu.Unlock()
	if used {
		for part := range slices.Chunk(table, smallPage) {
			Touch(len(part))
			clear(part)
		}
	}
	return table
}

// wide returns a mapping of size bytes, with any content, for a table that grows, or nil if there is no room
// for it.
func (s *spillFile) wide(size int64, apart bool) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	table, _ := s.cut(size, s.room(apart))
	return table
}

// giveUp takes back a table of size bytes. It ignores tables outside the file, and parts of tables.
func (s *spillFile) giveUp(table unsafe.Pointer, size int) {
	if s.isEmpty() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if given := s.given[table]; given.size == size {
		delete(s.given, table)
		given.in.free.add(table, aligned(size))
	}
}

// aligned returns the number of bytes that a table takes in the file.
func aligned(size int) int {
	const align = 64
	return (size + align - 1) / align * align
}

// cut returns a part of a room, and whether that was used before. The caller holds the lock.
func (s *spillFile) cut(size int64, in *room) (table []byte, used bool) {
	whole := int64(aligned(int(size)))
	if at := in.free.take(int(whole)); at != nil {
		table, used = unsafe.Slice((*byte)(at), size), true
	} else {
		if whole > int64(len(in.region)) {
			region := s.addRegion(max(whole, regionSize), s.pageOf(in))
			if region == nil {
				return nil, false
			}
			if len(in.region) > 0 {
				in.free.add(unsafe.Pointer(unsafe.SliceData(in.region)), len(in.region))
			}
			in.region = region
		}
		table, in.region = in.region[:size:size], in.region[whole:]
	}
	if s.given == nil {
		s.given = map[unsafe.Pointer]givenTable{}
	}
	s.given[unsafe.Pointer(unsafe.SliceData(table))] = givenTable{int(size), in}
	return table, used
}

// addRegion maps more of the file.
func (s *spillFile) addRegion(size, page int64) []byte {
	return s.add(size, unix.PROT_READ|unix.PROT_WRITE, func(offset int64) error { return zero(s.file, offset, size, page) })
}

// Spill moves a block to the file and returns it mapped into memory, read-only, or nil if it must stay where it
// is.
func Spill(block []byte) []byte {
	file.mu.Lock()
	defer file.mu.Unlock()
	return file.add(int64(len(block)), unix.PROT_READ, func(offset int64) error {
		for part := range slices.Chunk(block, smallPage) { // blocks are read in no order
			if _, err := file.file.WriteAt(part, offset); err != nil {
				return err
			}
			offset += int64(len(part))
		}
		return nil
	})
}

// add fills a new part of the file and maps it. The caller holds the lock.
func (s *spillFile) add(size int64, prot int, fill func(offset int64) error) []byte {
	if !s.open() {
		return nil
	}
	if size >= regionSize {
		s.size = (s.size + largePage - 1) &^ (largePage - 1)
	}
	offset := s.size
	err := fill(offset)
	var mapped []byte
	if err == nil {
		mapped, err = unix.Mmap(int(s.file.Fd()), offset, int(size), prot, unix.MAP_SHARED)
	}
	if err != nil {
		s.failed = true
		return nil
	}
	page := int64(os.Getpagesize())
	s.size += (size + page - 1) / page * page
	s.mappedMu.Lock()
	defer s.mappedMu.Unlock()
	s.mapped = append(s.mapped, mapped)
	s.used.Store(true)
	return mapped
}

func (s *spillFile) open() bool {
	if s.file == nil && !s.failed {
		f, err := os.CreateTemp("", "sgtrace-")
		if err == nil {
			err = os.Remove(f.Name())
		}
		if s.failed = err != nil; !s.failed {
			s.file = f
		}
	}
	return !s.failed
}

// isEmpty reports whether the file is empty.
func (s *spillFile) isEmpty() bool { return !s.used.Load() }

// relax tells the kernel that the process needs none of the pages for now; they stay in the page cache.
func (s *spillFile) relax() {
	s.mappedMu.Lock()
	mapped := s.mapped // append-only
	s.mappedMu.Unlock()
	for _, m := range mapped {
		_ = unix.Madvise(m, unix.MADV_DONTNEED) // a hint
	}
}

// zeros are the initial bytes of a part of the file.
var zeros [largePage]byte

// zero writes zeros to a part of a file, which reserves its disk blocks: without them, a full disk would only
// show as a signal when a page is written.
func zero(f *os.File, offset, size, page int64) error {
	for end := offset + size; offset < end; offset += page {
		if _, err := f.WriteAt(zeros[:min(page, end-offset)], offset); err != nil {
			return err
		}
	}
	return nil
}
