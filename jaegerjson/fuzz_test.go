package jaegerjson

import (
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/spantable"
	"github.com/sgtrace/sgtrace/trace"
)

// FuzzRead reads anything: what is added has identity and time, and what is not is reported
// within the file.
func FuzzRead(f *testing.F) {
	f.Add(`{"data":[{"traceID":"1f","spans":[{"traceID":"1f","spanID":"2f","operationName":"Req 1","startTime":1787000000000000,"duration":5,
		"references":[{"refType":"CHILD_OF","traceID":"1f","spanID":"3f"}],"tags":[{"key":"n","type":"int64","value":9007199254740993},
		{"key":"error","type":"bool","value":true}],"logs":[{"timestamp":1787000000000001,"fields":[{"key":"event","type":"string","value":"x"}]}],
		"processID":"p"}],"processes":{"p":{"serviceName":"sglang","tags":[]}}}],"total":0}`)
	f.Add(`[{"traceID":"1","spans":[{"spanID":1}],"processes":[]},{}`)
	f.Fuzz(func(t *testing.T, data string) {
		table := spantable.New(&trace.Diags{})
		read(table.Fill("f", "fuzz"), strings.NewReader(data))
		for i := range table.Len() {
			s := table.Span(i)
			if s.TraceHi|s.TraceLo == 0 || s.ID == 0 || s.Start <= 0 || s.End < s.Start {
				t.Errorf("%+v", s)
			}
			if at := table.Pos(i).Offset; at < 0 || at >= int64(len(data)) || data[at] != '{' {
				t.Errorf("span %d stands at %d", i, at)
			}
		}
		if table.Files[0].Spans != table.Len() {
			t.Errorf("%d spans in the file, %d in the table", table.Files[0].Spans, table.Len())
		}
		for _, d := range table.Diags.All() {
			if d.Pos.File != "f" || d.Pos.Offset > int64(len(data)) {
				t.Errorf("%+v", d)
			}
		}
	})
}
