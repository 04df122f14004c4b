package otlpjson

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"slices"

	"github.com/sgtrace/sgtrace/trace"
	"google.golang.org/protobuf/encoding/protowire"
)

// framing is how messages follow each other. The Collector's file exporter puts a 4-byte big-endian length
// before every message when it writes protobuf or compresses message by message (contrib v0.159, fileexporter).
type framing uint8

const (
	notFramed   framing = iota // JSON documents
	zstdFrames                 // each frame is a zstd frame of one JSON document, or of one message as below
	protoFrames                // each frame is an ExportTraceServiceRequest
)

func (f framing) String() string {
	return [...]string{"json", "zstd frames", "protobuf frames"}[f]
}

const (
	// lengthSize is the size of the length in front of a frame, in bytes.
	lengthSize = 4
	// maxFrame bounds the length that a frame may claim. The Collector batches
	// 8192 spans (some MB) into a message by default. It must stay below
	// 0x09000000: the length then never looks like the white space that JSON
	// may begin with.
	maxFrame = 128 << 20
	// framePeek is the number of bytes that sniffFrame needs.
	framePeek = lengthSize + 1 + binary.MaxVarintLen32 + 1
)

// sniffFrame returns the kind of the frame that begins with head, and the length of its message.
func sniffFrame(head []byte) (framing, int) {
	if len(head) < 2*lengthSize {
		return notFramed, 0
	}
	size := binary.BigEndian.Uint32(head)
	if size == 0 || size > maxFrame {
		return notFramed, 0
	}
	n, message := int(size), head[lengthSize:]
	if bytes.HasPrefix(message, zstdMagic) {
		return zstdFrames, n
	}
	if inner, m := resourceSpansAt(message); m > 0 && n >= 1+m && inner <= uint64(n-1-m) {
		return protoFrames, n
	}
	return notFramed, 0
}

// resourceSpansAt returns the size of the ResourceSpans at the beginning of a protobuf message, and the number
// of bytes that encode the size; 0 if there is none. It is field 1 and begins with a field of its own: 1
// (resource), 2 (scope_spans) or 3 (schema_url).
func resourceSpansAt(message []byte) (size uint64, n int) {
	if len(message) == 0 || message[0] != 0x0a {
		return 0, 0
	}
	size, n = protowire.ConsumeVarint(message[1:])
	if n <= 0 || len(message) <= 1+n || !slices.Contains([]byte{0x0a, 0x12, 0x1a}, message[1+n]) {
		return 0, 0
	}
	return size, n
}

// beginsLikeProto reports whether a message is protobuf. White space before JSON can look like its first byte,
// but the brace after that is not a valid next byte.
func beginsLikeProto(message []byte) bool {
	_, n := resourceSpansAt(message)
	return n > 0
}

// detect returns the framing of an input. It reads far ahead only if the beginning is neither JSON nor a frame.
func detect(src *source) framing {
	head := src.peek(4 << 10)
	if kind, _ := sniffFrame(head); kind != notFramed || beginsLikeJSON(head) {
		return kind
	}
	return sniffFraming(src.peek(4 << 20))
}

// sniffFraming returns the framing of an input with the given head. If its beginning is cut off or damaged, the
// first certain frame decides.
func sniffFraming(head []byte) framing {
	if kind, _ := sniffFrame(head); kind != notFramed || beginsLikeJSON(head) {
		return kind
	}
	w := window{buf: head, err: io.EOF}
	for _, kind := range []framing{zstdFrames, protoFrames} {
		if _, ok := w.search(1, len(head), kind); ok {
			return kind
		}
	}
	return notFramed
}

func beginsLikeJSON(head []byte) bool {
	text := bytes.TrimLeft(bytes.TrimPrefix(head, bom), " \t\r\n")
	return len(text) == 0 || text[0] == '{' || text[0] == '['
}

var zstdMagic = []byte{0x28, 0xb5, 0x2f, 0xfd}

// cutFrames hands over frame after frame. A length that does not lead to another frame is not trusted: if a
// frame begins earlier, the message ends there. Where no frame begins, it searches for the next one.
func (c *cutter) cutFrames(kind framing, report func(m *trace.Message, offset int64, values ...any)) {
	w := window{r: c.in, block: c.block}
	for len(w.ahead(0, 1)) > 0 {
		at := w.offset
		n, sure := w.frameAt(0, kind)
		there := len(w.ahead(0, n))
		switch {
		case n == 0 && len(w.ahead(0, framePeek)) < framePeek:
			report(trace.OTLPTruncated, at, "inside the head of a frame")
			return
		case n == 0:
			w.discardTo(kind)
			report(trace.OTLPFrame, at, fmt.Sprintf("no frame begins here; skipped %d bytes to the next one", w.offset-at))
			continue
		case !sure:
			if next, ok := w.search(1, there, kind); ok {
				report(trace.OTLPFrame, at, "it is shorter than its header says; what exists of it is used")
				n, there = next, next
			}
		}
		data := bytes.Clone(w.ahead(lengthSize, there))
		w.discard(there)
		c.send(&piece{data: data, kind: kind, cut: there < n, offset: at})
	}
}

// A window is the part of an input that was read but not consumed.
type window struct {
	r      io.Reader
	err    error // that r ended with
	buf    []byte
	pos    int   // consumed bytes of buf
	offset int64 // of buf[pos] in the input
	block  int
}

// ahead returns the bytes between two positions relative to pos, fewer at the end of the input. They are valid
// until the next call. Memory grows with the actual bytes, not with the requested ones.
func (w *window) ahead(from, to int) []byte {
	for w.err == nil && len(w.buf)-w.pos < to {
		if len(w.buf) == cap(w.buf) {
			live := w.buf[w.pos:]
			if len(live) > cap(w.buf)/2 || cap(w.buf) == 0 {
				w.buf = make([]byte, 0, max(w.block, 2*cap(w.buf)))
			}
			w.buf = append(w.buf[:0], live...)
			w.pos = 0
		}
		var n int
		n, w.err = w.r.Read(w.buf[len(w.buf):cap(w.buf)])
		w.buf = w.buf[:len(w.buf)+n]
	}
	live := w.buf[w.pos:]
	return live[min(from, len(live)):min(to, len(live))]
}

func (w *window) discard(n int) {
	w.pos += n
	w.offset += int64(n)
}

// frameAt returns the length of the frame at position i, including its head, or 0 if there is none. sure means
// that the frame ends where the next one begins or the input ends.
func (w *window) frameAt(i int, kind framing) (n int, sure bool) {
	got, n := sniffFrame(w.ahead(i, i+framePeek))
	if got != kind {
		return 0, false
	}
	n += lengthSize
	follows := w.ahead(i+n, i+n+framePeek)
	got, _ = sniffFrame(follows)
	return n, got == kind || len(follows) == 0 && len(w.ahead(i, i+n)) == n
}

// search returns the first position in [from, to) at which a frame certainly begins.
func (w *window) search(from, to int, kind framing) (i int, ok bool) {
	for i := from; i < to; i++ {
		if _, sure := w.frameAt(i, kind); sure {
			return i, true
		}
	}
	return 0, false
}

// discardTo moves to the next frame, or to an incomplete last one, or to the end of the input.
func (w *window) discardTo(kind framing) {
	for {
		w.discard(1)
		n, sure := w.frameAt(0, kind)
		if sure || n > len(w.ahead(0, n)) || len(w.ahead(0, 1)) == 0 {
			return
		}
	}
}
