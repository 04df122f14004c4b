package envelope

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"

	"github.com/sgtrace/sgtrace/internal/jsonscan"
)

// recordBytes is the size up to which a JSON value is read at once. A longer value holds many entries, and is
// read piece by piece.
const recordBytes = 1 << 20

// A document reads JSON with entries at any depth.
type document struct {
	in      *bufio.Reader
	at      int64 // bytes read
	to      func(entry) error
	damaged int   // parts that are not valid JSON
	first   int64 // offset of the first of them
}

// around is the context of a value: the pod of its entries, and whether it is from Loki, whose entries are
// pairs of a time and a text.
type around struct {
	pod   string
	pairs bool
	depth int
}

// errPart means that a part of a document is not valid JSON.
var errPart = errors.New("not valid JSON")

// read reads the next value of the file.
func (d *document) read(to func(entry) error) error {
	d.to = to
	_, err := d.peek()
	if err == nil {
		err = d.value(around{})
	}
	if errors.Is(err, errPart) {
		err = d.resync()
	}
	switch {
	case err == nil:
		return nil
	case err != io.EOF && err != io.ErrUnexpectedEOF:
		return err
	case d.damaged > 0:
		return fmt.Errorf("the JSON around its lines: %d parts are damaged, the first at byte %d", d.damaged, d.first)
	case err == io.ErrUnexpectedEOF:
		return fmt.Errorf("the JSON around its lines, at byte %d: %w", d.at, err)
	}
	return io.EOF
}

func (d *document) discard(n int) {
	n, _ = d.in.Discard(n)
	d.at += int64(n)
}

// peek skips white space and commas, and returns the next byte.
func (d *document) peek() (byte, error) {
	for {
		b, err := d.in.ReadByte()
		if err != nil {
			return 0, err
		}
		switch b {
		case ' ', '\t', '\r', '\n', ',':
			d.at++
		default:
			return b, d.in.UnreadByte()
		}
	}
}

// whole returns the next value if it ends within [recordBytes].
func (d *document) whole() (raw []byte, ok bool) {
	for n := 4 << 10; ; n = min(4*n, recordBytes) {
		b, err := d.in.Peek(n)
		switch end, scanned := jsonscan.Value(b, 0); {
		case scanned == nil:
			return b[:end], true
		case scanned != jsonscan.ErrShort || err != nil || n == recordBytes:
			return nil, false
		}
	}
}

// value reads a value: at once if it is short, else piece by piece. A damaged value is also read piece by
// piece, for its intact parts.
func (d *document) value(in around) error {
	const deepest = 32
	if raw, ok := d.whole(); ok {
		if read, err := d.record(raw, in); read {
			d.discard(len(raw))
			return err
		} else if raw[0] != '{' && raw[0] != '[' {
			d.broken()
			d.discard(len(raw))
			return nil
		}
	}
	in.depth++
	switch b, err := d.peek(); {
	case err != nil:
		return inside(err)
	case in.depth > deepest:
		return errPart
	case b == '[':
		d.discard(1)
		return d.list(in)
	case b == '{':
		d.discard(1)
		return d.object(in)
	}
	return errPart
}

// inside returns the error of a file that ends inside a value.
func inside(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// record passes on the entries of a short value, if it is valid JSON.
func (d *document) record(raw []byte, in around) (read bool, err error) {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var value any
	if decoder.Decode(&value) != nil {
		return false, nil
	}
	var list []entry
	if pair, ok := value.([]any); ok && in.pairs {
		list = pairOf(pair, in.pod, nil)
	} else {
		list = entriesIn(value, nil)
	}
	for _, e := range list {
		if err := d.to(e); err != nil {
			return true, err
		}
	}
	return true, nil
}

// list reads the elements of a list, after its bracket.
func (d *document) list(in around) error {
	for {
		b, err := d.peek()
		if err != nil {
			return inside(err)
		}
		if b == ']' {
			d.discard(1)
			return nil
		}
		if err = d.value(in); errors.Is(err, errPart) {
			err = d.resync()
		}
		if err != nil {
			return err
		}
	}
}

// object reads the members of an object, after its bracket.
func (d *document) object(in around) error {
	for {
		b, err := d.peek()
		if err != nil {
			return inside(err)
		}
		if b == '}' {
			d.discard(1)
			return nil
		}
		raw, ok := d.whole()
		if !ok || b != '"' {
			return errPart
		}
		key := string(jsonscan.Text(raw))
		d.discard(len(raw))
		if b, err = d.peek(); err != nil {
			return inside(err)
		} else if b != ':' {
			return errPart
		}
		d.discard(1)
		if _, err = d.peek(); err != nil {
			return inside(err)
		}
		if key == "stream" {
			var labels map[string]any
			if raw, ok := d.whole(); ok && json.Unmarshal(raw, &labels) == nil {
				in.pod = leaves(labels).first(pods)
			}
		}
		member := in
		member.pairs = key == "values"
		if err := d.value(member); err != nil {
			return err
		}
	}
}

// broken counts a damaged part.
func (d *document) broken() {
	if d.damaged == 0 {
		d.first = d.at
	}
	d.damaged++
}

// nextPart matches the end of one element of a list and the beginning of the next.
var nextPart = regexp.MustCompile(`[}\]]\s*,\s*[{\[]`)

// resync continues at the next element of a list.
func (d *document) resync() error {
	d.broken()
	d.discard(1)
	for {
		b, err := d.in.Peek(HeadBytes)
		if m := nextPart.FindIndex(b); m != nil {
			d.discard(m[1] - 1)
			return nil
		}
		if err != nil {
			return inside(err)
		}
		d.discard(HeadBytes / 2) // white space between two elements may be long
	}
}
