// Package jsonscan holds the lexical half of the lenient JSON readers: it finds where strings and values end in
// a byte slice, and decodes strings and integers, without allocating and without float64.
//
// It is lenient where producers are known to be careless: raw control characters and invalid UTF-8 inside
// strings pass, an unknown escape is kept literally, and the grammar between tokens (commas above all) is the
// caller's.
//
// Positions are indexes into the slice. A function that needs bytes past the end returns [ErrShort]; the caller
// refills and calls again from the same position.
package jsonscan

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/bits"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// ErrShort means that the slice ends before the token does.
var ErrShort = errors.New("input ends inside a value")

// ErrSyntax means that the bytes are not the expected token.
var ErrSyntax = errors.New("not valid JSON")

// MaxDepth bounds the nesting of skipped values. After damage, readers look behind every bracket for the start
// of a record, so that it also bounds how often they look at a byte.
const MaxDepth = 128

// Space returns the first index from i on that is not JSON white space.
func Space(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\r' || b[i] == '\t') {
		i++
	}
	return i
}

const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

// zeros sets the high bit of every byte of v that is zero. It may also mark bytes above the lowest zero byte,
// which does not matter when searching for the first one.
func zeros(v uint64) uint64 { return (v - ones) &^ v & highs }

// stops marks the first byte of v that is a quote or a backslash by its high bit; it returns 0 if there is
// none.
func stops(v uint64) uint64 { return zeros(v^(ones*'"')) | zeros(v^(ones*'\\')) }

// EndOfRun returns the index of the first quote or backslash from i on, or len(b). It looks at eight bytes at a
// time, which makes it a fast way to find the end of a string without escapes.
func EndOfRun(b []byte, i int) int {
	for i+8 <= len(b) {
		if m := stops(binary.LittleEndian.Uint64(b[i:])); m != 0 {
			return i + bits.TrailingZeros64(m)>>3
		}
		i += 8
	}
	for i < len(b) && b[i] != '"' && b[i] != '\\' {
		i++
	}
	return i
}

// String scans the string that starts with the quote at b[i]. raw is what lies
// between the quotes; escaped reports whether it needs [Unescape].
func String(b []byte, i int) (raw []byte, escaped bool, next int, err error) {
	if i >= len(b) {
		return nil, false, i, ErrShort
	}
	if b[i] != '"' {
		return nil, false, i, ErrSyntax
	}
	start := i + 1
	for i = EndOfRun(b, start); i < len(b); i = EndOfRun(b, i) {
		if b[i] == '"' {
			return b[start:i], escaped, i + 1, nil
		}
		escaped = true
		i += 2
	}
	return nil, false, len(b), ErrShort
}

// Unescape appends the text that raw stands for to dst. Surrogate pairs become
// one character, lone surrogates U+FFFD, unknown escapes stay as they are.
func Unescape(dst, raw []byte) []byte {
	for i := 0; i < len(raw); i++ {
		run := bytes.IndexByte(raw[i:], '\\')
		if run < 0 || i+run+1 == len(raw) {
			return append(dst, raw[i:]...)
		}
		dst = append(dst, raw[i:i+run]...)
		i += run + 1
		switch raw[i] {
		case '"', '\\', '/':
			dst = append(dst, raw[i])
		case 'b':
			dst = append(dst, '\b')
		case 'f':
			dst = append(dst, '\f')
		case 'n':
			dst = append(dst, '\n')
		case 'r':
			dst = append(dst, '\r')
		case 't':
			dst = append(dst, '\t')
		case 'u':
			r, ok := hex4(raw, i+1)
			if !ok {
				dst = append(dst, '\\', 'u')
				continue
			}
			i += 4
			if utf16.IsSurrogate(r) && i+2 < len(raw) && raw[i+1] == '\\' && raw[i+2] == 'u' {
				if low, ok := hex4(raw, i+3); ok {
					if pair := utf16.DecodeRune(r, low); pair != utf8.RuneError {
						r = pair
						i += 6
					}
				}
			}
			dst = utf8.AppendRune(dst, r)
		default:
			dst = append(dst, '\\', raw[i])
		}
	}
	return dst
}

// Quoted returns the raw text between the quotes of a string value, escapes included, and nil for any other
// value.
func Quoted(value []byte) []byte {
	if len(value) >= 2 && value[0] == '"' {
		return value[1 : len(value)-1]
	}
	return nil
}

// UnixNano parses a Unix time in s, ms, µs, or ns, which it tells apart by the number of digits; 0 if text is
// not a time.
func UnixNano(text string) int64 {
	whole, decimals, _ := strings.Cut(text, ".")
	const digits = 19 // of a time in ns, since 2001
	if len(whole) < 10 || len(whole) > digits {
		return 0
	}
	at, err := strconv.ParseInt((whole + decimals + strings.Repeat("0", digits))[:digits], 10, 64)
	if err != nil {
		return 0
	}
	return at
}

// Text returns the text of a string value, and nil for any other value.
func Text(value []byte) []byte {
	raw, escaped, _, err := String(value, 0)
	if err != nil {
		return nil
	}
	if escaped {
		return Unescape([]byte{}, raw)
	}
	return raw
}

func hex4(b []byte, i int) (rune, bool) {
	if i+4 > len(b) {
		return 0, false
	}
	var r rune
	for _, c := range b[i : i+4] {
		d, ok := hexDigit(c)
		if !ok {
			return 0, false
		}
		r = r<<4 | rune(d)
	}
	return r, true
}

// hexDigits maps a character to the value of the hexadecimal digit, or to notHex.
var hexDigits = func() (t [256]byte) {
	for i := range t {
		t[i] = notHex
	}
	for i := range byte(10) {
		t['0'+i] = i
	}
	for i := range byte(6) {
		t['a'+i], t['A'+i] = 10+i, 10+i
	}
	return t
}()

const notHex = 0xff

func hexDigit(c byte) (byte, bool) { d := hexDigits[c]; return d, d != notHex }

// Literal scans the number or word (true, null, NaN) at b[i]. It ends before
// the next structural character or white space.
func Literal(b []byte, i int) (text []byte, next int, err error) {
	start := i
	for i < len(b) {
		switch b[i] {
		case ',', '}', ']', ' ', '\n', '\r', '\t', ':':
			if i == start {
				return nil, i, ErrSyntax
			}
			return b[start:i], i, nil
		case '"', '{', '[':
			return nil, i, ErrSyntax
		}
		i++
	}
	return nil, i, ErrShort
}

// Value finds the end of the value at b[i], whatever it is.
func Value(b []byte, i int) (next int, err error) {
	if i >= len(b) {
		return i, ErrShort
	}
	switch b[i] {
	case '"':
		_, _, next, err = String(b, i)
	case '{', '[':
		var s Skipper
		n, done, err := s.Skip(b[i:])
		if err == nil && !done {
			err = ErrShort
		}
		return i + n, err
	default:
		_, next, err = Literal(b, i)
	}
	return next, err
}

// A Skipper skips one object or array that may be longer than any buffer: feed
// it consecutive pieces, beginning with the opening bracket. The zero value is
// ready.
type Skipper struct {
	depth    int
	inString bool
	escape   bool // the last byte of the previous piece was a backslash
}

// Skip consumes b up to the matching bracket and returns the number of bytes consumed. done is false if b ends
// first.
func (s *Skipper) Skip(b []byte) (n int, done bool, err error) {
	i := 0
	for i < len(b) {
		if s.inString {
			if s.escape {
				s.escape = false
				i++
				continue
			}
			i = EndOfRun(b, i)
			if i == len(b) {
				break
			}
			if b[i] == '"' {
				s.inString = false
			} else {
				s.escape = true
			}
			i++
			continue
		}
		switch b[i] {
		case '"':
			s.inString = true
		case '{', '[':
			if s.depth++; s.depth > MaxDepth {
				return i, false, ErrSyntax
			}
		case '}', ']':
			if s.depth--; s.depth == 0 {
				return i + 1, true, nil
			}
		}
		i++
	}
	return i, false, nil
}
