package serverlog

import (
	"bytes"
	"strings"

	"github.com/sgtrace/sgtrace/format"
	"github.com/sgtrace/sgtrace/format/logline"
	"github.com/sgtrace/sgtrace/format/serverlog/errortext"
	"github.com/sgtrace/sgtrace/internal/jsonscan"
	"github.com/sgtrace/sgtrace/series"
)

// Program is the log of any other program, such as a gateway, an operator, or a metadata store: its errors, in its own words, and
// the requests that it answered with an error.
//
// # What is odd
//
//   - It is tried last: a third of the first lines must have a stamp and a level, as Go, Rust, Python and glog write them, or be records.
//   - Envoy writes HTTP statuses as text, and its reason for answering itself in response_code_details.
var Program = &format.Format{
	Name:     "program log",
	Noun:     "program log",
	Doc:      "logs of gateways and other programs around servers, as text, logfmt or JSON: what they call errors, and requests that they answered with one",
	For:      "'sgtrace report'",
	Sniff:    sniffProgram,
	Index:    index,
	Requests: true,
	Series:   true,
	Text:     true,
}

func sniffProgram(head []byte) bool {
	const most, part = 30, 3
	head = bytes.TrimLeft(head, "\xef\xbb\xbf \t\r\n")
	lines, leveled := 0, 0
	around := logline.New()
	for lines < most && len(head) > 0 {
		var line []byte
		line, head, _ = bytes.Cut(head, []byte("\n"))
		if line = around.Bare(line); len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		if text, _ := errortext.Panic(line); text != "" {
			break // stacks follow
		}
		if line[0] == '\t' { // in Go's stacks, after the name of a function
			lines = max(0, lines-1)
			continue
		}
		lines++
		if isLeveled(line, around) {
			leveled++
		}
	}
	return leveled > 0 && part*leveled >= lines
}

// isLeveled reports whether a line has a stamp and a level, or is such a record, or the record of a request.
func isLeveled(line []byte, around *logline.Unwrapper) bool {
	if line[0] == '{' {
		return logline.IsRecord(line) && line[len(line)-1] == '}' || isAnswer(line)
	}
	if _, _, _, ok := logfmtOf(line); ok {
		return true
	}
	if _, ok := tabbedOf(line); ok {
		return true
	}
	if i := logline.IndexLeveledStamp(line); i >= 0 && logline.LevelOf(bytes.TrimLeft(line[i+logline.DateTime:], ".,0123456789Z ")) != nil {
		return true
	}
	if line[0] == '[' && logline.IsStamp(line[1:]) {
		head, _, _ := bytes.Cut(line[1+logline.DateTime:], []byte("]"))
		_, n, _ := logline.Fraction(head)
		if logline.RayLevel(head[n:]) != nil {
			return true
		}
	}
	if bytes.Contains(line, []byte(" UCX  ")) {
		return true
	}
	_, _, glog := logline.PlainGlogOf(around.Rest(line))
	i := localStampIn(line)
	return glog || i >= 0 && hasLevel(line[i:min(len(line), i+100)])
}

// logfmtOf parses `time="2026-08-17T20:53:20Z" level=error msg="..." error="..."`.
func logfmtOf(line []byte) (stamp, level string, said []byte, ok bool) {
	if !bytes.Contains(line, []byte("level=")) || !bytes.Contains(line, []byte("msg=")) {
		return "", "", nil, false
	}
	stamp, level = logfmtField(line, "time="), strings.ToUpper(logfmtField(line, "level="))
	if stamp == "" {
		stamp = logfmtField(line, "ts=")
	}
	text := logfmtField(line, "msg=")
	return stamp, level, []byte(text + aboutOf(line)), stamp != "" && text != ""
}

// aboutOf returns the error in the fields of a line, after a colon; "" if there is none.
func aboutOf(line []byte) string {
	for _, key := range logline.ErrorKeys {
		if about := logfmtField(line, key+"="); about != "" {
			return ": " + about
		}
	}
	return ""
}

// structured returns the message of klog, `"request failed" err="no pods" requestBody="..."`, without fields that may quote
// requests.
func structured(b []byte) []byte {
	text, _, _, err := jsonscan.String(b, 0)
	if err != nil {
		return b
	}
	said, _, _ := bytes.Cut(jsonscan.Unescape(nil, text), []byte("\n")) // a Python stack follows where Triton quotes a model's exception
	return append(bytes.TrimSpace(said), aboutOf(b)...)
}

// logfmtField returns the value of a field of a line; "" if there is none.
func logfmtField(line []byte, key string) string {
	i := bytes.Index(line, []byte(key))
	if i < 0 || i > 0 && line[i-1] != ' ' {
		return ""
	}
	rest := line[i+len(key):]
	if len(rest) > 0 && rest[0] == '"' {
		text, _, _, err := jsonscan.String(rest, 0)
		if err != nil {
			return ""
		}
		return string(jsonscan.Unescape(nil, text))
	}
	text, _, _ := bytes.Cut(rest, []byte(" "))
	return string(text)
}

// logfmt reads such a line.
func (r *reader) logfmt(b []byte) bool {
	stamp, level, said, ok := logfmtOf(b)
	if !ok {
		return false
	}
	if at, _, ok := r.around.Outer.Zoned([]byte(stamp)); ok {
		r.f.Within(0)
		r.now = at
	}
	r.leveled(said, []byte(level), r.now, r.spot())
	return true
}

// Keys in gateways' records of requests.
var (
	keysOfStatus  = []string{"response_code", "status_code", "status"}
	keysOfMethod  = []string{"method", "request_method"}
	keysOfBegin   = []string{"start_time", "time", "timestamp", "ts", "@timestamp"}
	keysOfDetails = []string{"response_code_details", "upstream_transport_failure_reason"}
)

// isAnswer reports whether b is the record of a request: a method and an HTTP status.
func isAnswer(b []byte) bool {
	has := func(keys []string) bool {
		for _, key := range keys {
			if bytes.Contains(b, []byte(`"`+key+`":`)) {
				return true
			}
		}
		return false
	}
	return len(b) > 0 && b[0] == '{' && has(keysOfStatus) && has(keysOfMethod)
}

// answer reads such a record: it counts failures, with the gateway's reason, a single word.
func (r *reader) answer(b []byte) bool {
	if !isAnswer(b) {
		return false
	}
	var status, begin, details string
	_, err := jsonscan.Members(b, 0, func(key, value []byte) {
		text := string(bytes.Trim(value, `"`))
		for _, x := range [...]struct {
			keys []string
			to   *string
		}{{keysOfStatus, &status}, {keysOfBegin, &begin}, {keysOfDetails, &details}} {
			for _, k := range x.keys {
				if string(key) == k && *x.to == "" && text != "-" {
					*x.to = text
				}
			}
		}
	})
	code, ok := logline.Digits([]byte(status), 3)
	if err != nil || !ok {
		return false
	}
	if at, _, ok := r.around.Outer.Zoned([]byte(begin)); ok {
		r.now = at
		r.f.Saw(at)
	}
	r.read++
	const tooMany = 429
	place := r.spot()
	switch {
	case code == tooMany:
		r.f.Add(r.series(series.Refused, place), r.now, 1)
	case code >= 500:
		r.f.Add(r.series(series.ServerErrors, place), r.now, 1)
		if details != "" && !strings.ContainsAny(details, " {") && details != "via_upstream" {
			r.complaints.Add("requests are answered with an error by the gateway itself: "+details, series.Instant{Time: r.now, Place: place, Line: uint32(r.line)})
		}
	}
	return true
}
