package memory

import "encoding/binary"

// A Packed reads rows that are held as bytes: numbers of variable length, as encoding/binary
// appends them, in chunks that no row crosses. What was read is given up.
type Packed struct {
	rest   []byte // of the chunk at hand
	chunks [][]byte
}

// Unpack reads chunks, and takes them out of the list when it comes to them: the garbage
// collector may have what was read.
func Unpack(chunks [][]byte) Packed { return Packed{chunks: chunks} }

// More reports whether there is another row. It is to be asked before each one.
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
