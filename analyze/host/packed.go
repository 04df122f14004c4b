package host

import (
	"encoding/binary"

	"github.com/sgtrace/sgtrace/internal/packed"
	"github.com/sgtrace/sgtrace/trace"
)

// packedFrames are frames as bytes: of each, the differences to the one before it, which are small.
type packedFrames struct {
	chunks   [][]byte
	count    int
	last     Frame
	unsorted bool // some frame belongs before the one that it comes after
}

const (
	// chunkSize is small, so that little memory waits for frames, or for the rest of a chunk
	// to be read.
	chunkSize = 1 << 15
	// maxPacked is the most that a frame takes: four integers and the kind.
	maxPacked = 4*binary.MaxVarintLen64 + 1
)

// add packs a frame.
func (p *packedFrames) add(f *Frame) {
	p.unsorted = p.unsorted || p.count > 0 && compareFrames(*f, p.last) < 0
	n := len(p.chunks)
	if n == 0 || len(p.chunks[n-1]) > chunkSize-maxPacked {
		p.chunks = append(p.chunks, nil)
		n++
		if n > 1 { // the first one grows: most threads do little
			p.chunks[n-1] = make([]byte, 0, chunkSize)
		}
	}
	b := append(p.chunks[n-1], byte(f.Kind))
	b = binary.AppendVarint(b, int64(f.From-p.last.From))
	b = binary.AppendUvarint(b, uint64(f.To-f.From))
	b = binary.AppendVarint(b, f.Correlation-p.last.Correlation)
	b = binary.AppendUvarint(b, uint64(f.Name))
	p.chunks[n-1], p.last = b, *f
	p.count++
}

// unpack gives up the frames, of which there is at least one, in order.
func (p *packedFrames) unpack() *unpacking {
	u := &unpacking{Reader: packed.NewReader(p.chunks)}
	if p.unsorted {
		u.sorted = make([]Frame, 0, p.count)
		for u.decode() {
			u.sorted = append(u.sorted, u.head)
		}
		sortFrames(u.sorted)
	}
	*p = packedFrames{}
	u.next()
	return u
}

// An unpacking passes packed frames.
type unpacking struct {
	packed.Reader
	head   Frame
	sorted []Frame // the rest of the frames that had to be sorted
}

// next moves to the next frame, and reports whether there is one.
func (u *unpacking) next() bool {
	if len(u.sorted) == 0 {
		return u.decode()
	}
	u.head, u.sorted = u.sorted[0], u.sorted[1:]
	return true
}

// decode moves to the frame that was packed next, and reports whether there is one.
func (u *unpacking) decode() bool {
	if !u.More() {
		return false
	}
	f := &u.head
	f.Kind = Kind(u.Byte())
	f.From += trace.Time(u.Signed())
	f.To = f.From + trace.Time(u.Unsigned())
	f.Correlation += u.Signed()
	f.Name = trace.Sym(u.Unsigned())
	return true
}
