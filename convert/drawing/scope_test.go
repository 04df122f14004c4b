package drawing

import (
	"fmt"
	"strings"
	"testing"
)

// Slices state their scopes if the spans of their process have several; otherwise only the trace
// does.
func TestScopes(t *testing.T) {
	process := func(service string, scopes ...string) string {
		var list []string
		for i, scope := range scopes {
			list = append(list, fmt.Sprintf(`{"scope":{"name":%q},"spans":[{"traceId":"0000000000000000112233445566aabb","spanId":"%08x%08x","name":"%s of %s","startTimeUnixNano":"1787000000000000000","endTimeUnixNano":"1787000000000001000"}]}`,
				scope, len(service), i+1, scope, service))
		}
		return fmt.Sprintf(`{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":%q}}]},"scopeSpans":[%s]}`, service, strings.Join(list, ","))
	}
	_, model := drawn(t, []byte(`{"resourceSpans":[`+process("db", "sql", "cache", "")+","+process("web", "http")+"]}"))
	told := map[string]string{}
	for i := range model.Slices {
		s := &model.Slices[i]
		for a := range model.Args.All(s.Args) {
			if model.Syms.Name(a.Key) == "otel.scope.name" {
				told[model.Syms.Name(s.Name)] = string(a.Bytes())
			}
		}
	}
	if want := map[string]string{"sql of db": "sql", "cache of db": "cache"}; fmt.Sprint(told) != fmt.Sprint(want) {
		t.Errorf("slices tell the scopes %v, want %v", told, want)
	}
	var attributes []string
	for _, a := range model.Attributes {
		if strings.HasPrefix(a.Key, "sgtrace.scope.") {
			attributes = append(attributes, a.Key+"="+a.Value)
		}
	}
	if got := strings.Join(attributes, " "); got != "sgtrace.scope.db=cache, sql sgtrace.scope.web=http" {
		t.Errorf("the trace tells %q", got)
	}
}
