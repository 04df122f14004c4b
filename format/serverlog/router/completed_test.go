package router

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/format"
	"github.com/sgtrace/sgtrace/request/spantable"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
)

// Fields and their order are from Dynamo's sources of 2026-08. The worker's line about the same request has no times.
const requestsOfDynamo = `2026-06-16T14:00:00.000000Z  INFO http-request: dynamo_llm::http::service::metrics: request received request_id=r1 model=m/x endpoint=chat_completions request_type=stream method=POST uri=/v1/chat/completions
2026-06-16T14:00:02.500000Z  INFO http-request: dynamo_llm::http::service::metrics: request completed request_id=r1 model=m/x endpoint=chat_completions request_type=stream status=success elapsed_ms=2500 method=POST uri=/v1/chat/completions input_tokens=512 output_tokens=90 ttft_ms="500.25" avg_itl_ms="22.47" prefill_worker_id=17 decode_worker_id=23
2026-06-16T14:00:03.000000Z ERROR http-request: dynamo_llm::http::service::metrics: request completed request_id=r2 model=m/x endpoint=chat_completions request_type=stream status=error error_type=response_timeout error_detail=no backend worker available elapsed_ms=1000 method=POST input_tokens=0 output_tokens=0
2026-06-16T14:00:03.500000Z  INFO handle_payload: dynamo_runtime::pipeline::network::ingress::push_handler: request completed request_id=r1 request_id="r1" component="backend" endpoint="generate"
{"time":"2026-06-16T14:00:04.000000Z","level":"INFO","file":"/x/metrics.rs","line":9,"target":"dynamo_llm::http::service::metrics","message":"request completed","decode_worker_id":23,"elapsed_ms":"40","endpoint":"completions","input_tokens":7,"model":"m/x","output_tokens":1,"prefill_worker_id":23,"request_id":"r3","request_type":"unary","status":"success","ttft_ms":"39.00"}
`

// Lines of Dynamo's frontend about requests become requests, with start, first token, worker, and reason of failure.
func TestRequestsOfDynamo(t *testing.T) {
	diags := &trace.Diags{}
	spans := spantable.New(diags)
	set := series.New(spans.Syms, diags)
	rows := spantable.NewRequestRecords(set)
	in := &format.Input{Name: "router", Open: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(requestsOfDynamo)), nil }}
	if _, err := Format.Index(in, &format.Options{Syms: set.Syms, Args: spans.Args, Diags: diags, Spans: spans, Series: set, Records: rows}); err != nil || !sniff([]byte(requestsOfDynamo)) {
		t.Fatalf("%v, or not recognized", err)
	}
	set.Finish(series.Known{})
	rows.Emit(spans)
	const begin = trace.Time(1781618400_000000000)
	var got strings.Builder
	for i := range spans.Len() {
		x := spans.Span(i)
		name := spans.Syms.Name(x.Name)
		if name == "request_process" || name == "prefill_waiting" {
			continue
		}
		fmt.Fprintf(&got, "%s %d +%d", name, int64(x.Start-begin)/1e6, int64(x.Dur())/1e6)
		for a := range spans.Args.All(spans.Resources[spans.Origins[x.Origin].Resource].Args) {
			if spans.Syms.Name(a.Key) == "host.name" {
				fmt.Fprintf(&got, " %s", a.Bytes())
			}
		}
		for a := range spans.Args.All(x.Args) {
			switch key := spans.Syms.Name(a.Key); key {
			case "reason":
				fmt.Fprintf(&got, " %s", a.Bytes())
			case "gen_ai.latency.time_to_first_token":
				fmt.Fprintf(&got, " ttft %.6g", a.Float())
			case "gen_ai.usage.prompt_tokens", "gen_ai.usage.completion_tokens":
				fmt.Fprintf(&got, " %d", a.Int())
			}
		}
		got.WriteByte('\n')
	}
	const want = ` Req r1 0 +2500 decode-23 ttft 0.50025 512 90
Scheduler 0 +2500 decode-23
decode_forward 500 +1999 decode-23
 Req r2 2000 +1000 frontend 0
Scheduler 2000 +1000 frontend response_timeout
 Req r3 3960 +40 worker-23 ttft 0.039 7 1
Scheduler 3960 +40 worker-23
decode_forward 3999 +1 worker-23
`
	if got.String() != want {
		t.Errorf("%swant\n%s", got.String(), want)
	}
	if len(set.Instants) > 0 {
		t.Errorf("a failed request is told of twice: %s", described(set))
	}
}
