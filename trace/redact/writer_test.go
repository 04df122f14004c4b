package redact

import (
	"bytes"
	"strings"
	"testing"
)

// Progress output is redacted and shown at once, although its line never ends.
func TestWriterOfProgress(t *testing.T) {
	r := New(nil)
	r.LearnFile("/data/secretname.jsonl")
	var out bytes.Buffer
	w := &Writer{W: &out, By: r}
	for _, text := range []string{"\rreading /data/secret", "name.jsonl\r", "erased"} {
		if _, err := w.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if text := out.String(); !strings.Contains(text, "reading ") || !strings.HasSuffix(text, "\r") || strings.Contains(text, "secretname") || strings.Contains(text, "erased") {
		t.Errorf("written is %q", text)
	}
	if err := w.Flush(); err != nil || !strings.HasSuffix(out.String(), "\rerased") {
		t.Errorf("%q, %v", out.String(), err)
	}
}
