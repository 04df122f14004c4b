package logline

import (
	"bytes"
	"math"
)

// Decimal parses a number without an exponent, "0.12" or "93.10%", times a scale; ok is false for anything
// else.
func Decimal(b []byte, scale float64) (v float64, ok bool) {
	if n := len(b); n > 0 && b[n-1] == '%' {
		b = b[:n-1]
	}
	neg := len(b) > 0 && b[0] == '-'
	if neg {
		b = b[1:]
	}
	v, n := LeadingDecimal(b, scale)
	if n == 0 || n < len(b) {
		return 0, false
	}
	if neg {
		v = -v
	}
	return v, true
}

// LeadingDecimal parses the digits at the beginning of b, with at most one point; n is the number of bytes. It
// multiplies before it divides, so that 57 % of "0.57" is exact.
func LeadingDecimal(b []byte, scale float64) (v float64, n int) {
	const most = 18
	whole, point := int64(0), -1
	for ; n < len(b) && n < most; n++ {
		switch c := b[n]; {
		case c >= '0' && c <= '9':
			whole = 10*whole + int64(c-'0')
			continue
		case c == '.' && point < 0 && n > 0:
			point = n
			continue
		}
		break
	}
	if v = float64(whole) * scale; point >= 0 {
		v /= powers[n-1-point]
	}
	return v, n
}

var powers = func() (p [19]float64) {
	for i := range p {
		p[i] = math.Pow10(i)
	}
	return p
}()

// After returns the number after a key; ok is false if there is none.
func After(b []byte, key string) (float64, bool) {
	i := bytes.Index(b, []byte(key))
	if i < 0 {
		return 0, false
	}
	b = bytes.TrimLeft(b[i+len(key):], " ")
	end := 0
	for end < len(b) && (b[end] >= '0' && b[end] <= '9' || b[end] == '.' || b[end] == '-') {
		end++
	}
	return Decimal(bytes.TrimRight(b[:end], "."), 1)
}

// Behind returns the text after a text in b; nil if that is missing.
func Behind(b []byte, text string) []byte {
	_, rest, _ := bytes.Cut(b, []byte(text))
	return rest
}
