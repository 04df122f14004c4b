package pickle

import (
	"errors"
	"fmt"
	"io"
	"math"
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
		op, err := in.byte()
		if err == nil {
			err = in.pass(op, refs)
		}
		switch {
		case err == errStop:
			return refs, nil
		case err != nil:
			return nil, &Error{at, err}
		}
	}
}

// pass passes over an opcode.
func (in *input) pass(op byte, refs *Refs) error {
	if s := sized[op]; s.bytes != 0 {
		n, err := in.uint(int(s.bytes))
		if err == nil && n > math.MaxInt64 {
			err = errors.New("has a text that is too long")
		}
		if err == nil {
			err = in.skip(n)
		}
		return err
	}
	switch op {
	case opBinGet, opLongBinGet, opGet:
		i, err := in.number(op)
		switch {
		case err != nil:
		case i > farRef:
			err = fmt.Errorf("refers to value %d, which it cannot have", i)
		default:
			refs.set(i)
		}
		return err
	case opStop:
		return errStop
	case opLong1, opLong4:
		size := 1
		if op == opLong4 {
			size = 4
		}
		n, err := in.uint(size)
		if err == nil {
			err = in.skip(n)
		}
		return err
	case opGlobal, opInst:
		if _, err := in.line(); err != nil {
			return err
		}
		fallthrough
	case opInt, opLong, opFloat, opString, opUnicode, opPut, opPersID:
		_, err := in.line()
		return err
	}
	return in.skip(uint64(fixed[op]))
}

// fixed is how many bytes opcodes without a length have behind them.
var fixed = [256]uint8{opBinInt1: 1, opBinInt2: 2, opBinInt: 4, opBinFloat: 8, opBinPut: 1, opLongBinPut: 4, opProto: 1, opFrame: 8}
