package redact

import (
	"bytes"
	"io"
)

// A Writer redacts the lines that are written to it, whoever forgot to.
type Writer struct {
	W    io.Writer // gets the redacted lines
	By   *Redactor
	line []byte // that is not complete
}

// Write keeps the end of p until its line is complete. A carriage return ends one, too: what a
// run is doing stands on a line that never ends otherwise.
func (w *Writer) Write(p []byte) (int, error) {
	w.line = append(w.line, p...)
	end := bytes.LastIndexAny(w.line, "\r\n") + 1
	if end == 0 {
		return len(p), nil
	}
	_, err := io.WriteString(w.W, w.By.Scrub(string(w.line[:end])))
	w.line = append(w.line[:0], w.line[end:]...)
	return len(p), err
}

// Flush writes the last line, if it has no end.
func (w *Writer) Flush() error {
	_, err := io.WriteString(w.W, w.By.Scrub(string(w.line)))
	w.line = nil
	return err
}

// Fd is that of the writer below, so that a terminal is known as one.
func (w *Writer) Fd() uintptr {
	if f, ok := w.W.(interface{ Fd() uintptr }); ok {
		return f.Fd()
	}
	return ^uintptr(0)
}
