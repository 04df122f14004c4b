package trace

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Severity orders diagnostics by their effect on the result.
type Severity uint8

const (
	Info     Severity = iota // worth knowing
	Notice                   // the input is unusual, but the result is complete
	DataLoss                 // part of the input is missing from the result, or changed
	Error                    // an input could not be used at all
)

// String returns the word used in messages.
func (s Severity) String() string {
	return [...]string{"info", "notice", "data loss", "error"}[s]
}

// A Pos is a position in an input: a line (from 1) if the format has lines, otherwise the byte offset in
// the decompressed stream. -1 is unknown.
type Pos struct {
	File   string
	Line   int64
	Offset int64
}

// A Place is a position in a file, in 4 bytes: a line or, in a file without lines, an index into a list of
// offsets.
type Place uint32

// listed marks an index into a list of offsets. No file has that many lines.
const listed Place = 1 << 31

// InLine returns the place in a line, from 1; 0 is unknown.
func InLine(line uint32) Place { return Place(line) &^ listed }

// AtOffset returns the place at offset n of a list.
func AtOffset(n int) Place { return listed | Place(n) }

// Line returns the line; 0 if p is at an offset.
func (p Place) Line() uint32 {
	if p&listed != 0 {
		return 0
	}
	return uint32(p)
}

// In returns the position of p in a file with these offsets.
func (p Place) In(file string, offsets []int64) Pos {
	if p&listed != 0 {
		return Pos{File: file, Offset: offsets[p&^listed]}
	}
	return Pos{File: file, Line: int64(p), Offset: -1}
}

// String prints file:line, file+offset or file.
func (p Pos) String() string {
	switch {
	case p.Line > 0:
		return p.File + ":" + strconv.FormatInt(p.Line, 10)
	case p.Offset >= 0:
		return p.File + "+" + strconv.FormatInt(p.Offset, 10)
	default:
		return p.File
	}
}

// Compare orders positions by file, line, offset.
func (p Pos) Compare(o Pos) int {
	return cmp.Or(strings.Compare(p.File, o.File), cmp.Compare(p.Line, o.Line), cmp.Compare(p.Offset, o.Offset))
}

// A Diag describes a problem with the data; importing continues after it. Count is the number of
// occurrences; Pos and Msg are those of the first.
type Diag struct {
	*Message
	Pos   Pos
	Msg   string // the text of the message with its values
	Count int
}

// Times returns d with the count n.
func (d Diag) Times(n int) Diag {
	d.Count = n
	return d
}

// String prints position, severity, message, code and count on one line.
func (d Diag) String() string {
	s := fmt.Sprintf("%s: %s [%s]", d.Severity, d.Msg, d.Code)
	if d.Pos.File != "" {
		s = d.Pos.String() + ": " + s
	}
	if d.Count > 1 {
		s += fmt.Sprintf(" (%d times; this is the first)", d.Count)
	}
	return s
}

// Diags collects diagnostics: one entry per code and file, with a count. It is
// safe for concurrent use; the zero value is empty.
type Diags struct {
	mu   sync.Mutex
	list []Diag
}

// Add counts d. Among diagnostics with the same code and file, it keeps the one with the lowest position,
// whatever the order of calls.
func (l *Diags) Add(d Diag) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range l.list {
		have := &l.list[i]
		if have.Code != d.Code || have.Pos.File != d.Pos.File {
			continue
		}
		d.Count += have.Count
		if c := d.Pos.Compare(have.Pos); c > 0 || c == 0 && d.Msg >= have.Msg {
			d.Pos, d.Msg = have.Pos, have.Msg
		}
		*have = d
		return
	}
	l.list = append(l.list, d)
}

// All returns the diagnostics ordered by file, position and code.
func (l *Diags) All() []Diag {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := slices.Clone(l.list)
	slices.SortFunc(out, func(a, b Diag) int {
		return cmp.Or(a.Pos.Compare(b.Pos), strings.Compare(a.Code, b.Code))
	})
	return out
}

// Worst returns the highest severity, Info if there are no diagnostics.
func (l *Diags) Worst() Severity {
	l.mu.Lock()
	defer l.mu.Unlock()
	worst := Info
	for i := range l.list {
		worst = max(worst, l.list[i].Severity)
	}
	return worst
}

// A Message is a row of the table of messages: a code with its severity, what it says about an input, and
// what the user can do about it.
type Message struct {
	Code     string // stable, kebab-case: "otlp-truncated"
	Severity Severity
	// Text is the sentence, with a name in braces for each value, optionally followed by the verb for
	// printing it, by default %v: "skipped {bytes} bytes of {name%q}".
	Text   string
	Advice string // what to do, in Markdown
}

// slot matches the placeholder of a value in a text.
var slot = regexp.MustCompile(`\{[^{}%]+(%[^{}]+)?\}`)

// messages are all rows, in source order.
var messages []*Message

// message adds a row to the table.
func message(code string, s Severity, text, advice string) *Message {
	m := &Message{Code: code, Severity: s, Text: text, Advice: advice}
	messages = append(messages, m)
	return m
}

// Messages returns the table, sorted by code.
func Messages() []*Message {
	return slices.SortedFunc(slices.Values(messages), func(a, b *Message) int { return strings.Compare(a.Code, b.Code) })
}

// Says returns the text of m with values. It must be fast: damaged inputs call it millions of times.
func (m *Message) Says(values ...any) string {
	said, rest := make([]byte, 0, 256), m.Text
	for _, v := range values {
		before, verb, after, ok := cutSlot(rest)
		if !ok {
			break
		}
		said = fmt.Appendf(append(said, before...), verb, v)
		rest = after
	}
	if len(said) == 0 {
		return rest
	}
	return string(append(said, rest...))
}

// cutSlot cuts a text around the first placeholder, see [slot], and returns its verb.
func cutSlot(text string) (before, verb, after string, ok bool) {
	before, rest, _ := strings.Cut(text, "{")
	name, after, ok := strings.Cut(rest, "}")
	verb = "%v"
	if _, given, has := strings.Cut(name, "%"); has {
		verb = "%" + given
	}
	return before, verb, after, ok
}

// Shown returns the text of m with the names of its values.
func (m *Message) Shown() string {
	return slot.ReplaceAllStringFunc(m.Text, func(s string) string {
		name, _, _ := strings.Cut(strings.Trim(s, "{}"), "%")
		return "{" + name + "}"
	})
}

// At returns a diagnostic with message m about a position in an input.
func (m *Message) At(pos Pos, values ...any) Diag {
	return Diag{Message: m, Pos: pos, Msg: m.Says(values...), Count: 1}
}

// Of returns a diagnostic with message m about a whole file.
func (m *Message) Of(file string, values ...any) Diag {
	return m.At(Pos{File: file, Offset: -1}, values...)
}
