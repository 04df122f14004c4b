package platform

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"math"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/sgtrace/sgtrace/trace"
)

// readText reads the output of /metrics, or OpenMetrics. For a file without times, written returns the time at which it was
// written.
func (d *reader) readText(r *bufio.Reader, written func() trace.Time) error {
	t := textReader{reader: d, kinds: map[string]string{}, written: sync.OnceValue(written)}
	t.named, t.local, _ = namedAt(d.name, t.written())
	for {
		line, err := readLine(r)
		if err != nil && len(line) == 0 {
			return cmp.Or(t.end(), err)
		}
		t.line(line)
	}
}

// A textReader reads lines of metrics.
type textReader struct {
	*reader
	kinds   map[string]string // of metrics, by name
	asked   string            // name of the values that follow, in the output of promtool
	clock   trace.Time        // last time in the file; 0 is none
	written func() trace.Time // time at which the file was written; 0 is unknown
	named   trace.Time        // time in the name of the file; 0 is none
	local   bool              // its zone is unknown

	lines, untimed, bad, firstBad int
}

// quoted begins the lines of a quotation in Markdown, as people paste metrics into an issue.
var quoted = []byte("> ")

// line reads a line.
func (t *textReader) line(text []byte) {
	t.lines++
	text = bytes.TrimPrefix(text, quoted)
	if kind, ok := bytes.CutPrefix(text, []byte("# TYPE ")); ok {
		name, of, _ := strings.Cut(strings.TrimSpace(string(kind)), " ")
		t.kinds[name] = of
		return
	}
	text = bytes.TrimSpace(text)
	if said, local, ok := dateOf(text); ok {
		t.clock, t.Source().Zone.Local = said, t.Source().Zone.Local || local
		t.speaker = cmp.Or(t.speaker, t.byFile) // one server was scraped repeatedly
		return
	}
	if len(text) == 0 || text[0] == '#' {
		return
	}
	if head, ok := bytes.CutSuffix(text, []byte(" =>")); ok {
		t.asked = string(head)
		return
	}
	if value, rest, ok := bytes.Cut(text, []byte(" @[")); ok && t.asked != "" {
		text = []byte(t.asked + " " + string(value) + " " + string(bytes.TrimSuffix(rest, []byte("]"))))
	}
	s, ok := parseSample(string(text))
	switch {
	case ok:
		t.sample(&s)
	case !asks(text):
		if t.bad++; t.bad == 1 {
			t.firstBad = t.lines
		}
	}
}

// sample adds a sample.
func (t *textReader) sample(s *sample) {
	at := cmp.Or(s.at, t.clock)
	if at == 0 {
		t.untimed++
		at = cmp.Or(t.named, t.written())
		t.Source().Zone.Local = t.Source().Zone.Local || t.local && t.named != 0
	}
	if at != 0 && !math.IsInf(s.value, 0) {
		family, _ := strings.CutSuffix(s.name, "_bucket")
		t.add(t.seriesOf(s.key, s.name, t.kinds[family], s.labels), at, s.value)
	}
}

// end reports what was wrong with the lines.
func (t *textReader) end() error {
	if t.untimed > 0 {
		at, message, layout := t.named, trace.MetricsNamed, time.DateTime
		if at == 0 {
			at, message, layout = t.written(), trace.MetricsUntimed, time.RFC3339
		}
		if at == 0 {
			return errUntimed
		}
		t.diags.Add(message.Of(t.name, t.untimed, time.Unix(0, int64(at)).UTC().Format(layout)))
	}
	t.Source().Lines = t.lines
	if t.bad > 0 {
		t.diags.Add(trace.MetricsBadLine.Of(t.name, t.bad, t.firstBad))
	}
	return nil
}

// errUntimed is the error for metrics without times from a pipe.
var errUntimed = errors.New("its values have no time, and it is not a file that has one: save metrics with query_range of Prometheus")

// longestLine is the length of the longest line with a sample.
const longestLine = 64 << 10

// readLine reads a line; one that is too long is cut.
func readLine(r *bufio.Reader) (line []byte, err error) {
	for {
		part, err := r.ReadSlice('\n')
		if len(line)+len(part) <= longestLine {
			line = append(line, part...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}

// A sample is the content of a line.
type sample struct {
	key, name string
	labels    map[string]string
	value     float64
	at        trace.Time // 0 is none
}

// parseSample parses `name{label="x"} 1.5 1787000000.5`.
func parseSample(text string) (s sample, ok bool) {
	if i := strings.Index(text, " # {"); i >= 0 { // an exemplar
		text = text[:i]
	}
	end := strings.IndexAny(text, "{ \t")
	if end < 0 || end == 0 && text[0] != '{' {
		return s, false
	}
	s.name = text[:end]
	rest := text[end:]
	if rest[0] == '{' {
		s.labels = map[string]string{}
		n, ok := parseLabels(rest[1:], s.labels)
		if !ok {
			return s, false
		}
		rest = rest[1+n:]
	}
	if s.key = text[:len(text)-len(rest)]; s.name == "" {
		s.name = s.labels["__name__"] // as written by "promtool tsdb dump"
	}
	fields := strings.Fields(rest)
	if len(fields) == 0 || len(fields) > 2 || s.name == "" {
		return s, false
	}
	var err error
	if s.value, err = strconv.ParseFloat(fields[0], 64); err != nil {
		return s, false
	}
	if len(fields) == 2 {
		if s.at, ok = unixStamp(fields[1]); !ok {
			return s, false
		}
	}
	return s, true
}

// unixStamp parses a time: seconds in OpenMetrics, or milliseconds in the older text, which are far larger than any number
// of seconds.
func unixStamp(text string) (trace.Time, bool) {
	const largest = 100_000_000_000 // seconds: the year 5138
	if n, err := strconv.ParseInt(text, 10, 64); err == nil && n > largest && n < math.MaxInt64/1_000_000 {
		return trace.Time(n * 1_000_000), true
	}
	return seconds(text)
}

// parseLabels parses labels up to and including the bracket, and returns their length.
func parseLabels(text string, to map[string]string) (n int, ok bool) {
	i := 0
	for {
		for i < len(text) && (text[i] == ',' || text[i] == ' ') {
			i++
		}
		if i < len(text) && text[i] == '}' {
			return i + 1, true
		}
		eq := strings.Index(text[i:], `="`)
		if eq < 0 {
			return 0, false
		}
		key := strings.TrimSpace(text[i : i+eq])
		i += eq + 2
		var value strings.Builder
		for {
			if i >= len(text) {
				return 0, false
			}
			c := text[i]
			i++
			if c == '"' {
				break
			}
			if c == '\\' && i < len(text) {
				c = text[i]
				i++
				if c == 'n' {
					c = ' '
				}
			}
			value.WriteByte(c)
		}
		to[key] = value.String()
	}
}
