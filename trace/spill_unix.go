//go:build unix

package trace

import (
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// spill is the temporary file of an arena: block i lies at offset i*argsBlock.
type spill struct {
	mu     sync.Mutex
	file   *os.File
	failed bool // no file, or a full disk: blocks stay in memory from then on
	mapped [][]byte
}

// move writes a block to the file and returns it mapped into memory, or nil if
// it must stay where it is.
func (s *spill) move(block []byte, index int) []byte {
	f := s.open()
	if f == nil {
		return nil
	}
	offset := int64(index) << argsBlockBits
	_, err := f.WriteAt(block, offset)
	var mapped []byte
	if err == nil {
		mapped, err = unix.Mmap(int(f.Fd()), offset, len(block), unix.PROT_READ, unix.MAP_SHARED)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.failed = true
		return nil
	}
	s.mapped = append(s.mapped, mapped)
	return mapped
}

// open returns the file, or nil. It is unlinked at once.
func (s *spill) open() *os.File {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.file == nil && !s.failed {
		f, err := os.CreateTemp("", "sgtrace-args-")
		if err == nil {
			err = os.Remove(f.Name())
		}
		if s.failed = err != nil; !s.failed {
			s.file = f
		}
	}
	if s.failed {
		return nil
	}
	return s.file
}

// relax tells the kernel that no page of the file is needed in this process for
// now; they stay in its page cache.
func (s *spill) relax() {
	for _, m := range s.mapped {
		_ = unix.Madvise(m, unix.MADV_DONTNEED) // a hint
	}
}
