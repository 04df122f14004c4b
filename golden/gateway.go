package golden

import (
	"math/rand/v2"
	"strconv"
)

// gateway puts down the span of the smg gateway: exact times, some counts as
// text, and two events. The gateway is the first process, on the first host.
func (x *exporter) gateway(rng *rand.Rand, q *request, trace traceID, id uint64) {
	run := x.run
	clock := &run.hosts[0].clock
	status := "200"
	switch q.outcome {
	case clientGone:
		status = "499"
	case transferFailed:
		status = "500"
	}
	answered := q.headers
	if answered == 0 {
		answered = q.end
	}
	busy := 200*us + rng.Int64N(600*us)

	out := span{trace: trace, id: id, flags: flagSampled, name: "http_request", start: clock.at(q.arrival), end: clock.at(q.end)}
	a := &out.attributes
	code(a, "src/middleware.rs", "smg::middleware", 276)
	a.integer("thread.id", 2+rng.Int64N(30))
	a.text("thread.name", "tokio-runtime-worker")
	a.text("method", "POST")
	a.text("uri", "/generate")
	a.text("version", "HTTP/1.1")
	a.text("module", "smg")
	a.text("request_id", q.id)
	a.text("status_code", status)
	a.text("latency", strconv.FormatInt(clock.span(q.arrival, answered)/us, 10))
	a.integer("busy_ns", busy)
	a.integer("idle_ns", max(0, clock.span(q.arrival, q.end)-busy))

	sending := observability("Sending concurrent requests", clock.at(q.sent))
	sending.attributes.text("prefill_url", "http://"+run.hosts[run.instances[0].host].address+":30000")
	sending.attributes.text("decode_url", "http://"+run.hosts[run.instances[1].host].address+":30000")
	code(&sending.attributes, "src/observability/events.rs", "smg::observability::events", 30)
	out.events = append(out.events, sending)
	if q.headers != 0 {
		received := observability("Received concurrent requests", clock.at(q.headers))
		code(&received.attributes, "src/observability/events.rs", "smg::observability::events", 74)
		out.events = append(out.events, received)
	}
	x.end(0, q.end, &out)
}

// observability returns an event of the gateway.
func observability(name string, at int64) spanEvent {
	e := spanEvent{at: at, name: name}
	e.attributes.text("level", "INFO")
	e.attributes.text("target", "smg::observability::events")
	return e
}

// code adds where in the gateway's source a span or an event comes from.
func code(a *attributes, file, namespace string, line int64) {
	a.text("code.filepath", file)
	a.text("code.namespace", namespace)
	a.integer("code.lineno", line)
}
