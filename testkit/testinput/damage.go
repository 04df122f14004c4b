package testinput

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// A Subject is a file and the boundaries of its pieces. [Subject.Mutate] makes damaged copies of it, like those left by a
// full disk, a kill during a write, a torn copy, or a careless script. The forms of files (lines, gzip members, zstd
// frames, SQLite pages) only differ in these boundaries.
type Subject struct {
	Data []byte
	// Cuts are the boundaries of pieces (lines, events, members, frames, pages), ascending.
	Cuts []int
	// Other is a file of the same form; parts of it get into this one. OtherCuts are its Cuts.
	Other     []byte
	OtherCuts []int
}

// A Mutant is a damaged copy.
type Mutant struct {
	Name string // the kind of damage, for messages
	Data []byte
}

// kinds are the ways to damage a file. Each returns a description.
var kinds = []func(s *Subject, m *Mutant, rng *rand.Rand) string{
	cutAtPiece, cutNearPiece, cutAnywhere, cutHead, flipBits, flipByte,
	dropPiece, dropBytes, repeatPiece, swapPieces, zeroPiece, splicePiece, spliceBytes, joinHalves,
}

// Kinds returns the number of ways to damage a file.
func Kinds() int { return len(kinds) }

// Mutate makes the mutant of a seed. Consecutive seeds are damaged in different ways.
func (s *Subject) Mutate(seed uint64) Mutant {
	rng := rand.New(rand.NewPCG(seed, 0xda3a9e))
	m := Mutant{Data: slices.Clone(s.Data)}
	m.Name = kinds[seed%uint64(len(kinds))](s, &m, rng)
	return m
}

// cut returns one of the boundaries, including the ends of the file.
func cut(data []byte, cuts []int, rng *rand.Rand) int {
	switch i := rng.IntN(len(cuts) + 2); i {
	case len(cuts):
		return 0
	case len(cuts) + 1:
		return len(data)
	default:
		return cuts[i]
	}
}

// piece returns the range of a piece: mostly a single one.
func piece(data []byte, cuts []int, rng *rand.Rand) (from, to int) {
	if len(cuts) > 1 && rng.IntN(4) > 0 {
		i := rng.IntN(len(cuts) - 1)
		return cuts[i], cuts[i+1]
	}
	a, b := cut(data, cuts, rng), cut(data, cuts, rng)
	return min(a, b), max(a, b)
}

func (s *Subject) piece(rng *rand.Rand) (from, to int) { return piece(s.Data, s.Cuts, rng) }

// place returns any offset in the file except its end; 0 if the file is empty.
func (s *Subject) place(rng *rand.Rand) int { return rng.IntN(max(len(s.Data), 1)) }

func cutAtPiece(s *Subject, m *Mutant, rng *rand.Rand) string {
	at := cut(s.Data, s.Cuts, rng)
	m.Data = m.Data[:at]
	return fmt.Sprintf("cut where a piece ends, at %d", at)
}

func cutNearPiece(s *Subject, m *Mutant, rng *rand.Rand) string {
	at := min(max(cut(s.Data, s.Cuts, rng)+rng.IntN(17)-8, 0), len(s.Data))
	m.Data = m.Data[:at]
	return fmt.Sprintf("cut near the end of a piece, at %d", at)
}

func cutAnywhere(s *Subject, m *Mutant, rng *rand.Rand) string {
	at := s.place(rng)
	m.Data = m.Data[:at]
	return fmt.Sprintf("cut at %d", at)
}

func cutHead(s *Subject, m *Mutant, rng *rand.Rand) string {
	at := s.place(rng)
	if rng.IntN(2) == 0 {
		at = cut(s.Data, s.Cuts, rng)
	}
	m.Data = m.Data[at:]
	return fmt.Sprintf("the first %d bytes are missing", at)
}

func flipBits(s *Subject, m *Mutant, rng *rand.Rand) string {
	name := "flip bits"
	for range min(1+rng.IntN(4), len(m.Data)) {
		at, bit := s.place(rng), rng.IntN(8)
		m.Data[at] ^= 1 << bit
		name += fmt.Sprintf(" %d:%d", at, bit)
	}
	return name
}

func flipByte(s *Subject, m *Mutant, rng *rand.Rand) string {
	at := s.place(rng)
	if len(s.Cuts) > 0 && rng.IntN(2) == 0 { // in the header or the end of a piece
		at = min(max(cut(s.Data, s.Cuts, rng)+rng.IntN(17)-8, 0), max(len(s.Data)-1, 0))
	}
	value := byte(rng.IntN(256))
	if at < len(m.Data) {
		m.Data[at] = value
	}
	return fmt.Sprintf("byte %d becomes %#x", at, value)
}

func dropPiece(s *Subject, m *Mutant, rng *rand.Rand) string {
	from, to := s.piece(rng)
	m.Data = slices.Delete(m.Data, from, to)
	return fmt.Sprintf("drop the piece %d..%d", from, to)
}

func dropBytes(s *Subject, m *Mutant, rng *rand.Rand) string {
	from := s.place(rng)
	to := min(from+1+rng.IntN(64), len(s.Data))
	m.Data = slices.Delete(m.Data, from, to)
	return fmt.Sprintf("drop %d..%d", from, to)
}

func repeatPiece(s *Subject, m *Mutant, rng *rand.Rand) string {
	from, to := s.piece(rng)
	m.Data = slices.Insert(m.Data, to, s.Data[from:to]...)
	return fmt.Sprintf("repeat the piece %d..%d", from, to)
}

func swapPieces(s *Subject, m *Mutant, rng *rand.Rand) string {
	a, b := s.piece(rng)
	c, d := s.piece(rng)
	if c < a {
		a, b, c, d = c, d, a, b
	}
	c = max(b, c)
	d = max(c, d)
	m.Data = slices.Concat(s.Data[:a], s.Data[c:d], s.Data[b:c], s.Data[a:b], s.Data[d:])
	return fmt.Sprintf("swap the pieces %d..%d and %d..%d", a, b, c, d)
}

func zeroPiece(s *Subject, m *Mutant, rng *rand.Rand) string {
	from, to := s.piece(rng)
	if rng.IntN(2) == 0 { // a block that never reached the disk
		const block = 4096
		from = s.place(rng) / block * block
		to = min(from+block, len(s.Data))
	}
	clear(m.Data[from:to])
	return fmt.Sprintf("zero %d..%d", from, to)
}

func splicePiece(s *Subject, m *Mutant, rng *rand.Rand) string {
	at := cut(s.Data, s.Cuts, rng)
	from, to := piece(s.Other, s.OtherCuts, rng)
	m.Data = slices.Insert(m.Data, at, s.Other[from:to]...)
	return fmt.Sprintf("the other file's %d..%d is inserted at %d", from, to, at)
}

func spliceBytes(s *Subject, m *Mutant, rng *rand.Rand) string {
	at, from := s.place(rng), rng.IntN(max(len(s.Other), 1))
	n := copy(m.Data[at:], s.Other[from:min(from+1+rng.IntN(8192), len(s.Other))])
	return fmt.Sprintf("%d bytes from %d of the other file lie at %d", n, from, at)
}

func joinHalves(s *Subject, m *Mutant, rng *rand.Rand) string {
	at, from := cut(s.Data, s.Cuts, rng), cut(s.Other, s.OtherCuts, rng)
	m.Data = slices.Concat(s.Data[:at], s.Other[from:])
	return fmt.Sprintf("from %d on it is the other file from %d on", at, from)
}

// Seeds returns the number of mutants in a test: few, or the value of SGTRACE_MUTANTS.
func Seeds(few uint64) uint64 {
	if n, err := strconv.ParseUint(os.Getenv("SGTRACE_MUTANTS"), 10, 32); err == nil {
		return n
	}
	return few
}

// Hostile are names that files can contain.
var Hostile = []string{
	"\x1b[31mred\x1b[0m", "\x1b]0;title\x07", "a\x00b\x7f", "\u009b31m", "bad\xff\xfeutf8", "line\nbreak\r\tcell",
	"\u202eevil\u2066", "\U000e0001tag", "=HYPERLINK(\"http://x\")", "+1+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "-5.25", "+7",
	"a|b", "<script>alert(1)</script>", "void f<T*>(T&, [3])", "`code` *bold* ~~gone~~", `back\slash\|`, "日本語の名前", "e\u0301\u0301", "",
}

// SQLitePage is the size of the pages of exports.
const SQLitePage = 4096

// Tokens returns the places after and before the punctuation of JSON, and at the ends of lines. It ignores that some
// punctuation is inside of strings.
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

// Pages returns the boundaries of pages with the given size.
func Pages(data []byte, size int) []int {
	var cuts []int
	for at := size; at < len(data); at += size {
		cuts = append(cuts, at)
	}
	return cuts
}

// Frames returns the boundaries of the messages of a Collector, each of which follows its length, 4 bytes big-endian.
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

// Gzip compresses data into n members, and returns their boundaries.
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

// Zstd compresses data into n frames, and returns their boundaries.
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
