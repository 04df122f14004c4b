package envelope

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// collectors are stores of logs, each by keys that the first of its entries has.
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

// texts, stamps, and pods are the keys of what an entry says, when, and who said it; the first one counts.
var (
	texts  = []string{"line", "log", "textPayload", "MESSAGE", "@message", "LogMessage", "LogEntry", "message"}
	stamps = []string{"__REALTIME_TIMESTAMP", "@timestamp", "timestamp", "time", "TimeGenerated", "date"}
	pods   = []string{"pod", "pod_name", "PodName", "kubernetes.pod.name", "logStreamName", "@logStream", "container", "container_name", "ContainerName"}
)

// isCollected reports whether head begins with JSON of what stores logs. A quotation of it, in a trace, has
// backslashes before its quotes.
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

// hasKey reports whether a key of JSON is in b.
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

// An entry is what a store of logs keeps of a line, or of several that it took for one.
type entry struct {
	pod, text string
	unit      string // of systemd, as it stands before a line: "node1 kernel: "
	at        int64  // Unix ns; 0 is not told
	local     bool   // at is of a zone that nobody knows
}

// collected reads the lines that a store of logs kept. Most stores give the newest first: these entries are
// read whole and turned around. Others are passed on as they come.
type collected struct {
	in     *bufio.Reader
	lines  bool // each line of the file is an entry
	newest bool // comes first
	held   []entry
	out    bytes.Buffer
	err    error
}

func openCollected(in *bufio.Reader) (io.Reader, func(), error) {
	head, err := in.Peek(HeadBytes)
	if err != nil && err != io.EOF {
		return nil, func() {}, err
	}
	c := &collected{in: in}
	first, rest, whole := bytes.Cut(bytes.TrimLeft(head, " \t\r\n"), []byte("\n"))
	entries := entriesOf(first)
	if c.lines = len(entries) == 1; c.lines && whole {
		for line := range bytes.Lines(rest) {
			entries = append(entries, entriesOf(line)...)
		}
	}
	c.newest = len(entries) > 1 && entries[0].at > entries[len(entries)-1].at
	return c, func() {}, nil
}

func (c *collected) Read(p []byte) (n int, err error) {
	for c.out.Len() == 0 && c.err == nil {
		c.out.Reset()
		if c.lines {
			c.err = c.line()
		} else {
			c.err = c.document()
		}
		if c.err != nil || !c.newest || !c.lines {
			c.flush()
		}
	}
	if c.out.Len() == 0 {
		return 0, c.err
	}
	return c.out.Read(p)
}

// line takes in the next line of the file. One that is no entry goes to the format, which knows what to say.
func (c *collected) line() error {
	line, err := c.in.ReadBytes('\n')
	switch entries := entriesOf(line); {
	case len(entries) > 0:
		c.held = append(c.held, entries...)
	case len(bytes.TrimSpace(line)) > 0:
		c.held = append(c.held, entry{text: string(line)})
	}
	return err
}

// document takes in the next value of the file.
func (c *collected) document() error {
	d := json.NewDecoder(c.in)
	d.UseNumber()
	for {
		var value any
		if err := d.Decode(&value); err != nil {
			if err == io.EOF {
				return err
			}
			return fmt.Errorf("the JSON around its lines, at byte %d: %w", d.InputOffset(), err)
		}
		c.held = entriesIn(value, entry{}, c.held)
	}
}

// flush writes the entries that are held, one stream after another.
func (c *collected) flush() {
	var pods []string
	streams := map[string][]entry{}
	for _, e := range c.held {
		if streams[e.pod] == nil {
			pods = append(pods, e.pod)
		}
		streams[e.pod] = append(streams[e.pod], e)
	}
	for _, pod := range pods {
		list := streams[pod]
		if list[0].at > list[len(list)-1].at {
			slices.Reverse(list) // of one moment, the last one came first, too
		}
		slices.SortStableFunc(list, func(a, b entry) int { return cmp.Compare(a.at, b.at) })
		for i := range list {
			list[i].write(&c.out)
		}
	}
	c.held = c.held[:0]
}

// write writes an entry as kubectl logs --prefix --timestamps does. A line that begins with a date of its own or is
// JSON gets no stamp.
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

// dated is how a line begins that says itself when it is, or is a record.
var dated = regexp.MustCompile(`^(?:20\d\d-\d\d-\d\d[T ]|[A-Z][a-z]{2} [ \d]\d \d\d:|\{)`)

// entriesOf returns the entries of a piece of JSON, none if it is not one.
func entriesOf(b []byte) []entry {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	var value any
	if d.Decode(&value) != nil {
		return nil
	}
	return entriesIn(value, entry{}, nil)
}

// entriesIn adds the entries of a value, which are in a stream.
func entriesIn(value any, in entry, list []entry) []entry {
	switch v := value.(type) {
	case []any:
		if e, ok := fields(v); ok {
			return append(list, e)
		}
		for _, x := range v {
			list = entriesIn(x, in, list)
		}
	case map[string]any:
		if values, ok := v["values"].([]any); ok { // of Loki: ["1739152560000000000", "..."]
			in.pod = leaves(v).first(pods)
			for _, x := range values {
				if pair, ok := x.([]any); ok && len(pair) >= 2 {
					list = append(list, entry{pod: in.pod, at: timeOf(pair[0]), text: textOf(pair[1])})
				}
			}
			return list
		}
		if e, ok := entryOf(leaves(v)); ok {
			return append(list, e)
		}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			list = entriesIn(v[key], in, list)
		}
	}
	return list
}

// fields returns the entry that CloudWatch gives as a list of {"field": .., "value": ..}.
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

// entryOf returns the entry that has these members.
func entryOf(l leavesOf) (e entry, ok bool) {
	for _, key := range texts {
		if v, found := l[key]; found {
			e.text, ok = textOf(v), true
			break
		}
	}
	for _, key := range stamps {
		if e.at = timeOf(l[key]); e.at != 0 {
			break
		}
	}
	e.pod = l.first(pods)
	if host, name := l.first([]string{"_HOSTNAME"}), l.first([]string{"SYSLOG_IDENTIFIER"}); host != "" && name != "" { // of systemd
		if e.unit = host + " " + name; l["_PID"] != nil {
			e.unit += "[" + textOf(l["_PID"]) + "]"
		}
		e.unit += ": "
	}
	return e, ok && e.at != 0
}

// leavesOf are the members of an object and of objects in it, by their names and by their paths. Of two of one
// name, the outer one counts.
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

// first returns the first of some members that is there.
func (l leavesOf) first(keys []string) string {
	for _, key := range keys {
		if s := textOf(l[key]); s != "" {
			return s
		}
	}
	return ""
}

// textOf returns a text. systemd gives one with colors as a list of bytes.
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

// timeOf returns a time in Unix ns, by RFC 3339 or by a number since 1970, whose digits tell the unit; 0 without.
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
	whole, decimals, _ := strings.Cut(text, ".")
	const digits = 19 // of ns, since 2001
	if len(whole) < 10 || len(whole) > digits {
		return 0
	}
	at, err := strconv.ParseInt((whole + decimals + strings.Repeat("0", digits))[:digits], 10, 64)
	if err != nil {
		return 0
	}
	return at
}
