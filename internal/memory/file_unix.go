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

// spillFile is the temporary file of the process, without a name from its beginning on,
// so that it is gone with the process, however that ends.
type spillFile struct {
	mu     sync.Mutex
	file   *os.File
	failed bool // no file, or a full disk: everything stays in memory from then on
	size   int64
	region []byte // a mapping of which tables have not taken all yet

	given map[unsafe.Pointer]int // how large tables are, by where they begin
	free  areas                  // that tables gave up: a page that was written to before has its place on the disk

	// By itself, since making room for a table may wait for the disk.
	mappedMu sync.Mutex
	mapped   [][]byte
	used     atomic.Bool // mapped holds something
}

// regionSize is how large the mappings are that small tables share: a process may have
// some ten thousands.
const regionSize = 16 << 20

var file = &spillFile{}

// table returns a mapping of so many zero bytes, nil if there is no room for it.
func (s *spillFile) table(size int64) []byte {
	s.mu.Lock()
	table, used := s.cut(size)
	s.mu.Unlock()
	if used {
		for part := range slices.Chunk(table, smallPage) {
			Touch(len(part))
			clear(part)
		}
	}
	return table
}

// wide returns a mapping of so many bytes for a table that grows, nil if there is no
// room for it. It may hold anything.
func (s *spillFile) wide(size int64) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	table, _ := s.cut(size)
	return table
}

// giveUp takes back a table, given where it begins, and how many bytes it has room for. What is
// not in the file, and a part of a table, it leaves alone.
func (s *spillFile) giveUp(table unsafe.Pointer, size int) {
	if s.isEmpty() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.given[table] == size {
		delete(s.given, table)
		s.free.add(table, aligned(size))
	}
}

// aligned is how many bytes of the file a table takes.
func aligned(size int) int {
	const align = 64
	return (size + align - 1) / align * align
}

// cut returns a part of the mapping, and whether it may hold something, for who holds the lock.
func (s *spillFile) cut(size int64) (table []byte, used bool) {
	whole := int64(aligned(int(size)))
	if at := s.free.take(int(whole)); at != nil {
		table, used = unsafe.Slice((*byte)(at), size), true
	} else {
		if whole > int64(len(s.region)) {
			region := s.addRegion(max(whole, regionSize))
			if region == nil {
				return nil, false
			}
			if len(s.region) > 0 {
				s.free.add(unsafe.Pointer(unsafe.SliceData(s.region)), len(s.region))
			}
			s.region = region
		}
		table, s.region = s.region[:size:size], s.region[whole:]
	}
	if s.given == nil {
		s.given = map[unsafe.Pointer]int{}
	}
	s.given[unsafe.Pointer(unsafe.SliceData(table))] = int(size)
	return table, used
}

// addRegion maps more of the file.
func (s *spillFile) addRegion(size int64) []byte {
	return s.add(size, unix.PROT_READ|unix.PROT_WRITE, func(offset int64) error { return zero(s.file, offset, size) })
}

// Spill moves a block to the file and returns it mapped into memory, to be read only;
// nil if it must stay where it is.
func Spill(block []byte) []byte {
	file.mu.Lock()
	defer file.mu.Unlock()
	return file.add(int64(len(block)), unix.PROT_READ, func(offset int64) error {
		_, err := file.file.WriteAt(block, offset)
		return err
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

// isEmpty reports whether nothing lies in the file.
func (s *spillFile) isEmpty() bool { return !s.used.Load() }

// relax tells the kernel that no page is needed in this process for now; they stay in
// its page cache.
func (s *spillFile) relax() {
	s.mappedMu.Lock()
	mapped := s.mapped // only ever appended to
	s.mappedMu.Unlock()
	for _, m := range mapped {
		_ = unix.Madvise(m, unix.MADV_DONTNEED) // a hint
	}
}

// What is written to the file at once the kernel keeps together, up to a large page, and maps all of it
// where one byte is touched.
const (
	largePage = 2 << 20
	smallPage = 64 << 10
)

// isRoomy reports whether the budget has room for large pages. One fault in place of 32 maps them, and
// a walk over a table that is far larger than the budget takes a third less of the kernel's time; but a
// walk in no order holds many of them within moments.
func isRoomy() bool { return budget.Load() >= 1000*largePage }

// zeros is what a part of the file holds at first.
var zeros [largePage]byte

// zero fills a part of a file, so that its blocks are there: without them, a full disk
// would show as a signal when a page is written.
func zero(f *os.File, offset, size int64) error {
	page := int64(smallPage)
	if isRoomy() {
		page = largePage
	}
	for end := offset + size; offset < end; offset += page {
		if _, err := f.WriteAt(zeros[:min(page, end-offset)], offset); err != nil {
			return err
		}
	}
	return nil
}
