package otlp

import (
	"bufio"
	"io"
	"math"
	"math/rand/v2"
	"strconv"

	"github.com/sgtrace/sgtrace/golden/simulator"
)

// Units of time, in nanoseconds.
const (
	us = int64(1_000)
	ms = int64(1_000_000)
)

// How spans travel: OpenTelemetry's BatchSpanProcessor as configured by SGLang, and the batch processor of the Collector in
// SGLang's example configuration.
const (
	clientSpans = 64
	clientDelay = 500 * ms
	lineDelay   = 200 * ms
	lineSpans   = 8192
)

// An Exporter is the exporting part of every process, and the Collector, whose file exporter writes one JSON object per
// line with everything that arrived within 200 ms, and in it one resourceSpans per batch of a process. Spans come in the
// order in which they ended, so children come before parents, and the spans of a request are on many lines.
//
// Only the spans between the last EndUntil and the last End are in memory at once.
type Exporter struct {
	w       *bufio.Writer
	err     error // of the first failed write
	live    simulator.Queue[ended]
	spare   [][]byte // buffers of written spans, for reuse
	clients []batch  // by process
	line    batch    // the Collector's
}

// batch collects JSON until it is full or due.
type batch struct {
	resource []byte // client: what precedes the spans
	json     []byte // elements, each preceded by a comma
	spans    int
	due      int64 // true time; meaningless while empty
	dies     int64 // client: from this true time on it exports nothing; 0 is never
}

// NewExporter returns an exporter for processes with the given resources.
func NewExporter(w io.Writer, resources []Resource) *Exporter {
	x := &Exporter{w: bufio.NewWriterSize(w, 1<<16)}
	for _, r := range resources {
		x.clients = append(x.clients, batch{resource: r})
	}
	return x
}

// Kill ends a process at a true time: it loses what it has not exported by then.
func (x *Exporter) Kill(process int, at int64) { x.clients[process].dies = at }

// EndUntil ends all spans that ended before a true time, and returns the first error.
func (x *Exporter) EndUntil(t int64) error {
	for at, ok := x.live.Next(); ok && at < t; at, ok = x.live.Next() {
		s := x.live.Take()
		x.fire(at)
		x.spare = append(x.spare, s.json)
		c := &x.clients[s.process]
		if c.dies != 0 && at >= c.dies {
			continue
		}
		if c.spans == 0 {
			c.due = at + clientDelay
		}
		c.json = append(append(c.json, ','), s.json...)
		if c.spans++; c.spans == clientSpans {
			x.export(c, at)
		}
	}
	return x.err
}

// Close ends all spans and writes them.
func (x *Exporter) Close() error {
	x.EndUntil(math.MaxInt64)
	x.fire(math.MaxInt64)
	if x.err != nil {
		return x.err
	}
	return x.w.Flush()
}

// fire performs the timed actions of clients and Collector until a true time, in the order in which they are due.
func (x *Exporter) fire(t int64) {
	for {
		var next *batch
		for i := range x.clients {
			if c := &x.clients[i]; c.spans > 0 && (next == nil || c.due < next.due) {
				next = c
			}
		}
		if x.line.spans > 0 && (next == nil || x.line.due <= next.due) {
			next = &x.line
		}
		switch {
		case next == nil || next.due > t:
			return
		case next == &x.line:
			x.writeLine()
		default:
			x.export(next, next.due)
		}
	}
}

// export sends the batch of a client to the Collector at a true time.
func (x *Exporter) export(c *batch, at int64) {
	if c.dies == 0 || at < c.dies {
		l := &x.line
		if l.spans == 0 {
			l.due = at + lineDelay
		}
		l.json = append(append(l.json, ','), c.resource...)
		l.json = append(l.json, c.json[1:]...)
		l.json = append(l.json, "]}]}"...)
		l.spans += c.spans
	}
	c.json, c.spans = c.json[:0], 0
	if x.line.spans >= lineSpans {
		x.writeLine()
	}
}

// writeLine writes the spans held by the Collector.
func (x *Exporter) writeLine() {
	l := &x.line
	for _, part := range [][]byte{[]byte(`{"resourceSpans":[`), l.json[1:], []byte("]}\n")} {
		if x.err == nil {
			_, x.err = x.w.Write(part)
		}
	}
	l.json, l.spans = l.json[:0], 0
}

// End records that a span of a process ended at a true time. Of spans that end together, record inner ones first.
func (x *Exporter) End(process int, at int64, s *Span) {
	var json []byte
	if last := len(x.spare) - 1; last >= 0 {
		json, x.spare = x.spare[last][:0], x.spare[:last]
	}
	x.live.Put(at, ended{process, s.append(json)})
}

// ended is a span that waits until virtual time has reached its end.
type ended struct {
	process int
	json    []byte
}

// A Resource is the beginning of a resourceSpans, up to its first span.
type Resource []byte

// SGLang returns the resource of an SGLang process, with a random instance id. SGLang does not set its release; its
// operators may, by OTEL_RESOURCE_ATTRIBUTES.
func SGLang(rng *rand.Rand, release string) Resource {
	var a Attributes
	a.Text("telemetry.sdk.language", "python")
	a.Text("telemetry.sdk.name", "opentelemetry")
	a.Text("telemetry.sdk.version", "1.44.0")
	a.Text("service.instance.id", uuid(rng))
	a.Text("service.name", "sglang")
	if release != "" {
		a.Text("service.version", release)
	}
	return resource(a, "sglang server")
}

// SMG returns the resource of the gateway, whose SDK sets no instance id.
func SMG() Resource {
	var a Attributes
	a.Text("telemetry.sdk.language", "rust")
	a.Text("service.name", "smg")
	a.Text("telemetry.sdk.version", "0.27.1")
	a.Text("telemetry.sdk.name", "opentelemetry")
	return resource(a, "smg")
}

func resource(a Attributes, scope string) Resource {
	b := append([]byte(`{"resource":{"attributes":[`), a...)
	b = append(b, `]},"scopeSpans":[{"scope":{"name":`...)
	b = strconv.AppendQuote(b, scope)
	return append(b, `},"spans":[`...)
}

// uuid returns a random UUID of version 4.
func uuid(rng *rand.Rand) string {
	h := []byte(simulator.HexDigits(rng, 32))
	h[12] = '4'
	h[16] = "89ab"[rng.IntN(4)]
	s := string(h)
	return s[:8] + "-" + s[8:12] + "-" + s[12:16] + "-" + s[16:20] + "-" + s[20:]
}
