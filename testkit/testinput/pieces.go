package testinput

import (
	"bytes"
	"encoding/binary"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// SQLitePage is the size of the pages of exports.
const SQLitePage = 4096

// Tokens returns the places behind and before the punctuation of JSON, and at the
// ends of lines. Strings are not looked into: what only looks like punctuation is a
// place like others.
func Tokens(data []byte) []int {
	var cuts []int
	for i, b := range data {
		switch b {
		case '{', '[', '}', ']', ',', '\n':
			cuts = append(cuts, i+1)
		}
	}
	return cuts
}

// Pages returns the places where pages of the given size meet.
func Pages(data []byte, size int) []int {
	var cuts []int
	for at := size; at < len(data); at += size {
		cuts = append(cuts, at)
	}
	return cuts
}

// Frames returns the places where the messages of a Collector meet, each of which
// has its length, 4 bytes big endian, before it.
func Frames(data []byte) []int {
	var cuts []int
	for at := 0; at+4 < len(data); {
		at += 4 + int(binary.BigEndian.Uint32(data[at:]))
		if at < len(data) {
			cuts = append(cuts, at)
		}
	}
	return cuts
}

// lines cuts data into n parts at ends of lines, or anywhere if it has too few.
func lines(data []byte, n int) [][]byte {
	var parts [][]byte
	for ; n > 1 && len(data) > 1; n-- {
		at := len(data) / n
		if end := bytes.IndexByte(data[at:], '\n'); end >= 0 && at+end+1 < len(data) {
			at += end + 1
		}
		parts, data = append(parts, data[:at]), data[at:]
	}
	return append(parts, data)
}

// Gzip compresses data into n members, and returns where they meet.
func Gzip(data []byte, n int) (packed []byte, cuts []int) {
	var out bytes.Buffer
	for i, part := range lines(data, n) {
		if i > 0 {
			cuts = append(cuts, out.Len())
		}
		z := gzip.NewWriter(&out)
		z.Write(part)
		z.Close()
	}
	return out.Bytes(), cuts
}

// Zstd compresses data into n frames, and returns where they meet.
func Zstd(data []byte, n int) (packed []byte, cuts []int) {
	z, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	if err != nil {
		panic(err) // the options are constant
	}
	for i, part := range lines(data, n) {
		if i > 0 {
			cuts = append(cuts, len(packed))
		}
		packed = z.EncodeAll(part, packed)
	}
	return packed, cuts
}
