package envelope

import (
	"bufio"
	"bytes"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// Log viewers export tables: CSV from Grafana, Kibana, or Datadog, with a column for the line and one for its
// time, or Grafana's text, whose lines follow a header. Most have the newest line first.

// textColumns and timeColumns are the names of such columns, in lower case; columns of pods are those in
// [pods].
var (
	textColumns = []string{"line", "message", "@message", "log", "textpayload", "content"}
	timeColumns = []string{"time", "@timestamp", "timestamp", "date"}
)

// grafanaHead is the beginning of Grafana's text.
var grafanaHead = []byte("Common labels: {")

func isExported(head []byte) bool {
	head = bytes.TrimPrefix(head, []byte("\ufeff"))
	if bytes.HasPrefix(head, grafanaHead) {
		return true
	}
	const longest = 2000
	line, _, _ := bytes.Cut(head[:min(len(head), longest)], []byte("\n"))
	names := columnsOf(strings.Split(strings.ReplaceAll(string(bytes.TrimRight(line, "\r")), `"`, ""), ","))
	return names.text >= 0 && names.time >= 0
}

// columns are the columns of a table with the text, the time, and the source; -1 is none.
type columns struct{ text, time, pod int }

func columnsOf(names []string) columns {
	find := func(list []string) int {
		for _, want := range list {
			if i := slices.IndexFunc(names, func(name string) bool { return strings.EqualFold(strings.TrimSpace(name), want) }); i >= 0 {
				return i
			}
		}
		return -1
	}
	return columns{find(textColumns), find(timeColumns), find(pods)}
}

func openExported(in *bufio.Reader) (io.Reader, func(), error) {
	if head, _ := in.Peek(len(grafanaHead)); bytes.Equal(head, grafanaHead) {
		return newCollected(&grafanaText{in: in}, false)
	}
	t := &csvTable{in: bufio.NewReaderSize(in, HeadBytes)}
	names, err := t.row()
	if err != nil {
		return nil, func() {}, err
	}
	if len(names) > 0 {
		names[0] = strings.TrimPrefix(names[0], "\ufeff")
	}
	t.of = columnsOf(names)
	return newCollected(t, false)
}

// A csvTable reads CSV.
type csvTable struct {
	in      *bufio.Reader
	of      columns
	ahead   []string // lines that were read and do not belong to a row yet
	damaged int      // rows
	first   string   // beginning of the first damaged row
}

// read reads a row.
func (t *csvTable) read(to func(entry) error) error {
	row, err := t.row()
	if err == io.EOF && t.damaged > 0 {
		return fmt.Errorf("%d rows of the table have a quote that does not end, the first is %.60q", t.damaged, t.first)
	}
	if err != nil {
		return err
	}
	if e, ok := t.entry(row); ok {
		return to(e)
	}
	return nil
}

// entry returns the entry in a row.
func (t *csvTable) entry(row []string) (e entry, ok bool) {
	if t.of.text >= len(row) || t.of.time >= len(row) {
		return e, false
	}
	e = entry{text: row[t.of.text], at: timeOf(row[t.of.time])}
	if e.at == 0 {
		e.at, e.local = shown(row[t.of.time]), true
	}
	if t.of.pod >= 0 && t.of.pod < len(row) {
		e.pod = row[t.of.pod]
	}
	return e, true
}

// row returns the columns of the next row, nil if it is damaged. A quoted text may span several lines. If its
// closing quote is missing, the next row is the first line after it that is a row on its own, with a time.
func (t *csvTable) row() ([]string, error) {
	const most = 10_000 // lines of a row
	quotes := 0
	for n := 0; ; n++ {
		line, err := t.line(n)
		if err != nil && n == 0 {
			return nil, err
		}
		own := strings.Count(line, `"`)
		if quotes += own; quotes%2 == 0 && err == nil {
			row := columnsIn(strings.Join(t.ahead[:n+1], ""))
			t.ahead = t.ahead[n+1:]
			return row, nil
		}
		alone := false
		if n > 0 && own%2 == 0 {
			e, ok := t.entry(columnsIn(line))
			alone = ok && e.at != 0
		}
		if err != nil || n == most || alone {
			if t.damaged++; t.damaged == 1 {
				t.first = t.ahead[0]
			}
			t.ahead = t.ahead[1:]
			return nil, nil
		}
	}
}

// line returns the nth line that does not belong to a row yet, with its newline.
func (t *csvTable) line(n int) (string, error) {
	if n < len(t.ahead) {
		return t.ahead[n], nil
	}
	line, err := t.in.ReadString('\n')
	if line == "" {
		return "", err
	}
	t.ahead = append(t.ahead, line)
	return line, nil
}

// columnsIn returns the columns of a row, whose quotes are closed.
func columnsIn(row string) (list []string) {
	row = strings.TrimRight(row, "\r\n")
	for {
		var text string
		if strings.HasPrefix(row, `"`) {
			end := 1
			for end < len(row) && (row[end] != '"' || end+1 < len(row) && row[end+1] == '"') {
				if row[end] == '"' {
					end++
				}
				end++
			}
			text, row = strings.ReplaceAll(row[1:min(end, len(row))], `""`, `"`), row[min(end+1, len(row)):]
		}
		rest, next, more := strings.Cut(row, ",")
		if list = append(list, text+rest); !more {
			return list
		}
		row = next
	}
}

// shown parses a time in Kibana's display format, which is in the browser's zone: it only serves to order
// lines.
func shown(text string) int64 {
	at, err := time.Parse("Jan 2, 2006 @ 15:04:05.999", text)
	if err != nil {
		return 0
	}
	return at.UnixNano()
}

// grafanaText reads lines that begin with a time, perhaps twice, and a tab; other lines continue the line
// before them.
type grafanaText struct {
	in   *bufio.Reader
	held entry // may be continued; at is 0 if there is none
}

func (g *grafanaText) read(to func(entry) error) error {
	line, end := g.in.ReadString('\n')
	stamp, rest, ok := strings.Cut(line, "\t")
	at := timeOf(stamp)
	if ok = ok && at != 0; !ok && g.held.at != 0 {
		g.held.text += line
	}
	if (ok || end != nil) && g.held.at != 0 {
		if err := to(g.held); err != nil {
			return err
		}
		g.held = entry{}
	}
	if ok {
		if again, text, ok := strings.Cut(rest, "\t"); ok && timeOf(again) == at {
			rest = text
		}
		g.held = entry{text: rest, at: at}
		if end != nil {
			return cmp.Or(to(g.held), end)
		}
	}
	return end
}
