package table

import (
	"bytes"
	"encoding/binary"
	"encoding/csv"
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/testkit/testinput"
)

// fuzzUnits are the units in the order of fuzzed columns.
var fuzzUnits = []Unit{Text, Count, Duration, Instant, Bytes, Share, Number, Factor}

// fuzzReport makes a report with every unit from data: each row takes a text up to a
// newline, and 8 bytes for its numbers.
func fuzzReport(title, note, cells string, limit int) *Table {
	type row struct {
		text  string
		n     int64
		x     float64
		blank bool
	}
	var list []row
	for len(cells) > 0 && len(list) < 40 {
		text, rest, _ := strings.Cut(cells, "\n")
		var b [8]byte
		k := copy(b[:], rest)
		cells = rest[k:]
		n := int64(binary.LittleEndian.Uint64(b[:]))
		list = append(list, row{text, n, math.Float64frombits(uint64(n)), n%5 == 1})
	}
	var fields []Field[row]
	for i, u := range fuzzUnits {
		c := Column{Name: string(rune('a' + i)), Unit: u, Doc: "a column", Tenths: i%2 == 0 && u != Instant, Most: limit}
		fields = append(fields, Field[row]{c, func(r *row) Cell {
			switch {
			case r.blank:
				return Cell{Unknown: true}
			case u.Real():
				return RealCell(r.x)
			case u == Text:
				return TextCell(r.text)
			}
			return NumberCell(r.n)
		}})
	}
	r := New("sgtrace.report.fuzz/v1", title, list, fields)
	if note != "" {
		r.Note("%s", note)
	}
	return r
}

// FuzzRender writes tables with arbitrary words and numbers: every format can be read back,
// has the right number of cells, and contains nothing that a terminal would interpret.
func FuzzRender(f *testing.F) {
	for i, s := range testinput.Hostile {
		f.Add("title", s, s+"\n12345678"+s+"\nabcdefgh", 10*i)
		f.Add(s, "note", "=1+1\n\xff\xff\xff\xff\xff\xff\xff\x7f-\n\x00\x00\x00\x00\x00\x00\x00\x80", 0)
	}
	f.Fuzz(func(t *testing.T, title, note, cells string, width int) {
		width %= 300
		r := fuzzReport(title, note, cells, max(width, 0))
		out := map[Format]string{}
		for _, format := range Formats {
			var a, b bytes.Buffer
			for _, w := range []*bytes.Buffer{&a, &b} {
				if err := r.Write(w, format, Style{Width: max(width, 0), ASCII: width%2 == 1}); err != nil {
					t.Fatal(err)
				}
			}
			if out[format] = a.String(); out[format] != b.String() {
				t.Fatalf("%s is different the second time", format)
			}
			if i := strings.IndexFunc(out[format], func(c rune) bool { return c != '\n' && words.Hidden(c) }); i >= 0 {
				t.Fatalf("%s holds %q", format, out[format][i:min(i+8, len(out[format]))])
			}
		}
		checkCSV(t, r, out[FormatCSV])
		checkJSON(t, r, out[FormatJSON])
		checkMarkdown(t, r, out[FormatMarkdown])
	})
}

func checkCSV(t *testing.T, r *Table, text string) {
	records, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil || len(records) != 1+r.Len() {
		t.Fatalf("%d records of %d rows: %v", len(records), r.Len(), err)
	}
	for i, record := range records {
		if len(record) != len(r.Columns) {
			t.Fatalf("record %d has %d cells", i, len(record))
		}
		for c, cell := range record {
			if number := json.Number(cell); i > 0 && r.Columns[c].Unit != Text && cell != "" {
				if _, err := number.Float64(); err != nil {
					t.Fatalf("%q is no number", cell)
				}
			} else if cell != "" && strings.ContainsRune("=@", rune(cell[0])) {
				t.Fatalf("%q is a formula", cell)
			}
		}
	}
}

func checkJSON(t *testing.T, r *Table, text string) {
	var doc struct {
		Columns []struct{ Name string }
		Rows    []map[string]any
	}
	if err := json.Unmarshal([]byte(text), &doc); err != nil {
		t.Fatal(err)
	}
	if len(doc.Rows) != r.Len() || len(doc.Columns) != len(r.Columns) {
		t.Fatalf("%d rows of %d", len(doc.Rows), r.Len())
	}
	for i, row := range doc.Rows {
		for c, column := range doc.Columns {
			if value, ok := row[column.Name]; !ok || (value == nil) != r.Cell(i, c).Unknown {
				t.Fatalf("row %d: %q is %v, want %+v", i, column.Name, value, r.Cell(i, c))
			}
		}
	}
}

func checkMarkdown(t *testing.T, r *Table, text string) {
	var widths []int
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "|") {
			widths = append(widths, strings.Count(strings.NewReplacer(`\\`, "", `\|`, "").Replace(line), "|"))
		}
	}
	if r.Len() == 0 && len(r.Footnotes) > 0 && widths == nil {
		return // the note says why there is no table
	}
	if len(widths) != 2+r.Len() || len(slices.Compact(widths)) != 1 {
		t.Fatalf("rows have %v borders", widths)
	}
}
