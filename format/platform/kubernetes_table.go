package platform

import (
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/sgtrace/sgtrace/format/logline"
	"github.com/sgtrace/sgtrace/internal/lazyregexp"
	"github.com/sgtrace/sgtrace/trace"
)

// A column of a table, by its title.
type column struct {
	name string
	from int // byte of the line
}

var (
	// titles matches column titles, which are separated by two or more blanks: "LAST SEEN" contains one.
	titles = lazyregexp.New(`\S+(?: \S+)*`)
	// age matches "2m37s", or "2m37s (x22 over 6m45s)".
	age = lazyregexp.New(`^(\S+)(?: \(x(\d+) over (\S+)\))?`)
	// described matches a line of kubectl describe with the object that is described.
	described = lazyregexp.New(`^(Name|Roles|Node):\s+(\S+)`)
	unit      = lazyregexp.New(`(\d+)([ydhms])`)
)

// table reads a table of kubectl, or several.
func (r *eventReader) table(content io.Reader) error {
	var columns []column
	last := int64(0)
	_, _, err := logline.Lines(content, func(b []byte, n int64) {
		last = n
		r.f.Source().Lines = int(n)
		line := r.unstamped(strings.TrimRight(string(b[:min(len(b), 4096)]), "\r "))
		r.describedLine(line, n)
		switch {
		case header.MatchString(line):
			columns = columns[:0]
			for _, at := range titles.FindAllStringIndex(line, -1) {
				columns = append(columns, column{strings.ToUpper(line[at[0]:at[1]]), at[0]})
			}
		case described.MatchString(line): // kubectl describe: the object of all that follows
			m := described.FindStringSubmatch(line)
			columns = columns[:0]
			switch m[1] {
			case "Name":
				r.of = event{kind: "pod", name: m[2]}
			case "Roles":
				r.of.kind = "node"
			case "Node":
				r.of.host, _, _ = strings.Cut(m[2], "/")
			}
		case len(columns) == 0 && bare.MatchString(line):
			m := bare.FindStringSubmatch(line)
			r.cells(map[string]string{"TYPE": m[1], "REASON": m[2], "AGE": m[3], "FROM": m[4], "MESSAGE": m[5]}, n)
		case len(columns) == 0 || line == "" || strings.Trim(line, "- ") == "":
		default:
			r.row(columns, line, n)
		}
	})
	if r.pod.inside && !r.pod.told { // cut off before the restart count
		r.describedEnds(last, 0)
	}
	return err
}

// unstamped removes the stamp of a CI system, which says when a table was printed, from a line.
func (r *eventReader) unstamped(line string) string {
	m := stamped.FindStringSubmatch(line)
	if m == nil {
		return line
	}
	if at, err := time.Parse(time.RFC3339Nano, m[1]); err == nil {
		r.written, r.printed = at, true
	}
	return line[len(m[0]):]
}

// row reads a row of a table: kubectl aligns columns, so that each begins where its title does.
func (r *eventReader) row(columns []column, line string, n int64) {
	cells := map[string]string{}
	for i, c := range columns {
		to := len(line)
		if i+1 < len(columns) {
			to = min(to, columns[i+1].from)
		}
		if c.from >= to {
			continue
		}
		if c.from > 0 && line[c.from-1] != ' ' {
			return // not a row of the table
		}
		cells[c.name] = strings.TrimSpace(line[c.from:to])
	}
	r.cells(cells, n)
}

// cells adds the event of a row, given its cells by title.
func (r *eventReader) cells(cells map[string]string, n int64) {
	if status, ok := cells["STATUS"]; ok && cells["READY"] != "" { // from kubectl get pods
		count, since, _ := strings.Cut(cells["RESTARTS"], " (")
		restarts, _ := strconv.ParseInt(count, 10, 64)
		at := trace.Time(0)
		if restarts > 0 {
			at = r.ago(strings.TrimSuffix(since, " ago)"))
		}
		r.state(event{name: cells["NAME"], host: cells["NODE"], line: n}, "", status, "", at, restarts)
		return
	}
	e := event{reason: cells["REASON"], message: cells["MESSAGE"], warning: cells["TYPE"] == "Warning", count: 1, line: n}
	if e.reason == "" || cells["TYPE"] != "Warning" && cells["TYPE"] != "Normal" {
		return
	}
	kind, name, ok := strings.Cut(cells["OBJECT"], "/")
	if !ok {
		kind, name = r.of.kind, r.of.name
	}
	e.kind, e.name, e.host = kind, name, r.of.host
	if _, host, ok := strings.Cut(cells["FROM"]+cells["SOURCE"], ", "); ok {
		e.host = host
	}
	if e.name == "" && e.host == "" {
		e.name = r.file
	}
	m := age.FindStringSubmatch(cells["LAST SEEN"] + cells["AGE"])
	if m == nil {
		r.add(&e)
		return
	}
	e.last = r.ago(m[1])
	e.first = e.last
	if m[2] != "" {
		e.count, _ = strconv.ParseInt(m[2], 10, 64)
		e.first = r.ago(m[3])
	}
	r.add(&e)
}

// ago returns the time of an event with an age; 0 if the age is missing.
func (r *eventReader) ago(text string) trace.Time {
	var d time.Duration
	units := map[string]time.Duration{"y": 365 * 24 * time.Hour, "d": 24 * time.Hour, "h": time.Hour, "m": time.Minute, "s": time.Second}
	found := unit.FindAllStringSubmatch(text, -1)
	for _, m := range found {
		n, err := strconv.Atoi(m[1])
		if err != nil || n > 1e6 {
			return 0
		}
		d += time.Duration(n) * units[m[2]]
	}
	if len(found) == 0 {
		return 0
	}
	return trace.Time(r.written.Add(-d).UnixNano())
}
