package otlp

import (
	"cmp"
	"math/rand/v2"
	"strconv"
)

// Gateway is a request at the smg gateway. Times are on its clock and exact; the gateway writes some of them as text.
type Gateway struct {
	URI, ID, Status      string
	Start, Answered, End int64 // Answered: the headers of the response; 0 is never
}

// Span returns the span of a request at the gateway, without events.
func (g *Gateway) Span(rng *rand.Rand, trace TraceID, id uint64) *Span {
	answered := cmp.Or(g.Answered, g.End)
	busy := 200*us + rng.Int64N(600*us)
	out := &Span{Trace: trace, ID: id, Flags: FlagSampled, Name: "http_request", Start: g.Start, End: g.End}
	a := &out.Attributes
	code(a, "src/middleware.rs", "smg::middleware", 276)
	a.Integer("thread.id", 2+rng.Int64N(30))
	a.Text("thread.name", "tokio-runtime-worker")
	a.Text("method", "POST")
	a.Text("uri", g.URI)
	a.Text("version", "HTTP/1.1")
	a.Text("module", "smg")
	a.Text("request_id", g.ID)
	a.Text("status_code", g.Status)
	a.Text("latency", strconv.FormatInt((answered-g.Start)/us, 10))
	a.Integer("busy_ns", busy)
	a.Integer("idle_ns", max(0, g.End-g.Start-busy))
	return out
}

// Sent adds the event that the gateway sends a request to the servers with these names and addresses.
func (s *Span) Sent(at int64, urls ...[2]string) {
	e := observability("Sending request", at)
	if len(urls) > 1 {
		e.Name = "Sending concurrent requests"
	}
	for _, u := range urls {
		e.Attributes.Text(u[0], "http://"+u[1]+":30000")
	}
	code(&e.Attributes, "src/observability/events.rs", "smg::observability::events", 30)
	s.Events = append(s.Events, e)
}

// Received adds the event that the headers of both responses have arrived; see [Span.Sent].
func (s *Span) Received(at int64) {
	e := observability("Received concurrent requests", at)
	code(&e.Attributes, "src/observability/events.rs", "smg::observability::events", 74)
	s.Events = append(s.Events, e)
}

// observability returns an event of the gateway.
func observability(name string, at int64) Event {
	e := Event{At: at, Name: name}
	e.Attributes.Text("level", "INFO")
	e.Attributes.Text("target", "smg::observability::events")
	return e
}

// code adds the source position of a span or an event in the gateway.
func code(a *Attributes, file, namespace string, line int64) {
	a.Text("code.filepath", file)
	a.Text("code.namespace", namespace)
	a.Integer("code.lineno", line)
}
