package otlpjson

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/bytedance/sonic"
	"github.com/bytedance/sonic/decoder"
)

// The second oracle uses sonic with typed structs. It reads what Collectors write, document by
// document. The benchmarks use the same types.

var sonicConfig = sonic.Config{CaseSensitive: true, CopyString: true}.Froze()

type wireDocument struct {
	ResourceSpans []struct {
		Resource struct {
			Attributes []wireKeyValue `json:"attributes"`
		} `json:"resource"`
		ScopeSpans []struct {
			Scope struct {
				Name string `json:"name"`
			} `json:"scope"`
			Spans []wireSpan `json:"spans"`
		} `json:"scopeSpans"`
	} `json:"resourceSpans"`
}

type wireSpan struct {
	TraceID    string         `json:"traceId"`
	SpanID     string         `json:"spanId"`
	Parent     string         `json:"parentSpanId"`
	Name       string         `json:"name"`
	Kind       int            `json:"kind"`
	Start      json.Number    `json:"startTimeUnixNano"`
	End        json.Number    `json:"endTimeUnixNano"`
	Attributes []wireKeyValue `json:"attributes"`
	Events     []struct {
		Time       json.Number    `json:"timeUnixNano"`
		Name       string         `json:"name"`
		Attributes []wireKeyValue `json:"attributes"`
	} `json:"events"`
	Links []struct {
		TraceID string `json:"traceId"`
		SpanID  string `json:"spanId"`
	} `json:"links"`
	Status struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	} `json:"status"`
}

type wireKeyValue struct {
	Key   string    `json:"key"`
	Value wireValue `json:"value"`
}

type wireValue struct {
	String *string      `json:"stringValue"`
	Int    *json.Number `json:"intValue"`
	Double *float64     `json:"doubleValue"`
	Bool   *bool        `json:"boolValue"`
	Array  *struct {
		Values []wireValue `json:"values"`
	} `json:"arrayValue"`
	List *struct {
		Values []wireKeyValue `json:"values"`
	} `json:"kvlistValue"`
}

func (v *wireValue) plain() string {
	switch {
	case v.String != nil:
		return quote(*v.String)
	case v.Int != nil:
		return v.Int.String()
	case v.Double != nil:
		return plainFloat(*v.Double)
	case v.Bool != nil && *v.Bool:
		return "true"
	case v.Bool != nil:
		return "false"
	case v.Array != nil:
		var out []string
		for i := range v.Array.Values {
			out = append(out, v.Array.Values[i].plain())
		}
		return plainList(out)
	case v.List != nil:
		return plainDict(plainKeyValues(v.List.Values))
	}
	return "nothing"
}

func plainKeyValues(list []wireKeyValue) (out []string) {
	for i := range list {
		out = append(out, quote(list[i].Key)+"="+list[i].Value.plain())
	}
	return out
}

func (w *wireSpan) plain(resource []wireKeyValue, scope string) *plainSpan {
	attrs := plainKeyValues(w.Attributes)
	if kind := []string{"", "", "server", "client", "producer", "consumer"}[w.Kind]; kind != "" {
		attrs = append(attrs, `"span.kind"=`+quote(kind))
	}
	if w.Status.Message != "" {
		attrs = append(attrs, `"status.message"=`+quote(w.Status.Message))
	}
	padded := func(id string, digits int) string { return strings.Repeat("0", digits-len(id)) + id }
	number := func(n json.Number) int64 { v, _ := n.Int64(); return v }
	s := &plainSpan{
		trace: w.TraceID, id: w.SpanID, parent: padded(w.Parent, 16), name: w.Name, kind: w.Kind, status: w.Status.Code,
		start: number(w.Start), end: number(w.End), attrs: plainDict(attrs),
		resource: plainDict(plainKeyValues(resource)), scope: scope,
	}
	for _, e := range w.Events {
		s.events = append(s.events, plainEvent(e.Name, number(e.Time), plainDict(plainKeyValues(e.Attributes))))
	}
	for _, l := range w.Links {
		s.links = append(s.links, plainLink(padded(l.TraceID, 32), padded(l.SpanID, 16)))
	}
	return s
}

// sonicInOrder returns the spans of concatenated documents.
func sonicInOrder(t *testing.T, data string) (out []string) {
	t.Helper()
	for rest := strings.TrimSpace(data); rest != ""; {
		var doc wireDocument
		dec := decoder.NewDecoder(rest)
		dec.SetOptions(decoder.OptionCaseSensitive | decoder.OptionCopyString)
		if err := dec.Decode(&doc); err != nil {
			t.Fatalf("sonic: %v", err)
		}
		rest = strings.TrimSpace(rest[dec.Pos():])
		for _, rs := range doc.ResourceSpans {
			for _, ss := range rs.ScopeSpans {
				for i := range ss.Spans {
					out = append(out, ss.Spans[i].plain(rs.Resource.Attributes, ss.Scope.Name).String())
				}
			}
		}
	}
	return out
}
