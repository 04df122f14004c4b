package analyze

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/request"
)

// A dumpWriter writes an OTLP dump by hand. Times are us from the epoch below.
type dumpWriter struct {
	lines []string
	next  int
}

const epoch = 1787000000 * int64(1e9) // 2026-08-17T20:53:20Z

type attrs map[string]any

// A wireSpan is one span; ID is set by add.
type wireSpan struct {
	service, trace, parent, name string
	id                           string
	from, to                     float64 // us
	attrs                        attrs
	failed                       bool
	schedule                     int64 // size of the batch in a schedule event at from; 0 is none
}

// add writes s and returns its id.
func (d *dumpWriter) add(s wireSpan) string {
	d.next++
	if s.id == "" {
		s.id = fmt.Sprintf("%016x", d.next)
	}
	at := func(us float64) string { return fmt.Sprint(epoch + int64(us*1000)) }
	span := map[string]any{"traceId": s.trace, "spanId": s.id, "parentSpanId": s.parent, "name": s.name, "kind": 1,
		"startTimeUnixNano": at(s.from), "endTimeUnixNano": at(s.to), "attributes": keyValues(s.attrs), "status": map[string]any{}}
	if s.failed {
		span["status"] = map[string]any{"code": 2}
	}
	if s.schedule > 0 {
		span["events"] = []any{map[string]any{"timeUnixNano": at(s.from), "name": "schedule", "attributes": keyValues(attrs{"batch_size": s.schedule})}}
	}
	service := s.service
	if service == "" {
		service = "sglang"
	}
	resource := attrs{"service.name": service, "telemetry.sdk.language": "python", "telemetry.sdk.name": "opentelemetry", "telemetry.sdk.version": "1.44.0"}
	line, err := json.Marshal(map[string]any{"resourceSpans": []any{map[string]any{
		"resource":   map[string]any{"attributes": keyValues(resource)},
		"scopeSpans": []any{map[string]any{"scope": map[string]any{"name": "sglang server"}, "spans": []any{span}}},
	}}})
	if err != nil {
		panic(err)
	}
	d.lines = append(d.lines, string(line))
	return s.id
}

func keyValues(a attrs) []any {
	var out []any
	for k, v := range a {
		kind := "stringValue"
		switch v.(type) {
		case int, int64:
			kind, v = "intValue", fmt.Sprint(v)
		case float64:
			kind = "doubleValue"
		}
		out = append(out, map[string]any{"key": k, "value": map[string]any{kind: v}})
	}
	return out
}

// thread adds a thread span with stages, given as name, start and end.
func (d *dumpWriter) thread(root wireSpan, rootID, host, label string, tp, pid int, stages ...wireSpan) {
	a := attrs{"host_id": host, "thread_label": label, "pid": pid}
	if tp >= 0 {
		a["tp_rank"] = tp
	}
	from, to := stages[0].from, stages[len(stages)-1].to
	id := d.add(wireSpan{trace: root.trace, parent: rootID, name: label, from: from, to: to, attrs: a})
	last := ""
	for _, s := range stages {
		s.trace = root.trace
		if s.parent == "^" { // below the stage before that is not below another
			s.parent = last
			d.add(s)
			continue
		}
		s.parent = id
		last = d.add(s)
	}
}

func (d *dumpWriter) set(t testing.TB) *request.Set {
	return build(t, "dump.jsonl", strings.NewReader(strings.Join(d.lines, "\n")+"\n"))
}

const (
	prefillHost = "0a6c2f7700000000000000000000aaaa"
	decodeHost  = "c94b1e0200000000000000000000bbbb"
)

// fixture is a small deployment on which everything can be checked by eye: a
// gateway, prefill and decode on two hosts whose clocks differ by 2 ms, one
// request that goes well with a pause before its sixth token, and one that fails
// in the queue.
func fixture(t testing.TB) *request.Set {
	var d dumpWriter
	const good = "00000000000000000000000000000001"
	gateway := d.add(wireSpan{service: "smg", trace: good, name: "http_request", from: 0, to: 100_000,
		attrs: attrs{"module": "smg", "request_id": "gnt-1", "status_code": "200"}})

	prefill := wireSpan{trace: good, parent: gateway, name: "prefill Req 11111111", from: 1000, to: 31_000,
		attrs: attrs{"rid": "11111111aaaa", "module": "sglang::request", "bootstrap_room": "0x7c54", "gen_ai.usage.prompt_tokens": 900}}
	id := d.add(prefill)
	d.thread(prefill, id, prefillHost, "PrefillTokenizer", -1, 88, wireSpan{name: "tokenize", from: 1000, to: 2000})
	for tp := range 2 {
		late := float64(tp * 100)
		d.thread(prefill, id, prefillHost, "Prefill Scheduler", tp, 245+tp,
			wireSpan{name: "prefill_waiting", from: 3000 + late, to: 8000},
			wireSpan{name: "prefill_forward", from: 8000, to: 28_000 + late})
	}

	decode := wireSpan{trace: good, parent: gateway, name: "decode Req 22222222", from: 3500, to: 102_000,
		attrs: attrs{"rid": "22222222bbbb", "module": "sglang::request", "bootstrap_room": "0x7c54", "gen_ai.request.id": "chat-1",
			"gen_ai.usage.completion_tokens": 7, "gen_ai.usage.prompt_tokens": 900, "gen_ai.latency.time_to_first_token": 0.0295,
			"gen_ai.response.model": "Qwen3", "gen_ai.response.finish_reasons": `["stop"]`}}
	id = d.add(decode)
	d.thread(decode, id, decodeHost, "DecodeTokenizer", -1, 88, wireSpan{name: "tokenize", from: 3500, to: 4500})
	stages := []wireSpan{
		{name: "decode_transferred", from: 5000, to: 32_000},
		{name: "decode_waiting", from: 32_000, to: 32_500},
		{name: "decode_forward", from: 32_500, to: 102_000},
		{name: "fake_output", parent: "^", from: 32_500, to: 33_000},
	}
	for step, from := range []float64{33_000, 41_000, 49_000, 57_000, 65_000, 94_000} {
		to := from + 8000
		if step == 4 {
			to = 94_000 // a long prefill of others goes first
		}
		stages = append(stages, wireSpan{name: "decode_loop", parent: "^", from: from, to: to, schedule: int64(3 + step)})
	}
	d.thread(decode, id, decodeHost, "Decode Scheduler", 0, 245, stages...)

	const bad = "00000000000000000000000000000002"
	failed := wireSpan{trace: bad, name: "prefill Req 33333333", from: 200_000, to: 201_000,
		attrs: attrs{"rid": "33333333cccc", "module": "sglang::request"}}
	id = d.add(failed)
	d.add(wireSpan{trace: bad, parent: id, name: "Prefill Scheduler", from: 200_100, to: 201_000, failed: true,
		attrs: attrs{"host_id": prefillHost, "thread_label": "Prefill Scheduler", "pid": 245, "tp_rank": 0, "reason": "Prefill bootstrap failed for request"}})

	// A service without rules, a span that ends before it starts, one exported twice.
	d.add(wireSpan{service: "billing", trace: "00000000000000000000000000000003", name: "charge", from: 300_000, to: 300_250})
	d.add(wireSpan{service: "billing", trace: "00000000000000000000000000000003", name: "charge", from: 300_000, to: 299_999})
	d.lines = append(d.lines, d.lines[len(d.lines)-2])
	return d.set(t)
}
