package reader

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
)

// packets reads the TracePackets of a Trace message one by one.
type packets struct {
	in     *bufio.Reader
	offset int64 // of the next packet
	taken  int   // bytes of the buffer that the previous packet takes
	large  bytes.Buffer
}

// packetBuffer is the largest size of packets that are not copied.
const packetBuffer = 1 << 17

func newPackets(r io.Reader) *packets { return &packets{in: bufio.NewReaderSize(r, packetBuffer)} }

// next returns the next packet, valid until the next call; io.EOF is the end.
func (p *packets) next() ([]byte, error) {
	p.in.Discard(p.taken) // the peeked packet
	p.taken = 0
	head, err := p.in.Peek(1 + binary.MaxVarintLen64)
	if len(head) == 0 {
		return nil, err // from the reader, or io.EOF
	}
	if head[0] != 1<<3|byte(protowire.BytesType) {
		return nil, fmt.Errorf("byte %#x begins no packet", head[0])
	}
	size, n := protowire.ConsumeVarint(head[1:])
	if n < 0 {
		return nil, protowire.ParseError(n)
	}
	if size > math.MaxInt32 {
		return nil, fmt.Errorf("it claims to have %d bytes", size)
	}
	p.in.Discard(1 + n)
	p.offset += int64(1+n) + int64(size)
	if size <= packetBuffer {
		body, err := p.in.Peek(int(size))
		p.taken = len(body)
		return body, unexpected(err)
	}
	p.large.Reset()
	_, err = io.CopyN(&p.large, p.in, int64(size))
	return p.large.Bytes(), unexpected(err)
}

// unexpected replaces io.EOF, which means the end of the packets, if the file ends inside a packet.
func unexpected(err error) error {
	if err == io.EOF {
		return errors.New("the file ends within it")
	}
	return err
}

// A rule is the allowed form of a field of a message.
type rule struct {
	number protowire.Number
	form   form
}

type form struct {
	wire     protowire.Type
	repeated bool
}

var (
	varintField    = form{protowire.VarintType, false}
	bytesField     = form{protowire.BytesType, false}
	repeatedBytes  = form{protowire.BytesType, true}
	fixedField     = form{protowire.Fixed64Type, false}
	repeatedVarint = form{protowire.VarintType, true}
)

// fields are the fields of one message, in the order of the file.
type fields []field

// A field holds a number, or length-delimited bytes.
type field struct {
	number protowire.Number
	num    uint64
	data   []byte
}

// A parser reads messages. It keeps the first error; results after that may be incomplete.
type parser struct{ err error }

// fail records an error, unless there was one before.
func (p *parser) fail(format string, args ...any) {
	if p.err == nil {
		p.err = fmt.Errorf(format, args...)
	}
}

// parse reads a message and appends its fields to f, which holds those of other messages. Fields that no rule
// allows are an error, and so are repeated fields that must not repeat. Without rules, all are allowed.
func (p *parser) parse(f fields, b []byte, rules []rule) fields {
	first := len(f)
	for len(b) > 0 {
		var x field
		number, wire, n := protowire.ConsumeTag(b)
		if n < 0 {
			p.fail("%w", protowire.ParseError(n))
			return f
		}
		allowed := rules == nil
		for _, r := range rules {
			if r.number == number && r.form.wire == wire {
				allowed = r.form.repeated || f[first:].find(number) == nil
			}
		}
		if !allowed {
			p.fail("field %d of wire type %d repeats, or is not expected here", number, wire)
			return f
		}
		x.number, b = number, b[n:]
		switch wire {
		case protowire.VarintType:
			x.num, n = protowire.ConsumeVarint(b)
		case protowire.Fixed64Type:
			x.num, n = protowire.ConsumeFixed64(b)
		case protowire.BytesType:
			x.data, n = protowire.ConsumeBytes(b)
		default: // only in files of other programs
			n = protowire.ConsumeFieldValue(number, wire, b)
		}
		if n < 0 {
			p.fail("%w", protowire.ParseError(n))
			return f
		}
		b = b[n:]
		f = append(f, x)
	}
	return f
}

// message reads a message on its own.
func (p *parser) message(b []byte, rules ...rule) fields { return p.parse(nil, b, rules) }

// within reads the message in a field, which must exist.
func (p *parser) within(f fields, number protowire.Number, rules ...rule) fields {
	x := f.find(number)
	if x == nil {
		p.fail("field %d is missing", number)
		return nil
	}
	return p.message(x.data, rules...)
}

// text returns the text in a field, "" if there is none.
func (p *parser) text(f fields, number protowire.Number) string {
	if x := f.find(number); x != nil {
		return p.valid(x.data)
	}
	return ""
}

// valid returns a text, which must be valid UTF-8.
func (p *parser) valid(b []byte) string {
	if !utf8.Valid(b) {
		p.fail("string %q is not UTF-8", b)
	}
	return string(b)
}

// find returns the first field with a number, nil if there is none.
func (f fields) find(number protowire.Number) *field {
	for i := range f {
		if f[i].number == number {
			return &f[i]
		}
	}
	return nil
}

// number returns the number in a field, 0 if there is none.
func (f fields) number(number protowire.Number) uint64 {
	if x := f.find(number); x != nil {
		return x.num
	}
	return 0
}
