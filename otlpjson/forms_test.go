package otlpjson

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/request/spantable"
	"github.com/sgtrace/sgtrace/trace"
)

func indented(docs ...string) string {
	var b bytes.Buffer
	for _, d := range docs {
		if err := json.Indent(&b, []byte(d), "", "  "); err != nil {
			panic(err)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// Documents may follow each other in any layout. The numbers are the lines of the spans a and b
// (one document) and c (another).
func TestLayouts(t *testing.T) {
	ab, c := doc(span("a"), rich("b")), doc(span("c"))
	want := read(t, ab, c).inOrder()
	for _, layout := range []struct{ name, data, lines string }{
		{"lines", ab + "\n" + c + "\n", "1 1 2"},
		{"no newline at the end", ab + "\n" + c, "1 1 2"},
		{"no newline at all", ab + c, "1 1 1"},
		{"CRLF", ab + "\r\n" + c + "\r\n", "1 1 2"},
		{"blank lines", "\n\n" + ab + "\n\n \t\n" + c + "\n\n", "3 3 6"},
		{"many blank lines", strings.Repeat("\n", 20) + ab + c, "21 21 21"},
		{"spaces in front", strings.Repeat(" ", 20) + ab + " " + c, "1 1 1"},
		{"array", "[" + ab + "," + c + "]", "1 1 1"},
		{"array on lines", "[\n" + ab + ",\n" + c + "\n]\n", "2 2 3"},
		{"comma in front", "[" + ab + "\n," + c + "\n]", "1 1 2"},
		{"two arrays", "[" + ab + "][" + c + "]", "1 1 1"},
		{"byte order mark", "\ufeff" + ab + "\n" + c, "1 1 2"},
		{"joined files with byte order marks", "\ufeff" + ab + "\n\ufeff" + c, "1 1 2"},
		{"empty documents between", "{}\n" + ab + "\n{\"resourceSpans\":[]}{ }\n" + c + "\n{\"resourceSpans\":null}", "2 2 4"},
		{"other signals between", `{"resourceLogs":[{"resource":{},"scopeLogs":[{"logRecords":[{"traceId":"1","spanId":"2","name":"x"}]}]}]}` + "\n" +
			ab + `{"resourceMetrics":[]}` + c, "2 2 2"},
		{"indented", indented(ab, c), ""},
		{"indented array", indented("[" + ab + "," + c + "]"), ""},
	} {
		t.Run(layout.name, func(t *testing.T) {
			got := read(t, layout.data)
			if d := diff(got.inOrder(), want); d != "" {
				t.Error(d)
			}
			if len(got.diags) > 0 {
				t.Errorf("diagnostics: %v", got.diags)
			}
			var lines []string
			for i := range got.Len() {
				lines = append(lines, fmt.Sprint(got.Span(i).Line))
			}
			if layout.lines != "" && strings.Join(lines, " ") != layout.lines {
				t.Errorf("lines %v, want %s", lines, layout.lines)
			}
			if !strings.Contains(layout.name, "marks") { // encoding/json rejects byte order marks inside
				compare(t, layout.data)
			}
		})
	}
}

func TestLinesOfIndentedDocument(t *testing.T) {
	data := indented(doc(span("a"), span("b")))
	want := []int{}
	for i, line := range strings.Split(data, "\n") {
		if strings.Contains(line, `"traceId"`) {
			want = append(want, i) // the brace is on the previous line, and lines count from 1
		}
	}
	got := read(t, data)
	for i := range want {
		if line := got.Pos(i).String(); line != fmt.Sprintf("f1:%d", want[i]) {
			t.Errorf("span %d is at %s, want line %d", i, line, want[i])
		}
	}
}

// A span is read the same in every spelling that producers use.
func TestSpellings(t *testing.T) {
	const want = `0000000000000000112233445566aabb/aabbccddeeff0011 parent=0000000000000000 name="prefill" kind=2 status=2 ` +
		`1787000000000000128..1787000000000000256 attrs={"tp"=1 "span.kind"="server"} events=["go"@1787000000000000200{}] ` +
		`links=[0000000000000000112233445566aabb/00000000000000bb] resource={"service.name"="sglang"} scope="s"`
	const (
		ids       = `"traceId":"0000000000000000112233445566aabb","spanId":"aabbccddeeff0011"`
		what      = `"name":"prefill","kind":2`
		times     = `"startTimeUnixNano":"1787000000000000128","endTimeUnixNano":"1787000000000000256"`
		attrs     = `"attributes":[{"key":"tp","value":{"intValue":"1"}}]`
		events    = `"events":[{"timeUnixNano":"1787000000000000200","name":"go"}]`
		links     = `"links":[{"traceId":"0000000000000000112233445566aabb","spanId":"00000000000000bb"}]`
		status    = `"status":{"code":2}`
		resource  = `"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"sglang"}}]}`
		scope     = `"scope":{"name":"s"}`
		plainSpan = `{` + ids + `,` + what + `,` + times + `,` + attrs + `,` + events + `,` + links + `,` + status + `}`
		document  = `{"resourceSpans":[{` + resource + `,"scopeSpans":[{` + scope + `,"spans":[` + plainSpan + `]}]}]}`
	)
	with := func(old, new string) string {
		if !strings.Contains(document, old) {
			panic("nothing to replace: " + old)
		}
		return strings.Replace(document, old, new, 1)
	}
	for _, c := range []struct{ name, data string }{
		{"as a Collector", document},
		{"resource behind the spans", `{"resourceSpans":[{"scopeSpans":[{` + scope + `,"spans":[` + plainSpan + `]}],` + resource + `}]}`},
		{"scope behind the spans", `{"resourceSpans":[{` + resource + `,"scopeSpans":[{"spans":[` + plainSpan + `],` + scope + `}]}]}`},
		{"both behind the spans", `{"resourceSpans":[{"scopeSpans":[{"spans":[` + plainSpan + `],` + scope + `}],` + resource + `}]}`},
		{"keys of the span in reverse", with(plainSpan, `{`+status+`,`+links+`,`+events+`,`+attrs+`,`+times+`,`+what+`,`+ids+`}`)},
		{"value before key", with(`{"key":"tp","value":{"intValue":"1"}}`, `{"value":{"intValue":"1"},"key":"tp"}`)},
		{"times as numbers", with(times, `"startTimeUnixNano":1787000000000000128,"endTimeUnixNano":1787000000000000256`)},
		{"times as float text", with(times, `"startTimeUnixNano":1787000000000000128.0,"endTimeUnixNano":"1.787000000000000256e18"`)},
		{"integer as number", with(`{"intValue":"1"}`, `{"intValue":1}`)},
		{"integer as float", with(`{"intValue":"1"}`, `{"intValue":1.0e0}`)},
		{"ids in upper case", with(ids, `"traceId":"0000000000000000112233445566AABB","spanId":"AABBCCDDEEFF0011"`)},
		{"short trace id", with(ids, `"traceId":"112233445566aabb","spanId":"aabbccddeeff0011"`)},
		{"ids in base64", with(ids, `"traceId":"AAAAAAAAAAARIjNEVWaquw==","spanId":"qrvM3e7/ABE="`)},
		{"ids in base64 without padding", with(ids, `"traceId":"AAAAAAAAAAARIjNEVWaquw","spanId":"qrvM3e7/ABE"`)},
		{"enum names", with(`"kind":2`, `"kind":"SPAN_KIND_SERVER"`)},
		{"enum name of the status", with(status, `"status":{"code":"STATUS_CODE_ERROR"}`)},
		{"enum number as text", with(`"kind":2`, `"kind":"2"`)},
		{"empty parent", with(ids, ids+`,"parentSpanId":""`)},
		{"null parent and state", with(ids, ids+`,"parentSpanId":null,"traceState":null`)},
		{"parent of zeros", with(ids, ids+`,"parentSpanId":"0000000000000000"`)},
		{"empty lists and objects", with(attrs, `"attributes":[],"events":[],"links":[],"status":{},`+attrs)},
		{"null lists and objects", with(attrs, `"attributes":null,"events":null,"links":null,"status":null,`+attrs)},
		{"lists in two parts", with(status, status+`,"attributes":[],"links":[]`)},
		{"status twice", with(status, `"status":{"code":1},`+status)},
		{"resource twice", with(resource, `"resource":{},`+resource)},
		{"two lists of resources", with(`[{`+resource, `[],"resourceSpans":[{`+resource)},
		{"spans twice", with(`"spans":[`, `"spans":null,"spans":[`)},
		{"null key value", with(attrs, `"attributes":[null,{},{"key":"tp","value":{"intValue":"1"}},{"key":"nothing","value":null}]`)},
		{"null event and link", with(events+`,`+links, `"events":[null,`+events[len(`"events":[`):]+`,"links":[null,`+links[len(`"links":[`):])},
		{"escapes in keys", with(`"traceId"`, `"trace\u0049d"`)},
		{"escapes in container keys", with(`"resourceSpans"`, `"\u0072esource\u0053pans"`)},
		{"escapes in values", with(`"prefill"`, `"\u0070refil\u006C"`)},
		{"escapes in ids", with(`"aabbccddeeff0011"`, `"\u0061abbccddeeff0011"`)},
		{"protobuf field names", `{"resource_spans":[{` + resource + `,"scope_spans":[{` + scope + `,"spans":[` +
			`{"trace_id":"0000000000000000112233445566aabb","span_id":"aabbccddeeff0011","parent_span_id":"","trace_state":"",` +
			`"name":"prefill","kind":2,"start_time_unix_nano":"1787000000000000128","end_time_unix_nano":1787000000000000256,` +
			`"attributes":[{"key":"tp","value":{"int_value":"1"}}],"dropped_attributes_count":0,"events":[{"time_unix_nano":1787000000000000200,"name":"go"}],` +
			`"links":[{"trace_id":"0000000000000000112233445566aabb","span_id":"00000000000000bb"}],` + status + `}]}]}]}`},
		{"OTLP before 0.15", strings.NewReplacer(`"scopeSpans"`, `"instrumentationLibrarySpans"`, `"scope"`, `"instrumentationLibrary"`).Replace(document)},
		{"Tempo", with(`"resourceSpans"`, `"batches"`)},
		{"what OTLP has and the package does not read", strings.NewReplacer(
			`"name":"prefill"`, `"flags":256,"traceState":"","droppedEventsCount":0,"droppedLinksCount":0,"name":"prefill"`,
			`"name":"s"`, `"name":"s","version":"1","attributes":[{"key":"k","value":{"boolValue":true}}],"droppedAttributesCount":1`,
			`"scopeSpans"`, `"schemaUrl":"https://x","scopeSpans"`, `"name":"go"`, `"name":"go","droppedAttributesCount":1`,
			`"spanId":"00000000000000bb"`, `"spanId":"00000000000000bb","traceState":"a=b","flags":768,"attributes":[]`).Replace(document)},
		{"white space everywhere", strings.NewReplacer(`:`, " :\t", `,`, "\r\n, ", `{`, "{ ", `}`, " }", `[`, "[\n", `]`, "\n]").Replace(document)},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := compare(t, c.data)
			if d := diff(got.inOrder(), []string{want}); d != "" {
				t.Error(d)
			}
			if len(got.diags) > 0 {
				t.Errorf("diagnostics: %v", got.diags)
			}
		})
	}
}

// Span fields other than attributes become attributes, unless they are empty.
func TestFieldsBecomeAttributes(t *testing.T) {
	for _, c := range []struct{ fields, want string }{
		{`"kind":1,"traceState":"","droppedAttributesCount":0,"droppedEventsCount":0,"droppedLinksCount":0,"links":[{"spanId":"00000000000000bb","attributes":[]}]`, `{}`},
		{`"kind":0`, `{}`},
		{`"kind":"SPAN_KIND_CONSUMER"`, `{"span.kind"="consumer"}`},
		{`"traceState":"a=b,c=d"`, `{"w3c.tracestate"="a=b,c=d"}`},
		{`"droppedAttributesCount":3,"droppedEventsCount":1,"droppedLinksCount":2`,
			`{"dropped_attributes_count"=3 "dropped_events_count"=1 "dropped_links_count"=2}`},
		{`"links":[{"spanId":"00000000000000bb"},{"spanId":"00000000000000cc","attributes":[{"key":"why","value":{"stringValue":"retry"}}]}]`,
			`{"link_attributes"=[{"span_id"="00000000000000cc" "why"="retry"}]}`},
		{`"links":[{"spanId":"00000000000000bb","attributes":[{"key":"api_key","value":{"stringValue":"x"}}]}],"traceState":"k=Bearer abcdefghijklmnopqrstuvwxyz0123456789"`,
			`{"w3c.tracestate"="k=Bearer [secret]"}`},
	} {
		d := spantable.New(new(trace.Diags))
		span := `{"traceId":"0000000000000000112233445566aabb","spanId":"aabbccddeeff0011","name":"x","startTimeUnixNano":"10","endTimeUnixNano":"20",` + c.fields + `}`
		if err := Read(d, "fields", strings.NewReader(doc(span))); err != nil {
			t.Fatal(err)
		}
		if got := plainArgs(d, d.Args.All(d.Span(0).Args)); got != c.want {
			t.Errorf("%s: %s, want %s", c.fields, got, c.want)
		}
	}
}
