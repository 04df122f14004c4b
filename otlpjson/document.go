package otlpjson

import (
	"bytes"
	"slices"

	"github.com/sgtrace/sgtrace/internal/jsonscan"
	"github.com/sgtrace/sgtrace/otlpjson/beside"
	"github.com/sgtrace/sgtrace/trace"
)

// level is the container that the parser is in. Arrays and objects of OTLP alternate, so one value describes
// the whole nesting.
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

func (l level) isList() bool { return l%2 == 0 }

// lists are the keys of the lists that lead from one level to the next. The second key of each is the spelling
// of older or other producers: protobuf field names, Tempo's "batches", OTLP before 0.15.
var lists = []struct {
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
	level level
	step  step
	// origins of the open ResourceSpans and ScopeSpans in out.origins; the producer may write the resource or the
	// scope after the spans.
	resourceOrigins int // first origin of the open ResourceSpans
	resource        int // 1-based index into out.resources; 0 is unseen
	isOther         bool
	headless        bool   // the beginning of the open document is missing
	cut             bool   // the input is a frame whose end is missing
	flush           func() // hands over out and replaces it; nil keeps one batch
}

// run parses until the input is used up.
func (p *parser) run() {
	for p.level = atTop; p.level != endOfPiece; {
		p.start = p.pos
		at := p.at(p.pos)
		p.step = step{at: at, after: at}
		if err := p.next(); err != nil {
			p.resync(err)
		}
	}
	p.reportFrame()
}

// next consumes one bracket, key, or span, and the commas before it. On an error, pos is where that was
// detected.
func (p *parser) next() error {
	b, ok := p.peek()
	for ok && b == ',' {
		p.pos++
		b, ok = p.peek()
	}
	if !ok {
		if p.level != atTop {
			return jsonscan.ErrShort
		}
		p.level = endOfPiece
		return nil
	}
	p.start = p.pos
	p.step.first, p.step.at = b, p.at(p.pos)
	switch {
	case b == '{' && p.level == inSpans:
		return p.span()
	case b == '{' && p.level.isList():
		return p.open()
	case p.level == atTop:
		return p.between(b)
	case b == ']' && p.level.isList(), b == '}' && !p.level.isList():
		p.pos++
		p.level--
		return nil
	case p.level.isList():
		return jsonscan.ErrSyntax
	default:
		return p.stepKey()
	}
}

// bom is the UTF-8 byte order mark, which some Windows tools write at the beginning.
var bom = []byte("\xef\xbb\xbf")

// between consumes the bytes allowed between documents: the brackets of an array of documents, and a byte order
// mark, at the beginning or where files were joined.
func (p *parser) between(b byte) error {
	switch b {
	case '[', ']':
		p.pos++
		return nil
	case bom[0]:
		return p.retry(func() (int, error) {
			switch rest := p.buf[p.pos:]; {
			case bytes.HasPrefix(rest, bom):
				return p.pos + len(bom), nil
			case bytes.HasPrefix(bom, rest):
				return p.pos, jsonscan.ErrShort
			}
			return p.pos, jsonscan.ErrSyntax
		})
	}
	return jsonscan.ErrSyntax
}

// open enters the object at pos, a record of the list that the parser is in.
func (p *parser) open() error {
	kind := p.level
	err := p.retry(func() (int, error) {
		l, ok, err := recordAt(p.buf, p.pos)
		if ok {
			kind = l
		}
		return p.pos, err
	})
	switch {
	case err != nil && err != jsonscan.ErrShort: // the part of it in the buffer may be enough
		return err
	case kind != p.level && p.level == atTop:
		return errHeadless
	case kind != p.level:
		return errBegins
	case kind == atTop:
		p.isOther, p.headless = false, false
		p.out.documents++
	case kind == inResourceSpans:
		// Hand over here, and not where the document before ends: that may be cut off.
		if p.flush != nil && p.out.full() {
			p.flush()
		}
		p.resource, p.resourceOrigins = 0, len(p.out.origins)
	case kind == inScopeSpans:
		p.openScope()
	}
	p.pos++
	p.level++
	return nil
}

// openScope begins a ScopeSpans. It reuses the place of one without spans, so that empty ones take no memory,
// however many there are.
func (p *parser) openScope() {
	n := len(p.out.origins)
	if spans := p.out.spans; n > p.resourceOrigins && (len(spans) == 0 || int(spans[len(spans)-1].Span.Origin) < n) {
		p.out.origins = p.out.origins[:n-1]
	}
	p.out.origins = append(p.out.origins, batchOrigin{resource: p.resource})
}

// stepKey reads one key of an object level and enters or skips its value.
func (p *parser) stepKey() error {
	var key []byte
	err := p.retry(func() (next int, err error) {
		key, next, err = nextKey(p.buf, p.pos)
		return next, err
	})
	if err != nil {
		return err
	}
	for i := range lists {
		if l := &lists[i]; l.from == p.level && l.key == string(key) {
			return p.enterList(l.to)
		}
	}
	switch {
	case p.level == inResourceSpan && string(key) == "resource":
		return p.retry(p.parseResource)
	case p.level == inScopeSpan && (string(key) == "scope" || string(key) == "instrumentationLibrary"):
		return p.retry(p.parseScope)
	case p.level == inDocument && slices.Contains(otherSignals, string(key)):
		signal, kept := beside.Of(string(key))
		kept = kept && p.keeps
		if !p.isOther {
			p.isOther = true
			p.out.documents--
			if !kept {
				p.out.other++
			}
		}
		if kept {
			return p.keep(signal)
		}
		return p.skipValue(notInOtherSignals)
	}
	if err := p.foreign(key); err != nil {
		return err
	}
	if err := p.skipValue(anyRecord); err != nil {
		p.notes = notes{}
		return err
	}
	p.settle(p.outside(p.step.at))
	return nil
}

// keep passes on the elements of the list at pos, each as a document of its own.
func (p *parser) keep(signal beside.Signal) error {
	null := false
	err := p.retry(func() (next int, err error) {
		next, null, err = enter(p.buf, p.pos, '[')
		return next, err
	})
	for err == nil && !null {
		b, ok := p.peek()
		p.start = p.pos
		switch {
		case !ok:
			return jsonscan.ErrShort
		case b == ',':
			p.pos++
			continue
		case b == ']':
			p.pos++
			return nil
		}
		if p.flush != nil && p.out.full() {
			p.flush()
		}
		err = p.retry(func() (int, error) {
			next, err := skip(p.buf, p.pos, notInOtherSignals)
			if err == nil {
				to := &p.out.beside[signal]
				*to = signal.Append(*to, p.buf[p.pos:next])
			}
			return next, err
		})
	}
	return err
}

// enterList enters the list at pos, which leads to the given level.
func (p *parser) enterList(to level) error {
	null := false
	err := p.retry(func() (next int, err error) {
		next, null, err = enter(p.buf, p.pos, '[')
		return next, err
	})
	if err == nil && !null {
		p.level = to
	}
	return err
}

// parseResource reads the resource object at pos; see cursor.retry.
func (p *parser) parseResource() (next int, err error) {
	p.notes = notes{}
	var list trace.ArgList
	next, _, err = inObject(p.buf, p.pos, func(key []byte, i int) (int, error) {
		if string(key) == "attributes" {
			return p.attributes(p.buf, i, &list)
		}
		return p.pass(key, p.buf, i)
	})
	if err != nil {
		return next, err
	}
	p.resource = p.addResource(list, p.resource)
	for o := p.resourceOrigins; o < len(p.out.origins); o++ {
		p.out.origins[o].resource = p.resource
	}
	p.settle(p.outside(p.step.at))
	return next, nil
}

// parseScope reads the scope object at pos; see cursor.retry.
func (p *parser) parseScope() (next int, err error) {
	p.notes = notes{}
	next, _, err = inObject(p.buf, p.pos, func(key []byte, i int) (int, error) {
		if string(key) != "name" {
			return p.pass(key, p.buf, i)
		}
		name, i, err := p.text(p.buf, i)
		if err == nil {
			p.out.origins[len(p.out.origins)-1].scope = p.cache.Intern(name)
		}
		return i, err
	})
	if err == nil {
		p.settle(p.outside(p.step.at))
	}
	return next, err
}
