package envelope

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sgtrace/sgtrace/format/logline"
	"github.com/sgtrace/sgtrace/internal/jsonscan"
)

// collectors are log stores, each identified by keys of its first entry.
var collectors = [...][]string{
	{"line", "labels", "timestamp"},    // logcli --output=jsonl
	{"resultType", "stream", "values"}, // Loki's API
	{"message", "ingestionTime"},       // aws logs
	{"results", "field", "value"},      // aws logs get-query-results
	{"textPayload", "insertId"},        // gcloud logging read
	{"textPayload", "resource"},
	{"jsonPayload", "insertId"},
	{"MESSAGE", "__REALTIME_TIMESTAMP"}, // journalctl --output=json
	{"message", "@timestamp"},           // Filebeat, Logstash, Vector, Elasticsearch
	{"log", "@timestamp"},
	{"log", "kubernetes"}, // Fluent Bit
	{"log", "stream", "time"},
	{"LogMessage", "TimeGenerated"}, // Azure's ContainerLogV2, ContainerLog
	{"LogEntry", "TimeGenerated"},
}

// pods are the keys of the source of an entry; the first one counts.
var pods = []string{"pod", "pod_name", "PodName", "kubernetes.pod.name", "logStreamName", "@logStream", "container", "container_name", "ContainerName"}

// isCollected reports whether head begins with JSON from a log store. In a trace that quotes such JSON, quotes
// follow backslashes.
func isCollected(head []byte) bool {
	const looked = 8 << 10
	head = bytes.TrimLeft(head[:min(len(head), looked)], " \t\r\n")
	if len(head) == 0 || head[0] != '{' && head[0] != '[' {
		return false
	}
	return slices.ContainsFunc(collectors[:], func(keys []string) bool {
		return !slices.ContainsFunc(keys, func(key string) bool { return !hasKey(head, key) })
	})
}

// hasKey reports whether b has a JSON key.
func hasKey(b []byte, key string) bool {
	quoted := []byte(`"` + key + `"`)
	for {
		i := bytes.Index(b, quoted)
		if i < 0 {
			return false
		}
		rest := bytes.TrimLeft(b[i+len(quoted):], " \t\r\n")
		if (i == 0 || b[i-1] != '\\') && len(rest) > 0 && rest[0] == ':' {
			return true
		}
		b = b[i+len(quoted):]
	}
}

// An entry is what a log store keeps of a line, or of several that it took for one.
type entry struct {
	pod, text string
	unit      string // of systemd, as it precedes a line: "node1 kernel: "
	at        int64  // Unix ns; 0 is unknown
	local     bool   // the zone of at is unknown
}

// collected reads the lines in a log store. Most stores return the newest first: such entries are sorted, on
// disk if there are many. Lines that come in order are passed on unchanged.
type collected struct {
	in      source
	ordered bool // entries arrive in the order in which they are passed on
	sorter  sorter
	next    func() (*entry, error) // returns the entries in order, once all are read
	damage  error                  // the error after the last entry
	out     bytes.Buffer
	err     error
}

// A source passes the entries of a file in file order.
type source interface {
	// read passes on the next entries. io.EOF is the end of a whole file; any other error ends the entries, too.
	read(to func(entry) error) error
}

func openCollected(in *bufio.Reader) (io.Reader, func(), error) {
	head, err := in.Peek(HeadBytes)
	if err != nil && err != io.EOF {
		return nil, func() {}, err
	}
	first, rest, whole := bytes.Cut(bytes.TrimLeft(head, " \t\r\n"), []byte("\n"))
	entries := entriesOf(first)
	if len(entries) != 1 {
		return newCollected(&document{in: bufio.NewReaderSize(in, recordBytes)}, false)
	}
	if whole {
		for line := range bytes.Lines(rest) {
			entries = append(entries, entriesOf(line)...)
		}
	}
	return newCollected(&jsonLines{in}, entries[0].at <= entries[len(entries)-1].at)
}

func newCollected(in source, ordered bool) (io.Reader, func(), error) {
	c := &collected{in: in, ordered: ordered}
	return c, c.sorter.close, nil
}

func (c *collected) Read(p []byte) (n int, err error) {
	for c.out.Len() == 0 && c.err == nil {
		c.out.Reset()
		c.err = c.fill()
	}
	if c.out.Len() == 0 {
		return 0, c.err
	}
	return c.out.Read(p)
}

// fill writes some of the next entries.
func (c *collected) fill() error {
	if c.ordered {
		return c.in.read(func(e entry) error { e.write(&c.out); return nil })
	}
	for c.next == nil {
		err := c.in.read(c.sorter.add)
		if err == nil {
			continue
		}
		c.damage = err
		if c.next, err = c.sorter.all(); err != nil {
			return err
		}
	}
	e, err := c.next()
	switch {
	case err == io.EOF:
		return c.damage
	case err != nil:
		return err
	}
	e.write(&c.out)
	return nil
}

// jsonLines are the lines of a file in which each line is an entry.
type jsonLines struct{ in *bufio.Reader }

// read reads a line. A line that is not an entry goes to the format, which reports it.
func (j *jsonLines) read(to func(entry) error) error {
	line, err := j.in.ReadBytes('\n')
	entries := entriesOf(line)
	if len(entries) == 0 && len(bytes.TrimSpace(line)) > 0 {
		entries = append(entries, entry{text: string(line)})
	}
	for _, e := range entries {
		if err := to(e); err != nil {
			return err
		}
	}
	return err
}

// write writes an entry as kubectl logs --prefix --timestamps does. It adds no stamp to a line that begins with
// a date or is JSON.
func (e *entry) write(to *bytes.Buffer) {
	for line := range strings.Lines(e.text) {
		line = strings.TrimRight(line, "\r\n")
		if e.pod != "" {
			to.WriteString("[pod/" + strings.ReplaceAll(e.pod, "/", ".") + "] ")
		}
		if e.at != 0 && !e.local && line != "" && !dated.MatchString(line) {
			to.WriteString(time.Unix(0, e.at).UTC().Format(time.RFC3339Nano) + " ")
		}
		to.WriteString(e.unit + line + "\n")
	}
}

// dated matches the beginning of a line with its own time, or of a record.
var dated = regexp.MustCompile(`^(?:20\d\d-\d\d-\d\d[T ]|[A-Z][a-z]{2} [ \d]\d \d\d:|\{)`)

// entriesOf returns the entries in a piece of JSON, none if it is invalid.
func entriesOf(b []byte) []entry {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	var value any
	if d.Decode(&value) != nil {
		return nil
	}
	return entriesIn(value, nil)
}

// entriesIn adds the entries in a value.
func entriesIn(value any, list []entry) []entry {
	switch v := value.(type) {
	case []any:
		if e, ok := fields(v); ok {
			return append(list, e)
		}
		for _, x := range v {
			list = entriesIn(x, list)
		}
	case map[string]any:
		if values, ok := v["values"].([]any); ok { // Loki's
			pod := leaves(v).first(pods)
			for _, x := range values {
				if pair, ok := x.([]any); ok {
					list = pairOf(pair, pod, list)
				}
			}
			return list
		}
		if e, ok := entryOf(leaves(v)); ok {
			return append(list, e)
		}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			list = entriesIn(v[key], list)
		}
	}
	return list
}

// pairOf adds an entry of Loki: ["1739152560000000000", "..."].
func pairOf(pair []any, pod string, list []entry) []entry {
	if len(pair) < 2 {
		return list
	}
	return append(list, entry{pod: pod, at: timeOf(pair[0]), text: textOf(pair[1])})
}

// fields returns the entry that CloudWatch writes as a list of {"field": .., "value": ..}.
func fields(list []any) (entry, bool) {
	leaves := leavesOf{}
	for _, x := range list {
		pair, _ := x.(map[string]any)
		name, ok := pair["field"].(string)
		if !ok {
			return entry{}, false
		}
		leaves[name] = pair["value"]
	}
	return entryOf(leaves)
}

// entryOf returns the entry with these members.
func entryOf(l leavesOf) (e entry, ok bool) {
	for _, key := range logline.MessageKeys {
		if v, found := l[key]; found {
			e.text, ok = textOf(v), true
			break
		}
	}
	for _, key := range logline.TimeKeys {
		if e.at = timeOf(l[key]); e.at != 0 {
			break
		}
	}
	e.pod = l.first(pods)
	if host, name := l.first([]string{"_HOSTNAME"}), l.first([]string{"SYSLOG_IDENTIFIER"}); host != "" && name != "" { // from systemd
		if e.unit = host + " " + name; l["_PID"] != nil {
			e.unit += "[" + textOf(l["_PID"]) + "]"
		}
		e.unit += ": "
	}
	return e, ok && e.at != 0
}

// leavesOf are the members of an object and of nested objects, by their names and by their paths. Of two with
// the same name, the outer one counts.
type leavesOf map[string]any

func leaves(object map[string]any) leavesOf {
	l := leavesOf{}
	type inner struct {
		path  string
		value map[string]any
	}
	for todo := []inner{{"", object}}; len(todo) > 0; todo = todo[1:] {
		for _, key := range slices.Sorted(maps.Keys(todo[0].value)) {
			v, path := todo[0].value[key], todo[0].path+key
			if in, ok := v.(map[string]any); ok {
				todo = append(todo, inner{path + ".", in})
				continue
			}
			for _, name := range [...]string{key, path} {
				if _, ok := l[name]; !ok {
					l[name] = v
				}
			}
		}
	}
	return l
}

// first returns the first of the named members that exists.
func (l leavesOf) first(keys []string) string {
	for _, key := range keys {
		if s := textOf(l[key]); s != "" {
			return s
		}
	}
	return ""
}

// textOf returns a text. systemd writes text with colors as a list of bytes.
func textOf(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case []any:
		var b []byte
		for _, x := range v {
			n, _ := x.(json.Number)
			c, err := strconv.ParseUint(string(n), 10, 8)
			if err != nil {
				return ""
			}
			b = append(b, byte(c))
		}
		return string(b)
	}
	return ""
}

// timeOf returns a time in Unix ns, from RFC 3339 or a number since 1970, whose digits show the unit; 0 if
// there is none.
func timeOf(v any) int64 {
	text, _ := v.(string)
	if n, ok := v.(json.Number); ok {
		text = string(n)
	}
	for _, layout := range [...]string{time.RFC3339Nano, "2006-01-02 15:04:05.999999999"} {
		if at, err := time.Parse(layout, text); err == nil {
			return at.UnixNano()
		}
	}
	return jsonscan.UnixNano(text)
}
