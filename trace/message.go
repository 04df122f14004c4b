package trace

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// A Message is a row of the table of messages: a code with its severity, what it says of
// an input, and what the user can do about it.
type Message struct {
	Code     string // stable, kebab-case: "otlp-truncated"
	Severity Severity
	// Text is the sentence, with a name in braces for each value that is put in, and the
	// verb to print it with if it is not %v: "skipped {bytes} bytes of {name%q}".
	Text   string
	Advice string // what to do, in Markdown
}

// slot matches what stands for a value in a text.
var slot = regexp.MustCompile(`\{[^{}%]+(%[^{}]+)?\}`)

// messages are all rows, in the order of the source.
var messages []*Message

// message makes a row of the table.
func message(code string, s Severity, text, advice string) *Message {
	m := &Message{Code: code, Severity: s, Text: text, Advice: advice}
	messages = append(messages, m)
	return m
}

// Messages returns the table, ordered by code.
func Messages() []*Message {
	return slices.SortedFunc(slices.Values(messages), func(a, b *Message) int { return strings.Compare(a.Code, b.Code) })
}

// Says puts values into the text of m. Damaged inputs make it say millions.
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

// cutSlot cuts a text around the first thing that [slot] matches, for which verb prints.
func cutSlot(text string) (before, verb, after string, ok bool) {
	before, rest, _ := strings.Cut(text, "{")
	name, after, ok := strings.Cut(rest, "}")
	verb = "%v"
	if _, given, has := strings.Cut(name, "%"); has {
		verb = "%" + given
	}
	return before, verb, after, ok
}

// Shown returns the text of m with the names of the values that are put in.
func (m *Message) Shown() string {
	return slot.ReplaceAllStringFunc(m.Text, func(s string) string {
		name, _, _ := strings.Cut(strings.Trim(s, "{}"), "%")
		return "{" + name + "}"
	})
}

// At returns the diagnostic that says m of a place in an input.
func (m *Message) At(pos Pos, values ...any) Diag {
	return Diag{Message: m, Pos: pos, Msg: m.Says(values...), Count: 1}
}

// Of returns the diagnostic that says m of a whole file.
func (m *Message) Of(file string, values ...any) Diag {
	return m.At(Pos{File: file, Offset: -1}, values...)
}
