//go:build unix

package memory

import (
	"os"
	"sync"

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

	// By itself, since making room for a table may wait for the disk.
	mappedMu sync.Mutex
	mapped   [][]byte
}

// regionSize is how large the mappings are that small tables share: a process may have
// some ten thousands.
const regionSize = 16 << 20

var file spillFile

// table returns a mapping of so many zero bytes, nil if there is no room for it.
func (s *spillFile) table(size int64) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	const align = 64
	size = (size + align - 1) / align * align
	if size > int64(len(s.region)) {
		whole := max(size, regionSize)
		region := s.add(whole, unix.PROT_READ|unix.PROT_WRITE, func(offset int64) error { return reserve(s.file, offset, whole) })
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
func (s *spillFile) isEmpty() bool {
	s.mappedMu.Lock()
	defer s.mappedMu.Unlock()
	return len(s.mapped) == 0
}

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

// zero fills a part of a file, so that its blocks are there: without them, a full disk
// would show as a signal when a page is written.
func zero(f *os.File, offset, size int64) error {
	block := make([]byte, min(size, 1<<20))
	for end := offset + size; offset < end; offset += int64(len(block)) {
		if _, err := f.WriteAt(block[:min(int64(len(block)), end-offset)], offset); err != nil {
			return err
		}
	}
	return nil
}
