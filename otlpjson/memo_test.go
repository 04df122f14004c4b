package otlpjson

import (
	"fmt"
	"testing"
)

// An attribute that was read before is read the same again, with the same diagnostics. The expected
// values come from dumps with one span each, in which nothing can be cached.
func TestAttributesReadAgain(t *testing.T) {
	attributes := []string{
		`{"key":"pid","value":{"intValue":"88"}}`, `{"key":"pid","value":{"intValue":"89"}}`, `{"key":"pid","value":{"stringValue":"88"}}`,
		`{"key":"pid", "value":{"intValue":"88"}}`, `{"value":{"intValue":"88"},"key":"pid"}`, `{"key":"pid","value":{"intValue":"88"},"x":{}}`,
		`{"key":"brace","value":{"stringValue":"a}}b"}}`, `{"key":"brace","value":{"stringValue":"a}}c"}}`, `{"key":"brace","value":{"stringValue":"a"}}`,
		`{"key":"api_key","value":{"stringValue":"a1b2c3d4e5f6"}}`, `{"key":"odd","value":{"intValue":"twelve"}}`, `{"key":"none","value":{}}`,
		`{"key":"map","value":{"kvlistValue":{"values":[{"key":"y","value":{"intValue":"8"}}]}}}`, `{"key":"escaped","value":{"stringValue":"\u00e9\n"}}`,
		`{"key":"float","value":{"doubleValue":0.25}}`, `{"key":"float","value":{"doubleValue":0.5}}`, `{"key":"","value":{"intValue":"1"}}`,
	}
	const times = 3
	var spans, want []string
	told := map[string]int{}
	for n := range times {
		for i, a := range attributes {
			s := span(fmt.Sprint(n, " ", i), `"attributes":[`+a+`,{"key":"last","value":{"boolValue":true}}]`)
			spans = append(spans, s)
			alone := read(t, doc(s))
			want = append(want, alone.inOrder()...)
			for _, d := range alone.diags {
				told[d.Code] += max(d.Count, 1)
			}
		}
	}
	got := read(t, doc(spans...))
	if d := diff(got.inOrder(), want); d != "" {
		t.Error(d)
	}
	for _, d := range got.diags {
		if told[d.Code] != max(d.Count, 1) {
			t.Errorf("%s is told %d times, want %d", d.Code, d.Count, told[d.Code])
		}
		delete(told, d.Code)
	}
	if len(told) > 0 || got.diags == nil {
		t.Errorf("not told: %v", told)
	}
}
