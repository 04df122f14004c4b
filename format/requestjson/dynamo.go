package requestjson

import (
	"strconv"

	"github.com/sgtrace/sgtrace/format/logline"
	"github.com/sgtrace/sgtrace/internal/jsonscan"
	"github.com/sgtrace/sgtrace/request/spantable"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
)

// A dynamoRecord is Dynamo's record of a request; durations are in ms, and -1 is unknown.
type dynamoRecord struct {
	event                           []byte
	id                              spantable.Text
	ended, received                 float64 // Unix ms
	ttft, total, waited, prefill    float64
	prompt, completion, cached      int64
	prefillWorker, decodeWorker     string
	prefillRank, decodeRank         int64
	model                           trace.Sym
	isRecord, wrapped, isOfARequest bool
}

// dynamo reads a record of Dynamo's frontend. It accepts those of tools and payloads, and ignores them.
func (r *clientReader) dynamo(b []byte) bool {
	x := dynamoRecord{ended: -1, received: -1, ttft: -1, total: -1, waited: -1, prefill: -1, prompt: -1, completion: -1, cached: -1, prefillRank: -1, decodeRank: -1}
	if _, err := jsonscan.Members(b, 0, func(key, value []byte) { x.member(r, key, value) }); err != nil {
		return false
	}
	if !x.isRecord {
		return false
	}
	if string(x.event) != "request_end" || !x.isOfARequest {
		return true
	}
	row := spantable.NewRequestRecord()
	row.Who, row.Line, row.ID, row.Model = spantable.Server, uint32(r.at), x.id, x.model
	row.Role, row.Fronted, row.Prompt, row.Completion, row.Cached = spantable.Unified, true, x.prompt, x.completion, x.cached
	if x.received > 0 {
		row.Start = ms(x.received)
	}
	switch {
	case x.received > 0 && x.total >= 0:
		row.End = row.Start + ms(x.total)
	case x.ended > 0:
		row.End = ms(x.ended)
	}
	if row.Start == 0 && row.End > 0 && x.total >= 0 {
		row.Start = row.End - ms(x.total)
	}
	if row.Start <= 0 || row.End < row.Start {
		return false
	}
	row.E2E = int64(row.End - row.Start)
	if x.ttft >= 0 {
		row.TTFT = int64(ms(x.ttft))
	}
	x.phases(&row)
	rank := x.decodeRank // a row has one place: the server that answers
	if x.decodeWorker == "" {
		rank = x.prefillRank
	}
	if name := logline.DynamoWorker(x.prefillWorker, x.decodeWorker); name != "" {
		row.Server = r.f.Server(series.Server{Name: name, Engine: "Dynamo"})
	}
	if rank >= 0 && rank < 1<<15 {
		row.DP = int16(rank)
	}
	return r.rows.Add(row)
}

// ms converts milliseconds.
func ms(v float64) trace.Time { return trace.Time(v * 1e6) }

// phases places the phases for which the record has durations.
func (x *dynamoRecord) phases(row *spantable.RequestRecord) {
	from := row.Start
	if x.waited >= 0 && from+ms(x.waited) <= row.End {
		row.Phases[spantable.Queue] = spantable.Phase{From: from, To: from + ms(x.waited)}
		from += ms(x.waited)
	}
	if x.prefill >= 0 && x.waited >= 0 && from+ms(x.prefill) <= row.End {
		row.Phases[spantable.Prefill] = spantable.Phase{From: from, To: from + ms(x.prefill)}
	}
	if x.ttft >= 0 && row.Start+ms(x.ttft) <= row.End {
		row.Phases[spantable.Decode] = spantable.Phase{From: row.Start + ms(x.ttft), To: row.End}
	}
}

// member reads a member of a record, of its wrapper, or of its request.
func (x *dynamoRecord) member(r *clientReader, key, value []byte) {
	number := func() float64 {
		if v, err := strconv.ParseFloat(string(value), 64); err == nil && v >= 0 && v < 1e16 {
			return v
		}
		return -1
	}
	inside := func() { jsonscan.Members(value, 0, func(key, value []byte) { x.member(r, key, value) }) }
	switch string(key) {
	case "event":
		if !x.wrapped && len(value) > 0 && value[0] == '{' {
			x.wrapped = true
			inside()
		}
	case "schema":
		x.isRecord = string(value) == `"dynamo.request.trace.v1"`
	case "event_type":
		x.event = jsonscan.Quoted(value)
	case "event_time_unix_ms":
		x.ended = number()
	case "request":
		if !x.isOfARequest && len(value) > 0 && value[0] == '{' {
			x.isOfARequest = true
			inside()
		}
	case "worker":
		inside()
	case "request_id":
		x.id = r.rows.Text(jsonscan.Quoted(value))
	case "model":
		if name := jsonscan.Quoted(value); len(name) > 0 && len(name) < 256 {
			x.model = r.f.Set.Syms.Intern(string(name))
		}
	case "input_tokens":
		x.prompt = whole(value)
	case "output_tokens":
		x.completion = whole(value)
	case "cached_tokens":
		x.cached = whole(value)
	case "request_received_ms":
		x.received = number()
	case "prefill_wait_time_ms":
		x.waited = number()
	case "prefill_time_ms":
		x.prefill = number()
	case "ttft_ms":
		x.ttft = number()
	case "total_time_ms":
		x.total = number()
	case "prefill_worker_id":
		x.prefillWorker = idOf(value)
	case "decode_worker_id":
		x.decodeWorker = idOf(value)
	case "prefill_dp_rank":
		x.prefillRank = whole(value)
	case "decode_dp_rank":
		x.decodeRank = whole(value)
	}
}

// idOf returns a number or a text; "" for null.
func idOf(value []byte) string {
	if t := jsonscan.Quoted(value); t != nil {
		return string(t[:min(len(t), 64)])
	}
	if n := whole(value); n >= 0 {
		return string(value[:min(len(value), 64)])
	}
	return ""
}
