package pickle

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"strconv"
	"strings"
)

// Opcodes, as pickletools names them.
const (
	opMark           = '('
	opStop           = '.'
	opPop            = '0'
	opPopMark        = '1'
	opDup            = '2'
	opFloat          = 'F'
	opInt            = 'I'
	opBinInt         = 'J'
	opBinInt1        = 'K'
	opLong           = 'L'
	opBinInt2        = 'M'
	opNone           = 'N'
	opPersID         = 'P'
	opBinPersID      = 'Q'
	opReduce         = 'R'
	opString         = 'S'
	opBinString      = 'T'
	opShortBinString = 'U'
	opUnicode        = 'V'
	opBinUnicode     = 'X'
	opAppend         = 'a'
	opBuild          = 'b'
	opGlobal         = 'c'
	opDict           = 'd'
	opEmptyDict      = '}'
	opAppends        = 'e'
	opGet            = 'g'
	opBinGet         = 'h'
	opInst           = 'i'
	opLongBinGet     = 'j'
	opList           = 'l'
	opEmptyList      = ']'
	opObj            = 'o'
	opPut            = 'p'
	opBinPut         = 'q'
	opLongBinPut     = 'r'
	opSetItem        = 's'
	opTuple          = 't'
	opEmptyTuple     = ')'
	opSetItems       = 'u'
	opBinFloat       = 'G'

	opProto           = 0x80
	opNewObj          = 0x81
	opTuple1          = 0x85
	opTuple2          = 0x86
	opTuple3          = 0x87
	opNewTrue         = 0x88
	opNewFalse        = 0x89
	opLong1           = 0x8a
	opLong4           = 0x8b
	opBinBytes        = 'B'
	opShortBinBytes   = 'C'
	opShortBinUnicode = 0x8c
	opBinUnicode8     = 0x8d
	opBinBytes8       = 0x8e
	opEmptySet        = 0x8f
	opAddItems        = 0x90
	opFrozenSet       = 0x91
	opNewObjEx        = 0x92
	opStackGlobal     = 0x93
	opMemoize         = 0x94
	opFrame           = 0x95
	opByteArray8      = 0x96
	opReadOnlyBuffer  = 0x98
)

// newest is the newest known protocol.
const newest = 5

// sized are the opcodes of texts and bytes, with the number of bytes of the length in front.
var sized = [256]struct {
	bytes uint8
	kind  Kind
}{
	opShortBinUnicode: {1, Text}, opBinUnicode: {4, Text}, opBinUnicode8: {8, Text},
	opShortBinString: {1, Text}, opBinString: {4, Text},
	opShortBinBytes: {1, Bytes}, opBinBytes: {4, Bytes}, opBinBytes8: {8, Bytes}, opByteArray8: {8, Bytes},
}

// do executes an opcode.
func (d *decoder) do(op byte) {
	if s := sized[op]; s.bytes != 0 {
		d.sizedText(s.kind, int(s.bytes))
		return
	}
	switch op {
	case opBinInt1, opBinInt2, opBinInt, opBinFloat, opLong1, opLong4, opInt, opLong, opFloat:
		d.number(op)
	case opBinGet, opLongBinGet, opGet, opBinPut, opLongBinPut, opPut:
		d.memory(op)
	case opMemoize:
		d.put(d.nMemo)
	case opMark:
		d.held += 8
		d.marks = append(d.marks, len(d.stack))
	case opNone:
		d.push(Value{Kind: None})
	case opNewTrue:
		d.push(Value{Kind: Bool, bits: 1})
	case opNewFalse:
		d.push(Value{Kind: Bool})
	case opEmptyDict:
		n := d.node()
		n.held, n.kept = d.held, d.kept
		d.pushNode(Dict, n, 0)
	case opEmptyList:
		d.pushNode(List, d.node(), 0)
	case opEmptyTuple:
		d.pushNode(Tuple, d.node(), 0)
	case opEmptySet:
		d.pushNode(Set, d.node(), 0)
	case opAppend, opAppends, opAddItems, opSetItem, opSetItems:
		d.fill(op)
	case opTuple, opList, opDict, opFrozenSet, opTuple1, opTuple2, opTuple3:
		d.collect(op)
	case opProto:
		if v := d.in.byte(); v > newest {
			d.in.fail(fmt.Errorf("is of protocol %d, which is newer than %d", v, newest))
		}
	case opFrame:
		d.in.skip(8)
	case opStop:
		d.result = d.pop()
		d.in.fail(errStop)
	case opPop:
		if len(d.marks) > 0 && len(d.stack) == d.bottom() {
			d.popMark()
		} else {
			d.pop()
		}
	case opPopMark:
		d.popMark()
	case opDup:
		d.push(*d.top())
	case opReadOnlyBuffer:
	case opString, opUnicode:
		d.lineText(op)
	default:
		d.object(op)
	}
}

// number pushes a number.
func (d *decoder) number(op byte) {
	switch op {
	case opLong1, opLong4:
		d.long(op)
		return
	case opInt, opLong, opFloat:
		d.decimal(op)
		return
	}
	x := d.in.uint(int(fixed[op]))
	switch op {
	case opBinFloat: // big-endian
		d.push(Value{Kind: Float, bits: bits.ReverseBytes64(x)})
	case opBinInt:
		d.push(Value{Kind: Int, bits: uint64(int64(int32(x)))})
	default:
		d.push(Value{Kind: Int, bits: x})
	}
}

// long pushes a little-endian integer in two's complement.
func (d *decoder) long(op byte) {
	lengthOf := 1
	if op == opLong4 {
		lengthOf = 4
	}
	const most = 8
	n := d.in.uint(lengthOf)
	x := d.in.uint(int(min(n, most)))
	if n <= most {
		if n > 0 && n < most && x>>(8*n-1) == 1 {
			x |= math.MaxUint64 << (8 * n)
		}
		d.push(Value{Kind: Int, bits: x})
		return
	}
	high := d.in.byte()
	d.in.skip(n - most - 1)
	if n == most+1 && high == 0 {
		d.push(Value{Kind: Uint, bits: x}) // an address in the upper half
	} else {
		d.push(Value{Kind: Big})
	}
}

// decimal pushes a number of protocol 0, a line of text.
func (d *decoder) decimal(op byte) {
	text := string(d.in.line())
	switch {
	case op == opFloat:
		x, err := strconv.ParseFloat(text, 64)
		if err != nil && !errors.Is(err, strconv.ErrRange) {
			d.in.fail(fmt.Errorf("%q is no number", text))
		}
		d.push(Value{Kind: Float, bits: math.Float64bits(x)})
		return
	case op == opInt && (text == "00" || text == "01"):
		d.push(Value{Kind: Bool, bits: uint64(text[1] - '0')})
		return
	case op == opLong:
		text = strings.TrimSuffix(text, "L")
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err == nil {
		d.push(Value{Kind: Int, bits: uint64(n)})
		return
	}
	if !errors.Is(err, strconv.ErrRange) {
		d.in.fail(fmt.Errorf("%q is no number", text))
	}
	if u, err := strconv.ParseUint(text, 10, 64); err == nil {
		d.push(Value{Kind: Uint, bits: u})
	} else {
		d.push(Value{Kind: Big})
	}
}

// memory stores the value at the top in the memo, or pushes one from it.
func (d *decoder) memory(op byte) {
	i := d.in.number(op)
	if op == opBinPut || op == opLongBinPut || op == opPut {
		d.put(i)
	} else {
		d.get(i)
	}
}

// number reads a memo number.
func (in *input) number(op byte) uint32 {
	switch op {
	case opGet, opPut:
		i, err := strconv.ParseUint(string(in.line()), 10, 32)
		if err != nil {
			in.fail(err)
		}
		return uint32(i)
	case opBinGet, opBinPut:
		return uint32(in.byte())
	}
	return uint32(in.uint(4))
}

// sizedText pushes a text after its length, which has lengthOf bytes.
func (d *decoder) sizedText(kind Kind, lengthOf int) {
	switch n := d.in.length(lengthOf); {
	case n > uint64(d.in.longText):
		d.push(Value{Kind: Long, bits: n})
		d.in.skip(n)
	default:
		b := d.in.bytes(n)
		if d.in.err == nil {
			d.pushNode(kind, d.textNode(d.in.text(b)), int(n))
		}
	}
}

// length reads the length of a text.
func (in *input) length(lengthOf int) uint64 {
	n := in.uint(lengthOf)
	if n > math.MaxInt64 {
		in.fail(errors.New("has a text that is too long"))
		return 0
	}
	return n
}

// lineText pushes a text of protocol 0. Escapes in a string of Python 2 stay as they are.
func (d *decoder) lineText(op byte) {
	line := d.in.line()
	if op == opString {
		if n := len(line); n < 2 || line[0] != line[n-1] || line[0] != '\'' && line[0] != '"' {
			d.in.fail(errors.New("has a string without quotes"))
			return
		}
		line = line[1 : len(line)-1]
	}
	text := string(line)
	if op == opUnicode {
		text = rawUnicode(line)
	}
	d.pushNode(Text, d.textNode(text), len(text))
}

// rawUnicode decodes Python's raw-unicode-escape: Latin-1 with \u and \U.
func rawUnicode(b []byte) string {
	out := make([]rune, 0, len(b))
	for len(b) > 0 {
		digits := 0
		if len(b) > 1 && b[0] == '\\' {
			digits = map[byte]int{'u': 4, 'U': 8}[b[1]]
		}
		if digits > 0 && len(b) >= 2+digits {
			if r, err := strconv.ParseUint(string(b[2:2+digits]), 16, 32); err == nil {
				out, b = append(out, rune(r)), b[2+digits:]
				continue
			}
		}
		out, b = append(out, rune(b[0])), b[1:]
	}
	return string(out)
}

// operands takes the operands of an opcode: a fixed number, or the values above the mark.
func (d *decoder) operands(op byte) []Value {
	switch op {
	case opTuple1, opAppend:
		return d.popN(1)
	case opTuple2, opSetItem:
		return d.popN(2)
	case opTuple3:
		return d.popN(3)
	}
	return d.popMark()
}

// collect makes a container of the operands.
func (d *decoder) collect(op byte) {
	items := d.operands(op)
	kind := Tuple
	switch op {
	case opList:
		kind = List
	case opFrozenSet:
		kind = Set
	case opDict:
		kind = Dict
		if len(items)%2 != 0 {
			d.in.fail(errOdd)
		}
	}
	n := d.node()
	n.held, n.kept = d.held, d.kept
	n.items = d.add(nil, items)
	d.pushNode(kind, n, valueSize*len(items))
}

var errOdd = errors.New("has a key without a value")

// fill adds the operands to the container below them.
func (d *decoder) fill(op byte) {
	items := d.operands(op)
	to, dict := d.top(), op == opSetItem || op == opSetItems
	switch {
	case to.Kind == Object || to.Kind == taken:
		return // a subclass of list or dict, such as OrderedDict
	case dict && to.Kind != Dict || !dict && to.Kind != List && to.Kind != Set:
		d.in.fail(errors.New("puts values into something that is not a container"))
	case dict && len(items)%2 != 0:
		d.in.fail(errOdd)
	}
	if d.in.err != nil {
		return
	}
	n := to.node
	if !dict {
		d.append(n, items)
		return
	}
	d.held += int64(valueSize * len(items))
	n.items = d.add(n.items, items)
	if d.opt.Take != nil && d.opt.Take(*to) {
		d.drop(to)
	}
}

// append appends to a list the items that were not taken.
func (d *decoder) append(n *node, items []Value) {
	left := items[:0]
	for _, v := range items {
		if v.Kind == taken {
			n.taken++
		} else {
			left = append(left, v)
		}
	}
	d.held += int64(valueSize * len(left))
	n.items = d.add(n.items, left)
}

// drop frees a dict that was taken, and all its items.
func (d *decoder) drop(to *Value) {
	d.held -= max(0, d.held-to.node.held-(d.kept-to.node.kept))
	if items := to.node.items; len(items) > itemsAtOnce/16 { // not a piece of a shared allocation
		clear(items)
		d.spare = append(d.spare, items)
	}
	to.node.items, to.node.taken = nil, 1
	to.Kind = taken
}
