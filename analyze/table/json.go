package table

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"unicode/utf16"

	"github.com/bytedance/sonic"

	"github.com/sgtrace/sgtrace/analyze/words"
)

// Codec leaves < and & in strings as they are.
var Codec = sonic.Config{}.Froze()

// columnJSON describes a column to programs.
type columnJSON struct {
	Name string `json:"name"`
	Unit string `json:"unit"`
	Doc  string `json:"doc"`
}

var unitNames = [...]string{Text: "text", Count: "count", Duration: "ns", Instant: "unix ns", Bytes: "bytes", Share: "ratio", Number: "number"}

// WriteJSON writes one object on lines of its own, every row on one line:
//
//	{"schema":"...","title":"...",
//	"columns":[{"name":"p50_ns","unit":"ns","doc":"..."}],
//	"rows":[
//	{"stage":"tokenize","p50_ns":123}
//	],
//	"footnotes":["..."]}
//
// Unknown is null. Times are whole numbers, averages may have one decimal; they
// may exceed 2^53.
//
// Reports that stand beside r, if any, come last, as "tables":[...].
func (r *Table) WriteJSON(w io.Writer, beside []*Table) error {
	columns := make([]columnJSON, len(r.Columns))
	keys := make([]string, len(r.Columns))
	for i, c := range r.Columns {
		columns[i] = columnJSON{c.Key(), unitNames[c.Unit], c.Doc}
		keys[i] = QuoteJSON(c.Key())
	}
	described, err := Codec.MarshalToString(columns)
	if err != nil {
		return err
	}
	out := bufio.NewWriter(w)
	fmt.Fprintf(out, "{\"schema\":%s,\"title\":%s,\n\"columns\":%s,\n\"rows\":[",
		QuoteJSON(r.Schema), QuoteJSON(r.Title), described)
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
	out.WriteString("\n],\n\"footnotes\":[")
	for i, note := range r.Footnotes {
		if i > 0 {
			out.WriteByte(',')
		}
		out.WriteString(QuoteJSON(note))
	}
	out.WriteByte(']')
	if err := writeBeside(out, beside); err != nil {
		return err
	}
	out.WriteString("}\n")
	return out.Flush()
}

func writeBeside(out *bufio.Writer, beside []*Table) error {
	if len(beside) == 0 {
		return nil
	}
	out.WriteString(",\n\"tables\":[\n")
	for i, r := range beside {
		if i > 0 {
			out.WriteByte(',')
		}
		if err := r.WriteJSON(out, nil); err != nil {
			return err
		}
	}
	return out.WriteByte(']')
}

func appendJSON(line []byte, column Column, c Cell) []byte {
	switch {
	case c.Unknown:
		return append(line, "null"...)
	case column.Unit == Text:
		return append(line, QuoteJSON(c.Text)...)
	case column.Unit == Share:
		return append(line, formatShare(c.Share)...)
	case column.Unit == Number:
		return append(line, words.FormatNumber(c.Share)...)
	}
	return column.appendNumber(line, c.N)
}

// QuoteJSON returns s as a JSON string that is also safe to print: what sonic
// leaves raw and a terminal would obey (C1 controls, DEL, bidirectional
// overrides) is written as \u009b.
func QuoteJSON(s string) string {
	quoted, err := Codec.MarshalToString(strings.ToValidUTF8(s, "\ufffd"))
	if err != nil {
		return `""` // a string cannot fail
	}
	if strings.IndexFunc(quoted, words.Hidden) < 0 {
		return quoted
	}
	var b strings.Builder
	for _, r := range quoted {
		switch {
		case !words.Hidden(r):
			b.WriteRune(r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}
