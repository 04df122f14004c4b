//go:build unix

package memory

import (
	"math/bits"
	"os"
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

	// Tables that grow have a power of two of bytes. What they give up, others take: a page
	// that was written to before has its place on the disk.
	class map[unsafe.Pointer]int // its logarithm, by where a table begins
	free  [64][][]byte           // that were given up, by class

	// By itself, since making room for a table may wait for the disk.
	mappedMu sync.Mutex
	mapped   [][]byte
	used     atomic.Bool // mapped holds something
}

// regionSize is how large the mappings are that small tables share: a process may have
// some ten thousands.
const regionSize = 16 << 20

var file spillFile

// table returns a mapping of so many zero bytes, nil if there is no room for it.
func (s *spillFile) table(size int64) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cut(size)
}

// wide returns a mapping of at least so many bytes for a table that grows, nil if there is no
// room for it. It may hold anything.
func (s *spillFile) wide(size int64) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	class := bits.Len64(uint64(size - 1))
	if free := s.free[class]; len(free) > 0 {
		s.free[class] = free[:len(free)-1]
		return free[len(free)-1]
	}
	table := s.cut(1 << class)
	if table != nil {
		if s.class == nil {
			s.class = map[unsafe.Pointer]int{}
		}
		s.class[unsafe.Pointer(unsafe.SliceData(table))] = class
	}
	return table
}

// giveUp takes back a table that wide has made, given where it begins, and the number and size
// of the values that it has room for. Any other, and a part of one, it leaves alone.
func (s *spillFile) giveUp(table unsafe.Pointer, values, size int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if class, ok := s.class[table]; ok && values == 1<<class/size {
		s.free[class] = append(s.free[class], unsafe.Slice((*byte)(table), 1<<class))
	}
}

// cut is table for who holds the lock.
func (s *spillFile) cut(size int64) []byte {
	const align = 64
	size = (size + align - 1) / align * align
	if size > int64(len(s.region)) {
		whole := max(size, regionSize)
		region := s.add(whole, unix.PROT_READ|unix.PROT_WRITE, func(offset int64) error { return zero(s.file, offset, whole) })
		if region == nil {
			return nil
		}
		if whole == size {
			return region
		}
		s.region = region
	}
	table := s.region[:size:size]
	s.region = s.region[size:]
	return table
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
