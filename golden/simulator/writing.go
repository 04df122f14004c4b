package simulator

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"unicode/utf8"
)

// WriteFile creates a file and returns the first error, including that of closing.
func WriteFile(name string, write func(io.Writer) error) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	b := bufio.NewWriterSize(f, 1<<16) // gzip writes a few hundred bytes at once
	if err = write(b); err == nil {
		err = b.Flush()
	}
	if err = cmp.Or(err, f.Close()); err != nil {
		return fmt.Errorf("writing %s: %w", name, err)
	}
	return nil
}

// AppendText appends s as a JSON string. Nearly all need no escapes.
func AppendText(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' || c >= utf8.RuneSelf {
			quoted, err := json.Marshal(s)
			if err != nil { // any string can be marshaled
				quoted = []byte(`""`)
			}
			return append(b, quoted...)
		}
	}
	b = append(append(b, '"'), s...)
	return append(b, '"')
}

// HexDigits returns n random lower case hex digits.
func HexDigits(rng *rand.Rand, n int) string { return draw(rng, n, "0123456789abcdef") }

// draw returns n random bytes of an alphabet.
func draw(rng *rand.Rand, n int, alphabet string) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = alphabet[rng.IntN(len(alphabet))]
	}
	return string(b)
}
