package table_test

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	_ "time/tzdata"
	"unicode/utf8"

	"github.com/olekukonko/tablewriter/pkg/twwidth"

	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/testkit/testinput"
	"github.com/sgtrace/sgtrace/testkit/testset"
)

// A pair is a row in reports of these tests.
type pair struct {
	name string
	ns   int64
}

func pairs(rows ...pair) *table.Table {
	return table.New("sgtrace.test/v1", "Test", rows, []table.Field[pair]{
		{Column: table.Column{Name: "name"}, Cell: func(p *pair) table.Cell { return table.TextCell(p.name) }},
		{Column: table.Column{Name: "time", Unit: table.Duration}, Cell: func(p *pair) table.Cell { return table.NumberCell(p.ns) }},
	})
}

// names returns the first column as printed.
func names(r *table.Table) string {
	var out []string
	for row := range r.Len() {
		out = append(out, r.Cell(row, 0).Text)
	}
	return strings.Join(out, " ")
}

func TestSort(t *testing.T) {
	rows := []pair{{"c", 5}, {"x", request.Unknown}, {"a", 7}, {"b", 5}, {"y", request.Unknown}}
	for _, c := range []struct {
		column     string
		descending bool
		want       string
	}{
		{"time", false, "c b a x y"},
		{"time_ns", true, "a c b x y"}, // equal rows keep their order, unknown ones are last
		{"Time", false, "c b a x y"},   // as users type it
		{"time_ms", false, "c b a x y"},
		{"TIME [ms]", false, "c b a x y"},
		{"name", false, "a b c x y"},
		{"name", true, "y x c b a"},
	} {
		r := pairs(rows...)
		if err := r.Sort(c.column, c.descending); err != nil {
			t.Fatal(err)
		}
		if got := names(r); got != c.want {
			t.Errorf("by %s, descending %t: %s, want %s", c.column, c.descending, got, c.want)
		}
	}
	for _, column := range []string{"color", "name_ms", "time_tokens", ""} {
		if err := pairs().Sort(column, false); err == nil || !strings.Contains(err.Error(), "name, time") {
			t.Errorf("unknown column %q: %v, want the columns that there are", column, err)
		}
	}
}

func TestLimit(t *testing.T) {
	r := pairs(pair{"a", 1}, pair{"b", 2}, pair{"c", 3})
	r.Limit(3)
	if r.Len() != 3 || r.Footnotes != nil {
		t.Errorf("a limit that cuts nothing: %d rows, notes %q", r.Len(), r.Footnotes)
	}
	r.Limit(2)
	if names(r) != "a b" || !slices.Equal(r.Footnotes, []string{"2 of 3 rows are shown"}) {
		t.Errorf("limit 2: rows %s, notes %q", names(r), r.Footnotes)
	}
}

func TestScale(t *testing.T) {
	for _, c := range []struct {
		values []int64
		want   string // values, as printed
	}{
		{[]int64{0}, "0 ms"},
		{[]int64{1, 22, 333}, "1 22 333 ns"},
		{[]int64{1500, 22_000, 333_000}, "1.50 22.00 333.00 us"},
		{[]int64{256, 5_000_000, 2_000_000_000}, "0.000 5.000 2000.000 ms"},
		{[]int64{150_000_000, 160_000_000, 999_000_000}, "150 160 999 ms"},
		{[]int64{1_500_000_000, 90_000_000_000}, "1.50 90.00 s"},
	} {
		s := table.ScaleFor(table.Duration, slices.Clone(c.values))
		var got []string
		for _, v := range c.values {
			got = append(got, s.Format(v, false))
		}
		if text := strings.Join(got, " ") + " " + s.Unit; text != c.want {
			t.Errorf("%v: %s, want %s", c.values, text, c.want)
		}
	}
}

// Whatever names spans have in a file, only printable text and line ends reach the
// terminal, and programs get the names unchanged.
func TestHostileNames(t *testing.T) {
	var rows []pair
	for i, name := range testinput.Hostile {
		rows = append(rows, pair{name, int64(i)})
	}
	r := pairs(rows...)
	r.Title = strings.Join(testinput.Hostile, " ")
	r.Note("%s", r.Title)
	for _, f := range table.Formats {
		got := testset.Text(t, r, f, table.Style{})
		if !utf8.ValidString(got) {
			t.Errorf("%s is not UTF-8", f)
		}
		for _, c := range got {
			if c != '\n' && words.Hidden(c) {
				t.Errorf("%s holds %U", f, c)
			}
		}
	}

	t.Run("json", func(t *testing.T) {
		var doc struct {
			Rows []struct{ Name *string }
		}
		if err := json.Unmarshal([]byte(testset.Text(t, r, table.FormatJSON, table.Style{})), &doc); err != nil {
			t.Fatal(err)
		}
		for i, name := range testinput.Hostile {
			switch got := doc.Rows[i].Name; {
			case name == "" && got != nil, name != "" && (got == nil || *got != strings.ToValidUTF8(name, "\ufffd")):
				t.Errorf("%q comes back as %v", name, got)
			}
		}
	})
	t.Run("csv", func(t *testing.T) {
		records, err := csv.NewReader(strings.NewReader(testset.Text(t, r, table.FormatCSV, table.Style{}))).ReadAll()
		if err != nil {
			t.Fatal(err)
		}
		for i, name := range testinput.Hostile {
			want := words.Clean(name)
			if strings.HasPrefix(name, "=") || strings.HasPrefix(name, "@") || name == "-2+3" || strings.HasPrefix(name, "+1+") {
				want = "'" + want
			}
			if got := records[i+1][0]; got != want {
				t.Errorf("%q: cell %q, want %q", name, got, want)
			}
		}
	})
	t.Run("markdown", func(t *testing.T) {
		for row := range strings.Lines(testset.Text(t, r, table.FormatMarkdown, table.Style{})) {
			if !strings.HasPrefix(row, "|") {
				continue
			}
			if n := strings.Count(strings.NewReplacer(`\\`, "", `\|`, "").Replace(row), "|"); n != 3 {
				t.Errorf("%d cell borders, want 3: %s", n, row)
			}
			if strings.ContainsAny(row, "<>") {
				t.Errorf("markup: %s", row)
			}
		}
	})
}

func TestClean(t *testing.T) {
	for in, want := range map[string]string{
		"plain name":  "plain name",
		"\x1b[31mred": `\x1b[31mred`,
		"a\nb\tc":     `a\nb\tc`,
		"\u009bx":     `\u009bx`,
		"\u202ex":     `\u202ex`,
		"\xffx":       `\xffx`,
		"\ufffd":      "\ufffd",
		`C:\path "q"`: `C:\path "q"`,
	} {
		if got := words.Clean(in); got != want {
			t.Errorf("clean(%q) = %q, want %q", in, got, want)
		}
	}
}

// A table fits the terminal as long as its names can be cut, and numbers and headings stay whole.
func TestWidth(t *testing.T) {
	rows := []pair{{strings.Repeat("very_long_kernel_name_", 20), 123_456_789}, {"日本語の名前日本語の名前日本語の名前日本語の名前", 5}, {"short", 1000}}
	for _, ascii := range []bool{false, true} {
		for width := 1; width < 600; width++ {
			got := testset.Text(t, pairs(rows...), table.FormatText, table.Style{Width: width, ASCII: ascii})
			if !strings.Contains(got, "123456.789") || !strings.Contains(got, "time [us]") {
				t.Fatalf("width %d: a number or heading is cut:\n%s", width, got)
			}
			if ascii && strings.Contains(got, "…") {
				t.Fatalf("width %d: … in ASCII", width)
			}
			for l := range strings.Lines(got) {
				l = strings.TrimSuffix(l, "\n")
				if n := twwidth.Width(l); width >= table.MinName+2+len("123456.789") && n > width {
					t.Fatalf("width %d: line of %d: %s", width, n, l)
				}
				if strings.HasSuffix(l, " ") {
					t.Fatalf("width %d: blanks at the end of %q", width, l)
				}
			}
		}
	}
}

// A wide table drops its least important columns and says so. Texts that distinguish
// rows stay, up to 32 characters of them, and no line is wider than the terminal.
func TestColumnsLeave(t *testing.T) {
	ranks := []string{"decode TP0-PP0-DP0 (decode-0)", "decode TP1-PP0-DP0 (decode-0)", "prefill TP0-PP0-DP0 (prefill-0)"}
	column := func(c table.Column, of func(i int) table.Cell) table.Field[int] {
		return table.Field[int]{Column: c, Cell: func(i *int) table.Cell { return of(*i) }}
	}
	number := func(name string, importance table.Importance) table.Field[int] {
		return column(table.Column{Name: name, Unit: table.Count, Importance: importance}, func(i int) table.Cell { return table.Cell{N: int64(i)} })
	}
	r := table.New("sgtrace.test/v1", "", []int{0, 1, 2, 3, 4, 5}, []table.Field[int]{
		column(table.Column{Name: "rank"}, func(i int) table.Cell { return table.TextCell(ranks[i/2]) }),
		column(table.Column{Name: "twice"}, func(i int) table.Cell { return table.TextCell(ranks[i/2][:5]) }),
		column(table.Column{Name: "kind"}, func(i int) table.Cell { return table.TextCell([]string{"compute", "communication"}[i%2]) }),
		number("minor one", table.Minor), number("usual one", table.Usual), number("major one", table.Major), number("usual two", table.Usual), number("minor two", table.Minor),
	})
	for width, want := range map[int]string{
		200: "", 108: "", 107: "minor two", 97: "minor two", 96: "minor one, minor two", 86: "minor one, minor two",
		85: "minor one, usual two, minor two", 74: "minor one, usual one, usual two, minor two",
		63: "twice, minor one, usual one, usual two, minor two", 40: "twice, minor one, usual one, usual two, minor two",
	} {
		text := testset.Text(t, r, table.FormatText, table.Style{Width: width})
		body, note, _ := strings.Cut(text, "\nnote: ")
		if want != "" {
			want = fmt.Sprintf("columns left out at a width of %d: %s (--width 0 shows all)\n", width, want)
		}
		if unfolded := strings.ReplaceAll(note, "\n      ", " "); unfolded != want {
			t.Errorf("width %d: note %q, want %q", width, unfolded, want)
		}
		for line := range strings.Lines("note: " + note) {
			if twwidth.Width(line)-1 > width {
				t.Errorf("width %d: the note is wider: %q", width, line)
			}
		}
		lines := map[string]bool{}
		for line := range strings.Lines(body) {
			names := strings.TrimRight(line, " 0123456789\n")
			if lines[names] || twwidth.Width(line)-1 > width {
				t.Errorf("width %d: wider, or a row like another: %q", width, line)
			}
			lines[names] = true
		}
		for _, rank := range ranks {
			if width >= 63 && strings.Count(body, rank) != 2 {
				t.Errorf("width %d: %s is cut:\n%s", width, rank, text)
			}
		}
	}
}

func TestShorten(t *testing.T) {
	for in, want := range map[string]string{
		"abcdefghij": "abc…hij", "abcdefg": "abcdefg", "日本語名前": "日本…前",
	} {
		if got := table.CutMiddle(in, 7, table.Style{}); got != want {
			t.Errorf("shorten(%q, 7) = %q, want %q", in, got, want)
		}
	}
	if got := table.CutMiddle("abcdefghij", 7, table.Style{ASCII: true}); got != "ab...ij" {
		t.Errorf("in ASCII: %q", got)
	}
}

// Columns without any value are dropped for people and kept for programs.
func TestEmptyColumns(t *testing.T) {
	r := pairs(pair{"a", request.Unknown}, pair{"b", request.Unknown})
	if got := testset.Text(t, r, table.FormatText, table.Style{}); strings.Contains(got, "[") || !strings.Contains(got, "columns without values left out: time") {
		t.Errorf("text:\n%s", got)
	}
	if got := testset.Text(t, r, table.FormatCSV, table.Style{}); got != "name,time_ns\na,\nb,\n" {
		t.Errorf("csv:\n%s", got)
	}
	if got := testset.Text(t, pairs(), table.FormatText, table.Style{}); !strings.Contains(got, "name  time\n") {
		t.Errorf("no rows:\n%s", got)
	}
}

func TestWriteErrors(t *testing.T) {
	if err := pairs().Write(new(bytes.Buffer), "yaml", table.Style{}); err == nil || !strings.Contains(err.Error(), "yaml") {
		t.Errorf("unknown format: %v", err)
	}
	full := fmt.Errorf("disk full")
	for _, f := range table.Formats {
		if err := pairs(pair{"a", 1}).Write(failingWriter{full}, f, table.Style{}); err != full {
			t.Errorf("%s: %v, want the writer's error", f, err)
		}
	}
}

type failingWriter struct{ err error }

func (w failingWriter) Write([]byte) (int, error) { return 0, w.err }

// Times are in the chosen zone, and what all of them have in common is printed once.
func TestTimesInZones(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	words.SetZone(berlin)
	t.Cleanup(func() { words.SetZone(time.UTC) })
	for _, c := range []struct {
		times []string
		want  []string // in the text
	}{
		{[]string{"2026-08-17T20:53:20Z", "2026-08-17T20:53:21Z"},
			[]string{"at [UTC+02:00]", "\n  22:53:20.000\n  22:53:21.000\n", "all times are on 2026-08-17"}},
		{[]string{"2026-08-17T21:53:20Z", "2026-08-17T22:53:20Z"}, []string{"at [UTC+02:00]", "2026-08-17 23:53:20.000\n2026-08-18 00:53:20.000\n"}},
		{[]string{"1970-01-01T17:44:22.998679Z", "1969-12-31T23:59:59.75Z"}, []string{"at [s]", "63862.998679\n   -0.250000\n"}}, // seconds since a boot
		{[]string{"2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z"},
			[]string{"at\n", "02:30:00.000 +02:00\n02:30:00.000 +01:00\n", "all times are on 2026-10-25"}},
	} {
		var instants []time.Time
		for _, text := range c.times {
			at, err := time.Parse(time.RFC3339, text)
			if err != nil {
				t.Fatal(err)
			}
			instants = append(instants, at)
		}
		r := table.New("sgtrace.test/v1", "Test", instants, []table.Field[time.Time]{
			{Column: table.Column{Name: "at", Unit: table.Instant}, Cell: func(at *time.Time) table.Cell { return table.NumberCell(at.UnixNano()) }},
		})
		var text, data bytes.Buffer
		if err := r.Write(&text, table.FormatText, table.Style{}); err != nil {
			t.Fatal(err)
		}
		for _, want := range c.want {
			if !strings.Contains(text.String(), want) {
				t.Errorf("%v: no %q in\n%s", c.times, want, text.String())
			}
		}
		if err := r.Write(&data, table.FormatCSV, table.Style{}); err != nil {
			t.Fatal(err)
		}
		if want := fmt.Sprintf("at_unix_ns\n%d\n%d\n", instants[0].UnixNano(), instants[1].UnixNano()); data.String() != want {
			t.Errorf("CSV is %q, want %q", data.String(), want)
		}
	}
}

// Columns marked with Stay are dropped last, except for names, and those marked with Leave first.
func TestStayAndLeave(t *testing.T) {
	type row struct{ name string }
	column := func(name string) table.Field[row] {
		return table.CountColumn(name, "", func(*row) int64 { return 1_000_000 })
	}
	text := func(width int) string {
		r := table.New("sgtrace.test/v1", "Test", []row{{"a"}}, []table.Field[row]{
			table.TextColumn("name", "", func(r *row) string { return r.name }), column("first"), column("usual"), column("main"),
		}).Stay("main").Leave("first")
		var out bytes.Buffer
		if err := r.Write(&out, table.FormatText, table.Style{Width: width}); err != nil {
			t.Fatal(err)
		}
		return strings.Join(strings.Fields(strings.Split(out.String(), "\n")[2]), " ")
	}
	for width, want := range map[int]string{0: "name first usual main", 28: "name usual main", 16: "name main"} {
		if got := text(width); got != want {
			t.Errorf("width %d: columns %s, want %s", width, got, want)
		}
	}
}

// Names that differ anywhere look different at any width with enough space for that.
func TestShortenedNamesDiffer(t *testing.T) {
	const name = "torch/decode-1787000012.5706761.trace.json.gz"
	for at := range len(name) {
		for width := 14; width < len(name); width++ {
			names := []string{name[:at] + "-TP-0" + name[at:], name[:at] + "-TP-1" + name[at:]}
			got := table.Shorten(names, width)
			if got[0] == got[1] {
				t.Errorf("%q look the same at %d characters: %q", names, width, got[0])
			}
			if n := utf8.RuneCountInString(got[0]); n != width {
				t.Errorf("%q has %d characters, want %d", got[0], n, width)
			}
		}
	}
}

// Numbers print the same with any limit on rows, and small numbers below the limit keep enough digits.
func TestLimitsLeaveDigits(t *testing.T) {
	rows := make([]int64, 60)
	for i := range rows {
		rows[i] = 675_330_000 >> (i / 3)
	}
	field := table.NsColumn("took", "", func(v *int64) int64 { return *v })
	printed := func(limit int) []string {
		r := table.New("s/v1", "", rows, []table.Field[int64]{field})
		r.Limit(limit)
		var out strings.Builder
		if err := r.Write(&out, table.FormatText, table.Style{}); err != nil {
			t.Fatal(err)
		}
		return strings.Fields(strings.SplitN(out.String(), "\n\n", 2)[0])
	}
	whole := printed(len(rows))
	for limit := 1; limit < len(rows); limit++ {
		if got := printed(limit); !slices.Equal(got, whole[:len(got)]) {
			t.Errorf("limit %d: %q, want %q", limit, got, whole[:len(got)])
		}
	}
	if last := whole[len(whole)-1]; last != "0.001" {
		t.Errorf("the last of %q is %s, want 0.001", whole, last)
	}
}
