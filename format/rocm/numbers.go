package rocm

import "github.com/sgtrace/sgtrace/internal/memory"

// numbers is a set of numbers, which producers mostly count from 1 on.
type numbers struct {
	dense []uint64 // a bit each
	far   map[int64]bool
}

// sparse is how far beyond twice those that there are a number may be without leaving most bits empty.
const sparse = 1 << 16

func (s *numbers) add(n int64) {
	if n < 0 || n > int64(128*len(s.dense)+sparse) {
		if s.far == nil {
			s.far = map[int64]bool{}
		}
		s.far[n] = true
		return
	}
	for int64(len(s.dense)) <= n/64 {
		s.dense = memory.Append(s.dense, 0)
	}
	s.dense[n/64] |= 1 << (n % 64)
}

func (s *numbers) has(n int64) bool {
	if n >= 0 && n/64 < int64(len(s.dense)) && s.dense[n/64]>>(n%64)&1 != 0 {
		return true
	}
	return s.far[n]
}
