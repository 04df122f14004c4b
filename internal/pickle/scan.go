package pickle

import (
	"fmt"
	"io"
)

// Refs are the values of a pickle that it refers to later, by their number in its memo.
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

// farRef is the largest number that a reference may have: a pickle of 4 GB has fewer.
const farRef = 1 << 31

// Scan finds what a pickle refers to later. It decodes nothing, and fails where [Read] would not
// know how to go on.
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

// pass passes over an opcode.
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

// fixed is how many bytes opcodes without a length have behind them.
var fixed = [256]uint8{opBinInt1: 1, opBinInt2: 2, opBinInt: 4, opBinFloat: 8, opBinPut: 1, opLongBinPut: 4, opProto: 1, opFrame: 8}
