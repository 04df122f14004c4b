package jsonscan

import (
	"encoding/binary"
	"math"
	"math/bits"
)

// Int parses a JSON number, or the digits inside a JSON string, as an exact int64. It accepts fractions and
// exponents if the value is whole (1787e15, 12.0), since some producers print integers through a float
// formatter.
func Int(text []byte) (v int64, ok bool) {
	i, neg := 0, false
	if i < len(text) && (text[i] == '-' || text[i] == '+') {
		neg = text[i] == '-'
		i++
	}
	start := i
	var u uint64
	for i-start <= 8 && len(text)-i >= 8 {
		eight, ok := EightDigits(text[i:])
		if !ok {
			break
		}
		u, i = u*1e8+eight, i+8
	}
	for ; i < len(text) && text[i]-'0' <= 9; i++ {
		d := uint64(text[i] - '0')
		if i-start >= 19 && u > (math.MaxUint64-d)/10 { // 19 digits always fit
			return 0, false
		}
		u = u*10 + d
	}
	if i == start {
		return 0, false
	}
	if i < len(text) {
		if u, ok = scale(u, text[i:]); !ok {
			return 0, false
		}
	}
	switch {
	case neg && u <= 1<<63:
		return -int64(u), true
	case !neg && u <= math.MaxInt64:
		return int64(u), true
	}
	return 0, false
}

// EightDigits parses the first eight bytes of b as decimal digits. It adds up pairs of digits, then pairs of
// pairs.
func EightDigits(b []byte) (v uint64, ok bool) {
	const zeros, sixes, upper = 0x3030303030303030, 0x0606060606060606, 0xf0f0f0f0f0f0f0f0
	v = binary.LittleEndian.Uint64(b)
	if v&upper != zeros || (v+sixes)&upper != zeros {
		return 0, false
	}
	v = (v - zeros) * (10<<8 + 1) >> 8
	v = (v & 0x00ff00ff00ff00ff) * (100<<16 + 1) >> 16
	return (v & 0x0000ffff0000ffff) * (10000<<32 + 1) >> 32, true
}

// scale applies the fraction and exponent in rest to u, exactly.
func scale(u uint64, rest []byte) (uint64, bool) {
	i, exp := 0, 0
	if rest[0] == '.' {
		for i = 1; i < len(rest) && rest[i]-'0' <= 9; i++ {
			d := uint64(rest[i] - '0')
			if u > (math.MaxUint64-d)/10 {
				if d != 0 {
					return 0, false
				}
				continue // a zero too far out to matter
			}
			u, exp = u*10+d, exp-1
		}
	}
	if i < len(rest) {
		e, ok := exponent(rest[i:])
		if !ok {
			return 0, false
		}
		exp += e
	}
	for ; exp > 0; exp-- {
		if u > math.MaxUint64/10 {
			return 0, false
		}
		u *= 10
	}
	for ; exp < 0 && u != 0; exp++ {
		if u%10 != 0 {
			return 0, false
		}
		u /= 10
	}
	return u, true
}

func exponent(b []byte) (int, bool) {
	if len(b) < 2 || b[0]|0x20 != 'e' {
		return 0, false
	}
	sign, b := 1, b[1:]
	if b[0] == '-' || b[0] == '+' {
		if b[0] == '-' {
			sign = -1
		}
		b = b[1:]
	}
	if len(b) == 0 || len(b) > 4 {
		return 0, false
	}
	e := 0
	for _, c := range b {
		if c-'0' > 9 {
			return 0, false
		}
		e = e*10 + int(c-'0')
	}
	return sign * e, true
}

// Hex parses up to 16 hexadecimal digits of any case.
func Hex(text []byte) (v uint64, ok bool) {
	switch len(text) {
	case 0:
		return 0, false
	case 16:
		high, ok := eightHex(text)
		low, ok2 := eightHex(text[8:])
		return high<<32 | low, ok && ok2
	}
	if len(text) > 16 {
		return 0, false
	}
	var seen byte
	for _, c := range text {
		d := hexDigits[c]
		seen |= d
		v = v<<4 | uint64(d&0xf)
	}
	return v, seen != notHex
}

// eightHex parses the first eight bytes of b as hexadecimal digits, all at once like [EightDigits].
func eightHex(b []byte) (v uint64, ok bool) {
	// least returns the high bit of each byte of v that is at least c, for bytes below 0x80.
	least := func(v uint64, c uint64) uint64 { return v + (0x80-c)*ones }
	v = bits.ReverseBytes64(binary.LittleEndian.Uint64(b))
	lower := v | 0x20*ones
	digit, letter := least(v, '0')&^least(v, '9'+1), least(lower, 'a')&^least(lower, 'f'+1)
	if (digit|letter)&^v&highs != highs {
		return 0, false
	}
	v = v&(0x0f*ones) + 9*(v>>6&ones)
	v = (v | v>>4) & 0x00ff00ff00ff00ff
	v = (v | v>>8) & 0x0000ffff0000ffff
	return (v | v>>16) & 0xffffffff, true
}
