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
	taken  int   // bytes of the buffer that the packet before takes
	large  bytes.Buffer
}

// packetBuffer is the size up to which packets are not copied.
const packetBuffer = 1 << 17

func newPackets(r io.Reader) *packets { return &packets{in: bufio.NewReaderSize(r, packetBuffer)} }

// next returns the next packet, valid until the next call; io.EOF is the end.
func (p *packets) next() ([]byte, error) {
	p.in.Discard(p.taken) // it was peeked at
	p.taken = 0
	head, err := p.in.Peek(1 + binary.MaxVarintLen64)
	if len(head) == 0 {
		return nil, err // of the reader, or io.EOF
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

// unexpected tells the end of the file from that of the packets.
func unexpected(err error) error {
	if err == io.EOF {
		return errors.New("the file ends within it")
	}
	return err
}

// A rule says which form a field of a message must have.
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

// fields are those of one message, in the order of the file.
type fields []field

// A field holds a number, or what a length leads.
type field struct {
	number protowire.Number
	num    uint64
	data   []byte
}

// A parser reads messages. It keeps the first thing that is wrong: what it gives from then on may lack
// something.
type parser struct{ err error }

// fail says what is wrong, unless something was before.
func (p *parser) fail(format string, args ...any) {
	if p.err == nil {
		p.err = fmt.Errorf(format, args...)
	}
}

// parse reads a message and appends its fields to f, which belong to other messages. What
// no rule allows is an error, and so is a field that must not repeat and does. No rules allow all.
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
		default: // of others
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

// message reads a message by itself.
func (p *parser) message(b []byte, rules ...rule) fields { return p.parse(nil, b, rules) }

// within reads the message in a field, which must be there.
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

// valid returns a text.
func (p *parser) valid(b []byte) string {
	if !utf8.Valid(b) {
		p.fail("string %q is not UTF-8", b)
	}
	return string(b)
}

// find returns the first field of a number, nil if there is none.
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
