package inflight

import (
	"encoding/binary"
	"math"
)

// A pickler writes a value as torch::jit::Pickler does: protocol 2, texts once and then by their
// number.
type pickler struct {
	out  []byte
	memo map[string]uint32
	next uint32
}

func pickled(v any) []byte {
	p := &pickler{out: []byte{0x80, 2}, memo: map[string]uint32{}}
	p.value(v)
	return append(p.out, '.')
}

// put keeps what was pushed last.
func (p *pickler) put() {
	if p.next <= math.MaxUint8 {
		p.out = append(p.out, 'q', byte(p.next))
	} else {
		p.out = binary.LittleEndian.AppendUint32(append(p.out, 'r'), p.next)
	}
	p.next++
}

func (p *pickler) value(v any) {
	switch v := v.(type) {
	case nil:
		p.out = append(p.out, 'N')
	case bool:
		p.out = append(p.out, map[bool]byte{true: 0x88, false: 0x89}[v])
	case int64:
		p.number(v)
	case string:
		p.text(v)
	case pair:
		p.value(v[0])
		p.value(v[1])
		p.out = append(p.out, 0x86)
		p.put()
	case []any:
		p.out = append(p.out, ']')
		p.put()
		p.out = append(p.out, '(')
		for _, x := range v {
			p.value(x)
		}
		p.out = append(p.out, 'e')
	case dict:
		p.out = append(p.out, '}')
		p.put()
		p.out = append(p.out, '(')
		for _, f := range v {
			p.text(f.key)
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
		p.out = append(p.out, 'M', byte(n), byte(n>>8))
	case n == int64(int32(n)):
		p.out = binary.LittleEndian.AppendUint32(append(p.out, 'J'), uint32(n))
	default:
		p.out = binary.LittleEndian.AppendUint64(append(p.out, 0x8a, 8), uint64(n))
	}
}

func (p *pickler) text(s string) {
	if i, ok := p.memo[s]; ok {
		if i <= math.MaxUint8 {
			p.out = append(p.out, 'h', byte(i))
		} else {
			p.out = binary.LittleEndian.AppendUint32(append(p.out, 'j'), i)
		}
		return
	}
	p.out = binary.LittleEndian.AppendUint32(append(p.out, 'X'), uint32(len(s)))
	p.out = append(p.out, s...)
	p.memo[s] = p.next
	p.put()
}
