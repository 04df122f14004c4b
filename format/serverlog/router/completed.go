package router

import (
	"bytes"
	"cmp"
	"strconv"

	"github.com/sgtrace/sgtrace/format/logline"
	"github.com/sgtrace/sgtrace/request/spantable"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
)

// received and completed are the messages of Dynamo's frontend about each request, since 2026-04
// (dynamo_llm::http::service::metrics).
const received, completed = "request received", "request completed"

// complete reads a line about a request that Dynamo's frontend has finished. After the message come its fields, and those
// of its span, which describe the response so far:
//
//	request_id=7f0e.. model=m endpoint=chat_completions request_type=stream status=success elapsed_ms=1820 .. input_tokens=512 output_tokens=90
//	ttft_ms="41.30" avg_itl_ms="19.96" prefill_worker_id=17 decode_worker_id=23
//
// A request that failed has an error_type, such as response_timeout.
func (r *reader) complete(x *said) {
	fields := x.message[bytes.Index(x.message, []byte(completed)):]
	row := spantable.NewRequestRecord()
	row.Who, row.Role, row.Fronted, row.Line = spantable.Server, spantable.Unified, true, uint32(r.line)
	row.ID, row.End = r.rows.Text(fieldOf(fields, "request_id")), x.at
	elapsed, ok := number(fields, "elapsed_ms")
	if !ok {
		return // from a worker, without these fields
	}
	row.E2E = int64(elapsed * 1e6)
	row.Start = row.End - trace.Time(row.E2E)
	if ms, ok := number(fields, "ttft_ms"); ok && ms <= elapsed {
		row.TTFT = int64(ms * 1e6)
		row.First = row.Start + trace.Time(row.TTFT)
		row.Phases[spantable.Decode] = spantable.Phase{From: row.First, To: row.End}
	}
	if n, ok := number(fields, "input_tokens"); ok && n > 0 {
		row.Prompt = int64(n)
	}
	if n, ok := number(fields, "output_tokens"); ok {
		row.Completion = int64(n)
	}
	if model := fieldOf(fields, "model"); len(model) > 0 {
		row.Model = r.rows.Symbols().Intern(string(model))
	}
	if status := fieldOf(fields, "status"); string(status) != "success" {
		row.Reason = r.rows.Symbols().Intern(logline.Beginning(fieldOf(fields, "error_type"), "_", 40))
	}
	worker := logline.DynamoWorker(string(fieldOf(fields, "prefill_worker_id")), string(fieldOf(fields, "decode_worker_id")))
	row.Server = r.f.Server(series.Server{Name: cmp.Or(worker, "frontend"), Engine: "Dynamo"})
	r.rows.Add(row)
}

// fieldOf returns the value of a field, without quotes; nil if there is none.
func fieldOf(fields []byte, key string) []byte {
	_, rest, ok := bytes.Cut(fields, []byte(" "+key+"="))
	if !ok {
		return nil
	}
	if rest, quoted := bytes.CutPrefix(rest, []byte(`"`)); quoted {
		value, _, _ := bytes.Cut(rest, []byte(`"`))
		return value
	}
	value, _, _ := bytes.Cut(rest, []byte(" "))
	return value
}

func number(fields []byte, key string) (float64, bool) {
	v, err := strconv.ParseFloat(string(fieldOf(fields, key)), 64)
	return v, err == nil && v >= 0 && v < 1e15
}
