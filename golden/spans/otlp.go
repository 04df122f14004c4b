package spans

import (
	"bufio"
	"bytes"
	"cmp"
	"container/heap"
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

// How spans travel: OpenTelemetry's BatchSpanProcessor as SGLang sets it up, and
// the batch processor of the Collector in SGLang's example configuration.
const (
	clientSpans = 64
	clientDelay = 500 * ms
	lineDelay   = 200 * ms
	lineSpans   = 8192
)

// Write writes the run as a Collector's file exporter would have: one JSON
// object per line, with what arrived at the Collector within 200 ms, and in it
// one resourceSpans per batch of a process. Spans come in the order in which they
// ended, so children before parents and the spans of a request on many lines.
//
// Only the spans of requests that overlap in time are in memory at once.
func Write(w io.Writer, r *simulator.Run) error {
	x := newExporter(r, w)
	for i, q := range r.Requests {
		x.endUntil(q.Arrival) // nothing of q, or of later requests, ends before
		x.request(i, q)
		if x.err != nil {
			return x.err
		}
	}
	x.endUntil(math.MaxInt64)
	x.fire(math.MaxInt64)
	if x.err != nil {
		return x.err
	}
	return x.w.Flush()
}

// exporter is the exporting half of every process, and the Collector.
type exporter struct {
	run     *simulator.Run
	w       *bufio.Writer
	err     error // of the first failed write
	live    endings
	count   int     // spans so far
	clients []batch // by process
	line    batch   // of the Collector
	scratch []byte  // the span that ends, before its length is known
}

// batch collects JSON until it is full or due.
type batch struct {
	resource []byte // client: what precedes the spans
	json     []byte // elements, each with a comma in front
	spans    int
	due      int64 // true time; meaningless while empty
}

func newExporter(r *simulator.Run, w io.Writer) *exporter {
	x := &exporter{run: r, w: bufio.NewWriterSize(w, 1<<16)}
	rng := rand.New(rand.NewPCG(r.Config.Seed, simulator.StreamIDs))
	for _, p := range r.Processes {
		var b batch
		if p.Role == simulator.RoleRouter {
			b.resource = gatewayResource()
		} else {
			b.resource = sglangResource(uuid(rng), r.Config.Release)
		}
		x.clients = append(x.clients, b)
	}
	return x
}

// endUntil ends all spans that ended before a true time.
func (x *exporter) endUntil(t int64) {
	for len(x.live) > 0 && x.live[0].at < t {
		s := heap.Pop(&x.live).(*ended)
		x.fire(s.at)
		c := &x.clients[s.process]
		if c.spans == 0 {
			c.due = s.at + clientDelay
		}
		c.json = append(append(c.json, ','), s.json...)
		if c.spans++; c.spans == clientSpans {
			x.export(c, s.at)
		}
	}
}

// fire does what clients and Collector do by the clock until a true time, in
// the order in which it is due.
func (x *exporter) fire(t int64) {
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
func (x *exporter) export(c *batch, at int64) {
	l := &x.line
	if l.spans == 0 {
		l.due = at + lineDelay
	}
	l.json = append(append(l.json, ','), c.resource...)
	l.json = append(l.json, c.json[1:]...)
	l.json = append(l.json, "]}]}"...)
	l.spans += c.spans
	c.json, c.spans = c.json[:0], 0
	if l.spans >= lineSpans {
		x.writeLine()
	}
}

// writeLine writes what the Collector holds.
func (x *exporter) writeLine() {
	l := &x.line
	for _, part := range [][]byte{[]byte(`{"resourceSpans":[`), l.json[1:], []byte("]}\n")} {
		if x.err == nil {
			_, x.err = x.w.Write(part)
		}
	}
	l.json, l.spans = l.json[:0], 0
}

// end puts down that a span of a process ended, at a true time.
func (x *exporter) end(process int, at int64, s *span) {
	x.count++
	x.scratch = s.append(x.scratch[:0])
	heap.Push(&x.live, &ended{at: at, seq: x.count, process: process, json: bytes.Clone(x.scratch)})
}

// ended is a span that waits until virtual time has come to its end.
type ended struct {
	at      int64
	seq     int // inner spans have been put down before outer ones
	process int
	json    []byte
}

// endings implements heap.Interface.
type endings []*ended

func (e endings) Len() int      { return len(e) }
func (e endings) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *endings) Push(x any)   { *e = append(*e, x.(*ended)) }

func (e endings) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(e[i].at, e[j].at), cmp.Compare(e[i].seq, e[j].seq)) < 0
}

func (e *endings) Pop() any {
	old := *e
	last := old[len(old)-1]
	old[len(old)-1] = nil // let go of the JSON
	*e = old[:len(old)-1]
	return last
}

// sglangResource returns the head of a resourceSpans of an SGLang process. SGLang does not tell its
// release; whoever runs it may, by OTEL_RESOURCE_ATTRIBUTES.
func sglangResource(instanceID, release string) []byte {
	var a attributes
	a.text("telemetry.sdk.language", "python")
	a.text("telemetry.sdk.name", "opentelemetry")
	a.text("telemetry.sdk.version", "1.44.0")
	a.text("service.instance.id", instanceID)
	a.text("service.name", "sglang")
	if release != "" {
		a.text("service.version", release)
	}
	return resource(a, "sglang server")
}

// gatewayResource returns the same of the gateway, whose SDK sets no instance id.
func gatewayResource() []byte {
	var a attributes
	a.text("telemetry.sdk.language", "rust")
	a.text("service.name", "smg")
	a.text("telemetry.sdk.version", "0.27.1")
	a.text("telemetry.sdk.name", "opentelemetry")
	return resource(a, "smg")
}

func resource(a attributes, scope string) []byte {
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
