package envelope

import (
	"bufio"
	"io"

	"github.com/klauspost/compress/gzip"
)

// A Gzip reads the members of a gzip file, and like gzip(1) takes no offence
// at zeros between and behind them: tapes and block devices pad.
type Gzip struct {
	in  *bufio.Reader
	z   *gzip.Reader // one member
	err error        // that ended it; said again as often as it is asked
}

// NewGzip reads the header of the first member.
func NewGzip(in *bufio.Reader) (*Gzip, error) {
	z, err := gzip.NewReader(in)
	if err != nil {
		return nil, err
	}
	z.Multistream(false)
	return &Gzip{in: in, z: z}, nil
}

func (g *Gzip) Read(p []byte) (n int, _ error) {
	for n == 0 && g.err == nil && len(p) > 0 { // members may be empty
		if n, g.err = g.z.Read(p); g.err == io.EOF {
			g.err = g.next()
		}
	}
	return n, g.err
}

// next goes on to the next member; io.EOF says that there is none.
func (g *Gzip) next() error {
	for {
		b, err := g.in.ReadByte()
		if err != nil {
			return err
		}
		if b != 0 {
			break
		}
	}
	g.in.UnreadByte()
	err := g.z.Reset(g.in)
	if err == io.EOF {
		return io.ErrUnexpectedEOF // in the middle of a header
	}
	g.z.Multistream(false)
	return err
}
