package chrometrace

import (
	"fmt"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/chrometrace/internal/parse"
)

// around puts text between two valid events, a and z, in a document.
func around(text string) string {
	ev := func(name string) string {
		return "  {\n    \"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"" + name + "\", \"pid\": 7, \"tid\": 7,\n    \"ts\": 100.000, \"dur\": 5.000,\n    \"args\": {\n      \"External id\": 3\n    }\n  }"
	}
	return "{\n  \"schemaVersion\": 1,\n  \"baseTimeNanoseconds\": 1775078550000000000,\n  \"traceEvents\": [\n" + ev("a") + ",\n" + text + ",\n" + ev("z") + "\n  ],\"traceName\": \"/tmp/x.json\" }"
}

// oddEvent is an event with the given raw text as its name, or as its further members.
func oddEvent(name, args string) string {
	return "  {\n    \"ph\": \"X\", \"cat\": \"python_function\", \"name\": \"" + name + "\", \"pid\": 7, \"tid\": 7,\n    \"ts\": 101.000, \"dur\": 5.000,\n    \"args\": {\n      " + args + "\n    }\n  }"
}

const oddAt = 239 // offset of the text

// malformed are inputs as producers are known to write them and crashes leave them.
var malformed = []struct {
	name, data string
	names      string // of the events
	args       string // of the second event, if it matters
	codes      string
}{
	{"unescaped quotes (pytorch#146900)", around(oddEvent(`{"device": "cpu", "dtype": "float32"}(12): run`, `"Python id": 5`)),
		`a {"device": "cpu", "dtype": "float32"}(12): run z`, `{"Python id":5}`, "trace-unescaped-quote"},
	{"unescaped quotes that look like the end", around(oddEvent(`f("x", "y", "z")`, `"Python id": 5`)), `a f("x", "y", "z") z`, `{"Python id":5}`, "trace-unescaped-quote"},
	{"unescaped quote at the end", around(oddEvent(`say "hi"`, `"Python id": 5`)), `a say "hi" z`, `{"Python id":5}`, "trace-unescaped-quote"},
	{"one unescaped quote", around(oddEvent(`5" disk`, `"Python id": 5`)), `a 5" disk z`, `{"Python id":5}`, "trace-unescaped-quote"},
	{"unescaped quotes in arguments", around(oddEvent(`b`, `"s": "say "hi", you", "n": 5, "l": ["a "b" c", "d"]`)), `a b z`, `{"s":"say \"hi\", you","n":5,"l":["a \"b\" c","d"]}`, "trace-unescaped-quote*2"},
	{"backslash at the end (pytorch#98432)", around(oddEvent(`C:\path\`, `"n": 5`)), `a C:\path\ z`, `{"n":5}`, "trace-unescaped-quote"},
	{"unknown escapes", around(oddEvent(`C:\path\q`, `"n": 5`)), `a C:\path\q z`, `{"n":5}`, ""},
	{"control character (perfetto#598)", around(oddEvent("|||S(\x01): <module>", `"n": 5`)), "a |||S(\x01): <module> z", `{"n":5}`, "trace-odd-name"},
	{"newline", around(oddEvent("foo\nbar", `"n": 5`)), "a foo\nbar z", `{"n":5}`, "trace-odd-name"},
	{"no UTF-8", around(oddEvent("foo\xffbar", `"n": 5`)), "a foo�bar z", `{"n":5}`, "trace-odd-name"},
	{"bare inf", around(oddEvent("b", `"bytes": 200, "memory bandwidth (GB/s)": inf`)), "a b z", `{"bytes":200,"memory bandwidth (GB/s)":"inf"}`, "trace-bare-word"},
	{"bare N/A", around(oddEvent("b", `"x": N/A, "y": -nan(ind), "z": [nan, 1]`)), "a b z", `{"x":"N/A","y":"-nan(ind)","z":["nan",1]}`, "trace-bare-word*3"},
	{"comma behind the last argument", around(oddEvent("b", `"External id": 12,`)), "a b z", `{"External id":12}`, "trace-comma"},
	{"no value", around(oddEvent("b", `"Process Group Description": , "n": 1`)), "a b z", `{"n":1}`, "trace-missing-value"},
	{"no last value", around(oddEvent("b", `"n": 1, "Process Group Description": `)), "a b z", `{"n":1}`, "trace-missing-value"},
	{"list without end", around(oddEvent("b", `"Input Tensors start": [[1, 2], [3, "n": 1`)), "a b z", `{"Input Tensors start":[[1,2],[3]],"n":1}`, "trace-open-list*2"},
	{"list without end, last", around(oddEvent("b", `"n": 1, "l": [1, 2, ...`)), "a b z", `{"n":1,"l":[1,2,"..."]}`, "trace-bare-word trace-open-list"},
	{"no comma between arguments", around(oddEvent("b", `"n": 1 "m": 2`)), "a b z", `{"n":1,"m":2}`, "trace-comma"},
	{"no comma between events", strings.Replace(around(oddEvent("b", `"n": 1`)), "},\n  {", "}\n  {", 1), "a b z", `{"n":1}`, "trace-comma"},
	{"large numbers", around(oddEvent("b", `"Comms Id": 17446744073709551557, "Addr": 9007199254740993`)), "a b z", `{"Comms Id":17446744073709551557,"Addr":9007199254740993}`, ""},

	{"cut inside an event", around("")[:300], "a", "", "trace-truncated!"},
	{"cut between events", around("")[:238], "a", "", "trace-truncated!"},
	{"cut behind the events", strings.Split(around(`{"x": 1}`), `"traceName"`)[0], "a z", "", "trace-not-an-event trace-truncated!"},
	{"an event cut off by another one", around(oddEvent("b", `"n": 1`)[:60]), "a z", "", "trace-syntax!"},
	{"a name cut off by another event", around(oddEvent("b", `"n": 1`)[:57]), "a z", "", "trace-syntax!"},
	{"no quote behind a key", around(strings.Replace(oddEvent("b", `"n": 1`), `"name"`, `"name`, 1)), "a z", "", "trace-syntax!"},
	{"no brace behind an event", around(strings.TrimSuffix(oddEvent("b", `"n": 1`), "}")), "a z", "", "trace-syntax!"},
	{"another document inside", around(oddEvent("b", `"n": 1`)[:60] + around(oddEvent("b", `"n": 1`))), "a a b z z", "", "trace-syntax!*2"},
	{"two halves of events", around(oddEvent("b", `"n": 1`)[:75] + oddEvent("c", `"n": 1`)[40:]), "a z", "", "trace-syntax!"},
	{"zeros between events", around(oddEvent("b", `"n": 1`) + strings.Repeat("\x00", 4096)), "a b z", "", "trace-syntax!"},
	{"quotes in log lines", strings.Replace(around(oddEvent("b", `"n": 1`)), `"traceName"`, `"INFO": ["a "b c", "d"], "traceName"`, 1), "a b z", "", "trace-syntax!"},
	{"header cut off", strings.Replace(around(oddEvent("b", `"n": 1`)), "\"schemaVersion\"", "\"deviceProperties\": [{\"id\": 0, \"na\n  \"schemaVersion\"", 1), "a b z", "", "trace-syntax!"},
	{"beginning missing", around(oddEvent("b", `"n": 1`))[180:], "b z", "", "trace-syntax!"},
	{"comma behind the last event", strings.Replace(around(oddEvent("b", `"n": 1`)), "}\n  ],", "},\n  ],", 1), "a b z", "", ""},
}

func TestMalformed(t *testing.T) {
	for _, c := range malformed {
		t.Run(c.name, func(t *testing.T) {
			r := readWith(Options{Workers: 1}, parse.Usual, same, []byte(c.data))
			if r.err != nil {
				t.Fatal(r.err)
			}
			if r.names() != c.names {
				t.Errorf("events %q, want %q", r.names(), c.names)
			}
			if c.args != "" && r.plainArgs(r.Events[1].Args) != c.args {
				t.Errorf("arguments %s, want %s", r.plainArgs(r.Events[1].Args), c.args)
			}
			var codes []string
			for _, d := range r.diags {
				code := d.Code
				if d.Severity > 1 {
					code += "!"
				}
				if d.Count > 1 {
					code += fmt.Sprintf("*%d", d.Count)
				}
				if code != "trace-no-base" {
					codes = append(codes, code)
				}
				if d.Pos.Offset < 0 || d.Pos.Offset > int64(len(c.data)) {
					t.Errorf("out of place: %v", d)
				}
			}
			if got := strings.Join(codes, " "); got != c.codes {
				t.Errorf("diagnostics %q, want %q: %v", got, c.codes, r.diags)
			}
			if c.args != "" && c.codes != "" && r.diags[0].Pos.Offset < oddAt-2 {
				t.Errorf("%v: the damage is at %d", r.diags, oddAt)
			}
		})
	}
}
