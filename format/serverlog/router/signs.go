package router

import (
	"bytes"

	"github.com/sgtrace/sgtrace/format/logline"
	"github.com/sgtrace/sgtrace/format/serverlog/errortext"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/series"
)

// A sign is a text that identifies a kind of message; the first one counts.
type sign struct {
	text string
	kind series.InstantKind
	// says is about the server named in the message, or about the router if there is none. "" only marks the line as known.
	says string
	// why means that the reason follows a colon, or is in a field "error".
	why bool
}

var signs = []sign{
	{text: "request failed with server error"}, // see says, which counts it
	{text: "finished processing request"},
	{text: "started processing request"},
	{text: "request failed with client error"},
	{text: received},
	{text: completed},

	{"endpoint instance removed, removing worker", series.Unrouted, "is removed from the router: its registration is gone", false},
	{"Removing failed worker", series.Unrouted, "is removed from the router as failed", false},
	{"Removed worker from tree", 0, "", false},
	{"from cache-aware policy", 0, "", false},
	{"from bucket for model", 0, "", false},
	{"Pod deleted", series.Unrouted, "is removed from the router: its pod is deleted", false},
	{"pod gone or terminating", series.Unrouted, "is removed from the router: its pod is gone, or ends", false},
	{"Removed worker", series.Unrouted, "is removed from the router", false},
	{"Removed prefill worker", series.Unrouted, "is removed from the router", false},
	{"Removed decode worker", series.Unrouted, "is removed from the router", false},
	{"DP-aware workers", series.Unrouted, "is removed from the router", false},
	{text: awaits},
	{text: "is not ready yet"},
	{"health check failed", series.Unrouted, "fails a health check of the router", true},
	{"health check returned non-success", series.Unrouted, "fails a health check of the router", true},
	{"health RPC error for", series.Unrouted, "fails a health check of the router", true},
	{"health timed out for", series.Unrouted, "does not answer a health check of the router", false},
	{"Health probe failed", series.Unrouted, "fails a health check of the router", true},
	{"remains unhealthy", series.Unrouted, "still fails health checks of the router", true},
	{"is now healthy", series.Routed, "is healthy again for the router", false},
	{"validated and activated", series.Routed, "joins the router", false},
	{"Added worker", series.Routed, "joins the router", false},

	{" failed (attempt ", series.Unrouted, "does not take requests of the router", false},
	{"Prefill server failed", series.Unrouted, "does not take requests of the router", true},
	{"Decode request failed", series.Unrouted, "does not take requests of the router", true},
	{"Decode worker failed to start", series.Unrouted, "does not take requests of the router", true},
	{"Prefill worker failed to start", series.Unrouted, "does not take requests of the router", true},
	{"Failed to send typed request", series.Unrouted, "does not take requests of the router", true},
	{"Failed to send request to worker", series.Unrouted, "does not take requests of the router", true},
	{"Failed to connect gRPC client for worker", series.Unrouted, "does not take requests of the router", true},
	{"Request to worker failed", series.Unrouted, "does not take requests of the router", true},
	{"Upstream streaming error", series.Note, "a stream of a server broke off", false},

	{"Success recorded while circuit is open", 0, "", false},
	{"transition: closed -> open", series.Refusal, "opens a circuit breaker: a server that the log does not name gets nothing for a while", false},
	{"transition: half_open -> open", series.Note, "opens a circuit breaker again: a server that the log does not name still fails", false},
	{"transition: open -> half_open", series.Note, "tries a server again whose circuit breaker was open", false},
	{"transition: half_open -> closed", series.Note, "closes a circuit breaker: the server gets requests again", false},
	{"No prefill workers", series.Refusal, "the router has no prefill server for a request", false},
	{"No decode workers", series.Refusal, "the router has no decode server for a request", false},
	{"No available", series.Refusal, "the router has no server for a request", false},
	{"No workers are available", series.Refusal, "the router has no server for a request", false},
	{"no instances found for endpoint", series.Refusal, "the router has no server for a request", false},
	{"no responders", series.Refusal, "the router has no server for a request", false},
	{"waiting for workers", series.Exception, "ends: its servers were not healthy in time", false},
	{"Cannot recreate stream", series.Refusal, "the router gives up a request whose stream broke off", true},
	{"recreating stream", series.Note, "a stream of a server broke off: its request goes on elsewhere", false},
	{"Unable to refresh lease", series.Exception, "lost its lease of etcd, and ends: see whether etcd and the network to it were well", false},
	{"No healthy", series.Refusal, "the router has no healthy server for a request", false},
	{"Request queue is full", series.Refusal, "the router refuses a request (429): its own queue is full", false},
	{"request timed out waiting for token", series.Refusal, "the router gives up a request that waited too long in its own queue", false},
	{"Request already timed out in queue", series.Refusal, "the router gives up a request that waited too long in its own queue", false},
	{"Drain timed out", series.Stopping, "ends, with requests still in flight", false},
	{"Beginning graceful shutdown", series.Stopping, "was told to shut down", false},
	{"Initializing router", series.Starting, "starts", false},
	{text: allHealthy},
	{"Serving router", series.Ready, "is ready", false},
	{"Starting router", series.Starting, "starts", false},
	{"Router ready", series.Ready, "is ready", false},
}

// awaits is in a line about a server that is not healthy yet when the router starts, until 2025-10, and allHealthy in a
// line that all are.
const awaits, allHealthy = "health check is pending", "All workers are healthy"

// says handles a line.
func (r *reader) says(x *said) {
	for i := range signs {
		s := &signs[i]
		at := bytes.Index(x.message, []byte(s.text))
		if at < 0 || at > longestLead {
			continue
		}
		r.read++
		switch {
		case i == 0:
			r.failed(x)
		case s.text == received:
			if fieldOf(x.message, "model") != nil { // workers receive requests, too
				r.rows.Received(x.at)
			}
		case s.text == completed:
			r.complete(x)
		case s.text == awaits:
			r.await(x, s)
		case s.text == allHealthy:
			clear(r.awaited)
		case s.says != "":
			r.instant(x, s)
		}
		return
	}
	if l := string(x.level); l == "WARN" || l == "ERROR" {
		if l == "ERROR" && r.complaints.Add(errortext.Said(x.message, ""), series.Instant{Time: x.at, Place: r.router(), Line: uint32(r.line)}) {
			r.read++
			return
		}
		r.strange()
	}
}

// longestLead is the farthest start of a sign in a message: after the URL of a server.
const longestLead = 120

// failed counts a request that the router answered with an error.
func (r *reader) failed(x *said) {
	place := r.router()
	id := order.Memo(r.errors, place, func() int32 { return r.f.Series(series.ServerErrors, place) })
	r.f.Add(id, x.at, 1)
}

func (r *reader) router() int32 { return r.place([]byte(r.name), "router") }

// instant adds the instant of a sign, for the server named in the message.
func (r *reader) instant(x *said, s *sign) {
	kind, text := s.kind, s.says
	of := url(x.message)
	if _, id, ok := bytes.Cut(x.message, []byte("removing worker ")); ok && of == nil {
		of = []byte("worker " + logline.Beginning(id, "", 40))
	}
	place := int32(0)
	switch {
	case of != nil && (kind == series.Unrouted || kind == series.Routed):
		place = r.place(of, "")
	case kind == series.Unrouted || kind == series.Routed:
		kind, text = series.Note, "a server that the log does not name "+text
		place = r.router()
	default:
		place = r.router()
	}
	if s.why {
		if why := errortext.Reason(x.message, s.text); why != "" {
			text += ": " + why
		}
	}
	r.f.Instant(series.Instant{Time: x.at, Place: place, Kind: kind, Line: uint32(r.line), Count: 1}, text)
}
