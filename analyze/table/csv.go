package table

import (
	"encoding/csv"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/sgtrace/sgtrace/analyze/words"
)

// writeCSV writes all columns, unscaled, with an empty cell for unknown. Names
// are made safe for terminals as elsewhere; JSON has them exactly.
func (r *Table) writeCSV(w io.Writer) error {
	out := csv.NewWriter(w)
	record := make([]string, len(r.Columns))
	for c, column := range r.Columns {
		record[c] = column.Key()
	}
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

// appendNumber appends n as programs read it: unscaled, with one decimal if it
// counts tenths.
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

// formatShare prints a share as programs read it, to a millionth.
func formatShare(share float64) string { return strconv.FormatFloat(share, 'f', 6, 64) }

// formulaStart are the characters with which a spreadsheet begins a formula; in
// some languages the wide ones do so, too. Tabs and line breaks are escaped before.
const formulaStart = "=+-@＝＋－＠"

// defuse puts a ' before text that a spreadsheet would take for a formula, unless it
// is a number.
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
