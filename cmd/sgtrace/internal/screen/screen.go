// Package screen decides how a run shows its text: how wide, in which characters and
// colors, through which pager, and with how many notices. It decides from the flags of
// [Flags], the environment, and whether the output is a terminal. It does not know the commands.
//
// It also has what 'sgtrace help TOPIC' prints (topics.go): it shows the project's Markdown pages and
// finds the place in them that defines a word. It knows what these pages are made of
// (headings, paragraphs, lists, tables, code) and no more of Markdown.
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

// Category heads the flags of [Flags] in the help.
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
	Style    table.Style // of text that goes to the output
	ErrStyle table.Style // of messages
	Pager    string      // the shell command that shows long text; "" is none
	Quiet    bool        // print no messages but losses and errors
	Notices  io.Writer   // where messages go that nobody needs

	activity *activity
	toFile   bool // text goes to a file
}

// New reads the flags of [Flags]. out and errOut are where text and messages go, and env
// looks up variables of the environment. Its errors are of type [commandline.UsageError].
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

// Width returns how many characters fit on a line of the terminal w, which $COLUMNS may
// overrule; 0 if w is not a terminal.
func Width(w io.Writer, env func(name string) string) int {
	if !IsTerminal(w) {
		return 0
	}
	if width, err := strconv.Atoi(env("COLUMNS")); err == nil && width > 0 {
		return width
	}
	return columns(w)
}

// utf8Locale reports whether the environment says that text is UTF-8. If it says nothing,
// text is UTF-8: containers set no locale, and terminals can show it.
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

// columns returns the width of the terminal w, or 80 where w does not tell.
func columns(w io.Writer) int {
	if f, ok := w.(interface{ Fd() uintptr }); ok {
		if width, _, err := term.GetSize(int(f.Fd())); err == nil && width > 0 {
			return width
		}
	}
	return 80
}

// line returns the text to show when the work has taken the given time. The file comes last,
// since the end is cut off when the terminal is narrow.
func (m *Meter) line(elapsed time.Duration) string {
	if m.work.Doing != "" {
		return fmt.Sprintf("%s, %v", m.work.Doing, elapsed.Truncate(time.Second))
	}
	read := m.read.Load()
	rate := float64(read) / elapsed.Seconds()
	var b strings.Builder
	b.WriteString(Bytes(float64(read)))
	if m.work.Bytes > 0 {
		// Files that grow while they are read do not go beyond 100%.
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

// longest is the time left that is worth telling; beyond, reading has stalled.
const longest = 100 * time.Hour

// Bytes prints a number of bytes for people.
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

// Reading shows how much of an input of size bytes has been read, until the next call of
// Reading, Doing, or Idle.
func (s *Screen) Reading(size int64) *Meter { return s.activity.next(Work{Bytes: size}) }

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

// PagerFor returns the command that shows long text that goes to out; "" if that is no
// terminal, or there is none.
func PagerFor(out io.Writer, env func(name string) string) string {
	if !IsTerminal(out) || env("TERM") == "dumb" {
		return ""
	}
	return pager(env)
}

// pager returns the command that shows long text; "" if there is none. As with git, less ends
// by itself if all of the text fits on the screen.
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

// PageThrough writes text to the input of a command of the shell, whose output goes to out.
// A reader who has seen enough ends the command early, which is no error.
func PageThrough(command string, out, errOut io.Writer, write func(io.Writer) error) error {
	cmd := exec.Command("sh", "-c", command)
	cmd.Stdout, cmd.Stderr = out, errOut
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	// Ctrl-C is for the pager. All that is left to do is to wait for it.
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

// Work is the progress that a Meter shows.
type Work struct {
	Doing string    // such as "analyzing"; "" is reading, of which bytes are counted
	Bytes int64     // to read; below zero it is unknown
	Began time.Time // of the run, all that it did before included; zero is now
}

// newMeter starts a Meter that shows its line on w, if that is a terminal, until [Meter.Done].
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
