package otlpjson

import (
	"io"

	"github.com/sgtrace/sgtrace/request/spantable"
	"github.com/sgtrace/sgtrace/trace"
)

// Outline finds the spans of the decompressed input r, and reads no more of them than o asks for; name is the
// name that [Read] will use. It parses a piece whose form is not the Collector's, so that it misses no span. It
// does not report damage.
func Outline(o *spantable.Outline, name string, r io.Reader) error {
	return outliner{o, usual, usualBlocks}.outline(name, r)
}

// An outliner outlines inputs.
type outliner struct {
	Outline *spantable.Outline
	limits  limits
	blocks  *blocks
}

func (o outliner) outline(name string, r io.Reader) error {
	d := intake{Table: spantable.New(&trace.Diags{})} // discards what is parsed
	src := &source{r: r}
	kind := detect(src)
	cut := cutter{limits: o.limits, in: src, blocks: o.blocks}
	cut.at, _ = r.(io.ReaderAt)
	cut.run(kind, d.reportFrames(name), func() func(*piece) { return o.newPrescanner(d.Table.Syms).piece }, func(p *piece) {
		for range p.done {
			// closed when the piece is done
		}
		o.Outline.Add(name, spantable.ByteRange{Offset: p.offset, Line: p.line, Size: len(p.data), Open: p.rest != nil}, p.prescanned)
	})
	return d.ended(name, src)
}

// A prescanner scans pieces for spans, one after the other.
type prescanner struct {
	prescan *spantable.Prescan
	worker  worker
	batch   batch
	keys    map[trace.Sym]int // indexes of Prescan.Keys
	texts   map[string]int    // the same by text
	syms    *trace.Symbols
}

func (o outliner) newPrescanner(syms *trace.Symbols) *prescanner {
	g := &prescanner{prescan: &o.Outline.Prescan, keys: map[trace.Sym]int{}, texts: map[string]int{}, syms: syms}
	for k, key := range o.Outline.Prescan.Keys {
		g.keys[syms.Intern(key)], g.texts[key] = k, k
	}
	const keepSecrets = true // nothing that is read is kept
	g.worker = worker{recorder: newRecorder(syms, keepSecrets), limits: o.limits, blocks: o.blocks,
		take: func() *batch { g.batch.reset(); return &g.batch }, give: func(p *piece, b *batch) { g.parsed(p.prescanned, b) }}
	return g
}

// piece scans a piece, and parses it if the scan is not sure to find everything.
func (g *prescanner) piece(p *piece) {
	p.prescanned = g.prescan.NewPiece()
	if g.scan(p) {
		close(p.done)
		return
	}
	p.prescanned = g.prescan.NewPiece()
	g.worker.parse(p)
}

// scan reports whether scanning a piece finds everything.
func (g *prescanner) scan(p *piece) bool {
	switch {
	case p.kind == notFramed && p.rest == nil:
		s := scan{data: p.data, prescan: g.prescan, prescanned: p.prescanned}
		return s.all()
	case p.kind == protoFrames && !p.cut:
		s := protoScan{prescanned: p.prescanned, keys: g.texts}
		return s.all(p.data)
	}
	return false
}

// parsed records the spans of a batch.
func (g *prescanner) parsed(to *spantable.PrescannedPiece, b *batch) {
	to.Documents += b.documents
	for i := range b.spans {
		s := &b.spans[i]
		number := to.Span(spantable.TraceID{s.Span.TraceHi, s.Span.TraceLo}, s.Span.Start, s.Span.End)
		if !to.Name(number, []byte(g.syms.Name(s.Span.Name))) {
			continue
		}
		for a := range b.list(s.Span.Args).All {
			if key, ok := g.keys[a.Key]; ok {
				to.Attribute(number, key, a)
			}
		}
	}
}
