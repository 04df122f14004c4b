package otlpjson

import (
	"bytes"
	"fmt"

	"github.com/sgtrace/sgtrace/internal/jsonscan"
	"github.com/sgtrace/sgtrace/trace"
)

// level is the container that the parser is in. Arrays and objects of OTLP
// alternate, so one value says everything about the nesting.
type level uint8

const (
	atTop           level = iota // between documents; an array of documents reads the same
	inDocument                   // ExportTraceServiceRequest
	inResourceSpans              // its list of ResourceSpans
	inResourceSpan               // one ResourceSpans
	inScopeSpans                 // its list of ScopeSpans
	inScopeSpan                  // one ScopeSpans
	inSpans                      // its list of spans
	endOfPiece      level = 0xff // input is used up
)

// containers names the lists that lead from one level to the next. The second
// name of each is how older or other producers spell it: protobuf field names,
// Tempo's "batches", OTLP before 0.15.
var containers = []struct {
	from level
	key  string
	to   level
}{
	{inDocument, "resourceSpans", inResourceSpans},
	{inDocument, "resource_spans", inResourceSpans},
	{inDocument, "batches", inResourceSpans},
	{inResourceSpan, "scopeSpans", inScopeSpans},
	{inResourceSpan, "scope_spans", inScopeSpans},
	{inResourceSpan, "instrumentationLibrarySpans", inScopeSpans},
	{inScopeSpan, "spans", inSpans},
}

// otherSignals are lists that the same exporters write into the same file.
var otherSignals = []string{
	"resourceLogs", "resourceMetrics", "resourceProfiles",
	"resource_logs", "resource_metrics", "resource_profiles",
}

// A parser turns one piece of JSON into a batch.
type parser struct {
	cursor
	*recorder
	file  string
	level level
	// origins of the open ResourceSpans and ScopeSpans in out.origins; the
	// producer may write the resource or the scope behind the spans.
	resourceOrigins int // first origin of the open ResourceSpans
	resource        int // 1-based index into out.resources; 0 is not seen yet
	isOther         bool
	flush           func() // hands out over and replaces it; nil keeps one batch
}

// run parses until the input is used up.
func (p *parser) run() {
	for p.level = atTop; p.level != endOfPiece; {
		p.start = p.pos
		if err := p.step(); err == jsonscan.ErrShort && len(p.buf)-p.start <= maxRecord {
			p.truncated()
			return
		} else if err != nil {
			p.resync(err)
		}
	}
}

// step consumes one bracket, comma, key or span.
func (p *parser) step() error {
	b, ok := p.peek()
	if !ok {
		if p.level != atTop {
			return jsonscan.ErrShort
		}
		p.level = endOfPiece
		return nil
	}
	p.start = p.pos
	switch {
	case b == ',':
		p.pos++
		return nil
	case p.level == atTop:
		return p.stepTop(b)
	case p.level == inResourceSpans || p.level == inScopeSpans || p.level == inSpans:
		return p.stepArray(b)
	case b == '}':
		return p.closeObject()
	default:
		return p.stepKey()
	}
}

func (p *parser) stepTop(b byte) error {
	switch b {
	case '{':
		p.pos++
		p.level = inDocument
		p.isOther = false
		return nil
	case '[', ']':
		p.pos++
		return nil
	}
	return jsonscan.ErrSyntax
}

func (p *parser) stepArray(b byte) error {
	switch {
	case b == ']':
		p.pos++
		p.level--
		return nil
	case b != '{':
		return jsonscan.ErrSyntax
	case p.level == inSpans:
		return p.span()
	case p.level == inResourceSpans:
		p.resource, p.resourceOrigins = 0, len(p.out.origins)
	case p.level == inScopeSpans:
		p.out.origins = append(p.out.origins, batchOrigin{resource: p.resource})
	}
	p.pos++
	p.level++
	return nil
}

func (p *parser) closeObject() error {
	p.pos++
	p.level--
	switch p.level {
	case atTop:
		if p.isOther {
			p.out.other++
		} else {
			p.out.documents++
		}
	case inResourceSpans:
		if p.flush != nil && len(p.out.spans) >= flushSpans {
			p.flush()
		}
	}
	return nil
}

// stepKey reads one key of an object level and enters or skips its value.
func (p *parser) stepKey() error {
	key, err := p.key()
	if err != nil {
		return err
	}
	for i := range containers {
		c := &containers[i]
		if string(key) == c.key && c.from <= p.level {
			p.leave(c.from)
			if b, ok := p.peek(); ok && b == '[' {
				p.pos++
				p.level = c.to
				return nil
			}
			return p.skipValue() // null
		}
	}
	switch {
	case p.level == inResourceSpan && string(key) == "resource":
		return p.retry(p.parseResource)
	case p.level == inScopeSpan && (string(key) == "scope" || string(key) == "instrumentationLibrary"):
		return p.retry(p.parseScope)
	case p.level == inDocument:
		for _, other := range otherSignals {
			p.isOther = p.isOther || string(key) == other
		}
	}
	return p.skipValue()
}

// leave returns to the level l. If that is not the current one, the document
// was cut off and another one follows it.
func (p *parser) leave(l level) {
	if l == p.level {
		return
	}
	p.countLines(p.start)
	p.diag(trace.DataLoss, "otlp-truncated", trace.Pos{File: p.file, Line: p.line, Offset: p.base + int64(p.start)},
		"another record begins here before the one around it has ended; both are used")
	p.level = l
}

// parseResource reads the resource object at pos; see cursor.retry.
func (p *parser) parseResource() (next int, err error) {
	i := jsonscan.Space(p.buf, p.pos)
	var r batchResource
	next, err = fields(p.buf, i, func(key []byte, at int) (int, error) {
		if string(key) != "attributes" {
			return jsonscan.Value(p.buf, at)
		}
		at, err := p.attributes(p.buf, at, &r.args)
		return at, err
	})
	if err != nil {
		return 0, err
	}
	p.resource = p.addResource(r.args)
	for o := p.resourceOrigins; o < len(p.out.origins); o++ {
		p.out.origins[o].resource = p.resource
	}
	return next, nil
}

// parseScope reads the scope object at pos; see cursor.retry.
func (p *parser) parseScope() (next int, err error) {
	i := jsonscan.Space(p.buf, p.pos)
	return fields(p.buf, i, func(key []byte, at int) (int, error) {
		if string(key) != "name" {
			return jsonscan.Value(p.buf, at)
		}
		name, at, err := p.text(p.buf, at)
		if err == nil {
			p.out.origins[len(p.out.origins)-1].scope = p.cache.Intern(name)
		}
		return at, err
	})
}

// span reads the span at pos.
func (p *parser) span() error {
	undo := p.out.mark()
	p.countLines(p.pos)
	line := p.line
	var s Span
	err := p.retry(func() (int, error) {
		p.out.undo(undo)
		s = Span{Line: uint32(line), Origin: OriginID(len(p.out.origins))}
		return p.parseSpan(p.buf, p.pos, &s)
	})
	if err != nil {
		p.out.undo(undo)
		return err
	}
	p.out.spans = append(p.out.spans, s)
	return nil
}

// anchors are beginnings from which reading can go on after damage, with the
// level that they are found at.
var anchors = []struct {
	key   string
	level level
}{
	{`"resourceSpans"`, atTop},
	{`"resource"`, inResourceSpans},
	{`"traceId"`, inSpans},
}

// resync reports err and moves to the next object that begins with an anchor.
// It looks from the broken record on, not from the broken byte, since a string
// without its closing quote swallows what follows.
func (p *parser) resync(err error) {
	p.countLines(p.start)
	from := p.base + int64(p.start)
	pos := trace.Pos{File: p.file, Line: p.line, Offset: from}
	failed := p.level
	p.pos = p.start
	for p.level = endOfPiece; ; {
		n, level, found := nextAnchor(p.buf[p.pos:])
		p.pos += n
		if found && p.base+int64(p.pos) == from && level == failed {
			p.pos++ // this is the one that failed
			continue
		}
		if found {
			p.enter(level, failed)
			break
		}
		if !p.fill() {
			p.pos = len(p.buf)
			break
		}
	}
	p.diag(trace.DataLoss, "otlp-syntax", pos,
		fmt.Sprintf("%v; skipped %d bytes to the next record", err, p.base+int64(p.pos)-from))
}

// enter continues at an anchor. A span without a known list around it gets an
// origin of its own, so that it is not ascribed to a foreign process.
func (p *parser) enter(l, failed level) {
	if l == inSpans && failed != inSpans {
		p.resource, p.resourceOrigins = 0, len(p.out.origins)
		p.out.origins = append(p.out.origins, batchOrigin{})
	}
	p.level = l
}

// nextAnchor finds the first object in b that begins with an anchor and returns
// the position of its brace. If there is none, n is how much of b can be given
// up without losing one that is cut at the end.
func nextAnchor(b []byte) (n int, l level, found bool) {
	for i := 0; ; i++ {
		brace := bytes.IndexByte(b[i:], '{')
		if brace < 0 {
			return len(b), 0, false
		}
		i += brace
		k := jsonscan.Space(b, i+1)
		for _, a := range anchors {
			if bytes.HasPrefix(b[k:], []byte(a.key)) {
				return i, a.level, true
			}
		}
		if len(b)-k < len(`"resourceSpans"`) {
			return i, 0, false
		}
	}
}

// truncated reports that the input ends inside a document.
func (p *parser) truncated() {
	p.countLines(p.start)
	what := "between records"
	if p.level == inSpans && p.start < len(p.buf) && p.buf[p.start] == '{' {
		what = fmt.Sprintf("inside a span, of which %d bytes are there", len(p.buf)-p.start)
	}
	p.diag(trace.DataLoss, "otlp-truncated", trace.Pos{File: p.file, Line: p.line, Offset: p.base + int64(p.start)},
		"the document ends "+what+"; everything before is used")
	if p.level > inDocument {
		p.out.documents++
	}
	p.level = endOfPiece
}
