package otlpjson

import (
	"fmt"
	"io"

	"github.com/sgtrace/sgtrace/internal/jsonscan"
	"github.com/sgtrace/sgtrace/trace"
)

// A step is what the parser is about to read.
type step struct {
	first byte  // first byte after white space; 0 is the end of the input
	at    place // of first
	after place // end of the previous step: on the line of a document that is cut off
}

// report reports that part of the input is missing from the result.
func (p *parser) report(m *trace.Message, at place, values ...any) {
	p.recorder.report(m, p.outside(at), 1, values...)
}

// resync reports err and moves to the next record of any level.
//
// It searches from the start of the broken record, not from where the error was detected, since a string
// without its closing quote swallows what follows. If a document was swallowed, or nothing follows, then
// something was cut off: the producer was killed, the disk was full, or two producers wrote into one file.
func (p *parser) resync(err error) {
	if err == jsonscan.ErrShort && len(p.buf)-p.start > p.record {
		err = errTooLong
	}
	failed, from, noticed := p.level, p.step.at.offset, p.base+int64(p.pos)
	p.pos = p.start
	l, found := p.search(from, failed)
	here := p.base + int64(p.pos)
	if found && err == jsonscan.ErrShort {
		err = errBegins
	}
	if found && l == atTop && noticed >= here || !found && err == jsonscan.ErrShort {
		p.truncated(found, here == from)
	} else {
		p.report(trace.OTLPSyntax, p.step.at, err, here-from)
	}
	if !found {
		p.level = endOfPiece
		return
	}
	if failed < inResourceSpan { // a record without a known resource around it
		p.resource, p.resourceOrigins = 0, len(p.out.origins)
	}
	if l == inSpans && failed < inScopeSpan {
		p.openScope()
	}
	if l != atTop && failed == atTop {
		p.headless = true
		p.out.documents++
	}
	p.level = l
}

// search moves to the next record, but skips a record of level failed at offset from.
func (p *parser) search(from int64, failed level) (l level, found bool) {
	for {
		last := p.last()
		n, l, found := nextRecord(p.buf[p.pos:], anyRecord, last)
		p.pos += n
		switch {
		case found && l == failed && p.base+int64(p.pos) == from:
			p.pos++
		case found || last:
			return l, found
		case !p.fill() && p.tooLong():
			p.pos++ // a record never needs this much to begin
		}
	}
}

// truncated reports that a document is cut off, by the next document or by the end of the input; between means
// that the next one begins where a record might.
func (p *parser) truncated(byOther, between bool) {
	between = between && byOther || p.step.first == 0
	switch {
	case p.framed && !byOther && (p.cut || p.err != io.EOF):
		// Explained by the frame; see reportFrame.
	case p.headless && between:
		// The end of a document without a head is unknown.
	case between:
		p.report(trace.OTLPTruncated, p.step.after, "between two records")
	case p.level == inSpans:
		p.report(trace.OTLPTruncated, p.step.at, "inside a span")
	default:
		p.report(trace.OTLPTruncated, p.step.at, "inside a record")
	}
}

// reportFrame reports that the frame around the document is damaged.
func (p *parser) reportFrame() {
	switch {
	case !p.framed:
	case p.cut:
		p.report(trace.OTLPTruncated, p.at(p.pos), "inside a frame")
	case p.err != nil && p.err != io.EOF:
		p.report(trace.OTLPFrame, p.at(p.pos), fmt.Sprintf("%v; everything before the damage is used", p.err))
	}
}
