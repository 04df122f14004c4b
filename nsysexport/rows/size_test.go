package rows

import (
	"testing"
	"unsafe"
)

// Rows must be small, because there are millions of them.
func TestSizes(t *testing.T) {
	for _, c := range []struct {
		name       string
		size, want uintptr
	}{
		{"Kernel", unsafe.Sizeof(Kernel{}), 56},
		{"Call", unsafe.Sizeof(Call{}), 40},
		{"Memcpy", unsafe.Sizeof(Memcpy{}), 48},
		{"Memset", unsafe.Sizeof(Memset{}), 48},
		{"Sync", unsafe.Sizeof(Sync{}), 48},
		{"GraphRun", unsafe.Sizeof(GraphRun{}), 48},
		{"GraphNode", unsafe.Sizeof(GraphNode{}), 32},
		{"Range", unsafe.Sizeof(Range{}), 48},
		{"Sched", unsafe.Sizeof(Sched{}), 24},
		{"Sample", unsafe.Sizeof(Sample{}), 24},
		{"MemoryEvent", unsafe.Sizeof(MemoryEvent{}), 32},
	} {
		if c.size != c.want {
			t.Errorf("%s has %d bytes, want %d", c.name, c.size, c.want)
		}
	}
}
