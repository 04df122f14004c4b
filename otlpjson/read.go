package otlpjson

import (
	"bytes"
	"fmt"
	"io"
	"sync"

	"github.com/klauspost/compress/zstd"
	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/internal/parallel"
	"github.com/sgtrace/sgtrace/otlpjson/beside"
	"github.com/sgtrace/sgtrace/request/spantable"
	"github.com/sgtrace/sgtrace/trace"
)

// flushSpans is the number of spans that a parser gathers before it hands over a batch in the middle of a
// piece.
const flushSpans = 1 << 14

// Read appends the spans of the decompressed input r that d.Selected selects to a table; name is for messages.
// Damage in the data becomes diagnostics, and everything readable is kept, including what was read before r
// failed. Read returns r's error only if it could not read a byte. If r is also an [io.ReaderAt], Read skips
// pieces without selected spans.
//
// Read the files of one dump one after the other, in the order of their names if the result must not depend on
// the order of the arguments; each file is parsed on all cores.
func Read(d *spantable.Table, name string, r io.Reader) error {
	return intake{Table: d, limits: usual, blocks: usualBlocks}.read(name, r)
}

// An intake reads inputs into a table.
type intake struct {
	Table  *spantable.Table
	limits limits
	blocks *blocks
	beside *beside.Kept // logs and metrics; nil drops them
}

func (d intake) read(name string, r io.Reader) error {
	src := &source{r: r}
	kind := detect(src)
	file := uint32(len(d.Table.Files))
	d.Table.Files = append(d.Table.Files, spantable.File{Name: name, Encoding: kind.String()})
	f := &d.Table.Files[file]
	cut := cutter{limits: d.limits, in: src, blocks: d.blocks, known: d.Table.Selected.Ranges(name)}
	cut.at, _ = r.(io.ReaderAt)
	batches := &sync.Pool{New: func() any { return new(batch) }}
	left, end := int64(0), int64(0)
	cut.run(kind, d.reportFrames(name), func() func(*piece) {
		w := worker{recorder: newRecorder(d.Table.Syms, d.Table.KeepSecrets), limits: d.limits, blocks: d.blocks, take: func() *batch { return batches.Get().(*batch) },
			give: func(p *piece, b *batch) { b.numberTraces(); p.done <- b }}
		w.chosen, w.keeps = d.Table.Selected, d.beside != nil
		return w.parse
	}, func(p *piece) {
		end = p.offset + p.size()
		if s := p.skipped; s != nil {
			left += p.size()
			f.Spans, f.Documents = f.Spans+s.Spans, f.Documents+s.Documents
		}
		if kind != notFramed {
			d.Table.Frame(p.offset)
		}
		for b := range p.done {
			b.collect(d.Table, file)
			for s, documents := range b.beside {
				if d.beside != nil {
					d.beside.Add(beside.Signal(s), documents)
				}
			}
			cut.leave(func() {
				b.fill(d.Table.Args)
				b.reset()
				batches.Put(b)
			})
		}
	})
	if cut.tail.r != nil {
		src.n, src.err = end+cut.tail.n, cut.tail.err
	}
	f.Bytes = max(src.n, end)
	if left > 0 {
		d.Table.Diags.Add(trace.InputUnread.Of(name, left>>20, f.Bytes>>20))
	}
	return d.ended(name, src)
}

// reportFrames returns a function that reports damage between the frames of an input.
func (d intake) reportFrames(name string) func(m *trace.Message, offset int64, values ...any) {
	return func(m *trace.Message, offset int64, values ...any) {
		d.Table.Diags.Add(m.At(trace.Pos{File: name, Offset: offset}, values...))
	}
}

// ended reports the error that an input ended with, or returns it if nothing was read before.
func (d intake) ended(name string, src *source) error {
	if src.err == nil || src.err == io.EOF {
		return nil
	}
	if src.n == 0 {
		return fmt.Errorf("reading %s: %w", name, src.err)
	}
	d.Table.Diags.Add(trace.InputDamaged.At(trace.Pos{File: name, Offset: src.n}, src.err))
	return nil
}

// heldByWorker is a rough number of bytes held by a worker: the current piece, those waiting before and after
// it, and the parsed records.
const heldByWorker = 4 << 20

// run cuts an input into pieces, which workers on all cores process; newWorker makes the function of each
// worker. take gets all pieces in order, while they are being processed, and may leave work without an order to
// the workers. report gets the damage between frames.
func (c *cutter) run(kind framing, report func(m *trace.Message, offset int64, values ...any), newWorker func() func(*piece), take func(*piece)) {
	workers := parallel.Workers(heldByWorker)
	c.work, c.order, c.left = make(chan *piece, workers), make(chan *piece, workers), make(chan func(), workers)
	go func() {
		switch {
		case kind != notFramed:
			c.cutFrames(kind, report)
		case c.known != nil && c.at != nil:
			c.cutKnown()
		default:
			c.cutDocuments()
		}
		close(c.work)
		close(c.order)
	}()
	var all sync.WaitGroup
	for range workers {
		all.Go(func() { c.serve(newWorker()) })
	}
	for p := range c.order {
		take(p)
		c.blocks.put(p.buffer)
	}
	close(c.left)
	all.Wait()
}

// serve processes pieces, and what leave passes on, until both channels are closed.
func (c *cutter) serve(on func(*piece)) {
	work, left := c.work, c.left
	for work != nil || left != nil {
		select {
		case p, ok := <-work:
			if !ok {
				work = nil
				continue
			}
			on(p)
		case f, ok := <-left:
			if !ok {
				left = nil
				continue
			}
			f()
		}
	}
}

// leave has a worker call f, or calls it itself if all are busy.
func (c *cutter) leave(f func()) {
	select {
	case c.left <- f:
	default:
		f()
	}
}

// A worker parses pieces, one after the other.
type worker struct {
	recorder
	limits limits
	blocks *blocks
	zstd   *zstd.Decoder
	take   func() *batch            // returns an empty batch
	give   func(p *piece, b *batch) // gets the batches of a piece, in order
}

// parse turns the piece into batches, and closes p.done.
func (w *worker) parse(p *piece) {
	defer close(p.done)
	w.out = w.take()
	switch p.kind {
	case protoFrames:
		w.parseProto(p.data, p.cut, p.offset)
	case zstdFrames:
		w.parseZstd(p)
	default:
		w.parseJSON(p, cursor{src: p.rest, buf: p.data, base: p.offset, line: p.line})
	}
	w.give(p, w.out)
}

// parseZstd parses a zstd frame: JSON, or protobuf where the Collector's format says so.
func (w *worker) parseZstd(p *piece) {
	if w.zstd == nil {
		w.zstd, _ = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true))
	}
	content := &source{r: w.zstd}
	content.err = w.zstd.Reset(bytes.NewReader(p.data))
	if !beginsLikeProto(content.peek(framePeek)) {
		w.parseJSON(p, cursor{src: content, buf: w.blocks.get()[:0], framed: true, frameAt: p.offset})
		return
	}
	msg := content.peek(maxFrame)
	w.parseProto(msg, content.err != io.EOF, p.offset)
}

func (w *worker) parseJSON(p *piece, c cursor) {
	c.limits = w.limits
	doc := parser{cursor: c, recorder: &w.recorder, cut: p.cut}
	if c.src != nil {
		doc.flush = func() {
			w.give(p, w.out)
			w.out = w.take()
		}
	}
	doc.run()
	if c.framed {
		w.blocks.put(doc.buf)
	}
}

// A buffer holds a block that was read from an input, and free space in front of it for the rest of the block
// before.
type buffer struct {
	whole []byte // from blocks
	size  int    // of the block
	lines int    // newlines in the block
	err   error  // at the end of the block
}

// room returns the size of the space in front, which is that of the largest block.
func (b *buffer) room() int { return len(b.whole) / 2 }

// read records the result of reading a block.
func (b *buffer) read(n int, err error) {
	b.size, b.err = n, err
	b.lines = bytes.Count(b.block(), []byte{'\n'})
}

// block returns the block that was read.
func (b *buffer) block() []byte { return b.whole[b.room():][:b.size] }

// joined returns left followed by the block, in the buffer if there is room.
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
	size int // of a block, and of the space in front of it
	pool sync.Pool
}

var usualBlocks = &blocks{size: usual.block}

func (b *blocks) get() []byte {
	if p, ok := b.pool.Get().(*[]byte); ok {
		return (*p)[:cap(*p)]
	}
	return memory.Huge(make([]byte, 2*b.size))
}

// put takes a buffer back, unless it has another size.
func (b *blocks) put(buf []byte) {
	if cap(buf) == 2*b.size {
		b.pool.Put(&buf)
	}
}

// follow returns a function that reads the next block of r with each call.
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

// heldByReader is a rough number of bytes held by a goroutine that reads ahead.
const heldByReader = 2 << 20

// ahead is follow for a file. It reads some blocks concurrently, before they are needed. Call stop when done.
func (b *blocks) ahead(r io.ReaderAt) (next func() buffer, stop func()) {
	const enough = 4 // reads faster than the parsers parse
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
