package spans

import (
	"math/rand/v2"
	"strconv"

	"github.com/sgtrace/sgtrace/golden/simulator"
)

// gateway puts down the span of the smg gateway: exact times, some counts as
// text, and two events. One that hangs never ends, and is not written. The gateway is the first process, on the first host.
func (x *exporter) gateway(rng *rand.Rand, q *simulator.Request, trace traceID, id uint64) {
	run := x.run
	if q.End == 0 {
		return
	}
	clock := &run.Hosts[0].Clock
	status := "200"
	switch q.Outcome {
	case simulator.ClientGone:
		status = "499"
	case simulator.TransferFailed:
		status = "500"
	}
	answered := q.Headers
	if answered == 0 {
		answered = q.End
	}
	busy := 200*us + rng.Int64N(600*us)

	out := span{trace: trace, id: id, flags: flagSampled, name: "http_request", start: clock.At(q.Arrival), end: clock.At(q.End)}
	a := &out.attributes
	code(a, "src/middleware.rs", "smg::middleware", 276)
	a.integer("thread.id", 2+rng.Int64N(30))
	a.text("thread.name", "tokio-runtime-worker")
	a.text("method", "POST")
	a.text("uri", "/generate")
	a.text("version", "HTTP/1.1")
	a.text("module", "smg")
	a.text("request_id", q.ID)
	a.text("status_code", status)
	a.text("latency", strconv.FormatInt(clock.Length(q.Arrival, answered)/us, 10))
	a.integer("busy_ns", busy)
	a.integer("idle_ns", max(0, clock.Length(q.Arrival, q.End)-busy))

	sending := observability("Sending concurrent requests", clock.At(q.Sent))
	sending.attributes.text("prefill_url", "http://"+run.Hosts[run.Instances[0].Host].Address+":30000")
	sending.attributes.text("decode_url", "http://"+run.Hosts[run.Instances[1].Host].Address+":30000")
	code(&sending.attributes, "src/observability/events.rs", "smg::observability::events", 30)
	out.events = append(out.events, sending)
	if q.Headers != 0 {
		received := observability("Received concurrent requests", clock.At(q.Headers))
		code(&received.attributes, "src/observability/events.rs", "smg::observability::events", 74)
		out.events = append(out.events, received)
	}
	x.end(0, q.End, &out)
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
