package inputs

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/golden/simulator"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/testkit/testinput"
	"github.com/sgtrace/sgtrace/trace"
)

// These are spans as the Collector writes them.
type (
	otlpAttrs []struct {
		Key   string
		Value map[string]any
	}
	otlpSpan struct {
		TraceID, SpanID, ParentSpanID, Name string
		Kind                                int
		StartTimeUnixNano, EndTimeUnixNano  string
		Attributes                          otlpAttrs
		Events                              []struct {
			TimeUnixNano, Name string
			Attributes         otlpAttrs
		}
		Links  []struct{ TraceID, SpanID string }
		Status struct {
			Code    int
			Message string
		}
		resource otlpAttrs
		scope    string
	}
)

// decodeOTLP reads a dump with encoding/json, with times in whole microseconds, the
// resolution of Jaeger and Zipkin.
func decodeOTLP(t *testing.T, dump []byte) (list []otlpSpan) {
	t.Helper()
	for line := range bytes.Lines(dump) {
		var doc struct {
			ResourceSpans []struct {
				Resource   struct{ Attributes otlpAttrs }
				ScopeSpans []struct {
					Scope struct{ Name string }
					Spans []otlpSpan
				}
			}
		}
		if err := json.Unmarshal(line, &doc); err != nil {
			t.Fatal(err)
		}
		for _, r := range doc.ResourceSpans {
			for _, s := range r.ScopeSpans {
				for _, span := range s.Spans {
					span.resource, span.scope = r.Resource.Attributes, s.Scope.Name
					list = append(list, span)
				}
			}
		}
	}
	return list
}

func micros(ns string) int64 {
	n, _ := strconv.ParseInt(ns, 10, 64)
	return n / 1000
}

// roundTimes converts the times of a dump to whole microseconds.
func roundTimes(dump []byte) []byte {
	for _, key := range []string{`TimeUnixNano":"`, `timeUnixNano":"`} {
		parts := bytes.Split(dump, []byte(key))
		for i := range parts {
			if i > 0 && len(parts[i]) > 19 {
				copy(parts[i][16:19], "000")
			}
		}
		dump = bytes.Join(parts, []byte(key))
	}
	return dump
}

// jaegerTags returns attributes as Jaeger tags.
func jaegerTags(attrs otlpAttrs) []any {
	tags := []any{}
	for _, a := range attrs {
		for kind, v := range a.Value {
			typ := map[string]string{"stringValue": "string", "intValue": "int64", "doubleValue": "float64", "boolValue": "bool"}[kind]
			if typ == "int64" {
				v = json.Number(fmt.Sprint(v))
			}
			if typ == "" {
				text, _ := json.Marshal(v)
				typ, v = "string", string(text)
			}
			tags = append(tags, map[string]any{"key": a.Key, "type": typ, "value": v})
		}
	}
	return tags
}

// asJaeger writes spans like Jaeger's query API.
func asJaeger(list []otlpSpan) []byte {
	traces, order := map[string][]any{}, []string{}
	processes := map[string]any{}
	for _, s := range list {
		id := fmt.Sprint(s.resource)
		processes[id] = map[string]any{"serviceName": textOf(s.resource, "service.name"), "tags": jaegerTags(withoutService(s.resource))}
		refs, logs, tags := []any{}, []any{}, jaegerTags(s.Attributes)
		if s.ParentSpanID != "" {
			refs = append(refs, map[string]any{"refType": "CHILD_OF", "traceID": s.TraceID, "spanID": s.ParentSpanID})
		}
		for _, l := range s.Links {
			refs = append(refs, map[string]any{"refType": "FOLLOWS_FROM", "traceID": l.TraceID, "spanID": l.SpanID})
		}
		for _, e := range s.Events {
			logs = append(logs, map[string]any{"timestamp": micros(e.TimeUnixNano), "fields": append(jaegerTags(e.Attributes),
				map[string]any{"key": "event", "type": "string", "value": e.Name})})
		}
		tag := func(key, value string) {
			if value != "" {
				tags = append(tags, map[string]any{"key": key, "type": "string", "value": value})
			}
		}
		tag("otel.scope.name", s.scope)
		tag("otel.status_code", []string{"", "OK", "ERROR"}[s.Status.Code])
		tag("otel.status_description", s.Status.Message)
		tag("span.kind", []string{"", "internal", "server", "client", "producer", "consumer"}[s.Kind])
		if traces[s.TraceID] == nil {
			order = append(order, s.TraceID)
		}
		start := micros(s.StartTimeUnixNano)
		traces[s.TraceID] = append(traces[s.TraceID], map[string]any{"traceID": s.TraceID, "spanID": s.SpanID, "operationName": s.Name,
			"references": refs, "startTime": start, "duration": micros(s.EndTimeUnixNano) - start, "tags": tags, "logs": logs, "processID": id})
	}
	data := []any{}
	for _, id := range order {
		data = append(data, map[string]any{"traceID": id, "spans": traces[id], "processes": processes})
	}
	out, _ := json.Marshal(map[string]any{"data": data, "total": 0, "errors": nil})
	return out
}

// asZipkin writes spans like the Collector's Zipkin exporter.
func asZipkin(list []otlpSpan) []byte {
	all := []any{}
	for _, s := range list {
		tags := map[string]string{"otel.scope.name": s.scope}
		for _, a := range append(s.resource[:len(s.resource):len(s.resource)], s.Attributes...) {
			tags[a.Key] = valueText(a.Value)
		}
		delete(tags, "service.name")
		if code := s.Status.Code; code > 0 {
			tags["otel.status_code"] = []string{"", "OK", "ERROR"}[code]
		}
		if s.Status.Message != "" {
			tags["otel.status_description"] = s.Status.Message
		}
		for i, l := range s.Links {
			tags[fmt.Sprintf("otlp.link.%d", i)] = l.TraceID + "|" + l.SpanID + "||{}|0"
		}
		notes := []any{}
		for _, e := range s.Events {
			attrs := map[string]any{}
			for _, a := range e.Attributes {
				for kind, v := range a.Value {
					if kind == "intValue" {
						v = json.Number(fmt.Sprint(v))
					}
					attrs[a.Key] = v
				}
			}
			text, _ := json.Marshal(attrs)
			notes = append(notes, map[string]any{"timestamp": micros(e.TimeUnixNano), "value": e.Name + "|" + string(text) + "|0"})
		}
		start := micros(s.StartTimeUnixNano)
		span := map[string]any{"traceId": s.TraceID, "id": s.SpanID, "name": s.Name, "timestamp": start, "duration": micros(s.EndTimeUnixNano) - start,
			"localEndpoint": map[string]any{"serviceName": textOf(s.resource, "service.name")}, "tags": tags, "annotations": notes}
		if s.ParentSpanID != "" {
			span["parentId"] = s.ParentSpanID
		}
		if s.Kind > 1 {
			span["kind"] = []string{"SERVER", "CLIENT", "PRODUCER", "CONSUMER"}[s.Kind-2]
		}
		all = append(all, span)
	}
	out, _ := json.Marshal(all)
	return out
}

func valueText(value map[string]any) string {
	for kind, v := range value {
		if kind == "arrayValue" || kind == "kvlistValue" {
			text, _ := json.Marshal(v)
			return string(text)
		}
		return fmt.Sprint(v)
	}
	return ""
}

func textOf(attrs otlpAttrs, key string) string {
	for _, a := range attrs {
		if a.Key == key {
			return valueText(a.Value)
		}
	}
	return ""
}

func withoutService(attrs otlpAttrs) (rest otlpAttrs) {
	for _, a := range attrs {
		if a.Key != "service.name" {
			rest = append(rest, a)
		}
	}
	return rest
}

// facts lists the facts about requests that do not depend on the format: identity, metrics, and
// every row with its process.
func facts(s *request.Set) (list []string) {
	for i := range s.Requests {
		r := &s.Requests[i]
		list = append(list, fmt.Sprintf("%s %+v %v %q %d-%d", s.Text(r.RID), r.Metrics, r.Status, s.Syms.Name(r.Reason), r.Start, r.End))
	}
	for i := range s.Len() {
		row := s.Row(i)
		proc := ""
		if p := s.ProcOf(i); p != request.None {
			proc = fmt.Sprintf("%+v", s.Procs[p])
		}
		events := ""
		for _, e := range s.InstantsOf(i) {
			events += fmt.Sprintf(" %s@%d", s.Syms.Name(e.Name), e.Time)
		}
		list = append(list, fmt.Sprintf("%s %v %d-%d step %d of %s%s", s.Name(i), row.Kind, row.Start, row.End, row.Step, proc, events))
	}
	return list
}

// codesOf returns the diagnostics and how often they occurred: the dump is truncated, so spans are missing.
func codesOf(diags *trace.Diags) string {
	var list []string
	for _, d := range diags.All() {
		list = append(list, fmt.Sprintf("%s×%d", d.Message.Code, d.Count))
	}
	return strings.Join(sorted(list), " ")
}

// setOf reads one file.
func setOf(t *testing.T, name string, data []byte) (*request.Set, *trace.Diags) {
	t.Helper()
	if err := os.WriteFile(name, data, 0o666); err != nil {
		t.Fatal(err)
	}
	diags := &trace.Diags{}
	m, err := Load([]Input{{Name: name}}, Options{}, diags)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m.Requests, diags
}

// The spans of a simulated incident give the same requests in OTLP, Jaeger JSON, and Zipkin JSON.
func TestFormsOfSpansSayTheSame(t *testing.T) {
	t.Chdir(t.TempDir())
	dump, _ := testinput.Simulate(t, simulator.DefaultConfig(3))
	dump = roundTimes(bytes.Join(bytes.SplitAfterN(dump, []byte("\n"), 12)[:11], nil))
	list := decodeOTLP(t, dump)
	set, diags := setOf(t, "otlp.json", dump)
	want, says := facts(set), codesOf(diags)
	// Elasticsearch stores Jaeger tags as text, as Zipkin does.
	typed := regexp.MustCompile(`"type":"[a-z0-9]+","value":("[^"]*"|[-0-9.e+]+|true|false)`)
	texts := typed.ReplaceAllFunc(asJaeger(list), func(tag []byte) []byte {
		_, value, _ := bytes.Cut(tag, []byte(`"value":`))
		return fmt.Appendf(nil, `"type":"string","value":"%s"`, bytes.Trim(value, `"`))
	})
	for name, data := range map[string][]byte{"jaeger.json": asJaeger(list), "jaeger-es.json": texts, "zipkin.json": asZipkin(list)} {
		set, diags := setOf(t, name, data)
		got := facts(set)
		if len(got) != len(want) {
			t.Fatalf("%s: %d facts, not %d", name, len(got), len(want))
		}
		sortedGot, sortedWant := sorted(got), sorted(want)
		wrong := 0
		for i := range want {
			if sortedGot[i] != sortedWant[i] && wrong < 3 {
				wrong++
				t.Errorf("%s says\n%s, not\n%s", name, sortedGot[i], sortedWant[i])
			}
		}
		if got := codesOf(diags); got != says {
			t.Errorf("%s: %s, not %s", name, got, says)
		}
	}
}

// Damage in a file is reported with its position, and the rest is used.
func TestDamagedFormsOfSpans(t *testing.T) {
	t.Chdir(t.TempDir())
	span := `{"traceID":"1f","spanID":"2f","operationName":"Req 1","startTime":1787000000000000,"duration":5,"processID":"p"}`
	jaeger := `{"data":[{"traceID":"1f","spans":[` + span + `,{"traceID":"1f","spanID":3},` + strings.Replace(span, "2f", "4f", 1) + `],"processes":{"p":{"serviceName":"sglang"}}}]}`
	zspan := `{"traceId":"1f","id":"2f","name":"x","timestamp":1787000000000000,"duration":5,"localEndpoint":{"serviceName":"sglang"}}`
	for _, c := range []struct{ name, data, says string }{
		{"a span of wrong types", jaeger, fmt.Sprintf("jaeger.json+%d: data loss: a span is left out: json: cannot unmarshal number", strings.Index(jaeger, `{"traceID":"1f","spanID":3}`))},
		{"cut off", jaeger[:len(jaeger)-70], "data loss: reading stopped here: unexpected EOF; everything before this is used"},
		{"no time", `[` + zspan + `,` + strings.Replace(zspan, "1787000000000000", "0", 1) + `]`, "a span is left out: no trace id, span id, start or end"},
		{"garbage", `[` + zspan + `,oops]`, "reading stopped here: invalid character 'o'"},
	} {
		name := "jaeger.json"
		if strings.HasPrefix(c.data, "[") {
			name = "zipkin.json"
		}
		set, diags := setOf(t, name, []byte(c.data))
		if text := fmt.Sprint(diags.All()); set.Len() < 1 || diags.Worst() != trace.DataLoss || !strings.Contains(text, c.says) {
			t.Errorf("%s: %d rows, %s", c.name, set.Len(), text)
		}
	}
}

func sorted(list []string) []string {
	list = append([]string(nil), list...)
	for i := range list {
		list[i] = strings.TrimSpace(list[i])
	}
	slices.Sort(list)
	return list
}
