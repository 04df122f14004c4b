package otlpjson

import (
	"fmt"
	"strings"
	"testing"
)

func TestAttributeValues(t *testing.T) {
	deep := func(n int) string {
		return strings.Repeat(`{"arrayValue":{"values":[`, n) + `{"intValue":1}` + strings.Repeat(`]}}`, n)
	}
	for _, c := range []struct {
		value, want string
		code        string // of the diagnostic
	}{
		{`{"stringValue":""}`, `""`, ""},
		{`{"stringValue":"a\tb\"\\\/\u00e9\ud83d\ude00"}`, `"a\tb\"\\/é😀"`, ""},
		{`{"stringValue":"lone \ud83d surrogates \ude00"}`, `"lone � surrogates �"`, ""},
		{`{"stringValue":"{\"traceId\":\"0\",\"resourceSpans\":["}`, `"{\"traceId\":\"0\",\"resourceSpans\":["`, ""},
		{`{"stringValue":null}`, ``, ""},
		{`{"intValue":"9223372036854775807"}`, `9223372036854775807`, ""},
		{`{"intValue":-9223372036854775808}`, `-9223372036854775808`, ""},
		{`{"intValue":"5e2"}`, `500`, ""},
		{`{"intValue":null}`, ``, ""},
		{`{"intValue":"18446744073709551615"}`, `"18446744073709551615"`, "otlp-odd-value"},
		{`{"intValue":"many"}`, `"many"`, "otlp-odd-value"},
		{`{"intValue":1.5}`, `"1.5"`, "otlp-odd-value"},
		{`{"intValue":true}`, `"true"`, "otlp-odd-value"},
		{`{"doubleValue":0.1}`, `0.1f`, ""},
		{`{"doubleValue":1}`, `1f`, ""},
		{`{"doubleValue":"-1.5e-3"}`, `-0.0015f`, ""},
		{`{"doubleValue":"NaN"}`, `NaNf`, ""},
		{`{"doubleValue":"-Infinity"}`, `-Inff`, ""},
		{`{"doubleValue":1e999}`, `+Inff`, ""},
		{`{"doubleValue":""}`, `""`, "otlp-odd-value"},
		{`{"boolValue":true}`, `true`, ""},
		{`{"boolValue":"false"}`, `false`, ""},
		{`{"boolValue":1}`, `"1"`, "otlp-odd-value"},
		{`{"bytesValue":"AP8="}`, `"AP8="`, ""},
		{`{"arrayValue":{"values":[{"intValue":1},{},null,{"stringValue":"x"},{"arrayValue":{}}]}}`, `[1 "x" []]`, ""},
		{`{"arrayValue":{"values":null}}`, `[]`, ""},
		{`{"kvlistValue":{"values":[{"key":"a","value":{"intValue":1}},{"value":{"boolValue":true}},{"key":"b"}]}}`, `{"a"=1 ""=true}`, ""},
		{`{"kvlistValue":{}}`, `{}`, ""},
		{`{}`, ``, ""},
		{`null`, ``, ""},
		{`{"futureValue":{"a":[1,{"b":"}"}]}}`, ``, "otlp-unknown-key"},
		{deep(32), strings.Repeat("[", 32) + "1" + strings.Repeat("]", 32), ""},
		{deep(33), strings.Repeat("[", 33) + strings.Repeat("]", 33), "otlp-lost-value"},
	} {
		want := `{}`
		if c.want != "" {
			want = `{"k"=` + c.want + `}`
		}
		for _, pair := range []string{`{"key":"k","value":` + c.value + `}`, `{"value":` + c.value + `,"key":"k"}`} {
			data := doc(span("a", `"attributes":[`+pair+`]`))
			got := read(t, data)
			if got.Len() != 1 || plain(got.Table, 0).attrs != want {
				t.Errorf("%.100s reads as %s, want %s", pair, got.inOrder(), want)
			}
			code := ""
			if c.code != "" {
				code = c.code + "@f1:1"
			}
			if got.codes() != code {
				t.Errorf("%.100s: diagnostics %v, want %q", pair, got.diags, code)
			}
			if c.code != "otlp-lost-value" {
				compare(t, data)
			}
		}
	}
}

// Of repeated keys, the last value counts; repeated lists are joined; a repeated name, id, or
// start invalidates the span.
func TestRepeatedKeys(t *testing.T) {
	for _, c := range []struct{ member, want, code string }{
		{`"attributes":[{"key":"a","value":{"intValue":1},"value":{"intValue":2}}]`, `attrs={"a"=2}`, ""},
		{`"attributes":[{"value":{"intValue":1},"key":"a","value":{"intValue":2}}]`, `attrs={"a"=2}`, ""},
		{`"attributes":[{"key":"a","value":{"intValue":1},"key":"b"}]`, `attrs={"b"=1}`, ""},
		{`"attributes":[{"key":"a","value":{"intValue":1}},{"key":"a","value":{"intValue":2}}]`, `attrs={"a"=1 "a"=2}`, ""},
		{`"attributes":[{"key":"a","value":{"intValue":1}}],"attributes":[{"key":"b","value":{"intValue":2}}]`, `attrs={"a"=1 "b"=2}`, ""},
		{`"events":[{"timeUnixNano":1,"name":"x"}],"events":[{"timeUnixNano":2,"name":"y"}]`, `events=["x"@1{} "y"@2{}]`, ""},
		{`"kind":5,"kind":3`, `kind=3`, ""},
		{`"name":"other"`, ``, "otlp-invalid-span"},
		{`"spanId":"1111111111111111"`, ``, "otlp-invalid-span"},
		{`"start_time_unix_nano":"1"`, ``, "otlp-invalid-span"},
	} {
		data := doc(span("a", c.member), span("b"))
		got := read(t, data)
		if c.code != "" {
			if got.names() != "b" || got.codes() != c.code+"@f1:1" {
				t.Errorf("%s: spans %s, diagnostics %v; want b, %s", c.member, got.names(), got.diags, c.code)
			}
			continue
		}
		if got.names() != "a b" || !strings.Contains(got.inOrder()[0], c.want) {
			t.Errorf("%s reads as %s, want %s", c.member, got.inOrder(), c.want)
		}
		compare(t, data)
	}
}

// An invalid value costs only its own span, and is counted.
func TestInvalidSpans(t *testing.T) {
	good := span("bad")
	with := func(old, new string) string {
		if !strings.Contains(good, old) {
			panic("nothing to replace: " + old)
		}
		return strings.Replace(good, old, new, 1)
	}
	for _, c := range []struct{ bad, why string }{
		{with(`"startTimeUnixNano":"1787`, `"startTimeUnixNano":"x787`), errNumber.Error()},
		{with(`"startTimeUnixNano":"1787`, `"startTimeUnixNano":"9991787`), errNumber.Error()},
		{with(`"endTimeUnixNano":"1787`, `"endTimeUnixNano":"0.1787`), errNumber.Error()},
		{with(`"endTimeUnixNano":"`, `"endTimeUnixNano":true,"x":"`), errNumber.Error()},
		{with(`"endTimeUnixNano":"`, `"endTimeUnixNano":"","x":"`), errNumber.Error()},
		{with(`"endTimeUnixNano":"`, `"endTimeUnixNano":null,"x":"`), errMissing.Error()},
		{with(`"endTimeUnixNano":"`, `"endTimeUnixNano":{"low":1,"high":2},"x":"`), errType.Error()},
		{with(`"startTimeUnixNano"`, `"startTime"`), errMissing.Error()},
		{with(`"traceId":"0000000000000000`, `"traceId":"000000000000000`), errID.Error()},
		{with(`"traceId":"0000000000000000`, `"traceId":"zzzzzzzzzzzzzzzz`), errID.Error()},
		{with(`"traceId":"00000000000000005eed5eed5eed5eed"`, `"traceId":"00000000000000000000000000000000"`), errMissing.Error()},
		{with(`"traceId":`, `"trace":`), errMissing.Error()},
		{with(`"spanId":"`, `"spanId":"0123456789abcdef`), errID.Error()},
		{with(`"spanId":`, `"spanId":["a"],"x":`), errType.Error()},
		{with(`"name":"bad"`, `"name":5`), errType.Error()},
		{with(`"name":"bad"`, `"name":{"a":[{}]}`), errType.Error()},
		{with(`"status":{}`, `"parentSpanId":"-","status":{}`), errID.Error()},
		{with(`"status":{}`, `"links":[{"traceId":"x"}],"status":{}`), errID.Error()},
		{with(`"status":{}`, `"events":[{"timeUnixNano":"x"}],"status":{}`), errNumber.Error()},
		{with(`"status":{}`, `"status":{"message":5}`), errType.Error()},
	} {
		docs := []string{doc(span("a")), doc(span("b"), c.bad, span("c")), doc(c.bad, span("d"))}
		got := read(t, strings.Join(docs, "\n"))
		if got.names() != "a b c d" {
			t.Errorf("%s: spans %s, want a b c d", c.bad, got.names())
		}
		found := false
		for _, d := range got.diags {
			if d.Code == "otlp-invalid-span" {
				found = true
				if d.Pos.String() != "f1:2" || d.Count != 2 || !strings.HasSuffix(d.Msg, c.why) {
					t.Errorf("%s: %v, want 2 from f1:2 on: %s", c.bad, d, c.why)
				}
			} else if d.Code != "otlp-unknown-key" {
				t.Errorf("%s: %v", c.bad, d)
			}
		}
		if !found {
			t.Errorf("%s: diagnostics %v, want otlp-invalid-span", c.bad, got.diags)
		}
	}
}

// An event without a time is dropped; its span is kept.
func TestEventWithoutTime(t *testing.T) {
	got := read(t, doc(span("a", `"events":[{"name":"x"},{"timeUnixNano":"5","name":"y"},{}]`)))
	if want := `["y"@5{}]`; got.Len() != 1 || fmt.Sprint(plain(got.Table, 0).events) != want || got.codes() != "otlp-lost-value@f1:1×2" {
		t.Errorf("%s, diagnostics %v; want events %s and two lost values", got.inOrder(), got.diags, want)
	}
}

// Keys that no version of OTLP has are skipped with a notice, wherever they are.
func TestUnknownKeys(t *testing.T) {
	for _, in := range []string{
		`{"novel":{"a":[1]},"resourceSpans":[` + resourceSpans("p1", span("a")) + `]}`,
		`{"resourceSpans":[` + resourceSpans("p1", span("a")) + `],"novel":"x"}`,
		`{"resourceSpans":[{"novel":[[{}]],` + resourceSpans("p1", span("a"))[1:] + `]}`,
		`{"resourceSpans":[{"resource":{"novel":1,"attributes":[{"key":"service.instance.id","value":{"stringValue":"p1"}}]},"scopeSpans":[` + scopeSpans("s1", span("a")) + `]}]}`,
		doc(span("a", `"novel":{"traceid":{"b":[]}}`)),
		doc(span("a", `"status":{"novel":null}`)),
		doc(span("a", `"attributes":[{"novel":{"stringValue":"{"}}]`)),
		doc(span("a", `"attributes":[{"key":"k","value":{"arrayValue":{"novel":[]}}}]`)),
	} {
		got := read(t, in)
		if got.names() != "a" || got.codes() != "otlp-unknown-key@f1:1" || got.loss() || !strings.Contains(got.diags[0].Msg, `"novel"`) {
			t.Errorf("%s: spans %s, diagnostics %v", in, got.names(), got.diags)
		}
		if r := got.Resource(got.Span(0)); got.Syms.Name(r.Instance) != "p1" {
			t.Errorf("%s: the resource is lost", in)
		}
	}
}
