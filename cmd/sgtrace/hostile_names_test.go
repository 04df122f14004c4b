//go:build unix

package main

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode"
)

// hostileNames are texts that do harm when printed as they are.
var hostileNames = []string{
	"\x1b]0;retitled\x07\x1b[2J\x1b[31mred", // terminal escapes
	"\u202egnp.exe\u2066",                   // bidirectional overrides
	"\u009b31m\x7f\b\b\b",
	"two\nlines\r\noverwritten\rline\ttab",
	"=cmd|'/c calc'!A0", "＝1+1", // spreadsheets
	"+1+1", "-1+1|x", "@SUM(A1)", "\t=1+1", "\r=1+1", " =1+1", "\u00a0=1+1", "-5", "+7.5", "=",
	"a|b|c `code` <script>alert(1)</script> [x](javascript:1) ![i](http://e/i) **b** </td>", // Markdown
	`quo"te,comma;semi`, `back\slash`, "",
	"\xff\xfe invalid",
	strings.Repeat("long", 25_000),
	strings.Repeat("e\u0301\u0302", 2_000), // combining marks on one letter
	"\u200b\u200d\ufeff",
	"${HOME} $(id) `id` %s %d %n",
	"../../etc/passwd",
}

// writeHostile writes a dump, a trace, and a folder of files with hostile names everywhere a name
// can be.
func writeHostile(t testing.TB, dir string) {
	t.Helper()
	quote := func(s string) string {
		text, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	var otel, torch strings.Builder
	torch.WriteString(strings.Replace(torchBegin, "{", `{"host_name":`+quote(hostileNames[0])+`,"traceName":`+quote(hostileNames[1])+`,`, 1))
	for i, name := range hostileNames {
		q := quote(name)
		attribute := func(key, value string) string {
			return `{"key":` + quote(key) + `,"value":{"stringValue":` + value + `}}`
		}
		line := func(id int, name, parent string, attributes ...string) {
			fmt.Fprintf(&otel, `{"resourceSpans":[{"resource":{"attributes":[%s,%s]},"scopeSpans":[{"scope":{"name":%s},"spans":[`+
				`{"traceId":"%032x","spanId":"%016x","parentSpanId":"%s","name":%s,"kind":1,"startTimeUnixNano":"%d","endTimeUnixNano":"%d","attributes":[%s],`+
				`"events":[{"timeUnixNano":"%[8]d","name":%[11]s}],"status":{"code":2,"message":%[11]s}}]}]}]}`+"\n",
				attribute("service.name", `"sglang"`), attribute("service.instance.id", q), q,
				i+1, id, parent, name, 1787000000000000000+1000*id, 1787000000000100000+1000*id, strings.Join(attributes, ","), q)
		}
		root := 10*i + 1
		line(root, quote(" Req "+name), "", attribute("rid", q), attribute("module", `"sglang::request"`),
			attribute("gen_ai.response.model", q), attribute("gen_ai.response.finish_reasons", q), attribute(name, q))
		thread := fmt.Sprintf("%016x", root+1)
		line(root+1, quote("Scheduler "+name), fmt.Sprintf("%016x", root), attribute("host_id", q), `{"key":"pid","value":{"intValue":"7"}}`, attribute("thread_label", q))
		line(root+2, q, thread)
		fmt.Fprintf(&torch, `{"ph":"X","cat":"kernel","name":%s,"pid":0,"tid":7,"ts":%d.000,"dur":5.000,"args":{"stream":7,"correlation":%d,%s:%s}},`, q, 10*i+10, i, quote("k"+name), q)
		fmt.Fprintf(&torch, `{"ph":"X","cat":%s,"name":%s,"pid":%s,"tid":%s,"ts":%d.000,"dur":5.000},`, q, q, q, q, 10*i+10)
		fmt.Fprintf(&torch, `{"ph":"M","name":"process_name","pid":%s,"tid":0,"args":{"name":%s}},`, q, q)
	}
	torch.WriteString(torchSlice(1) + "]}")
	files := map[string]string{"otel.jsonl": otel.String(), "rank.json": torch.String()}
	for i, name := range hostileNames {
		if name != "" && !strings.ContainsAny(name, "/\x00") && len(name) < 200 {
			files[name+strconv.Itoa(i)] = "neither this nor that"
		}
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Skipf("the file system has no such names: %v", err)
		}
	}
}

// checkPrintable fails the test if text could do more to a terminal than fill it.
func checkPrintable(t testing.TB, what, text string) {
	t.Helper()
	for line := range strings.Lines(text) {
		for i, r := range strings.TrimSuffix(line, "\n") {
			if !strconv.IsPrint(r) || unicode.Is(unicode.Bidi_Control, r) || r == unicode.ReplacementChar && line[i] != 0xef {
				t.Errorf("%s: %U in %.200q", what, r, line)
				return
			}
		}
	}
}

// Whatever the names inside inputs or of inputs, no command prints anything that moves the cursor,
// is a formula, or is markup.
func TestHostileNames(t *testing.T) {
	dir := t.TempDir()
	writeHostile(t, dir)
	before := snapshot(t, dir)
	for _, args := range [][]string{
		{"inspect", "otel.jsonl", "rank.json"},
		{"inspect", "."},
		{"report", "otel.jsonl"},
		{"report", "--by-stage", "otel.jsonl"},
		{"report", "--by", "host,label", "otel.jsonl"},
		{"diff", "rank.json", "otel.jsonl"},
		{"diff", "otel.jsonl", "otel.jsonl"},
		{"report", "--by-request", "otel.jsonl"},
		{"report", "--by-rank", "otel.jsonl"},
		{"report", "--by-rank", "rank.json"},
		{"report", "--kernels", "rank.json"},
		{"report", "--timeline", "otel.jsonl"},
		{"report", "--tail", "otel.jsonl"},
		{"requests", "otel.jsonl"},
		{"requests", "--limit", "0", "otel.jsonl"},
		{"request", "00000000000000000000000000000001", "otel.jsonl"},
		{"request", "00000000000000000000000000000002", "otel.jsonl"},
		{"merge", "otel.jsonl", "rank.json", "-o", "out.pftrace"},
		{"merge", ".", "-o", filepath.Join(t.TempDir(), "out.json")},
	} {
		formats := []string{"text", "markdown", "csv", "json"}
		if args[0] == "merge" {
			formats = []string{""} // takes no --format
		}
		for _, format := range formats {
			full := args
			if format != "" {
				full = append(args[:len(args):len(args)], "--format", format)
			}
			if format == "csv" && args[0] == "inspect" {
				full = append(full, "--table", "files")
			}
			what := strings.Join(full, " ")
			r := child{dir: dir}.run(t, full...)
			if r.status == exitUsage && !strings.Contains(r.err, "which CSV has no place for") {
				t.Errorf("%s: %s", what, r.err)
			}
			checkPrintable(t, what, r.out)
			checkPrintable(t, what, r.err)
			switch {
			case format == "" || r.out == "":
			case format == "csv":
				checkCSV(t, what, r.out)
			case format == "markdown":
				checkMarkdown(t, what, r.out)
			case format == "json" && !json.Valid([]byte(r.out)):
				t.Errorf("%s: not JSON", what)
			}
		}
	}
	checkOnly(t, dir, before, ".", "out.pftrace")
}

// checkCSV fails the test if a row does not have the header's length, or a cell is a formula.
func checkCSV(t testing.TB, what, text string) {
	t.Helper()
	rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil {
		t.Errorf("%s: %v", what, err)
	}
	for _, row := range rows {
		for _, cell := range row {
			if cell != "" && strings.ContainsRune("=+-@\t\r", rune(cell[0])) {
				if _, err := strconv.ParseFloat(cell, 64); err != nil {
					t.Errorf("%s: %.100q is a formula", what, cell)
				}
			}
		}
	}
}

var (
	escaped = regexp.MustCompile(`\\.`)
	markup  = regexp.MustCompile("[<>`*\\[\\]]|\\$\\(")
)

// checkMarkdown fails the test if a row does not have the table's width, or a cell contains markup.
func checkMarkdown(t testing.TB, what, text string) {
	t.Helper()
	width := 0
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "|") {
			width = 0
			continue
		}
		plain := escaped.ReplaceAllString(line, "")
		n := strings.Count(plain, "|")
		if width == 0 {
			width = n
		}
		if n != width {
			t.Errorf("%s: %d columns, want %d: %.300q", what, n-1, width-1, line)
		}
		if found := markup.FindString(plain); found != "" && found != "$(" {
			t.Errorf("%s: %q in %.300q", what, found, line)
		}
	}
}

// Messages about arguments are harmless, too: a glob may expand to names that others chose.
func TestHostileArguments(t *testing.T) {
	dir := t.TempDir()
	for _, name := range hostileNames[:4] {
		for _, args := range [][]string{
			{"report", name}, {"inspect", name}, {"merge", name, "-o", "out.pftrace"}, {"merge", "in", "-o", name},
			{"report", "--by", name, "in"}, {"report", "--format", name, "in"}, {name}, {"report", "--" + name}, {"open", name},
			{"request", name, "in"}, {"report", "--sort", name, "in"}, {"report", "--host", name, "in"}, {"help", name},
		} {
			r := child{dir: dir}.run(t, args...)
			if r.status == exitOK {
				t.Errorf("%q: status 0", args)
			}
			checkPrintable(t, fmt.Sprintf("%.100q", args), r.err)
			checkPrintable(t, fmt.Sprintf("%.100q", args), r.out)
		}
	}
}
