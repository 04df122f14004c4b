package jsonscan

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

func TestInt(t *testing.T) {
	for _, c := range []struct {
		in   string
		want int64
		ok   bool
	}{
		{"0", 0, true}, {"-7", -7, true}, {"1787000000138163968", 1787000000138163968, true},
		{"9223372036854775807", 9223372036854775807, true}, {"-9223372036854775808", -9223372036854775808, true},
		{"9223372036854775808", 0, false}, {"18446744073709551616", 0, false},
		{"12.0", 12, true}, {"1.5", 0, false}, {"1.5e1", 15, true}, {"1787E15", 1787000000000000000, true},
		{"120e-1", 12, true}, {"125e-1", 0, false}, {"1e99", 0, false}, {"", 0, false}, {"-", 0, false}, {"1x", 0, false}, {"1e", 0, false},
		{"0e99", 0, true}, {"1.00000000000000000000000000", 1, true},
	} {
		got, ok := Int([]byte(c.in))
		if ok != c.ok || got != c.want {
			t.Errorf("Int(%q) = %d, %v; want %d, %v", c.in, got, ok, c.want, c.ok)
		}
	}
}

func TestString(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{`""`, ""}, {`"abc"`, "abc"}, {`"a\"b\\c\/d"`, `a"b\c/d`}, {`"\u00e9\ud83d\ude00"`, "é😀"},
		{`"\ud83d!"`, "\ufffd!"}, {`"C:\path"`, `C:\path`}, {`"\u12"`, `\u12`}, {"\"tab\tnew\nline\"", "tab\tnew\nline"},
		{`"a long string without any escape at all, over eight bytes"`, "a long string without any escape at all, over eight bytes"},
	} {
		raw, escaped, next, err := String([]byte(c.in+" tail\""), 0)
		if err != nil || next != len(c.in) {
			t.Errorf("%s: next %d, err %v", c.in, next, err)
			continue
		}
		got := string(raw)
		if escaped {
			got = string(Unescape(nil, raw))
		}
		if got != c.want {
			t.Errorf("%s reads as %q, want %q", c.in, got, c.want)
		}
	}
	for _, in := range []string{``, `"`, `"abc`, `"abc\`, `"abc\"`} {
		if _, _, _, err := String([]byte(in), 0); err != ErrShort {
			t.Errorf("%q: %v, want ErrShort", in, err)
		}
	}
}

func TestSkipperInPieces(t *testing.T) {
	doc := `{"a":[1,2,{"b":"}]\"\\"}],"c":"\\"}`
	for size := 1; size <= len(doc); size++ {
		var s Skipper
		total := 0
		for i := 0; i < len(doc)+4; i += size {
			piece := (doc + "tail")[i:min(i+size, len(doc)+4)]
			n, done, err := s.Skip([]byte(piece))
			total += n
			if err != nil {
				t.Fatal(err)
			}
			if done {
				break
			}
		}
		if total != len(doc) {
			t.Errorf("pieces of %d: skipped %d bytes of %d", size, total, len(doc))
		}
	}
}

func TestHex(t *testing.T) {
	for _, c := range []struct {
		in   string
		want uint64
		ok   bool
	}{
		{"0", 0, true}, {"aBcDeF0123456789", 0xabcdef0123456789, true}, {"ffffffffffffffff", 1<<64 - 1, true},
		{"", 0, false}, {"g", 0, false}, {"0x1", 0, false}, {"-1", 0, false}, {"00000000000000000", 0, false},
	} {
		if got, ok := Hex([]byte(c.in)); ok != c.ok || ok && got != c.want {
			t.Errorf("Hex(%q) = %x, %v; want %x, %v", c.in, got, ok, c.want, c.ok)
		}
	}
}

// This checks where values end, and that every proper prefix of a value is incomplete. A number has
// no terminator, so every value is followed by a comma.
func TestValue(t *testing.T) {
	for _, in := range []string{
		`""`, `"a\"b\\"`, `"[{"`, `0`, `-1.5e+9`, `true`, `null`, `NaN`, `[]`, `{}`, `[1,[2,{"a":"]"}],"\"]"]`,
		`{"a":{"b":[{}]},"c":"}","d":"\\"}`, "[\"a string of more than eight bytes\"\n,\t1 ]",
	} {
		next, err := Value([]byte(in+",1"), 0)
		if err != nil || next != len(in) {
			t.Errorf("%s ends at %d, %v; want %d", in, next, err, len(in))
		}
		for n := range len(in) {
			if next, err := Value([]byte(in[:n]), 0); err != ErrShort || next > n {
				t.Errorf("%s: %d, %v; want ErrShort", in[:n], next, err)
			}
		}
	}
	for _, in := range []string{`,`, `}`, `]`, `:`, `tr"`, `1{`, `1[`} {
		if _, err := Value([]byte(in), 0); err != ErrSyntax {
			t.Errorf("%s: %v, want ErrSyntax", in, err)
		}
	}
}

func TestNestingBomb(t *testing.T) {
	if _, err := Value([]byte(strings.Repeat("[", 100_000)), 0); err != ErrSyntax {
		t.Errorf("got %v, want ErrSyntax", err)
	}
}

// Strings that encoding/json accepts are decoded the same here.
func FuzzString(f *testing.F) {
	for _, s := range []string{`"a"`, `"\u00e9"`, `"\ud83d\ude00x"`, `"\ud83dx\n"`, `"\\\""`, "\"\xff\""} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		raw, _, next, err := String(in, 0)
		if err == nil && (next != len(raw)+2 || in[next-1] != '"') {
			t.Fatalf("%q: raw %q, next %d", in, raw, next)
		}
		var want string
		if json.Unmarshal(in, &want) != nil || len(in) == 0 || in[0] != '"' {
			return
		}
		if err != nil {
			t.Fatalf("%q: %v", in, err)
		}
		if got := strings.ToValidUTF8(string(Unescape(nil, raw)), "\ufffd"); strings.ToValidUTF8(want, "\ufffd") != got && !strings.ContainsRune(want, '\ufffd') {
			t.Fatalf("%q reads as %q, want %q", in, got, want)
		}
	})
}

// Value ends where encoding/json does, and skipping a value in two pieces gives the same.
func FuzzValue(f *testing.F) {
	for _, s := range []string{`{"a":[1,"}",{"b":null}]} x`, `"a" `, `-1e9 `, `[[[[`} {
		f.Add([]byte(s), 3)
	}
	f.Fuzz(func(t *testing.T, in []byte, split int) {
		next, err := Value(in, 0)
		if next > len(in) {
			t.Fatalf("%q: next is %d of %d", in, next, len(in))
		}
		if len(in) > 0 && (in[0] == '{' || in[0] == '[') {
			var s Skipper
			split = max(0, min(split, len(in)))
			n, done, err2 := s.Skip(in[:split])
			if !done && err2 == nil {
				var m int
				m, done, err2 = s.Skip(in[n:])
				n += m
			}
			if n != next || done != (err == nil) || (err2 == nil) != (err != ErrSyntax) {
				t.Fatalf("%q in one piece: %d, %v; split at %d: %d, %v, %v", in, next, err, split, n, done, err2)
			}
		}
		dec := json.NewDecoder(bytes.NewReader(in))
		var v json.RawMessage
		if dec.Decode(&v) != nil || Space(in, 0) != 0 {
			return
		}
		end := int(dec.InputOffset())
		switch {
		case v[0] != '{' && v[0] != '[' && v[0] != '"': // "00" is one token, which Value does not judge
		case err == ErrSyntax && bytes.Count(v, []byte("["))+bytes.Count(v, []byte("{")) > MaxDepth: // nested too deeply
		case err != nil || next != end:
			t.Fatalf("%q ends at %d, %v; want %d", in, next, err, end)
		}
	})
}

// plainNumber matches numbers short enough for exact arithmetic.
var plainNumber = regexp.MustCompile(`^[+-]?[0-9]{1,9}(\.[0-9]{0,9})?([eE][+-]?[0-9]{1,2})?$`)

// An accepted integer equals the text, and every whole number that fits is accepted.
func FuzzInt(f *testing.F) {
	for _, s := range []string{"1", "-9223372036854775808", "1.50e1", "1e-1", "100e-2"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		got, ok := Int(in)
		if !ok && !plainNumber.Match(in) {
			return
		}
		want, valid := new(big.Rat).SetString(strings.TrimPrefix(string(in), "+"))
		if !valid {
			t.Fatalf("%q was taken as %d", in, got)
		}
		if ok != (want.IsInt() && want.Num().IsInt64()) || ok && want.Num().Int64() != got {
			t.Fatalf("%q reads as %d, %v; want %v", in, got, ok, want)
		}
	})
}

func FuzzHex(f *testing.F) {
	for _, s := range []string{"0", "aBcDeF0123456789", "", "0x1", "-1", "1_0", "00000000000000001"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		got, ok := Hex(in)
		want, err := strconv.ParseUint(string(in), 16, 64)
		if isHex := err == nil && len(in) <= 16 && in[0] != '+'; ok != isHex || ok && got != want {
			t.Fatalf("%q reads as %x, %v; want %x, %v", in, got, ok, want, err)
		}
	})
}

func TestEightDigits(t *testing.T) {
	for _, n := range []int{0, 9, 10, 12345678, 99999999, 80706050, 5060708} {
		text := fmt.Sprintf("%08d", n)
		if got, ok := EightDigits([]byte(text + "9")); !ok || got != uint64(n) {
			t.Errorf("%s is %d, %v", text, got, ok)
		}
		for i := range 8 {
			for c := range 256 {
				b := []byte(text)
				b[i] = byte(c)
				want, err := strconv.ParseUint(string(b), 10, 64)
				if got, ok := EightDigits(b); ok != (err == nil && c >= '0' && c <= '9') || ok && got != want {
					t.Fatalf("%q is %d, %v", b, got, ok)
				}
			}
		}
	}
}

// Sixteen digits are decoded eight at a time. This tries every byte in every position.
func TestHexOfSixteen(t *testing.T) {
	for _, text := range []string{"0123456789abcdef", "FEDCBA9876543210", "ffffffffffffffff"} {
		for i := range 16 {
			for c := range 256 {
				b := []byte(text)
				b[i] = byte(c)
				want, err := strconv.ParseUint(string(b), 16, 64)
				if c == '+' && i == 0 {
					err = strconv.ErrSyntax
				}
				if got, ok := Hex(b); ok != (err == nil) || ok && got != want {
					t.Fatalf("%q is %x, %v; want %x, %v", b, got, ok, want, err)
				}
			}
		}
	}
}
