package readback

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// sameTables are views with the commands that print the same table. Commands that only read dumps ignore recordings, which
// may move the clock of a host within its bound.
var sameTables = []struct {
	view, command string
	ofDumps       bool
}{
	{"stage_summary", "report --by-stage --format csv", true},
	{"rank_summary", "report --by-rank --format csv", false},
	{"kernel_summary", "report --kernels --format csv", false},
	{"request_list", "requests --format csv", true},
}

// CheckTables queries these views, which statements create, and compares them with the output of run for the inputs: for
// the commands that only read dumps, or for the others. It returns the differences.
func (e *SQLEngine) CheckTables(ctx context.Context, statements string, ofDumps bool, run func(command string) ([]byte, error)) (list []string, err error) {
	var queries, views, commands []string
	for _, same := range sameTables {
		if same.ofDumps == ofDumps {
			queries, views, commands = append(queries, "select * from "+same.view), append(views, same.view), append(commands, same.command)
		}
	}
	results, err := e.Query(ctx, statements, queries...)
	if err != nil {
		return nil, err
	}
	for i, command := range commands {
		table, err := run(command)
		if err != nil {
			return nil, err
		}
		differences, err := results[i].differences(table)
		if err != nil {
			return nil, err
		}
		for _, text := range differences {
			list = append(list, e.Dialect+", "+views[i]+": "+text)
		}
	}
	return list, nil
}

// differences compares the result with a table that the program printed as CSV: all cells, in any order of the rows. It
// returns the first few differences.
func (r *Result) differences(table []byte) (list []string, err error) {
	records, err := csv.NewReader(bytes.NewReader(table)).ReadAll()
	if err != nil {
		return nil, err
	}
	if len(records) == 0 || !slices.Equal(records[0], r.Columns) {
		return []string{fmt.Sprintf("columns %v, want %v", r.Columns, records[:min(1, len(records))])}, nil
	}
	want, got := rowsOf(records[1:]), r.rows()
	if len(want) != len(got) {
		list = append(list, fmt.Sprintf("%d rows, want %d", len(got), len(want)))
	}
	for i := range min(len(want), len(got)) {
		if want[i] != got[i] {
			list = append(list, fmt.Sprintf("got  %s\nwant %s", got[i], want[i]))
		}
	}
	return list[:min(len(list), 5)], nil
}

// rowsOf joins each record to a text, with numbers in a common format, and sorts them.
func rowsOf(records [][]string) (rows []string) {
	for _, record := range records {
		cells := make([]string, len(record))
		for i, cell := range record {
			cells[i] = number(cell)
		}
		rows = append(rows, strings.Join(cells, "|"))
	}
	slices.Sort(rows)
	return rows
}

// rows returns the rows of a result as those of a CSV file.
func (r *Result) rows() []string {
	records := make([][]string, len(r.Rows))
	for i, row := range r.Rows {
		for _, cell := range row {
			text := "" // for null
			switch x := cell.(type) {
			case string:
				text = x
			case json.Number:
				text = x.String()
			case bool:
				text = strconv.FormatBool(x)
			}
			records[i] = append(records[i], text)
		}
	}
	return rowsOf(records)
}

// number converts a number to a common format: "1.50" and "1.5" are the same. Whole numbers stay as they are.
func number(cell string) string {
	if x, err := strconv.ParseFloat(cell, 64); err == nil && strings.ContainsAny(cell, ".eE") && !strings.ContainsAny(cell, "xX") {
		return strconv.FormatFloat(x, 'f', -1, 64)
	}
	return cell
}
