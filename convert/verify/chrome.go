package verify

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/sgtrace/sgtrace/trace"
)

// ChromeJSON compares a trace in Chrome JSON with the model that it was written from. It returns how
// much compared equal, or the first difference.
func ChromeJSON(r io.Reader, t *trace.Trace) (Counts, error) {
	m, err := newModel(t)
	if err != nil {
		return Counts{}, err
	}
	c := newChromeFile(m)
	in := bufio.NewReaderSize(r, 1<<17)
	for n := 1; ; n++ {
		line, err := readLine(in)
		if err == io.EOF {
			break
		}
		if err == nil {
			err = c.line(line)
		}
		if err != nil {
			return Counts{}, fmt.Errorf("line %d: %w", n, err)
		}
	}
	if err := c.finish(); err != nil {
		return Counts{}, err
	}
	return m.Counts, nil
}

// readLine returns the next line including its newline, or io.EOF if there is none.
func readLine(in *bufio.Reader) ([]byte, error) {
	line, err := in.ReadSlice('\n')
	if err == bufio.ErrBufferFull {
		line = bytes.Clone(line)
		var rest []byte
		rest, err = in.ReadBytes('\n')
		line = append(line, rest...)
	}
	if err == io.EOF && len(line) > 0 {
		return nil, errors.New("the file ends within it")
	}
	return line, err
}

// A chromeFile is a Chrome JSON file being read: a header, then one event per line.
type chromeFile struct {
	*model
	*chromeLayout
	state  chromeState
	comma  bool // the previous line ended with a comma
	events bool // there was at least one event
	base   trace.Time
	coarse bool
	outs   map[string]trace.SliceID // by bind_id, the slices at which arrows start
	ins    []bind                   // slices at which an arrow ends
	args   []member                 // scratch
}

type chromeState uint8

const (
	beforeHeader chromeState = iota
	withinEvents
	behindEvents
)

// A bind is the end of an arrow that is stored on a slice.
type bind struct {
	id string
	to trace.SliceID
}

// exactSpan is the length of a trace, in ns, above which times are rounded to microseconds: readers hold
// times in a float64, with 53 bits.
const exactSpan = 1 << 53

func newChromeFile(m *model) *chromeFile {
	first, last, _ := m.t.Bounds()
	return &chromeFile{model: m, chromeLayout: newChromeLayout(m), base: first, coarse: last-first > exactSpan, outs: map[string]trace.SliceID{}}
}

func (c *chromeFile) line(line []byte) error {
	switch {
	case c.state == beforeHeader:
		c.state = withinEvents
		return c.header(line)
	case c.state == behindEvents:
		return errors.New("something follows the end")
	case string(line) == "]}\n":
		c.state = behindEvents
		if c.comma {
			return errors.New("an event is missing behind a comma")
		}
		return nil
	case c.events && !c.comma:
		return errors.New("a comma is missing")
	}
	event, comma := bytes.CutSuffix(line[:len(line)-1], []byte(","))
	c.comma, c.events = comma, true
	return c.event(event)
}

// header compares everything before the events.
func (c *chromeFile) header(line []byte) error {
	head, ok := bytes.CutSuffix(line, []byte(`"traceEvents":[`+"\n"))
	if !ok {
		return errors.New("it is no header")
	}
	all, err := members(append(bytes.TrimSuffix(bytes.Clone(head), []byte(",")), '}'), nil)
	if err != nil {
		return err
	}
	want := []member{{"displayTimeUnit", []byte(`"ns"`)}, {"baseTimeNanoseconds", strconv.AppendInt(nil, int64(c.base), 10)}, {"metadata", nil}}
	for i, w := range want {
		if i >= len(all) || all[i].key != w.key || w.value != nil && !bytes.Equal(all[i].value, w.value) {
			return fmt.Errorf("the header lacks %s %s", w.key, w.value)
		}
	}
	if len(all) != len(want) {
		return errors.New("the header has more than its three members")
	}
	return c.metadata(all[2].value)
}

func (c *chromeFile) metadata(object []byte) error {
	all, err := members(object, nil)
	if err != nil {
		return err
	}
	own := []member{{"base_time_ns", []byte(strconv.FormatInt(int64(c.base), 10))}, {"base_time", []byte(c.base.String())}}
	if len(all) != len(own)+len(c.t.Attributes) {
		return fmt.Errorf("the header has %d attributes; the model has %d", len(all)-len(own), len(c.t.Attributes))
	}
	for i, x := range all {
		value, err := text(x.value)
		if err != nil {
			return err
		}
		if i >= len(own) {
			if err := c.attribute(i-len(own), x.key, value); err != nil {
				return err
			}
		} else if x.key != own[i].key || value != string(own[i].value) {
			return fmt.Errorf("the header says %s %q; the model begins at %s", x.key, value, own[i].value)
		}
	}
	return nil
}

// finish checks that nothing is missing from the file.
func (c *chromeFile) finish() error {
	if c.state != behindEvents {
		return errors.New("the file has no end")
	}
	if err := c.named(); err != nil {
		return err
	}
	if err := c.bound(); err != nil {
		return err
	}
	c.Tracks = len(c.lanes) + len(c.counters)
	return c.model.finish()
}

// time returns how the file writes a time of the model: in ns since the first event, rounded if the trace
// is too long.
func (c *chromeFile) time(t trace.Time) int64 {
	ns := int64(t - c.base)
	if c.coarse {
		ns -= ns % 1000
	}
	return ns
}

// A member is a member of a JSON object.
type member struct {
	key   string
	value []byte // raw JSON
}

// members appends the members of an object to to.
func members(object []byte, to []member) ([]member, error) {
	if !json.Valid(object) || object[0] != '{' {
		return to, errors.New("it is no JSON object")
	}
	i := 1
	for object[i] != '}' {
		end := valueEnd(object, i)
		key, err := text(object[i:end])
		if err != nil {
			return to, err
		}
		i = end + 1 // after the colon
		end = valueEnd(object, i)
		to = append(to, member{key, object[i:end]})
		if i = end; object[i] == ',' {
			i++
		}
	}
	return to, nil
}

// valueEnd returns the end of the value that starts at b[i]; b is valid JSON without white space.
func valueEnd(b []byte, i int) int {
	depth := 0
	for ; i < len(b); i++ {
		switch b[i] {
		case '"':
			for i++; b[i] != '"'; i++ {
				if b[i] == '\\' {
					i++
				}
			}
			if depth == 0 {
				return i + 1
			}
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 {
				return i
			}
			if depth--; depth == 0 {
				return i + 1
			}
		case ',', ':':
			if depth == 0 {
				return i
			}
		}
	}
	return i
}

// text decodes a JSON string.
func text(value []byte) (string, error) {
	if len(value) < 2 || value[0] != '"' {
		return "", errors.New("it is no text")
	}
	if bytes.IndexByte(value, '\\') < 0 {
		return string(value[1 : len(value)-1]), nil
	}
	var s string
	err := json.Unmarshal(value, &s)
	return s, err
}
