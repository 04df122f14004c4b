package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// writeOTLP writes a dump that a script gives as compact text: "otlp otel.jsonl FILE...". A FILE
// is in the script, or else in golden/script/dumps. A FILE that already is a dump is copied. Each
// resource begins a line of the dump:
//
//	base 1787000000000000000
//	resource service.name=sglang
//	scope "sglang server"
//	span aa01 103 102 10000 400000 tokenize pid=412 label="Scheduler [TP 0]"
//	event 20000 schedule batch_size=1
//	link aa01 102
//
// The words of a span are its trace, its id, its parent's id ("-" if none), start and end in ns
// after base, its name, and its attributes. "!kind=2" and "!status=2" are fields. An indented
// line continues the one above. The boilerplate of SGLang's exporter is abbreviated: "sdk" in a
// resource stands for the three attributes about its SDK, "bare" instead of "span" is a span
// without flags, and "plain" one also without kind and status.
func writeOTLP(ts *testscript.TestScript, _ bool, args []string) {
	var dump strings.Builder
	for _, name := range args[1:] {
		path := ts.MkAbs(name)
		if _, err := os.Stat(path); err != nil {
			path = filepath.Join(scriptDir, "dumps", name)
		}
		text, err := os.ReadFile(path)
		ts.Check(err)
		if strings.HasSuffix(name, ".jsonl") {
			dump.Write(text)
			continue
		}
		lines, err := expandOTLP(string(text))
		if err != nil {
			ts.Fatalf("%s: %v", name, err)
		}
		dump.WriteString(lines)
	}
	out := ts.MkAbs(args[0])
	ts.Check(os.MkdirAll(filepath.Dir(out), 0o777))
	ts.Check(os.WriteFile(out, []byte(dump.String()), 0o666))
}

// cutline cuts a line of a file, counted from 1, after a number of bytes: "cutline FILE 2 900".
func cutline(ts *testscript.TestScript, _ bool, args []string) {
	data, err := os.ReadFile(ts.MkAbs(args[0]))
	ts.Check(err)
	n, err := strconv.Atoi(args[1])
	ts.Check(err)
	length, err := strconv.Atoi(args[2])
	ts.Check(err)
	lines := strings.SplitAfter(string(data), "\n")
	lines[n-1] = lines[n-1][:length] + "\n"
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(strings.Join(lines, "")), 0o666))
}

// These types have their fields in the order in which SGLang's exporter writes them.
type (
	otlpDocument struct {
		ResourceSpans []*otlpResource `json:"resourceSpans"`
	}
	otlpResource struct {
		Resource struct {
			Attributes []otlpAttribute `json:"attributes"`
		} `json:"resource"`
		ScopeSpans []*otlpScope `json:"scopeSpans"`
	}
	otlpScope struct {
		Scope *otlpName   `json:"scope,omitempty"`
		Spans []*otlpSpan `json:"spans"`
	}
	otlpName struct {
		Name string `json:"name"`
	}
	otlpSpan struct {
		TraceID    string          `json:"traceId"`
		SpanID     string          `json:"spanId"`
		Parent     string          `json:"parentSpanId,omitempty"`
		Flags      int             `json:"flags,omitempty"`
		Name       string          `json:"name"`
		Kind       int             `json:"kind,omitempty"`
		Start      string          `json:"startTimeUnixNano"`
		End        string          `json:"endTimeUnixNano"`
		Attributes []otlpAttribute `json:"attributes,omitempty"`
		Events     []*otlpEvent    `json:"events,omitempty"`
		Links      []otlpLink      `json:"links,omitempty"`
		Status     *otlpStatus     `json:"status,omitempty"`
	}
	otlpEvent struct {
		Time       string          `json:"timeUnixNano"`
		Name       string          `json:"name"`
		Attributes []otlpAttribute `json:"attributes,omitempty"`
	}
	otlpLink struct {
		TraceID string `json:"traceId"`
		SpanID  string `json:"spanId"`
		Flags   int    `json:"flags"`
	}
	otlpStatus struct {
		Code int `json:"code,omitempty"`
	}
	otlpAttribute struct {
		Key   string         `json:"key"`
		Value map[string]any `json:"value"`
	}
)

// otlpSDK are the resource attributes that the Python SDK adds.
var otlpSDK = []otlpAttribute{
	{"telemetry.sdk.language", map[string]any{"stringValue": "python"}},
	{"telemetry.sdk.name", map[string]any{"stringValue": "opentelemetry"}},
	{"telemetry.sdk.version", map[string]any{"stringValue": "1.44.0"}},
}

const otlpFlags = 256 // as SGLang's exporter sets them: the parent is known to be local

// continued matches where a line continues on the next, indented line.
var continued = regexp.MustCompile(`\n +`)

// An otlpText expands compact text.
type otlpText struct {
	base int64
	docs []*otlpDocument
}

// expandOTLP returns the dump lines that compact text stands for.
func expandOTLP(text string) (string, error) {
	var x otlpText
	for n, line := range strings.Split(continued.ReplaceAllString(text, " "), "\n") {
		words, err := otlpWords(line)
		if err == nil && len(words) > 0 && !strings.HasPrefix(words[0], "#") {
			err = x.add(words[0], words[1:])
		}
		if err != nil {
			return "", fmt.Errorf("statement %d: %w", n+1, err)
		}
	}
	var dump strings.Builder
	enc := json.NewEncoder(&dump)
	enc.SetEscapeHTML(false)
	for _, d := range x.docs {
		if err := enc.Encode(d); err != nil {
			return "", err
		}
	}
	return dump.String(), nil
}

// add adds the element that a line describes.
func (x *otlpText) add(what string, words []string) (err error) {
	least := map[string]int{"base": 1, "resource": 0, "scope": 1, "span": 6, "bare": 6, "plain": 6, "event": 2, "link": 2}
	if n, ok := least[what]; !ok || len(words) < n {
		return fmt.Errorf("%q and %d words", what, len(words))
	}
	switch what {
	case "base":
		x.base, err = strconv.ParseInt(words[0], 10, 64)
	case "resource":
		err = x.addResource(words)
	case "scope":
		x.resource().ScopeSpans = []*otlpScope{{Scope: &otlpName{words[0]}}}
	case "span", "bare", "plain":
		err = x.addSpan(what, words)
	case "event":
		e := &otlpEvent{Name: words[1]}
		if e.Time, err = x.time(words[0]); err == nil {
			e.Attributes, err = otlpAttributes(words[2:])
		}
		s := x.span()
		s.Events = append(s.Events, e)
	case "link":
		s := x.span()
		s.Links = append(s.Links, otlpLink{otlpID(words[0], 32), otlpID(words[1], 16), otlpFlags})
	}
	return err
}

func (x *otlpText) resource() *otlpResource {
	return x.docs[len(x.docs)-1].ResourceSpans[0]
}

func (x *otlpText) span() *otlpSpan {
	spans := x.resource().ScopeSpans[0].Spans
	return spans[len(spans)-1]
}

func (x *otlpText) addResource(words []string) (err error) {
	r := &otlpResource{ScopeSpans: []*otlpScope{{}}}
	if len(words) > 0 && words[0] == "sdk" {
		r.Resource.Attributes, words = otlpSDK, words[1:]
	}
	own, err := otlpAttributes(words)
	r.Resource.Attributes = append(r.Resource.Attributes[:len(r.Resource.Attributes):len(r.Resource.Attributes)], own...)
	x.docs = append(x.docs, &otlpDocument{[]*otlpResource{r}})
	return err
}

func (x *otlpText) addSpan(what string, words []string) (err error) {
	s := &otlpSpan{TraceID: otlpID(words[0], 32), SpanID: otlpID(words[1], 16), Name: words[5]}
	if words[2] != "-" {
		s.Parent = otlpID(words[2], 16)
	}
	if what == "span" {
		s.Flags = otlpFlags
	}
	if what != "plain" {
		s.Kind, s.Status = 1, &otlpStatus{}
	}
	if s.Start, err = x.time(words[3]); err != nil {
		return err
	}
	if s.End, err = x.time(words[4]); err != nil {
		return err
	}
	words = words[6:]
	for ; len(words) > 0 && words[0][0] == '!'; words = words[1:] {
		field, value, _ := strings.Cut(words[0][1:], "=")
		n, err := strconv.Atoi(value)
		if err != nil {
			return err
		}
		switch field {
		case "kind":
			s.Kind = n
		case "status":
			s.Status.Code = n
		default:
			return fmt.Errorf("no field %q", field)
		}
	}
	s.Attributes, err = otlpAttributes(words)
	scope := x.resource().ScopeSpans[0]
	scope.Spans = append(scope.Spans, s)
	return err
}

// time returns the Unix time for an offset from base.
func (x *otlpText) time(word string) (string, error) {
	ns, err := strconv.ParseInt(word, 10, 64)
	return strconv.FormatInt(x.base+ns, 10), err
}

// otlpID returns an id with the given number of digits.
func otlpID(word string, digits int) string {
	return strings.Repeat("0", max(0, digits-len(word))) + word
}

// otlpAttributes returns the attributes in words "key=value". A value is a number, a text with or
// without quotes, or a JSON list of texts.
func otlpAttributes(words []string) (list []otlpAttribute, err error) {
	for _, w := range words {
		key, value, ok := strings.Cut(w, "=")
		if !ok {
			return nil, fmt.Errorf("%q is no attribute", w)
		}
		a := otlpAttribute{key, map[string]any{}}
		var texts []string
		switch number := json.Number(value); {
		case strings.HasPrefix(value, `"`):
			text, err := strconv.Unquote(value)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", w, err)
			}
			a.Value["stringValue"] = text
		case strings.HasPrefix(value, "[") && json.Unmarshal([]byte(value), &texts) == nil:
			values := []map[string]any{}
			for _, text := range texts {
				values = append(values, map[string]any{"stringValue": text})
			}
			a.Value["arrayValue"] = map[string]any{"values": values}
		case isInt(value):
			a.Value["intValue"] = value
		case isFloat(value):
			a.Value["doubleValue"] = number
		default:
			a.Value["stringValue"] = value
		}
		list = append(list, a)
	}
	return list, nil
}

func isInt(word string) bool {
	_, err := strconv.ParseInt(word, 10, 64)
	return err == nil
}

func isFloat(word string) bool {
	_, err := strconv.ParseFloat(word, 64)
	return err == nil && strings.Contains(word, ".")
}

// otlpWords splits a line at blanks outside quotes. A word that is quoted as a whole loses its
// quotes.
func otlpWords(line string) (words []string, err error) {
	for line = strings.TrimSpace(line); line != ""; line = strings.TrimLeft(line, " ") {
		end := 0
		for end < len(line) && line[end] != ' ' {
			if line[end] != '"' {
				end++
				continue
			}
			quoted, err := strconv.QuotedPrefix(line[end:])
			if err != nil {
				return nil, fmt.Errorf("%s: %w", line, err)
			}
			end += len(quoted)
		}
		word := line[:end]
		if word[0] == '"' {
			if word, err = strconv.Unquote(word); err != nil {
				return nil, err
			}
		}
		words, line = append(words, word), line[end:]
	}
	return words, nil
}
