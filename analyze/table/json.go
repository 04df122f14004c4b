package table

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/sgtrace/sgtrace/analyze/words"
)

// MarshalJSON is json.Marshal, but leaves < and & in strings as they are.
func MarshalJSON(v any) (string, error) {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return strings.TrimSuffix(b.String(), "\n"), err
}

// columnJSON describes a column to programs.
type columnJSON struct {
	Name string `json:"name"`
	Unit string `json:"unit"`
	Doc  string `json:"doc"`
}

// String is what programs read.
func (u Unit) String() string { return unitNames[u] }

var unitNames = [...]string{Text: "text", Count: "count", Duration: "ns", Instant: "unix ns", Bytes: "bytes", Share: "ratio", Number: "number", Factor: "ratio"}

// WriteJSON writes one object, every row on a line of its own:
//
//	{"name":"stages","schema":"sgtrace.report.stages/v1","title":"...",
//	"columns":[{"name":"p50_ns","unit":"ns","doc":"..."}],
//	"rows":[
//	{"stage":"tokenize","p50_ns":123}
//	],
//	"notes":["..."]}
//
// Unknown is null. Times are whole numbers, averages may have one decimal; they
// may exceed 2^53.
func (r *Table) WriteJSON(w io.Writer) error {
	columns := make([]columnJSON, len(r.Columns))
	keys := make([]string, len(r.Columns))
	for i, c := range r.Columns {
		columns[i] = columnJSON{c.Key(), c.Unit.String(), c.Doc}
		keys[i] = QuoteJSON(c.Key())
	}
	described, err := MarshalJSON(columns)
	if err != nil {
		return err
	}
	notes, err := MarshalJSON(JSONTexts(r.Footnotes))
	if err != nil {
		return err
	}
	out := bufio.NewWriter(w)
	fmt.Fprintf(out, "{\"name\":%s,\"schema\":%s,\"title\":%s,\n\"columns\":%s,\n\"rows\":[",
		QuoteJSON(r.Name()), QuoteJSON(r.Schema), QuoteJSON(r.Title), described)
	var line []byte
	for row := range r.Len() {
		line = append(line[:0], ",\n{"...)
		if row == 0 {
			line = line[1:]
		}
		for c, column := range r.Columns {
			if c > 0 {
				line = append(line, ',')
			}
			line = append(append(line, keys[c]...), ':')
			line = appendJSON(line, column, r.Cell(row, c))
		}
		out.Write(append(line, '}'))
	}
	fmt.Fprintf(out, "\n],\n\"notes\":%s}\n", notes)
	return out.Flush()
}

func appendJSON(line []byte, column Column, c Cell) []byte {
	switch {
	case c.Unknown:
		return append(line, "null"...)
	case column.Unit == Text:
		return appendQuoted(line, c.Text)
	case column.Unit == Share, column.Unit == Factor:
		return append(line, formatShare(c.Share)...)
	case column.Unit == Number:
		return append(line, words.FormatNumber(c.Share)...)
	}
	return column.appendNumber(line, c.N)
}

// QuoteJSON returns s as a JSON string that is also safe to print: what a terminal would obey
// (control characters, DEL, bidirectional overrides) is written as \u009b.
func QuoteJSON(s string) string { return string(appendQuoted(make([]byte, 0, len(s)+2), s)) }

func appendQuoted(b []byte, s string) []byte {
	b = append(b, '"')
	if strings.IndexFunc(s, func(r rune) bool { return r < ' ' || r > '~' || r == '"' || r == '\\' }) < 0 {
		return append(append(b, s...), '"')
	}
	for _, r := range strings.ToValidUTF8(s, "\ufffd") {
		switch {
		case r == '"' || r == '\\':
			b = append(b, '\\', byte(r))
		case r < ' ' && shortEscapes[r] != 0:
			b = append(b, '\\', shortEscapes[r])
		case !words.Hidden(r):
			b = utf8.AppendRune(b, r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			b = fmt.Appendf(b, `\u%04x\u%04x`, high, low)
		default:
			b = fmt.Appendf(b, `\u%04x`, r)
		}
	}
	return append(b, '"')
}

// shortEscapes are the letters of control characters that are common in texts.
var shortEscapes = [' ']byte{'\t': 't', '\n': 'n', '\r': 'r'}

// JSONText is a text in an object of JSON, quoted as [QuoteJSON] does; "" is unknown.
type JSONText string

// MarshalJSON quotes t; unknown is null.
func (t JSONText) MarshalJSON() ([]byte, error) {
	if t == "" {
		return []byte("null"), nil
	}
	return []byte(QuoteJSON(string(t))), nil
}

// JSONTexts are texts in an array, which is never null.
func JSONTexts(list []string) []JSONText {
	out := make([]JSONText, len(list))
	for i, s := range list {
		out[i] = JSONText(s)
	}
	return out
}
