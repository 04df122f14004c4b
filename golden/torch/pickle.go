package torch

import (
	"encoding/binary"
	"fmt"
	"math"
)

// A dict is a Python dict: text keys with their values, in order.
type dict [][2]any

// A pair is a tuple of two.
type pair [2]any

// A pickler writes values as Python's pickle does: nil, bool, int, int64, float64, string, []any, [dict], and [pair].
type pickler struct {
	Out []byte
	// Other writes a value of any other type.
	Other    func(v any)
	protocol byte
	texts    map[string]uint32
	shared   map[*any]uint32 // lists and dicts, by their first element
	memo     uint32
}

// newPickler begins a pickle of protocol 2, or of 4, which refers to lists, dicts, and texts that it has already written.
func newPickler(protocol byte) *pickler {
	p := &pickler{Out: []byte{0x80, protocol}, protocol: protocol, texts: map[string]uint32{}}
	if protocol >= 4 {
		p.shared = map[*any]uint32{}
	}
	return p
}

// pickled returns the pickle of a value.
func pickled(protocol byte, v any) []byte {
	p := newPickler(protocol)
	p.Value(v)
	return p.End()
}

// End ends the pickle, and returns it.
func (p *pickler) End() []byte { return append(p.Out, '.') }

// Op writes opcodes or argument bytes.
func (p *pickler) Op(ops ...byte) { p.Out = append(p.Out, ops...) }

// Memoize stores the last value in the memo, and returns its number.
func (p *pickler) Memoize() uint32 {
	n := p.memo
	p.memo++
	switch {
	case p.protocol >= 4:
		p.Op(0x94)
	case n <= math.MaxUint8:
		p.Op('q', byte(n))
	default:
		p.Out = binary.LittleEndian.AppendUint32(append(p.Out, 'r'), n)
	}
	return n
}

func (p *pickler) get(n uint32) {
	if n <= math.MaxUint8 {
		p.Op('h', byte(n))
		return
	}
	p.Out = binary.LittleEndian.AppendUint32(append(p.Out, 'j'), n)
}

// Global writes a reference to a name in a module.
func (p *pickler) Global(module, name string) {
	p.Out = append(p.Out, "c"+module+"\n"+name+"\n"...)
	p.Memoize()
}

// Value writes a value.
func (p *pickler) Value(v any) {
	switch v := v.(type) {
	case nil:
		p.Op('N')
	case bool:
		p.Op(map[bool]byte{true: 0x88, false: 0x89}[v])
	case int:
		p.number(int64(v))
	case int64:
		p.number(v)
	case float64:
		p.Out = binary.BigEndian.AppendUint64(append(p.Out, 'G'), math.Float64bits(v))
	case string:
		p.text(v)
	case pair:
		p.Value(v[0])
		p.Value(v[1])
		p.Op(0x86)
		p.Memoize()
	case []any:
		if len(v) == 0 {
			p.Op(']')
			p.Memoize()
		} else if p.begins(']', &v[0]) {
			for from := 0; from < len(v); from += 1000 { // as Python's batches
				p.Op('(')
				for _, x := range v[from:min(from+1000, len(v))] {
					p.Value(x)
				}
				p.Op('e')
			}
		}
	case dict:
		if len(v) == 0 {
			p.Op('}')
			p.Memoize()
		} else if p.begins('}', &v[0][0]) {
			p.Op('(')
			for _, item := range v {
				p.Value(item[0])
				p.Value(item[1])
			}
			p.Op('u')
		}
	default:
		if p.Other == nil {
			panic(fmt.Sprintf("cannot pickle %T", v))
		}
		p.Other(v)
	}
}

// begins begins a list or dict, or refers to it.
func (p *pickler) begins(op byte, first *any) bool {
	if n, ok := p.shared[first]; ok {
		p.get(n)
		return false
	}
	p.Op(op)
	n := p.Memoize()
	if p.shared != nil {
		p.shared[first] = n
	}
	return true
}

func (p *pickler) number(n int64) {
	switch {
	case n >= 0 && n <= math.MaxUint8:
		p.Op('K', byte(n))
	case n >= 0 && n <= math.MaxUint16:
		p.Out = binary.LittleEndian.AppendUint16(append(p.Out, 'M'), uint16(n))
	case n == int64(int32(n)):
		p.Out = binary.LittleEndian.AppendUint32(append(p.Out, 'J'), uint32(n))
	default:
		p.Out = binary.LittleEndian.AppendUint64(append(p.Out, 0x8a, 8), uint64(n))
	}
}

func (p *pickler) text(s string) {
	if n, ok := p.texts[s]; ok {
		p.get(n)
		return
	}
	if p.protocol >= 4 && len(s) <= math.MaxUint8 {
		p.Op(0x8c, byte(len(s)))
	} else {
		p.Out = binary.LittleEndian.AppendUint32(append(p.Out, 'X'), uint32(len(s)))
	}
	p.Out = append(p.Out, s...)
	p.texts[s] = p.Memoize()
}
