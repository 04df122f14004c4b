package parse

import (
	"bytes"

	"github.com/sgtrace/sgtrace/internal/jsonscan"
	"github.com/sgtrace/sgtrace/trace"
)

// eventKeys are the keys of events. An object that begins with another key is not an event.
var eventKeys = map[string]bool{
	"ph": true, "cat": true, "name": true, "pid": true, "tid": true, "ts": true, "dur": true, "args": true,
	"id": true, "id2": true, "bp": true, "s": true, "tts": true, "tdur": true, "tidelta": true, "cname": true,
	"sf": true, "esf": true, "stack": true, "estack": true, "scope": true, "bind_id": true, "flow_in": true, "flow_out": true,
}

func isEventKey(key []byte) bool { return eventKeys[string(key)] }

// topKeys identify a document, or its rest after the events. None of them is a key of arguments.
var topKeys = map[string]bool{
	"schemaVersion": true, "traceEvents": true, "deviceProperties": true, "computeProperties": true,
	"distributedInfo": true, "displayTimeUnit": true, "baseTimeNanoseconds": true, "traceName": true,
	"systemTraceEvents": true,
}

func isTopKey(key []byte) bool { return topKeys[string(key)] }

// maxAhead bounds the lookahead at a possible event, in bytes.
const maxAhead = 64 << 10

// HasEvent reports whether text has anything that looks like an event. If text does not begin as JSON, the
// event has to be in a list: notes may quote a single one.
func HasEvent(text []byte) bool {
	begin := jsonscan.Space(text, 0)
	quoted := begin < len(text) && text[begin] != '{' && text[begin] != '['
	p := parser{b: text, final: true}
	for i := range text {
		if text[i] != '{' {
			continue
		}
		if quoted && !listed(text[:i]) {
			continue
		}
		if found, _ := p.eventAt(i); found {
			return true
		}
	}
	return false
}

// listed reports whether the text before an object shows that it is in a list.
func listed(before []byte) bool {
	before = bytes.TrimRight(before, " \t\r\n")
	return len(before) > 0 && (before[len(before)-1] == ',' || before[len(before)-1] == '[')
}

// eventAt reports whether the object at b[i] is an event: its keys are those of events, and one of them is "ph"
// with a string of one character.
func (p *parser) eventAt(i int) (bool, error) {
	b, start := p.b, i
	for i++; ; {
		for i < len(b) && (b[i] == ',' || b[i] == ' ' || b[i] == '\n' || b[i] == '\r' || b[i] == '\t') {
			i++
		}
		end := i + 1
		for end < len(b) && b[end] != '"' && end-i < maxKey {
			end++
		}
		switch {
		case i < len(b) && b[i] != '"':
			return false, nil
		case end >= len(b):
			return false, p.short()
		case !isEventKey(b[i+1 : end]):
			return false, nil
		}
		key := b[i+1 : end]
		if i = jsonscan.Space(b, end+1); i < len(b) && b[i] != ':' {
			return false, nil
		}
		if i = jsonscan.Space(b, i+1); i >= len(b) {
			return false, p.short()
		}
		if string(key) == "ph" {
			if i+2 >= len(b) {
				return false, p.short()
			}
			return b[i] == '"' && b[i+2] == '"', nil
		}
		next, err := jsonscan.Value(b[:min(len(b), start+maxAhead)], i)
		if err == errShort && start+maxAhead > len(b) {
			return false, p.short()
		}
		if err != nil {
			return false, nil
		}
		i = next
	}
}

// eventIn reports whether an event seems to begin between two positions.
func (p *parser) eventIn(from, to int) (bool, error) {
	for i := from; i < to; i++ {
		if p.b[i] != '{' {
			continue
		}
		if found, err := p.eventAt(i); found || err != nil {
			return found, err
		}
	}
	return false, nil
}

// short returns errShort unless the input ends here.
func (p *parser) short() error {
	if p.final {
		return nil
	}
	return errShort
}

// documentAt reports whether the object at b[i] begins like a document.
func (p *parser) documentAt(i int) (bool, error) {
	j := jsonscan.Space(p.b, i+1)
	if j >= len(p.b) {
		return false, p.short()
	}
	if p.b[j] != '"' {
		return false, nil
	}
	return p.keyAt(j, isTopKey)
}

// startsOver reports whether an event or a document begins at b[i].
func (p *parser) startsOver(i int) (bool, error) {
	found, err := p.eventAt(i)
	if !found && err == nil {
		found, err = p.documentAt(i)
	}
	return found, err
}

// A loss is a part of the input that is being skipped.
type loss struct {
	from int64 // offset of its beginning
	why  string
	cut  bool // the input seems to end inside
}

// lose begins to skip the input from b[i]; err is the reason. Something intelligible may begin right after
// b[i].
func (p *parser) lose(st *state, i int, err error) {
	st.level = atLoss
	st.loss = loss{from: p.base + int64(i), why: err.Error(), cut: err == errShort}
}

// findNext moves from b[i] to the next event, document or member of a document, and reports the skipped part.
func (p *parser) findNext(i int, st *state) (next int, err error) {
	b := p.b
	if p.base+int64(i) == st.loss.from && i < len(b) {
		i++
	}
	for ; i < len(b); i++ {
		var found bool
		var there level
		switch b[i] {
		case '{':
			there = inEvents
			if found, err = p.eventAt(i); !found && err == nil {
				there = atTop
				found, err = p.documentAt(i)
			}
		case '"':
			there = inObject
			found, err = p.keyAt(i, isTopKey)
		default:
			continue
		}
		if err != nil {
			return i, err
		}
		if found {
			p.endLoss(st, i, there)
			return i, nil
		}
	}
	if p.final {
		p.endLoss(st, len(b), atTop)
	}
	return len(b), nil
}

// endLoss reports what was skipped up to b[i].
func (p *parser) endLoss(st *state, i int, then level) {
	l := st.loss
	n := p.base + int64(i) - l.from
	switch {
	case l.cut && i == len(p.b):
		if !p.failed {
			p.out.Report(trace.TraceTruncated, l.from, 1, "inside an event")
		}
	case l.cut:
		p.out.Report(trace.TraceSyntax, l.from, 1, "an event is cut off by what comes behind it", n)
	default:
		p.out.Report(trace.TraceSyntax, l.from, 1, l.why, n)
	}
	st.to(then)
}
