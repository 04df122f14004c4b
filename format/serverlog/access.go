package serverlog

import (
	"bytes"

	"github.com/sgtrace/sgtrace/format/logline"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
)

// isAccess reports whether b is an access log line of the HTTP server.
func isAccess(b []byte) bool {
	return bytes.HasPrefix(b, accessLine) && bytes.Contains(b, []byte(`" `))
}

// access reads an access log line, `INFO:     10.0.0.1:5000 - "POST /generate HTTP/1.1" 200 OK`, and counts error
// responses.
func (r *reader) access(b []byte, at trace.Time, place int32) {
	i := bytes.LastIndex(b, []byte(`" `))
	status, ok := logline.Digits(b[min(len(b), i+2):], 3)
	if !ok {
		if r.event(b, at, place) {
			r.read++
		}
		return
	}
	const tooMany = 429
	if status == 200 {
		r.answers(b, at, place)
	}
	if status < 500 && status != tooMany || bytes.Contains(b, []byte(`"GET /`)) { // health checks fail while a server starts
		return
	}
	r.read++
	metric := series.ServerErrors
	if status == tooMany {
		metric = series.Refused
	}
	r.f.Add(r.series(metric, place), at, 1)
}

// asked are the responses of an HTTP server since the last batch, which was at place: an accepted request has a batch of
// its own.
type asked struct {
	place        int32
	since, first trace.Time
	requests     int32
	line         int64 // of the first one
}

// soon is the longest time between a request's last batch and its response.
const soon = trace.Time(30e9)

// answers records a successful response. A health check that generates a token shows that batches run, even if they are not
// logged.
func (r *reader) answers(b []byte, at trace.Time, place int32) {
	x := &r.asked
	if x.since == 0 || r.f.Set.Places[place].Server != r.f.Set.Places[x.place].Server {
		return
	}
	switch {
	case bytes.Contains(b, []byte(`"GET /health_generate`)):
		*x = asked{}
	case at-x.since > soon && (bytes.Contains(b, []byte(`"POST /generate `)) || bytes.Contains(b, []byte(`ompletions HTTP`)) || bytes.Contains(b, []byte(`"POST /v1/responses `))):
		if x.requests++; x.first == 0 {
			x.first, x.line = at, r.line
		}
	}
}
