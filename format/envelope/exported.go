package envelope

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"errors"
	"io"
	"slices"
	"strings"
	"time"
)

// What people download from a page that shows logs is a table: CSV of Grafana, Kibana, or Datadog, with a column for the
// line and one for its time, or Grafana's text, whose lines follow a head. Most have the newest line first.

// textColumns and timeColumns are the names of such columns, in lower case; columns of pods are those of [pods].
var (
	textColumns = []string{"line", "message", "@message", "log", "textpayload", "content"}
	timeColumns = []string{"time", "@timestamp", "timestamp", "date"}
)

// grafanaHead begins the text that Grafana gives.
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

// columns are which of a table say what, when, and who; -1 is none.
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
	c := &collected{in: in, err: io.EOF}
	head, _ := in.Peek(len(grafanaHead))
	err := error(nil)
	if bytes.Equal(head, grafanaHead) {
		err = c.grafana()
	} else {
		err = c.table()
	}
	c.flush()
	if err != nil {
		c.err = err
	}
	return c, func() {}, nil
}

// table reads CSV. A row that is damaged is passed over by the reader of CSV, which says so at the end.
func (c *collected) table() error {
	r := csv.NewReader(c.in)
	r.FieldsPerRecord, r.LazyQuotes = -1, true
	names, err := r.Read()
	if err != nil {
		return err
	}
	of := columnsOf(names)
	var damage error
	for {
		row, err := r.Read()
		switch {
		case err == io.EOF:
			return damage
		case errors.Is(err, csv.ErrQuote), errors.Is(err, csv.ErrBareQuote):
			damage = err
			continue
		case err != nil:
			return err
		}
		if of.text >= len(row) || of.time >= len(row) {
			continue
		}
		e := entry{text: row[of.text], at: timeOf(row[of.time])}
		if e.at == 0 {
			e.at, e.local = shown(row[of.time]), true
		}
		if of.pod >= 0 && of.pod < len(row) {
			e.pod = row[of.pod]
		}
		c.held = append(c.held, e)
	}
}

// shown reads a time as Kibana shows it, of the zone of the browser: it orders lines, and says no more.
func shown(text string) int64 {
	at, err := time.Parse("Jan 2, 2006 @ 15:04:05.999", text)
	if err != nil {
		return 0
	}
	return at.UnixNano()
}

// grafana reads lines with a time, which may be there twice, and a tab in front; others go on with the line before them.
func (c *collected) grafana() error {
	for {
		line, err := c.in.ReadString('\n')
		stamp, rest, ok := strings.Cut(line, "\t")
		if at := timeOf(stamp); ok && at != 0 {
			if again, text, ok := strings.Cut(rest, "\t"); ok && timeOf(again) == at {
				rest = text
			}
			c.held = append(c.held, entry{text: rest, at: at})
		} else if n := len(c.held); n > 0 && line != "" {
			c.held[n-1].text += line
		}
		if err != nil {
			if err == io.EOF {
				err = nil
			}
			return err
		}
	}
}
