package analyze

import (
	"encoding/csv"
	"io"
	"strconv"
	"strings"
)

// writeCSV writes all columns, unscaled, with an empty cell for unknown. Names
// are made safe for terminals as elsewhere; JSON has them exactly.
func (r *Report) writeCSV(w io.Writer) error {
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
				record[c] = csvCell(column.Unit, cell)
			}
		}
		if err := out.Write(record); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}

func csvCell(u Unit, c Cell) string {
	switch u {
	case Text:
		return defuse(clean(c.Text))
	case Share:
		return formatShare(c.Share)
	}
	return strconv.FormatInt(c.N, 10)
}

// formatShare prints a share as programs read it, to a millionth.
func formatShare(share float64) string { return strconv.FormatFloat(share, 'f', 6, 64) }

// defuse puts a ' before text that a spreadsheet would take for a formula.
func defuse(s string) string {
	if s == "" || !strings.ContainsRune("=+-@", rune(s[0])) {
		return s
	}
	if _, err := strconv.ParseFloat(s, 64); err == nil {
		return s
	}
	return "'" + s
}
