package heap

import (
	"encoding/binary"
	"math"
)

type (
	field struct {
		key   string
		value any
	}
	dict  []field
	list  []any
	tuple [2]any
)

func (d dict) get(key string) any {
	for _, f := range d {
		if f.key == key {
			return f.value
		}
	}
	return nil
}

// A pickler writes values as Python does: what was written once is referred to.
type pickler struct {
	out   []byte
	texts map[string]uint32
	lists map[*any]uint32 // by their first element
	dicts map[*field]uint32
	next  uint32
}

func pickled(v any) []byte {
	p := &pickler{out: []byte{0x80, 4}, texts: map[string]uint32{}, lists: map[*any]uint32{}, dicts: map[*field]uint32{}}
	p.value(v)
	return append(p.out, '.')
}

func (p *pickler) memoize() uint32 {
	p.out = append(p.out, 0x94)
	p.next++
	return p.next - 1
}

func (p *pickler) get(n uint32) {
	if n <= math.MaxUint8 {
		p.out = append(p.out, 'h', byte(n))
		return
	}
	p.out = binary.LittleEndian.AppendUint32(append(p.out, 'j'), n)
}

func (p *pickler) value(v any) {
	switch v := v.(type) {
	case bool:
		p.out = append(p.out, map[bool]byte{true: 0x88, false: 0x89}[v])
	case int64:
		p.number(v)
	case string:
		if n, ok := p.texts[v]; ok {
			p.get(n)
			return
		}
		p.out = append(append(p.out, 0x8c, byte(len(v))), v...)
		p.texts[v] = p.memoize()
	case tuple:
		p.value(v[0])
		p.value(v[1])
		p.out = append(p.out, 0x86)
		p.memoize()
	case list:
		if len(v) == 0 {
			p.out = append(p.out, ']')
			p.memoize()
			return
		}
		if n, ok := p.lists[&v[0]]; ok {
			p.get(n)
			return
		}
		p.out = append(p.out, ']')
		p.lists[&v[0]] = p.memoize()
		for from := 0; from < len(v); from += 1000 { // as Python's batches
			p.out = append(p.out, '(')
			for _, x := range v[from:min(from+1000, len(v))] {
				p.value(x)
			}
			p.out = append(p.out, 'e')
		}
	case dict:
		if n, ok := p.dicts[&v[0]]; ok {
			p.get(n)
			return
		}
		p.out = append(p.out, '}')
		p.dicts[&v[0]] = p.memoize()
		p.out = append(p.out, '(')
		for _, f := range v {
			p.value(f.key)
			p.value(f.value)
		}
		p.out = append(p.out, 'u')
	}
}

func (p *pickler) number(n int64) {
	switch {
	case n >= 0 && n <= math.MaxUint8:
		p.out = append(p.out, 'K', byte(n))
	case n >= 0 && n <= math.MaxUint16:
		p.out = binary.LittleEndian.AppendUint16(append(p.out, 'M'), uint16(n))
	case n >= math.MinInt32 && n <= math.MaxInt32:
		p.out = binary.LittleEndian.AppendUint32(append(p.out, 'J'), uint32(n))
	default:
		p.out = binary.LittleEndian.AppendUint64(append(p.out, 0x8a, 8), uint64(n))
	}
}
