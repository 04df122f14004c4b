package trace

import (
	"encoding/binary"
	"sync"
	"sync/atomic"

	"github.com/sgtrace/sgtrace/internal/memory"
)

// Args is an append-only arena of argument lists. A list is a byte string of (key, kind, value) triples;
// keys are symbols, values are inline.
//
// Lists are addressed in units of argsAlign bytes, so 32 bits reach 32 GiB. About 64 MB stay in memory;
// later blocks move to a nameless temporary file, which disappears with the process, however it ends.
//
// Several goroutines may call Put concurrently, but none may read meanwhile.
type Args struct {
	mu      sync.Mutex
	shared  ArgsAppender
	blocks  [][]byte
	large   map[ArgsID][]byte // lists that are too long for a block
	idle    []*ArgsAppender   // released ones
	dropped atomic.Int64
}

const (
	argsAlign     = 8
	argsBlockBits = 20
	argsBlock     = 1 << argsBlockBits // a list never crosses a block boundary
	argsMaxBlocks = argsAlign << 32 >> argsBlockBits
	maxInBlock    = argsBlock - argsAlign - binary.MaxVarintLen64
	argsFirst     = argsBlock / 16 // size of an appender's first block: most files are small
)

// NewArgs returns an empty arena.
func NewArgs() *Args {
	a := &Args{}
	a.shared.args = a
	return a
}

// Put copies an encoded list and returns its ID. If the arena's 32 GiB are full, the list is dropped and
// counted by [Args.Dropped].
func (a *Args) Put(list []byte) ArgsID {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.shared.Put(list)
}

// Dropped returns the number of lists that did not fit into the arena.
func (a *Args) Dropped() int { return int(a.dropped.Load()) }

// Size returns the number of bytes in the arena's blocks.
func (a *Args) Size() uint64 { return uint64(len(a.blocks)) << argsBlockBits }

// Raw returns the encoded list of id. It must not be modified, and is valid for the life of the arena.
func (a *Args) Raw(id ArgsID) []byte {
	if id == 0 {
		return nil
	}
	at := uint64(id) * argsAlign
	b := a.blocks[at>>argsBlockBits][at&(argsBlock-1):]
	n, h := uvarint(b)
	if n == 0 {
		return a.large[id]
	}
	return b[h : h+int(n)]
}

// Touch says that roughly this many bytes of tables and arguments, which may be in a temporary file, are
// being read. Readers call it from time to time: see [memory.Touch].
func Touch(bytes int) { memory.Touch(bytes) }

// Appender returns an appender, with which one goroutine fills its own blocks without waiting for others.
// It takes at least one new block, unless another appender was released.
func (a *Args) Appender() *ArgsAppender {
	a.mu.Lock()
	defer a.mu.Unlock()
	if last := len(a.idle) - 1; last >= 0 {
		p := a.idle[last]
		a.idle = a.idle[:last]
		return p
	}
	return &ArgsAppender{args: a}
}

// An ArgsAppender adds lists to an arena from one goroutine.
type ArgsAppender struct {
	args  *Args
	block int    // index of the current block
	buf   []byte // the used part of the block
}

// Release releases an appender; the next caller of Appender continues with its block.
func (p *ArgsAppender) Release() {
	p.args.mu.Lock()
	defer p.args.mu.Unlock()
	p.args.idle = append(p.args.idle, p)
}

// Put is like [Args.Put].
func (p *ArgsAppender) Put(list []byte) ArgsID {
	if len(list) == 0 {
		return 0
	}
	inBlock := list
	if len(list) > maxInBlock {
		inBlock = nil // stored outside of the blocks, under the ID of an empty list
	}
	if need := binary.MaxVarintLen64 + len(inBlock); len(p.buf)+need > cap(p.buf) {
		p.next(need)
	}
	if p.block >= argsMaxBlocks {
		p.args.dropped.Add(1)
		return 0
	}
	id := ArgsID((p.block<<argsBlockBits + len(p.buf)) / argsAlign)
	p.buf = append(binary.AppendUvarint(p.buf, uint64(len(inBlock))), inBlock...)
	p.buf = p.buf[:min(cap(p.buf), (len(p.buf)+argsAlign-1)&^(argsAlign-1))]
	if inBlock == nil {
		p.args.putLarge(id, list, p)
	}
	return id
}

// next starts a new block, for a list that needs this many bytes. If the memory budget has no room for another
// block, the full one moves to the temporary file, and the new block reuses its memory.
func (p *ArgsAppender) next(need int) {
	a := p.args
	var fresh []byte
	switch full := p.buf[:cap(p.buf)]; {
	case len(full) == 0 && need <= argsFirst-argsAlign:
		fresh = make([]byte, argsFirst)
	case len(full) == argsBlock && memory.Tight(argsBlock) && p.block < argsMaxBlocks:
		if mapped := memory.Spill(full); mapped != nil {
			a.lock(p)
			a.blocks[p.block], fresh = mapped, full
			a.unlock(p)
		}
	}
	if fresh == nil {
		fresh = memory.Huge(make([]byte, argsBlock))
	}
	a.lock(p)
	defer a.unlock(p)
	if p.block = len(a.blocks); p.block < argsMaxBlocks {
		a.blocks = append(a.blocks, fresh)
	}
	p.buf = fresh[:0]
	if p.block == 0 {
		p.buf = fresh[:argsAlign] // ID 0 is taken
	}
}

// lock guards the arena's tables. Users of the shared appender hold the lock already.
func (a *Args) lock(p *ArgsAppender) {
	if p != &a.shared {
		a.mu.Lock()
	}
}

func (a *Args) unlock(p *ArgsAppender) {
	if p != &a.shared {
		a.mu.Unlock()
	}
}

func (a *Args) putLarge(id ArgsID, list []byte, p *ArgsAppender) {
	a.lock(p)
	defer a.unlock(p)
	if a.large == nil {
		a.large = map[ArgsID][]byte{}
	}
	a.large[id] = append([]byte(nil), list...)
}
