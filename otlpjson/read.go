package otlpjson

import (
	"bytes"
	"fmt"
	"io"
	"runtime"
	"sync"

	"github.com/klauspost/compress/zstd"

	"github.com/sgtrace/sgtrace/spantable"
	"github.com/sgtrace/sgtrace/trace"
)

// flushSpans is how many spans a parser gathers before it hands over a batch
// in the middle of a piece.
const flushSpans = 1 << 14

// Read appends the spans of the decompressed input r to a table; name is for
// messages. Damage in the data becomes diagnostics, and everything readable is
// kept; so is what was read before r failed. The error is r's, and only when
// not a byte could be read.
//
// Read the files of one dump one after the other, in the order of their names
// if the result shall not depend on the order of the arguments; each file is
// parsed on all cores.
func Read(d *spantable.Table, name string, r io.Reader) error {
	return intake{d, usual, usualBlocks}.read(name, r)
}

// An intake is how inputs are read into a table.
type intake struct {
	*spantable.Table
	limits limits
	blocks *blocks
}

func (d intake) read(name string, r io.Reader) error {
	src := &source{r: r}
	kind := detect(src)
	file := uint32(len(d.Files))
	d.Files = append(d.Files, spantable.File{Name: name, Encoding: kind.String()})

	workers := runtime.GOMAXPROCS(0)
	work := make(chan *piece, workers)
	order := make(chan *piece, workers)
	go func() {
		c := cutter{limits: d.limits, in: src, work: work, order: order, blocks: d.blocks}
		if kind == notFramed {
			c.cutDocuments()
		} else {
			c.cutFrames(kind, func(m *trace.Message, offset int64, values ...any) {
				d.Diags.Add(m.At(trace.Pos{File: name, Offset: offset}, values...))
			})
		}
		close(work)
		close(order)
	}()
	batches := &sync.Pool{New: func() any { return new(batch) }}
	for range workers {
		go func() {
			w := worker{recorder: newRecorder(d.Syms, d.KeepSecrets), limits: d.limits, batches: batches, blocks: d.blocks}
			for p := range work {
				w.parse(p)
			}
		}()
	}
	for p := range order {
		if kind != notFramed {
			d.Frame(p.offset)
		}
		for b := range p.done {
			b.collect(d.Table, file)
			b.reset()
			batches.Put(b)
		}
		d.blocks.put(p.data)
	}
	d.Files[file].Bytes = src.n
	if src.err != nil && src.err != io.EOF {
		if src.n == 0 {
			return fmt.Errorf("reading %s: %w", name, src.err)
		}
		d.Diags.Add(trace.InputDamaged.At(trace.Pos{File: name, Offset: src.n}, src.err))
	}
	return nil
}

// A worker parses pieces, one after the other.
type worker struct {
	recorder
	limits  limits
	batches *sync.Pool
	blocks  *blocks
	zstd    *zstd.Decoder
}

// parse turns the piece into batches on p.done.
func (w *worker) parse(p *piece) {
	defer close(p.done)
	w.out = w.batches.Get().(*batch)
	switch p.kind {
	case protoFrames:
		w.parseProto(p.data, p.cut, p.offset)
	case zstdFrames:
		w.parseZstd(p)
	default:
		w.parseJSON(p, cursor{src: p.rest, buf: p.data, base: p.offset, line: p.line})
	}
	p.done <- w.out
}

// parseZstd parses a zstd frame: JSON, or protobuf where the Collector's format says so.
func (w *worker) parseZstd(p *piece) {
	if w.zstd == nil {
		w.zstd, _ = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true))
	}
	content := &source{r: w.zstd}
	content.err = w.zstd.Reset(bytes.NewReader(p.data))
	if !beginsLikeProto(content.peek(framePeek)) {
		w.parseJSON(p, cursor{src: content, buf: w.blocks.get(), framed: true, frameAt: p.offset})
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
			p.done <- w.out
			w.out = w.batches.Get().(*batch)
		}
	}
	doc.run()
	if c.framed {
		w.blocks.put(doc.buf)
	}
}
