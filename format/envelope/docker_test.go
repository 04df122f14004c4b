package envelope

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"
)

// dockerOf wraps a program's output as Docker does, splitting lines after size bytes.
func dockerOf(content string, size int) string {
	var b bytes.Buffer
	for _, line := range strings.SplitAfter(content, "\n") {
		for len(line) > 0 {
			n := min(size, len(line))
			text, _ := json.Marshal(map[string]string{"log": line[:n]})
			b.Write(text[:len(text)-1])
			b.WriteString(`,"stream":"stdout","time":"2026-08-22T14:03:05.123456789Z"}` + "\n")
			line = line[n:]
		}
	}
	return b.String()
}

func TestDocker(t *testing.T) {
	content := "{\"a\":\"<é>\"}\nplain \"text\"\n{\"b\":1}\n\n" + strings.Repeat("long ", 9_000) + "\nend"
	for _, c := range []struct {
		name, data, want, err string
	}{
		{"lines", dockerOf(content, 1<<14), content, ""},
		{"a bare line between", dockerOf("a\n", 9) + "bare\n" + dockerOf("b\n", 9), "a\nbare\nb\n", ""},
		{"cut off", dockerOf("a\nb\n", 9)[:100], "a\n", "unexpected EOF"},
		{"damaged", dockerOf("a\n", 9) + `{"log":"b\q"}` + "\n", "a\n{\"log\":\"b\\q\"}\n", ""},
	} {
		s, err := Open(c.name, strings.NewReader(c.data))
		if err != nil || s.Outer != "docker" {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		text := ""
		got, err := io.ReadAll(s)
		if err != nil {
			text = err.Error()
		}
		if string(got) != c.want || text != c.err {
			t.Errorf("%s: %q, error %q", c.name, got, text)
		}
	}
}

// FuzzDocker checks that lines are decoded as by encoding/json.
func FuzzDocker(f *testing.F) {
	f.Add("{\"x\":1}\n\nb", 3)
	f.Fuzz(func(t *testing.T, content string, size int) {
		content = strings.ToValidUTF8(content, "?")
		for _, r := range content {
			if r >= 0x80 {
				return // Docker never cuts inside one
			}
		}
		if content == "" || size < 1 {
			return
		}
		r, _, _ := openDocker(bufioOf(dockerOf(content, size)))
		if got, err := io.ReadAll(r); string(got) != content || err != nil {
			t.Errorf("%q is read as %q, %v", content, got, err)
		}
	})
}

func bufioOf(text string) *bufio.Reader { return bufio.NewReader(strings.NewReader(text)) }
