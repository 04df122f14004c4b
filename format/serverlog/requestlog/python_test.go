package requestlog

import (
	"encoding/json"
	"testing"
)

// Printed Python values become JSON with the same values. If a text was shortened in the middle, its beginning is kept.
func TestJSONOfPython(t *testing.T) {
	for python, want := range map[string]string{
		`{'id': 'r1', 'n': -1.5e-05, 'no': None, 'yes': [True, False], 'of': ()}, and so on`: `{"id":"r1","n":-0.000015,"no":null,"of":[],"yes":[true,false]}`,
		`{'a': "it's \"so\" \\ \n\t", 'b': 'say "so" \'x\'', 'c': '\xe9\u2026\x00'}`:         `{"a":"it's \"so\" \\ \n\t","b":"say \"so\" 'x'","c":"é…\u0000"}`,
		`{'message': 'a } long' ... 'text {', 'x': nan, 'y': inf}`:                           `{"message":"a } long","x":null,"y":null}`,
	} {
		var v any
		if err := json.Unmarshal(appendJSON(nil, []byte(python)), &v); err != nil {
			t.Errorf("%s: %v: %s", python, err, appendJSON(nil, []byte(python)))
			continue
		}
		if got, _ := json.Marshal(v); string(got) != want {
			t.Errorf("%s is %s, want %s", python, got, want)
		}
	}
	appendJSON(nil, []byte(`{'a': 'no end`))
}
