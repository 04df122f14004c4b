package zipkinjson

import (
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/spantable"
	"github.com/sgtrace/sgtrace/trace"
)

// FuzzRead reads anything: what is added has identity and time, and what is not is reported
// within the file.
func FuzzRead(f *testing.F) {
	f.Add(`[[{"traceId":"1f","id":"2f","parentId":"3f","name":"x","kind":"SERVER","timestamp":1787000000000000,"duration":5,
		"localEndpoint":{"serviceName":"sglang"},"annotations":[{"timestamp":1787000000000001,"value":"x|{\"n\":9007199254740993,\"f\":0.5}|0"}],
		"tags":{"error":"true","a":"0.5","otlp.link.0":"1f|4f||{}|0"}}]]`)
	f.Add(`{"traceId":1}[]{"id":"1"`)
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
