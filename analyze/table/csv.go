package table

import (
	"bufio"
	"encoding/csv"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/bytedance/sonic"

	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/internal/order"
)

// writeCSV writes all columns, unscaled, with empty cells for unknown values. As elsewhere, names are made safe for
// terminals; only JSON has them exactly.
func (r *Table) writeCSV(w io.Writer) error {
	out := csv.NewWriter(w)
	record := order.Each(r.Columns, Column.Key)
	if err := out.Write(record); err != nil {
		return err
	}
	for row := range r.Len() {
		for c, column := range r.Columns {
			record[c] = ""
			if cell := r.Cell(row, c); !cell.Unknown {
				record[c] = csvCell(column, cell)
			}
		}
		if err := out.Write(record); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}

func csvCell(column Column, c Cell) string {
	switch column.Unit {
	case Text:
		return defuse(words.Clean(c.Text))
	case Share, Factor:
		return formatShare(c.Share)
	case Number:
		return words.FormatNumber(c.Share)
	}
	return string(column.appendNumber(nil, c.N))
}

// appendNumber appends n for programs: unscaled, and with one decimal if the column counts tenths.
func (c *Column) appendNumber(to []byte, n int64) []byte {
	if !c.Tenths {
		return strconv.AppendInt(to, n, 10)
	}
	tenths := uint64(n)
	if n < 0 {
		to, tenths = append(to, '-'), -tenths
	}
	to = strconv.AppendUint(to, tenths/10, 10)
	return append(to, '.', byte('0'+tenths%10))
}

// formatShare formats a share for programs, with six decimals.
func formatShare(share float64) string { return strconv.FormatFloat(share, 'f', 6, 64) }

// formulaStart are the characters that begin a formula in a spreadsheet; in some languages the full-width ones do so,
// too. Tabs and line breaks were already escaped.
const formulaStart = "=+-@＝＋－＠"

// defuse prefixes a ' to text that a spreadsheet would take for a formula, unless it is a number.
func defuse(s string) string {
	first, _ := utf8.DecodeRuneInString(s)
	if s == "" || !strings.ContainsRune(formulaStart, first) {
		return s
	}
	if _, err := strconv.ParseFloat(s, 64); err == nil {
		return s
	}
	return "'" + s
}

// writeMarkdown writes a GitHub table. tablewriter's own renderer does not escape | and <, which are common in C++
// names.
func (r *Table) writeMarkdown(w io.Writer) error {
	s := r.textTable()
	s.fit(Style{})
	out := bufio.NewWriter(w)
	if r.Title != "" {
		fmt.Fprintf(out, "### %s\n", EscapeMarkdown(words.Clean(r.Title)))
	}
	if len(s.rows) > 0 || len(s.notes) == 0 {
		if r.Title != "" {
			fmt.Fprintln(out)
		}
		s.writeMarkdown(out)
	}
	for _, note := range s.notes {
		fmt.Fprintf(out, "\n*%s*\n", EscapeMarkdown(note))
	}
	return out.Flush()
}

func (s *textTable) writeMarkdown(out *bufio.Writer) {
	writeMarkdownRow(out, s.header)
	for _, right := range s.right {
		rule := "|---"
		if right {
			rule = "|--:"
		}
		out.WriteString(rule)
	}
	out.WriteString("|\n")
	for _, row := range s.rows {
		writeMarkdownRow(out, row)
	}
}

func writeMarkdownRow(out *bufio.Writer, cells []string) {
	for _, c := range cells {
		fmt.Fprintf(out, "| %s ", EscapeMarkdown(c))
	}
	out.WriteString("|\n")
}

// EscapeMarkdown escapes everything that ends a cell or begins markup. Line breaks were already escaped.
func EscapeMarkdown(s string) string { return markdownEscapes.Replace(s) }

var markdownEscapes = strings.NewReplacer(
	"&", "&amp;", "<", "&lt;", ">", "&gt;",
	`\`, `\\`, "|", `\|`, "`", "\\`", "*", `\*`, "[", `\[`, "]", `\]`, "~", `\~`,
)

// Codec does not escape < and & in strings.
var Codec = sonic.Config{}.Froze()

// columnJSON describes a column to programs.
type columnJSON struct {
	Name string `json:"name"`
	Unit string `json:"unit"`
	Doc  string `json:"doc"`
}

// String returns the name of the unit for programs.
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
		keys[i] = quoteJSON(c.Key())
	}
	described, err := Codec.MarshalToString(columns)
	if err != nil {
		return err
	}
	notes, err := Codec.MarshalToString(JSONTexts(r.Footnotes))
	if err != nil {
		return err
	}
	out := bufio.NewWriter(w)
	fmt.Fprintf(out, "{\"name\":%s,\"schema\":%s,\"title\":%s,\n\"columns\":%s,\n\"rows\":[",
		quoteJSON(r.Name()), quoteJSON(r.Schema), quoteJSON(r.Title), described)
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
		return append(line, quoteJSON(c.Text)...)
	case column.Unit == Share, column.Unit == Factor:
		return append(line, formatShare(c.Share)...)
	case column.Unit == Number:
		return append(line, words.FormatNumber(c.Share)...)
	}
	return column.appendNumber(line, c.N)
}

// quoteJSON returns s as a JSON string that is also safe to print: what sonic does not escape but a terminal would
// obey (C1 controls, DEL, bidirectional overrides) is written like \u009b.
func quoteJSON(s string) string {
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

// JSONText is a text in a JSON object, quoted like quoteJSON does; "" is unknown.
type JSONText string

// MarshalJSON quotes t; "" becomes null.
func (t JSONText) MarshalJSON() ([]byte, error) {
	if t == "" {
		return []byte("null"), nil
	}
	return []byte(quoteJSON(string(t))), nil
}

// JSONTexts returns texts as an array, which is never null.
func JSONTexts(list []string) []JSONText {
	out := make([]JSONText, len(list))
	for i, s := range list {
		out[i] = JSONText(s)
	}
	return out
}
