package otlpjson

import (
	"github.com/sgtrace/sgtrace/trace"
)

// A recorder writes records into a batch; the JSON and the protobuf parser
// share it.
type recorder struct {
	out             *batch
	cache           *trace.SymbolCache
	keys            wellKnown
	list, eventList trace.ArgList // scratch
	text0           []byte        // scratch
}

// wellKnown are the symbols that the readers themselves look for.
type wellKnown struct {
	service, instance, statusMessage, droppedAttributes trace.Sym
}

func newRecorder(syms *trace.Symbols) recorder {
	return recorder{cache: trace.NewSymbolCache(syms), keys: wellKnown{
		service:           syms.Intern("service.name"),
		instance:          syms.Intern("service.instance.id"),
		statusMessage:     syms.Intern("status.message"),
		droppedAttributes: syms.Intern("dropped_attributes_count"),
	}}
}

// addResource stores a resource and returns its 1-based index.
func (r *recorder) addResource(args trace.ArgList) int {
	res := batchResource{args: args}
	for a := range args.All() {
		switch a.Key {
		case r.keys.service:
			res.service = r.cache.Intern(a.Bytes())
		case r.keys.instance:
			res.instance = r.cache.Intern(a.Bytes())
		}
	}
	r.out.resources = append(r.out.resources, res)
	return len(r.out.resources)
}

func (r *recorder) diag(s trace.Severity, code string, pos trace.Pos, msg string) {
	r.out.diags = append(r.out.diags, trace.Diag{Severity: s, Code: code, Pos: pos, Msg: msg})
}
