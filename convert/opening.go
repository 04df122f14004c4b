package convert

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/sgtrace/sgtrace/chrometrace"
	"github.com/sgtrace/sgtrace/format/envelope"
	"github.com/sgtrace/sgtrace/perfetto"
	"github.com/sgtrace/sgtrace/trace"
)

// headSize is how far into a file its attributes reach at most: they name all inputs.
const headSize = 1 << 20

// OpeningOf returns what a file says about how to open it, in the times that the viewer
// counts in. A file of another program says nothing.
func OpeningOf(name string) (trace.Opening, error) {
	head, err := headOf(name)
	if err != nil {
		return trace.Opening{}, err
	}
	if perfetto.Sniff(head) {
		return trace.OpeningOf(perfetto.Attributes(head)), nil
	}
	attributes := chrometrace.Attributes(head)
	o := trace.OpeningOf(attributes)
	base, err := strconv.ParseInt(attributes[chrometrace.BaseAttribute], 10, 64)
	if o.From, o.To = o.From-trace.Time(base), o.To-trace.Time(base); err != nil || o.From < 0 {
		o.From, o.To = 0, 0
	}
	for i, path := range o.Pin { // Chrome JSON has no tracks within others
		parts := strings.Split(path, trace.PathSeparator)
		o.Pin[i] = parts[len(parts)-1]
	}
	return o, nil
}

// headOf returns the beginning of a file, uncompressed.
func headOf(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	buffered := bufio.NewReaderSize(f, 1<<16)
	var in io.Reader = buffered
	if magic, _ := buffered.Peek(2); bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		if in, err = envelope.NewGzip(buffered); err != nil {
			return nil, err
		}
	}
	head, err := io.ReadAll(io.LimitReader(in, headSize))
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = nil // the viewer will say so
	}
	return head, err
}
