package screen

import (
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode"
)

const (
	delay = time.Second            // before the line appears
	pause = 200 * time.Millisecond // between two updates
)

// A Meter shows what a run does, and how far reading has come, on one line of a terminal:
//
//	1.24 GB of 5.60 GB (22%), 310.0 MB/s, 14s left: rank0.json.gz
//	analyzing, 12s
//
// The line appears once the run has taken a second, so that quick runs stay silent, and is
// gone at the end. Whoever prints to the same terminal calls [Meter.Done] first. Its methods
// may be called from any goroutine. The zero Meter counts and shows nothing.
type Meter struct {
	read  atomic.Int64
	file  atomic.Pointer[string]
	work  Work
	width func() int

	once       sync.Once
	quit, gone chan struct{} // nil if nothing is shown
}

// Work is what a Meter shows.
type Work struct {
	Doing string    // such as "analyzing"; "" is reading, of which bytes are counted
	Bytes int64     // to read; below zero it is unknown
	Began time.Time // of the run, all that it did before included; zero is now
}

// NewMeter starts a Meter that shows its line on w, if that is a terminal, until [Meter.Done].
func NewMeter(w io.Writer, isTerminal bool, work Work) *Meter {
	m := &Meter{work: work}
	if isTerminal {
		m.width = func() int { return Columns(w) }
		m.quit, m.gone = make(chan struct{}), make(chan struct{})
		go m.run(w)
	}
	return m
}

// Add counts n more bytes as read. It costs an atomic addition.
func (m *Meter) Add(n int) { m.read.Add(int64(n)) }

// File names the file that is being read. Of files read at the same time, the
// last one named is shown.
func (m *Meter) File(name string) { m.file.Store(&name) }

// Done erases the line. Nothing is written after it returns. It may be called
// again.
func (m *Meter) Done() {
	if m.quit == nil {
		return
	}
	m.once.Do(func() { close(m.quit) })
	<-m.gone
}

// run shows the line until Done. Errors of w do not matter: the line is talk.
func (m *Meter) run(w io.Writer) {
	defer close(m.gone)
	start, wait := time.Now(), delay
	if began := m.work.Began; !began.IsZero() {
		wait -= start.Sub(began)
	}
	select {
	case <-time.After(wait):
	case <-m.quit:
		return
	}
	tick := time.NewTicker(pause)
	defer tick.Stop()
	shown := 0
	for {
		text, n := fit(m.line(time.Since(start)), m.width()-1) // the last column would wrap
		// Blanks erase what was longer before: not every terminal knows escapes.
		_, _ = io.WriteString(w, "\r"+text+strings.Repeat(" ", max(0, shown-n)))
		shown = n
		select {
		case <-tick.C:
		case <-m.quit:
			_, _ = io.WriteString(w, "\r"+strings.Repeat(" ", shown)+"\r")
			return
		}
	}
}

// fit cuts text to the given number of columns and returns how many it takes.
// What a terminal would act upon becomes a question mark.
func fit(text string, columns int) (string, int) {
	var b strings.Builder
	used := 0
	for _, r := range text {
		if !unicode.IsPrint(r) {
			r = '?'
		}
		n := 1
		if r >= 0x1100 { // from Hangul on, letters may take two; what takes one leaves room
			n = 2
		}
		if used+n > columns {
			break
		}
		b.WriteRune(r)
		used += n
	}
	return b.String(), used
}
