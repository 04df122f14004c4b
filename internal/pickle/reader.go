package pickle

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"sync"
)

// Options control how a pickle is read. The zero value reads anything.
type Options struct {
	// Take gets each dict after items were added to it: once, unless it has more than a thousand items. If it
	// returns true, the dict is dropped. nil takes none.
	Take func(dict Value) bool
	// Known reports whether the pickle may name a class; other classes are an error. nil accepts all of them:
	// nothing is done with classes.
	Known func(class string) bool
	// LongText is the length in bytes above which a text is not kept; 0 means 1 MiB.
	LongText int
	// Limit is the largest number of bytes in use; 0 means 1 GiB.
	Limit int64
	// Refs is the result of [Scan] on the same pickle; nil keeps everything that might be referred to.
	Refs *Refs
}

const (
	longText = 1 << 20
	limit    = 1 << 30
	// Rough memory of values and nodes, in bytes.
	valueSize, nodeSize = 24, 88
	// farMemo is how far a memo number may be from the last one.
	farMemo = 1 << 16

	nodesAtOnce, itemsAtOnce = 32, 256
)

// An Error describes what is wrong with a pickle, and where. It wraps the error of the [io.Reader], if any.
type Error struct {
	Offset int64 // of the opcode
	Err    error
}

func (e *Error) Error() string { return fmt.Sprintf("byte %d: %v", e.Offset, e.Err) }
func (e *Error) Unwrap() error { return e.Err }

var errStack = errors.New("takes more from the stack than there is")

// Begins reports whether a file with this head is a pickle, of protocol 2 or later.
func Begins(head []byte) bool { return len(head) > 1 && head[0] == opProto && head[1] <= newest }

// ReadScanned is Read for what open opens: if it can do so twice, it finds first what the pickle refers to, so that
// nothing else is held.
func ReadScanned(open func() (io.ReadCloser, error), twice bool, opt Options) (Value, error) {
	if twice {
		r, err := open()
		if err != nil {
			return Value{}, err
		}
		opt.Refs, _ = Scan(r) // the next pass reports damage
		if err := r.Close(); err != nil {
			return Value{}, err
		}
	}
	r, err := open()
	if err != nil {
		return Value{}, err
	}
	root, err := Read(r, opt)
	return root, cmp.Or(err, r.Close())
}

// Read reads a pickle and returns its value. It may read past the pickle, but ignores what follows. With an
// error, the value is a tuple of the values that are not in a container yet: for a dict that was cut off, the
// dict, and then keys and values.
func Read(r io.Reader, opt Options) (Value, error) {
	d := decoder{in: newInput(r, 64<<10), opt: opt, limit: opt.Limit, memo: *memos.Get().(*[]Value)}
	defer d.giveBack()
	if d.in.longText = opt.LongText; d.in.longText == 0 {
		d.in.longText = longText
	}
	d.limit = cmp.Or(d.limit, limit)
	if d.opt.Refs != nil {
		d.sparse = map[uint32]Value{}
	}
	for {
		at := d.in.offset
		d.do(d.in.byte())
		switch {
		case d.in.err == errStop:
			return d.result, nil
		case d.in.err != nil:
			return tuple(d.stack), &Error{at, d.in.err}
		case d.held > d.limit:
			return tuple(d.stack), &Error{at, fmt.Errorf("holds more than %d MB of values", d.limit>>20)}
		}
	}
}

// errStop ends a pickle.
var errStop = errors.New("stop")

// A decoder is the stack machine that executes a pickle. Its methods, and those of its input, record the first
// error in the input. From then on they return zeros, and push nothing.
type decoder struct {
	in     input
	opt    Options
	stack  []Value
	marks  []int // stack heights
	memo   []Value
	sparse map[uint32]Value // replaces memo if there are Refs
	nMemo  uint32           // number of MEMOIZE and PUT opcodes
	held   int64            // bytes of values that may be in use
	kept   int64            // bytes of those in the memo
	limit  int64
	result Value
	// Nodes and the first items of containers are allocated in batches, unless most of them will be dropped: one
	// that is in use keeps the whole batch alive.
	nodes []node
	items []Value
	spare [][]Value // of dicts that were taken
}

// memos holds the memos of finished pickles for reuse.
var memos = sync.Pool{New: func() any { return new([]Value) }}

// maxMemo is the longest memo that is reused.
const maxMemo = 1 << 18

// giveBack returns the memo for reuse.
func (d *decoder) giveBack() {
	if memo := d.memo; cap(memo) <= maxMemo {
		clear(memo)
		memo = memo[:0]
		memos.Put(&memo)
	}
}

// node returns a new node.
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

// textNode returns a new node with a text.
func (d *decoder) textNode(text string) *node {
	n := d.node()
	n.text = text
	return n
}

// add appends items to the items of a container.
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
	if d.in.err == nil {
		d.held += valueSize
		d.stack = append(d.stack, v)
	}
}

// pushNode pushes a value that can be referred to; size is its memory beyond the node, in bytes.
func (d *decoder) pushNode(k Kind, n *node, size int) {
	d.held += int64(nodeSize + size)
	d.push(Value{Kind: k, node: n})
}

// bottom returns the stack height of the last mark, below which nothing may be popped.
func (d *decoder) bottom() int {
	if len(d.marks) > 0 {
		return d.marks[len(d.marks)-1]
	}
	return 0
}

func (d *decoder) pop() Value {
	v := *d.top()
	if d.in.err == nil {
		d.stack = d.stack[:len(d.stack)-1]
	}
	return v
}

// popN pops n values, in the order in which they were pushed. They are valid until the next push.
func (d *decoder) popN(n int) []Value {
	if len(d.stack)-n < d.bottom() {
		d.in.fail(errStack)
		return nil
	}
	items := d.stack[len(d.stack)-n:]
	d.stack = d.stack[:len(d.stack)-n]
	return items
}

// popMark pops the values above the last mark, like popN.
func (d *decoder) popMark() []Value {
	if len(d.marks) == 0 {
		d.in.fail(errors.New("has no mark"))
		return nil
	}
	m := d.bottom()
	items := d.stack[m:]
	d.stack, d.marks = d.stack[:m], d.marks[:len(d.marks)-1]
	return items
}

// top returns the value at the top of the stack.
func (d *decoder) top() *Value {
	if len(d.stack) <= d.bottom() {
		d.in.fail(errStack)
		return &Value{}
	}
	return &d.stack[len(d.stack)-1]
}

// put stores the value at the top of the stack in the memo, at number i.
func (d *decoder) put(i uint32) {
	v := d.top()
	switch d.nMemo++; {
	case d.in.err != nil:
		return
	case d.sparse != nil:
		if d.opt.Refs.has(i) {
			d.sparse[i] = *v
			d.keep(v)
		}
		return
	case int(i) > len(d.memo)+farMemo:
		d.in.fail(fmt.Errorf("keeps a value as number %d, and has %d", i, len(d.memo)))
		return
	}
	for int(i) >= len(d.memo) {
		d.memo = append(d.memo, Value{})
		d.held += valueSize
		d.kept += valueSize
	}
	d.memo[i] = *v
	d.keep(v)
}

// keep accounts for a value stored in the memo.
func (d *decoder) keep(v *Value) {
	d.kept += valueSize
	if v.node != nil {
		d.kept += int64(nodeSize + len(v.node.text))
	}
}

// get pushes value i of the memo.
func (d *decoder) get(i uint32) {
	var v Value
	if d.sparse != nil {
		v = d.sparse[i]
	} else if int(i) < len(d.memo) {
		v = d.memo[i]
	}
	if v.Kind == Missing {
		d.in.fail(fmt.Errorf("refers to value %d, which it does not have", i))
	}
	if v.node != nil && v.Kind == Dict && v.node.items == nil && v.node.taken > 0 {
		v.Kind = taken
	}
	d.push(v)
}

// An input reads the bytes of a pickle.
type input struct {
	r        io.Reader
	err      error  // the first one
	chunk    []byte // last chunk read from r, used up to at
	at       int
	room     []byte // buffer of chunk
	offset   int64
	longText int
	buf      []byte
	names    map[string]string // short texts, each kept once
}

func newInput(r io.Reader, size int) input { return input{r: r, room: make([]byte, size)} }

// fail records an error, unless there was one before.
func (in *input) fail(err error) {
	if in.err == nil {
		in.err = err
	}
}

func (in *input) byte() byte {
	if in.at == len(in.chunk) && !in.more() {
		return 0
	}
	b := in.chunk[in.at]
	in.at++
	in.offset++
	return b
}

// more reads the next chunk, and reports whether there is one.
func (in *input) more() bool {
	const patience = 100 // reads without data or error
	for range patience {
		n, err := in.r.Read(in.room)
		switch {
		case n > 0: // the error will come again
			in.chunk, in.at = in.room[:n], 0
			return true
		case err == io.EOF: // the pickle is cut off
			in.fail(io.ErrUnexpectedEOF)
			return false
		case err != nil:
			in.fail(err)
			return false
		}
	}
	in.fail(io.ErrNoProgress)
	return false
}

// uint reads a little-endian number of n bytes, at most 8.
func (in *input) uint(n int) (x uint64) {
	if in.at+n <= len(in.chunk) {
		for i, b := range in.chunk[in.at : in.at+n] {
			x |= uint64(b) << (8 * i)
		}
		in.at += n
		in.offset += int64(n)
		return x
	}
	for i := range n {
		x |= uint64(in.byte()) << (8 * i)
	}
	return x
}

// pieces passes the next n bytes in pieces, as they are read.
func (in *input) pieces(n uint64, each func(b []byte)) {
	for n > 0 && (in.at < len(in.chunk) || in.more()) {
		k := int(min(n, uint64(len(in.chunk)-in.at)))
		each(in.chunk[in.at : in.at+k])
		in.at += k
		in.offset += int64(k)
		n -= uint64(k)
	}
}

// skip passes over n bytes.
func (in *input) skip(n uint64) { in.pieces(n, func([]byte) {}) }

// bytes reads n bytes, which are valid until the next call. n may be wrong: allocation grows only with the
// bytes that are there.
func (in *input) bytes(n uint64) []byte {
	if n <= uint64(len(in.chunk)-in.at) {
		b := in.chunk[in.at : in.at+int(n)]
		in.at += int(n)
		in.offset += int64(n)
		return b
	}
	in.buf = in.buf[:0]
	in.pieces(n, func(b []byte) { in.buf = append(in.buf, b...) })
	return in.buf
}

// longestLine is the longest line of an opcode of protocol 0, in bytes.
const longestLine = 64 << 10

// line reads the rest of a line, without its newline. It is valid until the next call.
func (in *input) line() []byte {
	in.buf = in.buf[:0]
	for {
		b := in.byte()
		if len(in.buf) == longestLine && b != '\n' {
			in.fail(errors.New("has a line that is too long"))
		}
		if b == '\n' || in.err != nil {
			return in.buf
		}
		in.buf = append(in.buf, b)
	}
}

// shortText is the longest text that is kept only once: names of fields, files, and functions.
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

// Refs are the memo numbers that a pickle refers to later.
type Refs struct{ words []uint64 }

func (r *Refs) has(i uint32) bool {
	w := int(i / 64)
	return w < len(r.words) && r.words[w]&(1<<(i%64)) != 0
}

func (r *Refs) set(i uint32) {
	for int(i/64) >= len(r.words) {
		r.words = append(r.words, 0)
	}
	r.words[i/64] |= 1 << (i % 64)
}

// farRef bounds the number of a reference: a pickle of 4 GB has fewer.
const farRef = 1 << 31

// Scan finds the values that a pickle refers to later. It decodes nothing, and fails only where [Read] could
// not continue.
func Scan(r io.Reader) (*Refs, error) {
	in, refs := newInput(r, 1<<20), &Refs{}
	for {
		at := in.offset
		in.pass(in.byte(), refs)
		switch {
		case in.err == errStop:
			return refs, nil
		case in.err != nil:
			return nil, &Error{at, in.err}
		}
	}
}

// pass skips an opcode, and records its reference.
func (in *input) pass(op byte, refs *Refs) {
	if s := sized[op]; s.bytes != 0 {
		in.skip(in.length(int(s.bytes)))
		return
	}
	switch op {
	case opBinGet, opLongBinGet, opGet:
		i := in.number(op)
		if i > farRef {
			in.fail(fmt.Errorf("refers to value %d, which it cannot have", i))
		}
		if in.err == nil {
			refs.set(i)
		}
	case opStop:
		in.fail(errStop)
	case opLong1:
		in.skip(in.uint(1))
	case opLong4:
		in.skip(in.uint(4))
	case opGlobal, opInst:
		in.line()
		in.line()
	case opInt, opLong, opFloat, opString, opUnicode, opPut, opPersID:
		in.line()
	default:
		in.skip(uint64(fixed[op]))
	}
}

// fixed is the number of operand bytes of opcodes without a length.
var fixed = [256]uint8{opBinInt1: 1, opBinInt2: 2, opBinInt: 4, opBinFloat: 8, opBinPut: 1, opLongBinPut: 4, opProto: 1, opFrame: 8}
