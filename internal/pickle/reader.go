package pickle

import (
	"errors"
	"fmt"
	"io"
	"sync"
)

// Options say how a pickle is read. The zero value reads anything.
type Options struct {
	// Take gets each dict when items were put into it: once, unless it has more than a thousand
	// of them. If it returns true, the dict is dropped. nil takes none.
	Take func(dict Value) bool
	// Known reports whether the pickle may name a class; another is an error. nil knows all:
	// nothing is done with them.
	Known func(class string) bool
	// LongText is the length in bytes above which a text is not held; 0 is 1 MiB.
	LongText int
	// Limit is how much may be held, in bytes; 0 is 1 GiB.
	Limit int64
	// Refs is the result of [Scan] on the same pickle; nil keeps all that might be referred to.
	Refs *Refs
}

const (
	longText = 1 << 20
	limit    = 1 << 30
	// What values and nodes take in memory, in bytes, roughly.
	valueSize, nodeSize = 24, 88
	// farMemo is how far behind the last number of the memo the next may be.
	farMemo = 1 << 16

	nodesAtOnce, itemsAtOnce = 32, 256
)

// An Error says what is wrong with a pickle, and where. It wraps what [io.Reader] said.
type Error struct {
	Offset int64 // of the opcode
	Err    error
}

func (e *Error) Error() string { return fmt.Sprintf("byte %d: %v", e.Offset, e.Err) }
func (e *Error) Unwrap() error { return e.Err }

var errStack = errors.New("takes more from the stack than there is")

// Read reads a pickle and returns its value. What comes behind it in r is not looked at, but may be
// read. With an error, the value is a tuple of what was not put into a container yet: of a dict that
// was cut off, the dict, and then keys and values.
func Read(r io.Reader, opt Options) (Value, error) {
	d := decoder{in: newInput(r, 64<<10), opt: opt, limit: opt.Limit, memo: *memos.Get().(*[]Value)}
	defer d.giveBack()
	if d.in.longText = opt.LongText; d.in.longText == 0 {
		d.in.longText = longText
	}
	if d.limit == 0 {
		d.limit = limit
	}
	if d.opt.Refs != nil {
		d.sparse = map[uint32]Value{}
	}
	for {
		at := d.in.offset
		op, err := d.in.byte()
		if err == nil {
			err = d.do(op)
		}
		switch {
		case err == errStop:
			return d.result, nil
		case err != nil:
			return tuple(d.stack), &Error{at, err}
		case d.held > d.limit:
			return tuple(d.stack), &Error{at, fmt.Errorf("holds more than %d MB of values", d.limit>>20)}
		}
	}
}

// errStop ends a pickle.
var errStop = errors.New("stop")

// A decoder is the stack machine that a pickle is a program of.
type decoder struct {
	in     input
	opt    Options
	stack  []Value
	marks  []int // heights of the stack
	memo   []Value
	sparse map[uint32]Value // with Refs, instead of memo
	nMemo  uint32           // how many MEMOIZE and PUT there were
	held   int64            // bytes of values that may be in use
	kept   int64            // of these, in the memo
	limit  int64
	result Value
	// Nodes and the first items of containers are allocated many at a time, unless most of them
	// will be given up: one that is in use keeps those beside it.
	nodes []node
	items []Value
	spare [][]Value // of dicts that were taken
}

// memos are the memos of pickles that were read.
var memos = sync.Pool{New: func() any { return new([]Value) }}

// maxMemo is how long a memo may be to be used again.
const maxMemo = 1 << 18

// giveBack lets the next pickle have the memo.
func (d *decoder) giveBack() {
	if memo := d.memo; cap(memo) <= maxMemo {
		clear(memo)
		memo = memo[:0]
		memos.Put(&memo)
	}
}

// node returns a new one.
func (d *decoder) node() *node {
	if d.sparse != nil {
		return &node{}
	}
	if len(d.nodes) == 0 {
		d.nodes = make([]node, nodesAtOnce)
	}
	n := &d.nodes[0]
	d.nodes = d.nodes[1:]
	return n
}

// textNode returns a new one of a text.
func (d *decoder) textNode(text string) *node {
	n := d.node()
	n.text = text
	return n
}

// add appends values to those of a container.
func (d *decoder) add(to, items []Value) []Value {
	if n := len(d.spare); to == nil && n > 0 && len(items) > itemsAtOnce/16 {
		to, d.spare = d.spare[n-1][:0], d.spare[:n-1]
	}
	if to != nil || len(items) > itemsAtOnce/16 || d.sparse != nil {
		return append(to, items...)
	}
	if len(d.items) < len(items) {
		d.items = make([]Value, itemsAtOnce)
	}
	to = d.items[:len(items):len(items)]
	d.items = d.items[len(items):]
	copy(to, items)
	return to
}

func (d *decoder) push(v Value) {
	d.held += valueSize
	d.stack = append(d.stack, v)
}

// pushNode pushes a value that can be referred to; size is what it has besides, in bytes.
func (d *decoder) pushNode(k Kind, n *node, size int) {
	d.held += int64(nodeSize + size)
	d.push(Value{Kind: k, node: n})
}

// bottom returns the height of the stack that may not be taken from: the last mark.
func (d *decoder) bottom() int {
	if len(d.marks) > 0 {
		return d.marks[len(d.marks)-1]
	}
	return 0
}

func (d *decoder) pop() (Value, error) {
	if len(d.stack) <= d.bottom() {
		return Value{}, errStack
	}
	v := d.stack[len(d.stack)-1]
	d.stack = d.stack[:len(d.stack)-1]
	return v, nil
}

// popMark takes what is above the last mark. It is valid until the next push.
func (d *decoder) popMark() ([]Value, error) {
	if len(d.marks) == 0 {
		return nil, errors.New("has no mark")
	}
	m := d.marks[len(d.marks)-1]
	d.marks = d.marks[:len(d.marks)-1]
	items := d.stack[m:]
	d.stack = d.stack[:m]
	return items, nil
}

// top returns the value at the top of the stack.
func (d *decoder) top() (*Value, error) {
	if len(d.stack) <= d.bottom() {
		return nil, errStack
	}
	return &d.stack[len(d.stack)-1], nil
}

// put keeps the value at the top of the stack under a number.
func (d *decoder) put(i uint32) error {
	v, err := d.top()
	if err != nil {
		return err
	}
	d.nMemo++
	if d.sparse != nil {
		if d.opt.Refs.has(i) {
			d.sparse[i] = *v
			d.keep(v)
		}
		return nil
	}
	if int(i) > len(d.memo)+farMemo {
		return fmt.Errorf("keeps a value as number %d, and has %d", i, len(d.memo))
	}
	for int(i) >= len(d.memo) {
		d.memo = append(d.memo, Value{})
		d.held += valueSize
		d.kept += valueSize
	}
	d.memo[i] = *v
	d.keep(v)
	return nil
}

// keep counts what the memo keeps.
func (d *decoder) keep(v *Value) {
	d.kept += valueSize
	if v.node != nil {
		d.kept += int64(nodeSize + len(v.node.text))
	}
}

// get pushes the value that was kept under a number.
func (d *decoder) get(i uint32) error {
	var v Value
	if d.sparse != nil {
		v = d.sparse[i]
	} else if int(i) < len(d.memo) {
		v = d.memo[i]
	}
	if v.Kind == Missing {
		return fmt.Errorf("refers to value %d, which it does not have", i)
	}
	if v.node != nil && v.Kind == Dict && v.node.items == nil && v.node.taken > 0 {
		v.Kind = taken
	}
	d.push(v)
	return nil
}

// An input is the bytes of a pickle.
type input struct {
	r        io.Reader
	chunk    []byte // of what was read of r, behind at
	at       int
	room     []byte // chunk lies in
	offset   int64
	longText int
	buf      []byte
	names    map[string]string // short texts, each held once
}

func newInput(r io.Reader, size int) input { return input{r: r, room: make([]byte, size)} }

func (in *input) byte() (byte, error) {
	if in.at == len(in.chunk) {
		if err := in.more(); err != nil {
			return 0, err
		}
	}
	b := in.chunk[in.at]
	in.at++
	in.offset++
	return b, nil
}

// more reads a chunk, when the one before it was used.
func (in *input) more() error {
	const patience = 100 // reads that give nothing
	for range patience {
		n, err := in.r.Read(in.room)
		if n > 0 { // an error comes again
			in.chunk, in.at = in.room[:n], 0
			return nil
		}
		if err != nil {
			return cut(err)
		}
	}
	return io.ErrNoProgress
}

// cut says of the end of a file that more was to come.
func cut(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// uint reads a number of n bytes, at most 8, the lowest first.
func (in *input) uint(n int) (uint64, error) {
	var x uint64
	if in.at+n <= len(in.chunk) {
		for i, b := range in.chunk[in.at : in.at+n] {
			x |= uint64(b) << (8 * i)
		}
		in.at += n
		in.offset += int64(n)
		return x, nil
	}
	for i := range n {
		b, err := in.byte()
		if err != nil {
			return 0, err
		}
		x |= uint64(b) << (8 * i)
	}
	return x, nil
}

// skip passes over n bytes.
func (in *input) skip(n uint64) error {
	for n > 0 {
		if in.at == len(in.chunk) {
			if err := in.more(); err != nil {
				return err
			}
		}
		k := int(min(n, uint64(len(in.chunk)-in.at)))
		in.at += k
		in.offset += int64(k)
		n -= uint64(k)
	}
	return nil
}

// bytes reads n bytes, which are valid until the next call. n may be a lie: no more is
// allocated than there is.
func (in *input) bytes(n uint64) ([]byte, error) {
	if n <= uint64(len(in.chunk)-in.at) {
		b := in.chunk[in.at : in.at+int(n)]
		in.at += int(n)
		in.offset += int64(n)
		return b, nil
	}
	in.buf = in.buf[:0]
	for n > 0 {
		if in.at == len(in.chunk) {
			if err := in.more(); err != nil {
				return nil, err
			}
		}
		k := int(min(n, uint64(len(in.chunk)-in.at)))
		in.buf = append(in.buf, in.chunk[in.at:in.at+k]...)
		in.at += k
		in.offset += int64(k)
		n -= uint64(k)
	}
	return in.buf, nil
}

// longestLine is the length of the longest line that an opcode of protocol 0 may have.
const longestLine = 64 << 10

// line reads the rest of a line, without its end. It is valid until the next call.
func (in *input) line() ([]byte, error) {
	in.buf = in.buf[:0]
	for {
		b, err := in.byte()
		switch {
		case err != nil:
			return nil, err
		case b == '\n':
			return in.buf, nil
		case len(in.buf) == longestLine:
			return nil, errors.New("has a line that is too long")
		}
		in.buf = append(in.buf, b)
	}
}

// shortText is the length up to which texts are held once: names of fields, of files, of
// functions.
const shortText = 128

// text returns a copy of b.
func (in *input) text(b []byte) string {
	if len(b) > shortText {
		return string(b)
	}
	if s, ok := in.names[string(b)]; ok {
		return s
	}
	if in.names == nil || len(in.names) > 1<<16 {
		in.names = map[string]string{}
	}
	s := string(b)
	in.names[s] = s
	return s
}
