package requestlog

import (
	"bytes"
	"strconv"

	"github.com/sgtrace/sgtrace/format/logline"
	"github.com/sgtrace/sgtrace/internal/jsonscan"
	"github.com/sgtrace/sgtrace/request/spantable"
	"github.com/sgtrace/sgtrace/trace"
)

// parameters is the beginning of a record of --export-metrics-to-file: a line may contain two.
var parameters = []byte(`{"request_parameters"`)

// IsRecord reports whether a line, or the text after its stamp, begins a JSON record of --export-metrics-to-file or
// --log-requests-format json.
func IsRecord(b []byte) bool {
	if len(b) == 0 || b[0] != '{' {
		return false
	}
	head := b[:min(len(b), 400)]
	return bytes.HasPrefix(b, parameters) || bytes.Contains(b, []byte(`"request_parameters"`)) && bytes.Contains(b, []byte(`"e2e_latency"`)) ||
		bytes.Contains(head, []byte(`"event"`)) && (bytes.Contains(head, []byte(`"request.`)) || bytes.Contains(head, []byte(`"scheduler.status"`)))
}

// JSON reads such a record; At is 0 if there is no stamp before it. Before 2026-02, processes wrote over each other: such a
// line is cut where a record begins.
func (r *Reader) JSON(b []byte, of Line) {
	read := 0
	for len(b) > 0 {
		var row rowOf
		end, err := jsonscan.Members(b, 0, func(key, value []byte) { row.member(r, key, value) })
		if err == nil {
			r.add(&row, of)
			read++
			b = bytes.TrimLeft(b[end:], " \t")
			if len(b) == 0 {
				break
			}
		} else {
			b = b[1:]
		}
		next := bytes.Index(b, parameters)
		if err != nil || next != 0 {
			r.Damaged++
		}
		if next < 0 {
			break
		}
		b = b[next:]
	}
	if read == 0 {
		r.strange()
	}
}

// rowOf is the current record.
type rowOf struct {
	row                                                spantable.RequestRecord
	event                                              []byte
	stamp                                              trace.Time // of the log, local
	received, sentOn, sent, finished, forward, prefill trace.Time
	queue, e2e                                         int64
	rate                                               float64 // tokens/s after the first one
	stream                                             bool
	status                                             int64
	started                                            bool
}

// member reads a member of a record, or of its meta_info.
func (x *rowOf) member(r *Reader, key, value []byte) {
	if !x.started {
		x.row, x.queue, x.e2e, x.started = spantable.NewRequestRecord(), spantable.Unknown, spantable.Unknown, true
	}
	seconds := func() int64 {
		if v, ok := number(value); ok && v >= 0 && v < 1e7 {
			return int64(v * 1e9)
		}
		return spantable.Unknown
	}
	switch string(key) {
	case "event":
		x.event = jsonscan.Quoted(value)
	case "timestamp":
		x.stamp = localStamp(r, jsonscan.Quoted(value))
	case "request_parameters":
		if raw := jsonscan.Quoted(value); len(raw) > 0 {
			r.text = jsonscan.Unescape(r.text[:0], raw)
			jsonscan.Members(r.text, 0, func(key, value []byte) { x.parameter(r, key, value) })
		}
	case "obj":
		jsonscan.Members(value, 0, func(key, value []byte) { x.parameter(r, key, value) })
	case "out":
		jsonscan.Members(value, 0, func(key, value []byte) {
			if string(key) == "meta_info" {
				jsonscan.Members(value, 0, func(key, value []byte) { x.member(r, key, value) })
			}
		})
	case "id":
		x.row.ID = r.rows.Text(jsonscan.Quoted(value))
	case "finish_reason":
		x.finish(r, value)
	case "prompt_tokens":
		x.row.Prompt = count(value)
	case "completion_tokens":
		x.row.Completion = count(value)
	case "cached_tokens":
		x.row.Cached = count(value)
	case "num_retractions", "total_retractions": // its name in 2026-03
		x.row.Retracted = count(value)
	case "dp_rank":
		if n := count(value); n >= 0 && n < 1<<15 {
			x.row.DP = int16(n)
		}
	case "e2e_latency":
		x.e2e = seconds()
	case "queue_time":
		x.queue = seconds()
	case "decode_throughput":
		x.rate, _ = number(value)
	case "forward_entry_time":
		x.forward = unixSeconds(value)
	case "prefill_finished_time", "prefill_finished_ts": // its name in 2026-02
		x.prefill = unixSeconds(value)
	case "request_sent_to_scheduler_ts": // in 2026-02, without forward_entry_time
		x.sentOn = unixSeconds(value)
	case "request_received_ts":
		x.received = unixSeconds(value)
	case "response_sent_to_client_ts":
		x.sent = unixSeconds(value)
	case "request_finished_ts":
		x.finished = unixSeconds(value)
	}
}

// parameter reads a parameter from a client: only those by which requests are joined.
func (x *rowOf) parameter(r *Reader, key, value []byte) {
	switch string(key) {
	case "bootstrap_room":
		if n, ok := logline.Digits(value, len(value)); ok && n > 0 {
			x.row.Room = r.rows.Text(value)
		}
	case "stream":
		x.stream = bytes.Equal(value, []byte("true"))
	case "data_parallel_rank", "routed_dp_rank":
		if n := count(value); n >= 0 && n < 1<<15 && x.row.DP == spantable.Unknown {
			x.row.DP = int16(n)
		}
	}
}

// reasons are the beginnings of SGLang's reasons for aborting a request. Of any other reason only the status is kept: it
// may quote the request.
var reasons = []string{"The request queue is full", "The request is aborted by a higher priority request", "Aborted", "Prefill bootstrap failed", "Prefill transfer failed", "Decode transfer failed"}

// finish parses {"type":"abort","message":..,"status_code":500}, or a word.
func (x *rowOf) finish(r *Reader, value []byte) {
	kind, message := jsonscan.Quoted(value), []byte(nil)
	if len(value) > 0 && value[0] == '{' {
		jsonscan.Members(value, 0, func(key, value []byte) {
			switch string(key) {
			case "type":
				kind = jsonscan.Quoted(value)
			case "message":
				message = jsonscan.Quoted(value)
			case "status_code":
				if n, ok := logline.Digits(value, len(value)); ok {
					x.status = int64(n)
				}
			}
		})
	}
	syms := r.f.Set.Syms
	switch string(kind) {
	case "stop", "length":
		x.row.Finish = syms.Intern(string(kind))
	case "abort":
		x.row.Finish = syms.Intern("abort")
		reason := "Aborted"
		if x.status >= 500 {
			reason = "failed with status " + strconv.FormatInt(x.status, 10)
		}
		for _, known := range reasons {
			if bytes.HasPrefix(message, []byte(known)) {
				reason = known
			}
		}
		x.row.Reason = syms.Intern(reason)
	}
}

// add adds a record.
func (r *Reader) add(x *rowOf, of Line) {
	at := of.At
	if at == 0 {
		at = x.stamp
	}
	if x.event != nil && string(x.event) != "request.finished" {
		if string(x.event) == "request.received" && at != 0 {
			r.rows.Received(at)
		}
		return
	}
	row := &x.row
	row.Who, row.Line = spantable.Server, of.N
	row.Server = r.f.Set.Places[of.Place].Server
	zone := &r.f.Source().Zone
	switch {
	case x.received > 0:
		row.Start = x.received
		row.End = max(x.finished, row.Start)
		if x.finished == 0 && x.e2e >= 0 {
			row.End = row.Start + trace.Time(x.e2e)
		}
		if at != 0 && zone.Local {
			zone.Beside(at, row.End)
		}
	case x.finished > 0:
		row.End = x.finished
	case at != 0:
		row.End, row.Local = at, zone.Local
	default:
		r.Timeless++
		return
	}
	row.E2E = x.e2e
	if row.Start == 0 {
		row.Start = row.End - trace.Time(max(0, x.e2e))
	}
	x.firstToken()
	x.phases()
	if r.rows.Add(*row) {
		r.Read++
	} else {
		r.strange()
	}
}

// firstToken sets the time of the first token: the time at which it was sent to a streaming client, or else computed from
// the rate of the others.
func (x *rowOf) firstToken() {
	row := &x.row
	switch {
	case x.sent > 0 && x.received > 0 && x.sent >= x.received && x.stream:
		row.TTFT = int64(x.sent - x.received)
	case x.rate > 0 && row.Completion > 1 && x.e2e >= 0:
		if ttft := x.e2e - int64(float64(row.Completion-1)/x.rate*1e9); ttft >= 0 {
			row.TTFT = ttft
		}
	case x.sent > 0 && x.received > 0 && x.sent >= x.received && row.Completion <= 1:
		row.TTFT = int64(x.sent - x.received)
	case x.received > 0 && x.prefill > x.received: // it is computed then
		row.TTFT = int64(x.prefill - x.received)
	}
}

// phases places the scheduler's phases, on its own clock.
func (x *rowOf) phases() {
	row := &x.row
	if x.forward == 0 && x.sentOn > 0 && x.queue >= 0 {
		x.forward = x.sentOn + trace.Time(x.queue)
	}
	if row.Local || x.forward == 0 {
		return
	}
	if x.queue >= 0 {
		row.Phases[spantable.Queue] = spantable.Phase{From: x.forward - trace.Time(x.queue), To: x.forward}
	}
	if x.prefill > x.forward {
		row.Phases[spantable.Prefill] = spantable.Phase{From: x.forward, To: x.prefill}
		if row.End > x.prefill {
			row.Phases[spantable.Decode] = spantable.Phase{From: x.prefill, To: row.End}
		}
	}
}

// number parses a number that may have an exponent.
func number(b []byte) (float64, bool) {
	if v, ok := logline.Decimal(b, 1); ok {
		return v, true
	}
	if len(b) == 0 || len(b) > 40 {
		return 0, false
	}
	v, err := strconv.ParseFloat(string(b), 64)
	return v, err == nil
}

// localStamp parses "2026-08-22T14:03:05.123456", a local time, and records that it is local.
func localStamp(r *Reader, b []byte) trace.Time {
	at, ok := r.stamps.Read(b)
	if !ok {
		return 0
	}
	zone := &r.f.Source().Zone
	if zone.By == "" {
		zone.Local = true
	}
	ns, _, grain := logline.Fraction(b[logline.DateTime:])
	r.f.Within(grain)
	return at + ns
}
