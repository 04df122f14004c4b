package otlpjson

import (
	"strings"
	"testing"
)

// For damage found in real files, this checks what is lost.
func TestDamage(t *testing.T) {
	a, b, c, d := span("a"), rich("b"), span("c"), span("d")
	abc := doc(a, b, c)
	last := "\n" + doc(d)
	replace := func(old, new string) string {
		if !strings.Contains(abc, old) {
			panic("nothing to replace: " + old)
		}
		return strings.Replace(abc, old, new, 1)
	}
	const link = `{"traceId":"00000000000000005eed5eed5eed5eed","spanId":"00000000000000bb","flags":768`
	for _, x := range []struct{ name, data, spans, codes string }{
		{"a broken line in the middle", doc(a) + "\n" + `{"resourceSpans":[}` + last, "a d", "otlp-syntax@f1:2"},
		{"a line of another format", doc(a) + "\n2026-11-20T16:32:11Z ERROR disk full" + last, "a d", "otlp-syntax@f1:2"},
		{"zeros after a crash", doc(a) + "\n" + strings.Repeat("\x00", 5000) + last, "a d", "otlp-syntax@f1:2"},
		{"zeros at the end", doc(a) + "\n" + strings.Repeat("\x00", 5000), "a", "otlp-syntax@f1:2"},
		{"zeros inside a line", replace(a, a+strings.Repeat("\x00", 50)) + last, "a b c d", "otlp-syntax@f1:1"},
		{"rubbish alone", "no OTLP at all\n", "", "otlp-syntax@f1:1"},

		{"a span without its closing brace", replace(a, a[:len(a)-1]) + last, "b c d", "otlp-syntax@f1:1"},
		{"a status without its closing brace", replace(a, a[:len(a)-2]+"}") + last, "b c d", "otlp-syntax@f1:1"},
		{"a span cut off inside its events", doc(b[:strings.Index(b, `"retract"`)]) + last, "d", "otlp-syntax@f1:1"},
		{"spans behind a span cut off in its links", replace(b, b[:strings.Index(b, link)+len(link)]) + last, "a c d", "otlp-syntax@f1:1"},
		{"spans behind a list of links without its end", replace(`"links":[`+link, `"links":[`+link+"},"+c+",{"+link[1:]) + last, "a c c d", "otlp-syntax@f1:1×2"},
		{"objects that are no spans", doc(a, "{}", link+"}", `{"key":"k","value":{}}`, c) + last, "a c d", "otlp-syntax@f1:1"},
		{"spans inside a list of events", replace(`"events":[`, `"events":[`+c+`,`) + last, "a c c d", "otlp-syntax@f1:1×2"},
		{"spans inside a list of attributes", replace(`"attributes":[{"key":"word"`, `"attributes":[`+c+`,{"key":"word"`) + last, "a c c d", "otlp-syntax@f1:1×2"},
		{"spans inside a value", replace(`{"boolValue":true}`, `{"boolValue":`+c+`}`) + last, "a c c d", "otlp-syntax@f1:1×2"},
		{"spans inside a member that is not read", replace(`"traceState":"k=v"`, `"traceState":[`+c+`]`) + last, "a c c d", "otlp-syntax@f1:1×2 otlp-unknown-key@f1:1×3"},
		{"a list of spans under another name", replace(`"spans":[`, `"spins":[`) + last, "a b c d", "otlp-syntax@f1:1"},
		{"a list of spans without its bracket", replace(`"spans":[`, `"spans":`) + last, "a b c d", "otlp-syntax@f1:1"},
		{"a list of scopes under another name", replace(`"scopeSpans":[`, `"scupeSpans":[`) + last, "a b c d", "otlp-syntax@f1:1"},
		{"a list of resources under another name", replace(`"resourceSpans":[`, `"resourceSpams":[`) + last, "a b c d", "otlp-syntax@f1:1"},
		{"a resource under another name", replace(`"resource":{`, `"resourze":{`) + last, "a b c d", "otlp-unknown-key@f1:1"},
		{"one resource in place of a list", `{"resourceSpans":` + resourceSpans("p1", a) + `}` + last, "a d", "otlp-syntax@f1:1×2"},

		{"a document inside a document", doc(a, doc(b), c) + last, "a b c d", "otlp-truncated@f1:1 otlp-syntax@f1:1"},
		{"a document in place of a resource", `{"resourceSpans":[` + doc(a) + `]}` + last, "a d", "otlp-truncated@f1:1 otlp-syntax@f1:1"},
		{"a document behind a key", `{"resourceSpans":` + "\n" + doc(a) + last, "a d", "otlp-truncated@f1:1"},
		{"a document behind a brace", `{` + "\n" + doc(a) + last, "a d", "otlp-truncated@f1:1"},
		{"a document inside logs", `{"resourceLogs":[{"scopeLogs":[` + "\n" + doc(a) + last, "a d", "otlp-truncated@f1:1"},
		{"logs inside logs", `{"resourceLogs":[{"scopeLogs":[` + "\n" + `{"resourceLogs":[]}` + last, "d", "otlp-truncated@f1:1"},
		{"a resource without a document", resourceSpans("p1", a) + last, "a d", "otlp-syntax@f1:1"},
		{"a scope without a document", scopeSpans("s1", a) + last, "a d", "otlp-syntax@f1:1"},
		{"spans without a document", a + "\n" + c + last, "a c d", "otlp-syntax@f1:1"},

		{"a nesting bomb", doc(a) + "\n" + strings.Repeat("[", 1_000_000) + last, "a d", ""},
		{"a bomb of objects", doc(a) + "\n" + strings.Repeat(`{"a":`, 100_000) + last, "a d", "otlp-syntax@f1:2"},
		{"a bomb in an attribute", replace(`{"boolValue":true}`, strings.Repeat(`{"arrayValue":{"values":[`, 100_000)) + last, "a c d", "otlp-syntax@f1:1"},
		{"a bomb in a member that is not read", replace(`"traceState":"k=v"`, `"traceState":`+strings.Repeat(`[`, 100_000)) + last, "a c d", "otlp-syntax@f1:1"},
		{"a bomb in logs", `{"resourceLogs":` + strings.Repeat(`[{"a":`, 100_000) + last, "d", "otlp-syntax@f1:1"},
	} {
		t.Run(x.name, func(t *testing.T) {
			got := read(t, x.data)
			if got.names() != x.spans || got.codes() != x.codes {
				t.Errorf("spans %s, diagnostics %v;\nwant %s, %q", got.names(), got.diags, x.spans, x.codes)
			}
			if d := diff(readSmall(t, x.data).everything(), got.everything()); d != "" {
				t.Errorf("with small buffers: %s", d)
			}
		})
	}
}

// A span found after damage belongs to its own process, or to an unknown one.
func TestResourceBehindDamage(t *testing.T) {
	two := `{"resourceSpans":[` + resourceSpans("p1", span("a"), span("b"), span("c")) + "," + resourceSpans("p2", span("d"), span("e")) + `]}`
	for _, x := range []struct{ name, data, want string }{
		{"a broken span", strings.Replace(two, `"name":"b"`, `"name"`, 1), "a:p1 c:p1 d:p2 e:p2"},
		{"a broken last span", strings.Replace(two, `"name":"c"`, `"name"`, 1), "a:p1 b:p1 d:p2 e:p2"},
		{"a broken resource", strings.Replace(two, `"value":{"stringValue":"p2"`, `"value":"`, 1), "a:p1 b:p1 c:p1 d: e:"},
		{"a broken scope", strings.Replace(two, `{"name":"s1"}`, `{"name""s1"}`, 1), "a:p1 b:p1 c:p1 d:p2 e:p2"},
		{"the resource last, the span before it broken", `{"resourceSpans":[{"scopeSpans":[` + scopeSpans("s", span("a"), `{"x"}`, span("b")) +
			`],"resource":{"attributes":[{"key":"service.instance.id","value":{"stringValue":"p9"}}]}}]}`, "a:p9 b:p9"},
		{"the head cut off", two[strings.Index(two, `"name":"a"`):], "b: c: d:p2 e:p2"},
	} {
		got := read(t, x.data)
		var out []string
		for i := range got.Len() {
			s := got.Span(i)
			out = append(out, got.Syms.Name(s.Name)+":"+got.Syms.Name(got.Resource(s).Instance))
		}
		if text := strings.Join(out, " "); text != x.want || !got.loss() {
			t.Errorf("%s: %s, want %s; %v", x.name, text, x.want, got.diags)
		}
	}
}

// A record longer than any real one is skipped, in bounded memory.
func TestRecordTooLong(t *testing.T) {
	l := limits{block: 1 << 10, piece: 1 << 12, record: 1 << 14}
	long := strings.Repeat("x", l.record+1)
	for _, x := range []struct{ name, data, spans string }{
		{"name", doc(span("a"), strings.Replace(span("b"), `"name":"b"`, `"name":"`+long+`"`, 1), span("c")), "a c"},
		{"attribute", doc(span("a"), span("b", `"attributes":[{"key":"k","value":{"stringValue":"`+long+`"}}]`), span("c")), "a c"},
		{"schema", `{"schemaUrl":"` + long + `","resourceSpans":[` + resourceSpans("p1", span("a")) + `]}`, "a"},
		{"key", `{"` + long + `":1,"resourceSpans":[` + resourceSpans("p1", span("a")) + `]}`, "a"},
	} {
		got := readWith(t, l, same, x.data+"\n"+doc(span("d")))
		if got.names() != x.spans+" d" || !got.loss() || !strings.HasPrefix(got.codes(), "otlp-syntax@f1:1") {
			t.Errorf("%s: %d spans, want %s d; %.300v", x.name, got.Len(), x.spans, got.diags)
		}
	}
	// A record just below the limit is read.
	name := strings.Repeat("x", l.record/2)
	if got := readWith(t, l, same, doc(strings.Replace(span("b"), `"name":"b"`, `"name":"`+name+`"`, 1))); got.names() != name {
		t.Errorf("a long name is lost: %v", got.diags)
	}
	// Logs are skipped, not buffered.
	logs := `{"resourceLogs":[` + strings.Repeat(`{"body":"`+long+`"},`, 10) + `{}]}`
	if got := readWith(t, l, same, logs+doc(span("a"))); got.names() != "a" || len(got.diags) > 0 {
		t.Errorf("behind long logs: spans %s, %v", got.names(), got.diags)
	}
}
