package screen

import (
	"io"
	"os"
	"time"
)

// An activity is the line on the terminal that says what a run does.
type activity struct {
	w          io.Writer
	isTerminal bool
	began      time.Time // of the run
	meter      *Meter
}

// next erases the line, and says what the run does from now on.
func (a *activity) next(work Work) *Meter {
	a.end()
	work.Began = a.began
	a.meter = NewMeter(a.w, a.isTerminal, work)
	return a.meter
}

func (a *activity) end() {
	if a.meter != nil {
		a.meter.Done()
		a.meter = nil
	}
}

// Write writes a notice in place of the line.
func (a *activity) Write(p []byte) (int, error) {
	a.end()
	return a.w.Write(p)
}

// Reading shows how much of an input of size bytes has been read, until the next call of
// Reading, Doing, or Idle.
func (s *Screen) Reading(size int64) *Meter {
	return s.activity.next(Work{Bytes: size})
}

// Doing shows what the run does from now on, such as "analyzing", on a terminal, once the run
// has taken a second.
func (s *Screen) Doing(what string) { s.activity.next(Work{Doing: what}) }

// Idle erases what Doing shows. Messages other than notices are printed after it.
func (s *Screen) Idle() {
	if s.activity != nil {
		s.activity.end()
	}
}

// Printing says that text goes to the output from now on. Where that is not a file, the text may
// appear on the terminal, and is enough to see.
func (s *Screen) Printing() {
	if s.toFile {
		s.Doing("writing")
	} else {
		s.Idle()
	}
}

// isFile reports whether w is a file on disk.
func isFile(w io.Writer) bool {
	f, ok := w.(interface{ Stat() (os.FileInfo, error) })
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode().IsRegular()
}
