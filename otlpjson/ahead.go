package otlpjson

import (
	"bytes"
	"io"
	"sync"

	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/internal/parallel"
)

// A buffer holds a block of an input, which has been read, behind room for what was left of the block
// before it.
type buffer struct {
	whole []byte // of blocks
	size  int    // of the block that was read
	lines int    // how many end in it
	err   error  // behind the block
}

// room is the size of the room, which is that of the largest block.
func (b *buffer) room() int { return len(b.whole) / 2 }

// read takes what a reader gave of a block.
func (b *buffer) read(n int, err error) {
	b.size, b.err = n, err
	b.lines = bytes.Count(b.block(), []byte{'\n'})
}

// block returns what was read.
func (b *buffer) block() []byte { return b.whole[b.room():][:b.size] }

// joined returns the block behind what was left, in the buffer if there is room.
func (b *buffer) joined(left []byte) []byte {
	from := b.room() - len(left)
	if from < 0 {
		if cap(left)-len(left) < b.size {
			left = append(make([]byte, 0, max(2*len(left), len(left)+b.size)), left...)
		}
		return append(left, b.block()...)
	}
	copy(b.whole[from:], left)
	return b.whole[from : b.room()+b.size]
}

// blocks keeps buffers for reuse.
type blocks struct {
	size int // of a block, and of the room in front of it
	pool sync.Pool
}

var usualBlocks = &blocks{size: usual.block}

func (b *blocks) get() []byte {
	if p, ok := b.pool.Get().(*[]byte); ok {
		return (*p)[:cap(*p)]
	}
	return memory.Huge(make([]byte, 2*b.size))
}

// put takes a buffer back, unless it is of another size.
func (b *blocks) put(buf []byte) {
	if cap(buf) == 2*b.size {
		b.pool.Put(&buf)
	}
}

// follow returns a function that reads the next block of r each time.
func (b *blocks) follow(r io.Reader) (next func() buffer) {
	return func() buffer {
		buf := buffer{whole: b.get()}
		n, err := io.ReadFull(r, buf.whole[b.size:])
		if err == io.ErrUnexpectedEOF {
			err = io.EOF
		}
		buf.read(n, err)
		return buf
	}
}

// heldByReader is about how many bytes a goroutine that reads ahead holds.
const heldByReader = 2 << 20

// ahead is follow for a file, of which it reads some blocks side by side before somebody asks for them.
// stop is to be called once nobody does.
func (b *blocks) ahead(r io.ReaderAt) (next func() buffer, stop func()) {
	const enough = 4 // read faster than the others parse
	order := make(chan chan buffer, min(enough, parallel.Workers(heldByReader)))
	ended := make(chan struct{})
	go func() {
		defer close(order)
		for offset := int64(0); ; offset += int64(b.size) {
			read := make(chan buffer, 1)
			select {
			case <-ended:
				return
			case order <- read:
			}
			go func() {
				buf := buffer{whole: b.get()}
				n, err := r.ReadAt(buf.whole[b.size:], offset)
				buf.read(n, err)
				read <- buf
			}()
		}
	}()
	next = func() buffer { return <-<-order }
	stop = func() {
		close(ended)
		for read := range order {
			buf := <-read
			b.put(buf.whole)
		}
	}
	return next, stop
}
