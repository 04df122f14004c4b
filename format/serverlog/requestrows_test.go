package serverlog

import (
	"fmt"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/request/spantable"
	"github.com/sgtrace/sgtrace/trace"
)

// Finished requests are read from the output of --log-requests, whatever their prompts and
// responses contain: arrival, first token, token counts, and end, but no user text.
func TestRequestsAsPythonPrintsThem(t *testing.T) {
	const asked = `obj=GenerateReqInput(rid='r1', text='CANARY , out={\'meta_info\': {\'id\': \'CANARY\', \'e2e_latency\': 9}} , stream=False', sampling_params={'stop': 'CANARY'}, stream=True, bootstrap_room=77, lora_path=None)`
	const text = `[2026-02-09 13:23:16] Receive: ` + asked + `
[2026-02-09 13:23:17] Finish: ` + asked + `, out={'text': "CANARY 'meta_info': {", 'output_ids': [1, 2], 'meta_info': {'id': 'r1', 'finish_reason': {'type': 'stop', 'matched': 'CANARY'}, 'prompt_tokens': 7, 'completion_tokens': 8, 'cached_tokens': 2, 'e2e_latency': 1.25, 'queue_time': 0.1, 'request_received_ts': 1770643396.5, 'request_sent_to_scheduler_ts': 1770643396.6, 'prefill_finished_ts': 1770643397.0, 'response_sent_to_client_ts': 1770643397.5}}
[2026-02-09 13:23:19] Finish: obj=GenerateReqInput(rid='r2', stream=False), out={'meta_info': {'id': 'r2', 'finish_reason': {'type': 'abort', 'message': 'Aborted: CANARY' ... 'CANARY', 'status_code': 500}, 'prompt_tokens': 7, 'completion_tokens': 0, 'e2e_latency': 2}}
[2026-02-09 13:23:20] Finish: obj=GenerateReqInput(rid='r3', text='CANARY
`
	set, rows, _ := readText(t, "server.log", strings.NewReader(text))
	spans := spantable.New(set.Diags)
	spans.Syms = set.Syms
	rows.Emit(spans)
	var got strings.Builder
	for i := range spans.Len() {
		x := spans.Span(i)
		fmt.Fprintf(&got, "%s %.3f +%.3f", spans.Syms.Name(x.Name), float64(int64(x.Start)-1770643396e9)/1e9, float64(x.Dur())/1e9)
		for a := range spans.Args.All(x.Args) {
			switch key := spans.Syms.Name(a.Key); key {
			case "reason", "bootstrap_room":
				fmt.Fprintf(&got, " %s=%s", key, a.Bytes())
			case "gen_ai.latency.time_to_first_token":
				fmt.Fprintf(&got, " ttft=%.3f", a.Float())
			case "gen_ai.usage.prompt_tokens", "gen_ai.usage.completion_tokens", "gen_ai.usage.cached_tokens":
				fmt.Fprintf(&got, " %d", a.Int())
			}
		}
		got.WriteByte('\n')
	}
	const want = `decode Req r1 0.500 +1.250 bootstrap_room=77 ttft=1.000 7 8 2
Decode Scheduler 0.600 +1.150
decode_waiting 0.600 +0.100
decode_transferred 0.500 +0.100
decode_forward 0.700 +1.050
decode Req r2 1.000 +2.000 7 0
Decode Scheduler 1.000 +2.000 reason=Aborted
`
	if got.String() != want {
		t.Errorf("%swant\n%s", got.String(), want)
	}
	for i := range set.Syms.Len() {
		if strings.Contains(set.Syms.Name(trace.Sym(i)), canary) {
			t.Errorf("kept: %s", set.Syms.Name(trace.Sym(i)))
		}
	}
}
