package profilewalk

import (
	"bytes"
	"encoding/binary"

	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// A Launch is a call that may have put work on a device.
type Launch struct {
	Start trace.Time
	Dur   int64 // ns
	Step  int32 // index of the innermost step around it; NoStep
	Known bool  // there is such a call
	Graph bool  // it launches a CUDA graph
	Asks  bool  // it is in an annotation of a collective
}

// Launches holds launches by correlation. There are as many as kernels, and a kernel follows its launch within some
// thousands of others, so all but the latest are packed, in 6 bytes each.
type Launches struct {
	blocks map[int64]*launchBlock // by the upper bits of the correlation
	last   [2]struct {            // the last blocks used by Put and Find
		number int64
		block  *launchBlock
	}
	open   []*launchBlock // blocks that are not packed: a ring, once it is full
	oldest int            // index of the oldest in the ring
	unused *[launchBlockSize]Launch
	bytes  []byte // scratch space
}

// A launchBlock holds the launches of consecutive correlations, unpacked in all or packed.
type launchBlock struct {
	all    *[launchBlockSize]Launch
	packed []byte
}

const (
	launchBlockBits = 6
	launchBlockSize = 1 << launchBlockBits
	openBlocks      = 1 << 10
)

// Put returns the slot of a launch, which is valid until the next call.
func (l *Launches) Put(correlation int64) *Launch {
	last := &l.last[0]
	number := correlation >> launchBlockBits
	if last.block == nil || last.number != number {
		b := l.blocks[number]
		if b == nil {
			if l.blocks == nil {
				l.blocks = map[int64]*launchBlock{}
			}
			b = &launchBlock{}
			l.blocks[number] = b
		}
		last.number, last.block = number, b
	}
	return l.in(last.block, correlation)
}

// Add adds a call and returns its slot, which is valid until the next call. It returns nil if the call has no
// correlation, or is nested in another call with the same one, like a driver call in a runtime call.
func (l *Launches) Add(c *profile.Call) *Launch {
	if c.Correlation == 0 {
		return nil
	}
	at, dur := l.Put(c.Correlation), c.Dur()
	if at.Known && (c.Start > at.Start || c.Start == at.Start && dur <= at.Dur) {
		return nil
	}
	*at = Launch{Start: c.Start, Dur: dur, Known: true}
	return at
}

// Find returns a launch, or nil if there is none. It is valid until the next call.
func (l *Launches) Find(correlation int64) *Launch {
	last := &l.last[1]
	number := correlation >> launchBlockBits
	if last.block == nil || last.number != number {
		b := l.blocks[number]
		if b == nil {
			return nil
		}
		last.number, last.block = number, b
	}
	if found := l.in(last.block, correlation); found.Known {
		return found
	}
	return nil
}

// in returns the slot of a launch in a block, and opens the block if necessary.
func (l *Launches) in(b *launchBlock, correlation int64) *Launch {
	if b.all == nil {
		l.makeOpen(b)
	}
	return &b.all[correlation&(launchBlockSize-1)]
}

// makeOpen opens a block, and packs the one that has been open longest.
func (l *Launches) makeOpen(b *launchBlock) {
	if len(l.open) < openBlocks {
		l.open = append(l.open, b)
	} else {
		l.pack(l.open[l.oldest])
		l.open[l.oldest] = b
		l.oldest = (l.oldest + 1) % openBlocks
	}
	if b.all, l.unused = l.unused, nil; b.all == nil {
		b.all = new([launchBlockSize]Launch)
	}
	clear(b.all[:])
	unpackLaunches(b)
}

const (
	packedGraph = 1 << iota
	packedAsks
	packedStep // multiplied by the index of the step plus one
)

// pack packs the launches of a block, each as its differences from the one before.
func (l *Launches) pack(b *launchBlock) {
	to, last, at := l.bytes[:0], trace.Time(0), 0
	for i := range b.all {
		x := &b.all[i]
		if !x.Known {
			continue
		}
		marks := uint64(x.Step+1) * packedStep
		if x.Graph {
			marks |= packedGraph
		}
		if x.Asks {
			marks |= packedAsks
		}
		to = binary.AppendUvarint(to, uint64(i-at))
		to = binary.AppendVarint(to, int64(x.Start-last))
		to = binary.AppendUvarint(to, uint64(x.Dur))
		to = binary.AppendUvarint(to, marks)
		last, at = x.Start, i
	}
	b.packed, l.bytes = bytes.Clone(to), to
	b.all, l.unused = nil, b.all
}

// unpackLaunches unpacks the launches of a block.
func unpackLaunches(b *launchBlock) {
	r, last, at := memory.Unpack([][]byte{b.packed}), trace.Time(0), 0
	for b.packed = nil; r.More(); {
		at += int(r.Unsigned())
		last += trace.Time(r.Signed())
		x := Launch{Start: last, Dur: int64(r.Unsigned()), Known: true}
		marks := r.Unsigned()
		x.Step, x.Graph, x.Asks = int32(marks/packedStep)-1, marks&packedGraph != 0, marks&packedAsks != 0
		b.all[at] = x
	}
}
