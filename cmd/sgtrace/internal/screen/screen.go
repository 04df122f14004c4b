// Package screen decides how a run shows its text: how wide, in which characters and colors, through which
// pager, and with how many notices. It decides by [Flags], the environment, and whether the output is a
// terminal. It does not know the commands.
//
// It also prints 'sgtrace help TOPIC' (topics.go): it shows the project's Markdown pages and finds the
// place in them that defines a word. It understands only the Markdown that these pages use (headings,
// paragraphs, lists, tables, code).
package screen

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unicode"

	"github.com/urfave/cli/v2"
	"golang.org/x/term"

	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/cmd/sgtrace/internal/commandline"
)

// Category is the heading of [Flags] in the help.
const Category = "Screen:"

// Flags say how text is shown.
func Flags() []cli.Flag {
	return []cli.Flag{
		&cli.IntFlag{Name: "width", Category: Category, Usage: "fit tables into `N` characters by leaving out columns; 0 is no limit", DefaultText: "the terminal's, no limit elsewhere"},
		&cli.StringFlag{Name: "color", Category: Category, Usage: "color severities and changes: auto, always, or never (`WHEN`); auto is on terminals, unless NO_COLOR is set", Value: "auto"},
		&cli.BoolFlag{Name: "no-pager", Category: Category, Usage: "don't show text on a terminal in a pager ($SGTRACE_PAGER, $PAGER, or less -FRX)", DisableDefaultText: true},
		&cli.BoolFlag{Name: "quiet", Category: Category, Usage: "print no notices and no progress; losses and errors stay", DisableDefaultText: true},
	}
}

// A Screen is how a run shows its text. The zero Screen shows it plainly.
type Screen struct {
	Style    table.Style // of text on the output
	ErrStyle table.Style // of messages
	Pager    string      // the shell command that shows long text; "" is none
	Quiet    bool        // print only losses and errors
	Notices  io.Writer   // where notices go

	activity *activity
	toFile   bool // the output is a file
}

// New reads [Flags]. out and errOut are where text and messages go, and env looks up environment variables.
// Its errors are of type [commandline.UsageError].
func New(ctx *cli.Context, out, errOut io.Writer, env func(name string) string) (Screen, error) {
	s := Screen{Style: table.Style{ASCII: !utf8Locale(env), Width: Width(out, env)}, Quiet: ctx.Bool("quiet"), toFile: isFile(out)}
	s.activity = &activity{w: errOut, isTerminal: IsTerminal(errOut) && !s.Quiet, began: time.Now()}
	s.Notices = s.activity
	if s.Quiet {
		s.Notices = io.Discard
	}
	if ctx.IsSet("width") {
		if s.Style.Width = ctx.Int("width"); s.Style.Width < 0 {
			return s, commandline.Usage("--width %d: want 0 or more", s.Style.Width)
		}
	}
	if !ctx.Bool("no-pager") {
		s.Pager = PagerFor(out, env)
	}
	switch color := ctx.String("color"); color {
	case "always":
		s.Style.Color, s.ErrStyle.Color = true, true
	case "never":
	case "auto":
		if env("NO_COLOR") == "" && env("TERM") != "dumb" {
			s.Style.Color, s.ErrStyle.Color = IsTerminal(out), IsTerminal(errOut)
		}
	default:
		return s, commandline.OneOf("--color", color, "auto", "always", "never")
	}
	return s, nil
}

// Width returns the number of characters on a line of the terminal w, which $COLUMNS may override; 0 if w
// is not a terminal.
func Width(w io.Writer, env func(name string) string) int {
	if !IsTerminal(w) {
		return 0
	}
	if width, err := strconv.Atoi(env("COLUMNS")); err == nil && width > 0 {
		return width
	}
	return columns(w)
}

// utf8Locale reports whether the environment says that text is UTF-8. If it says nothing, text is UTF-8:
// containers set no locale, and terminals can show it.
func utf8Locale(env func(name string) string) bool {
	for _, name := range [...]string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if v := env(name); v != "" {
			return v != "C" && v != "POSIX" && !strings.Contains(v, "8859")
		}
	}
	return true
}

// IsTerminal reports whether w is a file that is a terminal.
func IsTerminal(w io.Writer) bool {
	f, ok := w.(interface{ Fd() uintptr })
	return ok && term.IsTerminal(int(f.Fd()))
}

// columns returns the width of the terminal w, or 80 if it is unknown.
func columns(w io.Writer) int {
	if f, ok := w.(interface{ Fd() uintptr }); ok {
		if width, _, err := term.GetSize(int(f.Fd())); err == nil && width > 0 {
			return width
		}
	}
	return 80
}

// line returns the text to show after the given time. The file comes last, since a narrow terminal cuts off
// the end.
func (m *Meter) line(elapsed time.Duration) string {
	if m.work.Doing != "" {
		return fmt.Sprintf("%s, %v", m.work.Doing, elapsed.Truncate(time.Second))
	}
	read := m.read.Load()
	rate := float64(read) / elapsed.Seconds()
	var b strings.Builder
	b.WriteString(Bytes(float64(read)))
	if m.work.Bytes > 0 {
		// Files that grow while they are read don't exceed 100%.
		fmt.Fprintf(&b, " of %s (%d%%)", Bytes(float64(m.work.Bytes)), int(100*min(1, float64(read)/float64(m.work.Bytes))))
	}
	if elapsed >= pause { // the first moment has no rate
		fmt.Fprintf(&b, ", %s/s", Bytes(rate))
		if left := float64(m.work.Bytes-read) / rate; left > 0 && left < longest.Seconds() {
			fmt.Fprintf(&b, ", %v left", time.Duration(left*float64(time.Second)).Round(time.Second))
		}
	}
	if name := m.file.Load(); name != nil {
		b.WriteString(": " + *name)
	}
	return b.String()
}

// longest is the longest time left that is shown; beyond it, reading has stalled.
const longest = 100 * time.Hour

// Bytes formats a number of bytes.
func Bytes(n float64) string {
	switch {
	case n < 1e3:
		return fmt.Sprintf("%.0f B", n)
	case n < 1e6:
		return fmt.Sprintf("%.1f kB", n/1e3)
	case n < 1e9:
		return fmt.Sprintf("%.1f MB", n/1e6)
	}
	return fmt.Sprintf("%.2f GB", n/1e9)
}

// An activity is the line on the terminal that says what a run is doing.
type activity struct {
	w          io.Writer
	isTerminal bool
	began      time.Time // start of the run
	meter      *Meter
}

// next erases the line, and shows what the run does next.
func (a *activity) next(work Work) *Meter {
	a.end()
	work.Began = a.began
	a.meter = newMeter(a.w, a.isTerminal, work)
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

// Reading shows how much of an input of size bytes has been read, until the next call of Reading, Doing, or
// Idle.
func (s *Screen) Reading(size int64) *Meter { return s.activity.next(Work{Bytes: size}) }

// Doing shows what the run does next, such as "analyzing", on a terminal, once the run has taken a second.
func (s *Screen) Doing(what string) { s.activity.next(Work{Doing: what}) }

// Idle erases what Doing shows. Call it before messages other than notices are printed.
func (s *Screen) Idle() {
	if s.activity != nil {
		s.activity.end()
	}
}

// Printing says that text goes to the output next. If the output is not a file, nothing is shown, since the
// text itself may appear on the terminal.
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

// PagerFor returns the command that shows long text on out; "" if out is not a terminal, or there is no
// pager.
func PagerFor(out io.Writer, env func(name string) string) string {
	if !IsTerminal(out) || env("TERM") == "dumb" {
		return ""
	}
	return pager(env)
}

// pager returns the command that shows long text; "" if there is none. As in git, less exits on its own if
// all of the text fits on the screen.
func pager(env func(name string) string) string {
	command := cmp.Or(env("SGTRACE_PAGER"), env("PAGER"))
	if command == "" {
		if _, err := exec.LookPath("less"); err == nil {
			command = "less -FRX"
		}
	}
	if command == "cat" {
		return ""
	}
	return command
}

// PageThrough writes text to the input of a shell command, whose output goes to out. It is not an error if
// the reader has seen enough and ends the command early.
func PageThrough(command string, out, errOut io.Writer, write func(io.Writer) error) error {
	cmd := exec.Command("sh", "-c", command)
	cmd.Stdout, cmd.Stderr = out, errOut
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	// Ctrl-C is for the pager; this process only waits for it.
	signal.Ignore(os.Interrupt)
	if err := cmd.Start(); err != nil {
		return write(out)
	}
	err = write(in)
	in.Close()
	if failed := cmd.Wait(); err == nil || errors.Is(err, syscall.EPIPE) {
		err = failed
	}
	return err
}

const (
	delay = time.Second            // before the line appears
	pause = 200 * time.Millisecond // between updates
)

// A Meter shows what a run is doing, and how far reading has come, on one line of a terminal:
//
//	1.24 GB of 5.60 GB (22%), 310.0 MB/s, 14s left: rank0.json.gz
//	analyzing, 12s
//
// The line appears once the run has taken a second, so that quick runs stay silent, and disappears at the
// end. Call [Meter.Done] before printing to the same terminal. Its methods may be called from any goroutine.
// The zero Meter counts and shows nothing.
type Meter struct {
	read  atomic.Int64
	file  atomic.Pointer[string]
	work  Work
	width func() int

	once       sync.Once
	quit, gone chan struct{} // nil if nothing is shown
}

// Work is the work whose progress a Meter shows.
type Work struct {
	Doing string    // such as "analyzing"; "" is reading, whose bytes are counted
	Bytes int64     // to read; negative if unknown
	Began time.Time // start of the run, including everything before this work; zero is now
}

// newMeter starts a Meter that shows its line on w, if it is a terminal, until [Meter.Done].
func newMeter(w io.Writer, isTerminal bool, work Work) *Meter {
	m := &Meter{work: work}
	if isTerminal {
		m.width = func() int { return columns(w) }
		m.quit, m.gone = make(chan struct{}), make(chan struct{})
		go m.run(w)
	}
	return m
}

// Add counts n more bytes as read. It costs an atomic addition.
func (m *Meter) Add(n int) { m.read.Add(int64(n)) }

// File names the file being read. If several are read at once, the last one named is shown.
func (m *Meter) File(name string) { m.file.Store(&name) }

// Done erases the line. Nothing is written after it returns. It may be called more than once.
func (m *Meter) Done() {
	if m.quit == nil {
		return
	}
	m.once.Do(func() { close(m.quit) })
	<-m.gone
}

// run shows the line until Done. Write errors are ignored: the line is only a courtesy.
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
		// Spaces erase a longer previous line: not every terminal understands escape sequences.
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

// fit cuts text to a number of columns, and returns the number that it takes. Unprintable characters become
// question marks.
func fit(text string, columns int) (string, int) {
	var b strings.Builder
	used := 0
	for _, r := range text {
		if !unicode.IsPrint(r) {
			r = '?'
		}
		n := 1
		if r >= 0x1100 { // from Hangul on, characters may take two columns; narrow ones leave some unused
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
