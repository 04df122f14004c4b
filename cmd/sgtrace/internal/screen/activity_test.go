package screen

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// terminalOf returns a screen whose messages go to a terminal, for a run that began a minute ago.
func terminalOf(w *bytes.Buffer) *Screen {
	a := &activity{w: w, isTerminal: true, began: time.Now().Add(-time.Minute)}
	return &Screen{activity: a, Notices: a}
}

// Activities replace each other on one line, and a notice overwrites it.
func TestActivities(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w bytes.Buffer
		s := terminalOf(&w)
		wait := func() { time.Sleep(time.Millisecond); synctest.Wait() }
		s.Reading(10).Add(5)
		wait()
		s.Doing("drawing")
		wait()
		if _, err := s.Notices.Write([]byte("a notice\n")); err != nil {
			t.Fatal(err)
		}
		s.Doing("writing a.html")
		wait()
		s.Idle()
		var shown []string
		for _, text := range strings.FieldsFunc(w.String(), func(r rune) bool { return r == '\r' || r == '\n' }) {
			if text = strings.TrimSpace(text); text != "" {
				shown = append(shown, text)
			}
		}
		if got, want := strings.Join(shown, "; "), "5 B of 10 B (50%); drawing, 0s; a notice; writing a.html, 0s"; got != want {
			t.Errorf("shown: %s\nwant:  %s", got, want)
		}
		if !strings.HasSuffix(w.String(), " \r") {
			t.Errorf("the line stays: %q", w.String())
		}
	})
}

// Output on a terminal, or for another program, needs no message. If a run writes a file, the
// terminal says so.
func TestPrinting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for toFile, want := range map[bool]string{false: "", true: "writing, 0s"} {
			var w bytes.Buffer
			s := terminalOf(&w)
			s.toFile = toFile
			s.Printing()
			time.Sleep(time.Millisecond)
			synctest.Wait()
			if got := strings.TrimSpace(w.String()); got != want {
				t.Errorf("output to a file: %t: shown %q, want %q", toFile, got, want)
			}
			s.Idle()
		}
	})
}

func TestIsFile(t *testing.T) {
	f, err := os.Create(t.TempDir() + "/file")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	if !isFile(f) || isFile(w) || isFile(new(bytes.Buffer)) {
		t.Errorf("file %t, pipe %t, buffer %t", isFile(f), isFile(w), isFile(new(bytes.Buffer)))
	}
}
