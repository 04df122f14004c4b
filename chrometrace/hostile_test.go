package chrometrace

import (
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/chrometrace/internal/parse"
)

// Inputs built to be slow are not: work that grows quadratically with the size would exceed the
// time limit of tests.
func TestHostileInputs(t *testing.T) {
	const size = 800 << 10
	event := `{"ph":"X","name":"a","pid":1,"tid":1,"ts":5,"args":{"x":[`
	for _, c := range map[string]struct{ begin, repeat string }{
		"a name without end":        {`[{"ph":"X","name":"`, "a"},
		"an escaped name":           {`[{"ph":"X","name":"`, `\"`},
		"zeros":                     {"[" + event + "]}},", "\x00"},
		"braces":                    {"[", "{"},
		"brackets":                  {"[", "["},
		"quotes":                    {"[", `"`},
		"events in events":          {"[", event},
		"events that are cut off":   {"[", event[:30]},
		"events in arguments":       {"[" + event, `{"ph":"X","ts":1},`},
		"objects in arguments":      {"[" + event, `{"a":"X","ts":1},`},
		"names with a quote":        {"[", `{"ph":"X","name":"a"b","ts":1},`},
		"names with a quote, no id": {"[", `{"ph":"X","name":"a"b, "ts":1},`},
		"ids in ids":                {"[", `{"id":{`},
		"documents in names":        {"", `{"schemaVersion":"`},
		"documents in lists":        {"", `{"schemaVersion":[],"x":[`},
		"documents":                 {`{"schemaVersion":[`, `{"schemaVersion":1},`},
		"counters":                  {"[", `{"ph":"C","ts":1,"args":{"` + "\xff" + `":1}},`},
	} {
		data := []byte(c.begin + strings.Repeat(c.repeat, size/len(c.repeat)))
		readFuzzed(Options{Workers: 1}, parse.Limits{Block: 1 << 16, Record: 1 << 20}, same, data)
	}
}
