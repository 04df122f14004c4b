package chrometrace

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"regexp"
	"strconv"
	"strings"

	"github.com/sgtrace/sgtrace/chrometrace/internal/parse"
	"github.com/sgtrace/sgtrace/trace"
)

// The reference reads valid documents with encoding/json, token by token and slowly. It handles
// neither pieces nor damage.

// errOutside means that the reference does not define the result for a valid JSON document.
var errOutside = errors.New("outside of what the reference knows")

type refMember struct {
	key   string
	value json.RawMessage
}

// refMembers returns the members of an object in order.
func refMembers(raw []byte) ([]refMember, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return nil, errors.New("no object")
	}
	var out []refMember
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return nil, err
		}
		m := refMember{key: key.(string)}
		if err := dec.Decode(&m.value); err != nil {
			return nil, err
		}
		out = append(out, m)
	}
	return out, nil
}

func refElements(raw []byte) (out []json.RawMessage, err error) {
	err = json.Unmarshal(raw, &out)
	return out, err
}

// A refDoc is a document with its events. Times are in ns, as written.
type refDoc struct {
	base     int64
	known    bool
	kineto   bool
	own      bool // written by this package
	drawn    bool // with arrows from launches
	absolute bool
	events   []*refEvent
}

type refEvent struct {
	ph, name, cat  string
	part, pid, tid string
	ts, dur        int64
	timed          bool
	id             string
	bp             bool
	bind           string // "" if none
	in, out        bool
	args           []refMember
	correlation    string
}

func (e *refEvent) row() string { return fmt.Sprintf("%q", []string{e.part, e.pid, e.tid}) }

// reference returns what records() should return for data.
func reference(data []byte) ([]string, error) {
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	dec := json.NewDecoder(bytes.NewReader(data))
	var docs []*refDoc
	for {
		var raw json.RawMessage
		if err := dec.Decode(&raw); err == io.EOF {
			break
		} else if err != nil {
			return nil, err
		}
		doc, err := refDocument(raw)
		if err != nil {
			return nil, err
		}
		docs = append(docs, doc)
	}
	return refRecords(docs)
}

func refDocument(raw []byte) (*refDoc, error) {
	d := &refDoc{}
	if raw[0] == '[' {
		return d, d.read(raw)
	}
	if raw[0] != '{' {
		return nil, errOutside
	}
	members, err := refMembers(raw)
	if err != nil {
		return nil, err
	}
	for _, m := range members {
		if m.key != "traceEvents" && bytes.Contains(m.value, []byte(`"ph"`)) {
			return nil, errOutside // misplaced events
		}
		switch m.key {
		case "ph":
			return nil, errOutside // an event outside a list
		case "traceEvents":
			if m.value[0] == '[' {
				err = d.read(m.value)
			} else if m.value[0] == '{' {
				return nil, errOutside
			}
		case "schemaVersion":
			d.kineto = true
		case "baseTimeNanoseconds":
			if v, ok := refInt(m.value); ok && parse.IsTime(trace.Time(v)) {
				d.base, d.known = v, true
			}
		case "metadata":
			var own struct {
				Base string `json:"base_time_ns"`
			}
			if json.Unmarshal(m.value, &own) == nil {
				if v, ok := refInt([]byte(own.Base)); ok && parse.IsTime(trace.Time(v)) {
					d.base, d.known, d.own = v, true, true
				}
			}
		}
		if err != nil {
			return nil, err
		}
	}
	if d.own && bytes.Contains(raw, []byte(`"part"`)) {
		return nil, errOutside // rows of ranks; see TestOwnRanksComeBack
	}
	d.kineto = d.kineto && !d.own
	return d, nil
}

func (d *refDoc) read(list []byte) error {
	elements, err := refElements(list)
	if err != nil {
		return err
	}
	for _, raw := range elements {
		if raw[0] != '{' {
			if bytes.Contains(raw, []byte(`"ph"`)) {
				return errOutside
			}
			continue
		}
		e, err := refOne(raw)
		if err != nil {
			return err
		}
		if e != nil {
			d.absolute = d.absolute || e.timed && e.ts >= int64(parse.AbsoluteFrom)
			d.drawn = d.drawn || strings.Contains("stf", e.ph) && e.cat == "flow" && e.name == "launch" ||
				strings.Contains("XB", e.ph) && e.bind != "" && e.out && roleOf(e.cat) == parse.RoleLaunch
			d.events = append(d.events, e)
		}
	}
	return nil
}

// refOne reads an event. It returns nil for one without a time or that does not matter.
func refOne(raw []byte) (*refEvent, error) {
	members, err := refMembers(raw)
	if err != nil {
		return nil, err
	}
	for _, m := range members {
		if m.value[0] != '{' && m.value[0] != '[' {
			continue
		}
		for _, key := range outerKeys {
			if bytes.Contains(m.value, []byte(`"ph"`)) || bytes.Contains(m.value, []byte(`"`+key+`"`)) {
				return nil, errOutside // the event contains something else
			}
		}
	}
	e := &refEvent{pid: "0", tid: ""}
	hasTid := false
	seen := map[string]bool{}
	for _, m := range members {
		switch m.key {
		case "ph", "name", "cat", "pid", "tid", "ts", "dur", "id", "bp", "args", "id2", "bind_id", "flow_in", "flow_out":
			if seen[m.key] {
				return nil, errOutside
			}
			seen[m.key] = true
		}
		text, isText := refText(m.value)
		switch m.key {
		case "ph":
			if isText && len(text) == 1 {
				e.ph = text
			}
		case "name":
			e.name = text
		case "cat":
			e.cat = text
		case "pid":
			e.part, e.pid = refPart(refIdentity(m.value))
		case "tid":
			if string(m.value) != "null" {
				e.tid, hasTid = refIdentity(m.value), true
			}
		case "ts":
			e.ts, e.timed = refTime(m.value)
		case "dur":
			e.dur, _ = refTime(m.value)
		case "id":
			if e.id = text; !isText && string(m.value) != "null" {
				e.id = string(m.value)
			}
		case "bp":
			e.bp = text == "e"
		case "bind_id":
			if string(m.value) != "null" {
				e.bind = string(m.value)
			}
		case "flow_in":
			e.in = refTruth(m.value)
		case "flow_out":
			e.out = refTruth(m.value)
		case "args":
			if m.value[0] == '{' {
				if e.args, err = refMembers(m.value); err != nil {
					return nil, err
				}
			}
		}
	}
	if !hasTid {
		e.tid = e.pid
	}
	if known := parse.CategoryByName[e.cat]; known != nil && known.Now != "" {
		e.cat = known.Now
	}
	if e.cat == "cpu_op" && strings.HasPrefix(e.name, "ProfilerStep#") {
		e.cat = "user_annotation" // a category that did not exist in 2021
	}
	for _, a := range e.args {
		if a.key == "correlation" {
			e.correlation = ""
			if v, ok := refInt(a.value); ok {
				e.correlation = strconv.FormatInt(v, 10)
			}
		}
	}
	if e.args, err = refLast(e.args); err != nil {
		return nil, err
	}
	e.timed = e.timed && parse.IsTime(trace.Time(e.ts)) && e.dur <= 4e18
	if e.dur < 0 || e.ph != "X" {
		e.dur = 0
	}
	if e.ph == "" || !strings.Contains("XBEbneSTFpiIRCstf", e.ph) || !e.timed {
		return nil, nil
	}
	return e, nil
}

// refLast returns the members that are not null, the last one of each name.
func refLast(members []refMember) (out []refMember, err error) {
	at := map[string]int{}
	for i, m := range members {
		if _, again := at[m.key]; again && strings.Contains(m.key, "\uFFFD") {
			return nil, errOutside // the invalid bytes may differ
		}
		if string(m.value) != "null" {
			at[m.key] = i
		}
	}
	for i, m := range members {
		if last, ok := at[m.key]; ok && last == i {
			out = append(out, m)
		}
	}
	return out, nil
}

// outerKeys are the keys of a document. None is a key of arguments.
var outerKeys = []string{
	"schemaVersion", "traceEvents", "deviceProperties", "computeProperties", "distributedInfo",
	"displayTimeUnit", "baseTimeNanoseconds", "traceName", "systemTraceEvents",
}

// refPart splits the pid in a file merged by SGLang into rank and pid.
func refPart(pid string) (part, rest string) {
	if m := refMerged.FindStringSubmatch(pid); m != nil {
		return m[1], m[2]
	}
	return "", pid
}

var refMerged = regexp.MustCompile(`(?s)^\[(.*?)\] (.*)$`)

func roleOf(cat string) parse.Role {
	if c := parse.CategoryByName[cat]; c != nil {
		return c.Role
	}
	return parse.RoleNone
}

func refTruth(raw []byte) bool {
	text := string(raw)
	return text != "false" && text != "null" && text != "0" && text != `""`
}

func refText(raw []byte) (string, bool) {
	var s string
	if raw[0] != '"' || json.Unmarshal(raw, &s) != nil {
		return "", false
	}
	return s, true
}

// refIdentity returns the text of a pid or tid.
func refIdentity(raw []byte) string {
	if string(raw) == "null" {
		return "0"
	}
	if text, ok := refText(raw); ok {
		return text
	}
	if v, ok := refInt(raw); ok {
		return strconv.FormatInt(v, 10)
	}
	return string(raw)
}

var (
	wholeNumber = regexp.MustCompile(`^[-+]?[0-9]+(\.[0-9]*)?([eE][-+]?[0-9]{1,4})?$`)
	timeNumber  = regexp.MustCompile(`^-?[0-9]+(\.[0-9]*)?([eE][-+]?[0-9]+)?$`)
)

// refInt returns the value of a whole number, possibly quoted.
func refInt(raw []byte) (int64, bool) {
	text := strings.Trim(string(raw), `"`)
	if !wholeNumber.MatchString(text) {
		return 0, false
	}
	if i := strings.IndexAny(text, "eE"); i >= 0 {
		if e, _ := strconv.Atoi(text[i+1:]); e > 400 || e < -400 {
			return 0, false
		}
	}
	r, ok := new(big.Rat).SetString(text)
	if !ok || !r.IsInt() || !r.Num().IsInt64() {
		return 0, false
	}
	return r.Num().Int64(), true
}

// refTime converts microseconds to ns, rounding half away from zero.
func refTime(raw []byte) (int64, bool) {
	text := string(raw)
	if raw[0] == '"' {
		text = text[1 : len(text)-1]
	}
	if !timeNumber.MatchString(text) {
		return 0, false
	}
	mantissa, exp, _ := strings.Cut(strings.ToLower(text), "e")
	if e, _ := strconv.Atoi(exp); e > 400 || e < -400 {
		if strings.Trim(mantissa, "-0.") == "" || e < 0 {
			return 0, true
		}
		return 0, false
	}
	r, ok := new(big.Rat).SetString(text)
	if !ok {
		return 0, false
	}
	neg := r.Sign() < 0
	r.Abs(r)
	r.Mul(r, big.NewRat(1000, 1)).Add(r, big.NewRat(1, 2))
	n := new(big.Int).Div(r.Num(), r.Denom())
	if !n.IsInt64() {
		return 0, false
	}
	if neg {
		n.Neg(n)
	}
	return n.Int64(), true
}

// refValue returns a value in the format of reading.plain; "" for null.
func refValue(raw json.RawMessage) string {
	switch raw[0] {
	case '"':
		text, _ := refText(raw)
		return strconv.Quote(text)
	case 'n':
		return ""
	case 't', 'f':
		return string(raw)
	case '[':
		elements, _ := refElements(raw)
		var out []string
		for _, e := range elements {
			if text := refValue(e); text != "" {
				out = append(out, text)
			}
		}
		return "[" + strings.Join(out, ",") + "]"
	case '{':
		members, _ := refMembers(raw)
		return "{" + strings.Join(refArgs(members), ",") + "}"
	}
	text := string(raw)
	if !strings.ContainsAny(text, ".eE") {
		if v, err := strconv.ParseInt(text, 10, 64); err == nil {
			return strconv.FormatInt(v, 10)
		}
		if v, err := strconv.ParseUint(text, 10, 64); err == nil {
			return strconv.FormatUint(v, 10)
		}
		return strconv.Quote(text)
	}
	if v, err := strconv.ParseFloat(text, 64); err == nil {
		return strconv.FormatFloat(v, 'g', -1, 64) + "f"
	}
	return strconv.Quote(text)
}

func refArgs(members []refMember) (out []string) {
	for _, m := range members {
		if text := refValue(m.value); text != "" {
			out = append(out, strconv.Quote(m.key)+":"+text)
		}
	}
	return out
}

// refRecords combines the events of all documents.
func refRecords(docs []*refDoc) ([]string, error) {
	var slices, instants, counters, flows, late, launches, work []string
	open := map[string][]*refEvent{}
	var complete []*refEvent
	for _, d := range docs {
		for _, e := range d.events {
			if e.ts == 0 && d.kineto && (d.known || d.absolute) {
				if e.ph != "X" && e.ph != "i" {
					return nil, errOutside
				}
				continue
			}
			if e.ts < int64(parse.AbsoluteFrom) {
				e.ts += d.base
			}
			role := roleOf(e.cat)
			unlinked := d.own && d.drawn
			switch e.ph {
			case "X", "B":
				index := len(complete)
				complete = append(complete, e)
				if e.bind != "" && (e.in || e.out) {
					id, isText := refText([]byte(e.bind))
					if !isText {
						id = e.bind
					}
					phase := map[[2]bool]string{{true, true}: "t", {true, false}: "f", {false, true}: "s"}[[2]bool{e.in, e.out}]
					flows = append(flows, fmt.Sprintf("%s %s %q %q %q %d true %d", phase, e.row(), "", "", id, e.ts, index))
				}
				if e.ph == "B" {
					open[e.row()] = append(open[e.row()], e)
					break
				}
				link := fmt.Sprintf("%d %s %s", index, e.row(), e.correlation)
				if role == parse.RoleLaunch && e.correlation != "" && e.correlation != "0" && !unlinked {
					launches = append(launches, "launch "+link)
				}
				if role == parse.RoleWork && e.correlation != "" && e.correlation != "0" && !unlinked {
					work = append(work, "work "+link)
				}
			case "E":
				stack := open[e.row()]
				if len(stack) == 0 {
					break
				}
				b := stack[len(stack)-1]
				open[e.row()] = stack[:len(stack)-1]
				b.dur = max(0, e.ts-b.ts)
				b.args = append(e.args[:len(e.args):len(e.args)], b.args...)
			case "i", "I", "R":
				instants = append(instants, fmt.Sprintf("i %s %q %d {%s}", e.row(), e.name, e.ts, strings.Join(refArgs(e.args), ",")))
			case "C":
				for _, a := range e.args {
					text := strings.Trim(refValue(a.value), `"f`)
					if v, err := strconv.ParseFloat(text, 64); err == nil && a.value[0] != 't' && a.value[0] != 'f' {
						counters = append(counters, fmt.Sprintf("C %q %q %d %v", e.part, e.pid, e.ts, v))
					}
				}
			case "s", "t", "f":
				text := fmt.Sprintf("%s %s %q %q %q %d %v -1", e.ph, e.row(), e.cat, e.name, e.id, e.ts, e.bp)
				if role == parse.RoleArrow {
					late = append(late, text)
				} else {
					flows = append(flows, text)
				}
			default:
				return nil, errOutside
			}
		}
	}
	for _, stack := range open {
		if len(stack) > 0 {
			return nil, errOutside
		}
	}
	for _, e := range complete {
		slices = append(slices, fmt.Sprintf("X %s %q %q %d+%d {%s}", e.row(), e.name, e.cat, e.ts, e.dur, strings.Join(refArgs(e.args), ",")))
	}
	if len(launches)+len(work) == 0 {
		flows = append(flows, late...)
	}
	var out []string
	for _, l := range [][]string{slices, instants, counters, flows, launches, work} {
		out = append(out, l...)
	}
	return out, nil
}
