package memory

import "encoding/binary"

// A Packed reads rows encoded as bytes: varints as encoding/binary appends them, in chunks that no row crosses.
// It drops chunks as it reads them.
type Packed struct {
	rest   []byte // of the chunk at hand
	chunks [][]byte
}

// Unpack reads chunks, and removes each one from the list when it comes to it, so that the collector can free
// what was read.
func Unpack(chunks [][]byte) Packed { return Packed{chunks: chunks} }

// More reports whether there is another row. Call it before each row.
func (r *Packed) More() bool {
	for len(r.rest) == 0 {
		if len(r.chunks) == 0 {
			return false
		}
		r.rest = r.chunks[0]
		r.chunks[0], r.chunks = nil, r.chunks[1:]
	}
	return true
}

// Byte reads one byte.
func (r *Packed) Byte() byte {
	b := r.rest[0]
	r.rest = r.rest[1:]
	return b
}

// Unsigned reads what [binary.AppendUvarint] appended.
func (r *Packed) Unsigned() uint64 {
	v, n := binary.Uvarint(r.rest)
	r.rest = r.rest[n:]
	return v
}

// Signed reads what [binary.AppendVarint] appended.
func (r *Packed) Signed() int64 {
	v, n := binary.Varint(r.rest)
	r.rest = r.rest[n:]
	return v
}
