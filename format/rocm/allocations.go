package rocm

import (
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// allocatedMemory is the counter of what calls allocated on a device.
const allocatedMemory = "memory allocated through HIP"

// A block is memory of a device that was allocated.
type block struct {
	size   int64
	device int32
}

// allocate adds memory of a device that was allocated.
func (p *process) allocate(device int32, address, size int64, at trace.Time) {
	p.release(address)
	p.blocks[address] = block{size, device}
	p.sums[device] += size
	p.allocated(device, at)
}

// free notes that memory is free again. What frees it says where it was, and not how large; what was
// allocated before the recording, or on the host, is unknown.
func (p *process) free(address int64, at trace.Time) {
	if b, known := p.release(address); known {
		p.allocated(b.device, at)
	}
}

func (p *process) release(address int64) (b block, known bool) {
	if b, known = p.blocks[address]; known {
		delete(p.blocks, address)
		p.sums[b.device] -= b.size
	}
	return b, known
}

func (p *process) allocated(device int32, at trace.Time) {
	p.counter(device, p.r.opt.Syms.Intern(allocatedMemory), p.r.opt.Syms.Intern("bytes"), at, float64(p.sums[device]), profile.MemoryCounter)
}
