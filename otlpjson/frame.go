package otlpjson

import (
	"bufio"
	"encoding/binary"
	"io"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/sgtrace/sgtrace/trace"
)

// framing tells how messages follow each other. The Collector's file exporter
// puts a 4-byte big-endian length before every message when it writes
// protobuf or compresses message by message (contrib v0.159, fileexporter).
type framing uint8

const (
	notFramed   framing = iota // JSON documents
	zstdFrames                 // each frame is a zstd frame of one JSON document
	protoFrames                // each frame is an ExportTraceServiceRequest
)

func (f framing) String() string {
	return [...]string{"json", "zstd frames", "protobuf frames"}[f]
}

// maxFrame bounds the length that a frame may claim. The Collector batches 8192
// spans (some MB) into a message by default.
const maxFrame = 256 << 20

// framePeek is how many bytes sniffFrame needs.
const framePeek = 4 + 1 + binary.MaxVarintLen32 + 1

// sniffFrame tells which kind of frame begins with head, and how long it is.
func sniffFrame(head []byte) (framing, int) {
	if len(head) < 8 {
		return notFramed, 0
	}
	n := int(binary.BigEndian.Uint32(head))
	if n == 0 || n > maxFrame {
		return notFramed, 0
	}
	if binary.LittleEndian.Uint32(head[4:]) == 0xfd2fb528 { // zstd magic
		return zstdFrames, n
	}
	// Field 1 (resource_spans) fits into the message, and begins with field 1
	// (resource) or 2 (scope_spans) itself.
	if num, typ, h := protowire.ConsumeTag(head[4:]); h == 1 && num == 1 && typ == protowire.BytesType {
		size, m := protowire.ConsumeVarint(head[5:])
		if m > 0 && int64(size) <= int64(n-1-m) && len(head) > 5+m && (head[5+m] == 0x0a || head[5+m] == 0x12) {
			return protoFrames, n
		}
	}
	return notFramed, 0
}

// cutFrames hands over frame after frame. Where no frame begins, it searches
// the next place where one could and reports what it skipped.
func (c *cutter) cutFrames(kind framing, diag func(trace.Severity, string, int64, string)) {
	for {
		head, err := c.in.Peek(framePeek)
		if len(head) == 0 {
			return
		}
		got, n := sniffFrame(head)
		if got == kind {
			c.in.Discard(4)
			c.offset += 4
			data, err := readUpTo(c.in, n)
			if err != nil {
				diag(trace.DataLoss, "otlp-truncated", c.offset, "the last frame is cut off; what is there of it is used")
			}
			c.send(&piece{data: data, kind: kind})
			continue
		}
		from := c.offset
		for got != kind && err == nil {
			c.in.Discard(1)
			c.offset++
			head, err = c.in.Peek(framePeek)
			got, _ = sniffFrame(head)
		}
		if got != kind {
			rest, _ := io.Copy(io.Discard, c.in)
			c.offset += rest
		}
		diag(trace.DataLoss, "otlp-frame", from, "no frame begins here; skipped to the next one")
	}
}

// readUpTo reads n bytes without trusting n: memory grows with what is there.
func readUpTo(r *bufio.Reader, n int) ([]byte, error) {
	data := make([]byte, 0, min(n, blockSize))
	for len(data) < n {
		if len(data) == cap(data) {
			data = append(make([]byte, 0, min(n, 2*cap(data))), data...)
		}
		m, err := r.Read(data[len(data):cap(data)])
		data = data[:len(data)+m]
		if err != nil {
			return data, err
		}
	}
	return data, nil
}
