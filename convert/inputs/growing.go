package inputs

import (
	"bytes"

	"github.com/sgtrace/sgtrace/otlpjson"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/request/assembly"
	"github.com/sgtrace/sgtrace/request/spantable"
	"github.com/sgtrace/sgtrace/trace"
)

// A Growing is a dump that is still being written.
type Growing struct {
	name  string
	diags *trace.Diags // about lines that cannot be used
	dump  *spantable.Table
}

// NewGrowing returns an empty dump that reports lines that cannot be used to diags. The
// name is for messages.
func NewGrowing(name string, diags *trace.Diags) *Growing {
	return &Growing{name: name, diags: diags, dump: newSpans(diags, false)}
}

// Read adds whole lines.
func (g *Growing) Read(lines []byte) error {
	g.dump.Diags = g.diags
	return otlpjson.Read(g.dump, g.name, bytes.NewReader(lines))
}

// Requests returns the requests of all that was read, nil without any spans. Nothing is
// reported: whatever is missing may still come.
func (g *Growing) Requests() *request.Set {
	if g.dump.Len() == 0 {
		return nil
	}
	g.dump.Diags = new(trace.Diags)
	return assembly.Build(g.dump).Set
}
