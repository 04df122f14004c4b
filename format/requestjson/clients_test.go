package requestjson

import (
	"fmt"
	"io"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/format"
	"github.com/sgtrace/sgtrace/request/spantable"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/testkit/testinput"
	"github.com/sgtrace/sgtrace/trace"
)

// secrets is in every field that may hold secrets. None may be kept.
const secrets = "Mrs Canary's recipe sk-abcdefghijklmnopqrstuvwx"

// read reads a file and turns its rows into spans.
func read(t testing.TB, text string) (*spantable.Table, *series.Set, *trace.Diags) {
	t.Helper()
	diags := &trace.Diags{}
	spans := spantable.New(diags)
	set := series.New(spans.Syms, diags)
	rows := spantable.NewRequestRecords(set)
	in := &format.Input{Name: "records.jsonl", Open: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(text)), nil }}
	if _, err := indexClients(in, &format.Options{Syms: spans.Syms, Args: spans.Args, Diags: diags, Spans: spans, Series: set, Records: rows}); err != nil {
		t.Fatal(err)
	}
	set.Finish(series.Known{})
	rows.Emit(spans)
	return spans, set, diags
}

// show prints the spans of a table, with the attributes about latency and tokens.
func show(spans *spantable.Table) string {
	var b strings.Builder
	for i := range spans.Len() {
		s := spans.Span(i)
		fmt.Fprintf(&b, "%s %d +%d", spans.Syms.Name(s.Name), s.Start-1787000000_000000000, s.Dur())
		for a := range spans.Args.All(s.Args) {
			switch key := spans.Syms.Name(a.Key); key {
			case "rid", "host_id", "reason":
				fmt.Fprintf(&b, " %s=%s", key, a.Bytes())
			case "gen_ai.latency.time_to_first_token":
				fmt.Fprintf(&b, " %s=%.9g", key, a.Float())
			case "gen_ai.usage.completion_tokens", "dp_rank":
				fmt.Fprintf(&b, " %s=%d", key, a.Int())
			}
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func TestKinds(t *testing.T) {
	for text, want := range map[string]string{
		aiperfRecords: "AIPerf records", dynamoRecords: "Dynamo request trace", benchRecords: "bench_serving results",
		`{"traceEvents":[{"name":"median_ttft_ms"}]}`: "", `[1]`: "", "": "", `{"backend":"nccl","distributedInfo":{}}`: "",
	} {
		got := ""
		if k := kindOf([]byte(text)); k != nil {
			got = k.encoding
		}
		if got != want {
			t.Errorf("%.40s is %q, want %q", text, got, want)
		}
	}
}

// Keys and order are from AIPerf's documentation. One key is repeated, and its last value counts.
const aiperfRecords = `{"metadata":{"session_num":45,"x_request_id":"7609a2e7","x_correlation_id":"c","conversation_id":"77","turn_index":0,"request_start_ns":1787000000532900363,"request_ack_ns":1787000000650730976,` +
	`"request_end_ns":1787000000838764604,"worker_id":"worker_1","record_processor_id":"p","benchmark_phase":"profiling","was_cancelled":false,"cancellation_time_ns":null},"metrics":{"input_sequence_length":` +
	`{"value":550,"unit":"tokens"},"time_to_first_token":{"value":255.9,"unit":"ms"},"request_latency":{"value":297.5,"unit":"ms"},"time_to_first_token":{"value":4.898437,"unit":"ms"},"output_sequence_length":{"value":9,"unit":"tokens"}},"error":null}
{"metadata":{"session_num":80,"x_request_id":"c35e4b1b","request_start_ns":1787000001119147826,"request_ack_ns":null,"request_end_ns":1787000001119772754,"worker_id":"worker_2","was_cancelled":true},"metrics":{"error_isl":{"value":550,"unit":"tokens"}},` +
	`"error":{"code":499,"type":"RequestCancellationError","message":"` + secrets + `"}}
{"metadata":{"worker_id":"worker_2"},"metrics":{}}
`

func TestAIPerf(t *testing.T) {
	spans, _, diags := read(t, aiperfRecords)
	const want = ` Req 7609a2e7 532900363 +305864241 rid=7609a2e7 gen_ai.latency.time_to_first_token=0.004898437 gen_ai.usage.completion_tokens=9
Scheduler 532900363 +305864241
 Req c35e4b1b 1119147826 +624928 rid=c35e4b1b
Scheduler 1119147826 +624928 reason=Aborted
`
	if got := show(spans); got != want || len(diags.All()) != 1 || diags.All()[0].Code != "record-bad" {
		t.Errorf("%v\n%s\nwant\n%s", diags.All(), got, want)
	}
}

// Keys are from lib/llm/src/request_trace/types.rs in Dynamo. One record is wrapped, and one has a payload.
const dynamoRecords = `{"schema":"dynamo.request.trace.v1","event_type":"request_end","event_time_unix_ms":1787000000900,"event_source":"dynamo","agent_context":{"session_id":"s"},"request":{"request_id":"r1","x_request_id":"x1","model":"m",` +
	`"input_tokens":2000,"output_tokens":40,"cached_tokens":512,"request_received_ms":1787000000100,"prefill_wait_time_ms":5.0,"prefill_time_ms":95.0,"ttft_ms":120.0,"total_time_ms":800.0,"avg_itl_ms":17.4,"kv_hit_rate":0.25,` +
	`"queue_depth":3,"worker":{"prefill_worker_id":71,"prefill_dp_rank":0,"decode_worker_id":88,"decode_dp_rank":1},"replay":{"trace_block_size":64,"input_length":2000,"input_sequence_hashes":[1,2]}}}
{"timestamp":1787000001000,"event":{"schema":"dynamo.request.trace.v1","event_type":"request_end","event_time_unix_ms":1787000001000,"request":{"request_id":"r2","output_tokens":1,"request_received_ms":1787000000700,"worker":{"prefill_worker_id":5,"decode_worker_id":5}}}}
{"schema":"dynamo.request.trace.v1","event_type":"request_payload","event_time_unix_ms":1787000001000,"request":{"request_id":"r2","payload":"` + secrets + `"}}
{"schema":"dynamo.request.trace.v1","event_type":"tool_end","event_time_unix_ms":1787000001000,"tool":{"tool_class":"` + secrets + `"}}
not a record
`

func TestDynamo(t *testing.T) {
	spans, _, diags := read(t, dynamoRecords)
	const want = ` Req r1 100000000 +800000000 rid=r1 gen_ai.latency.time_to_first_token=0.12 gen_ai.usage.completion_tokens=40
Scheduler 100000000 +800000000 host_id=decode-88 dp_rank=1
prefill_waiting 100000000 +5000000
prefill_forward 105000000 +95000000
decode_forward 220000000 +680000000
 Req r2 700000000 +300000000 rid=r2 gen_ai.usage.completion_tokens=1
Scheduler 700000000 +300000000 host_id=worker-5
`
	if got := show(spans); got != want || len(diags.All()) != 1 {
		t.Errorf("%v\n%s\nwant\n%s", diags.All(), got, want)
	}
}

// Keys and order are from a bench_serving file; the second line is from vLLM's version.
const benchRecords = `{"tag":null,"backend":"sglang-oai","dataset_name":"random","request_rate":Infinity,"max_concurrency":16,"server_info":{"api_key":"` + secrets + `"},"duration":200.5,"completed":400,"total_input_tokens":53888,` +
	`"total_output_tokens":51200,"request_throughput":1.9,"mean_e2e_latency_ms":727.2,"median_e2e_latency_ms":727.6,"p90_e2e_latency_ms":729.7,"p99_e2e_latency_ms":747.6,"mean_ttft_ms":58.1,"median_ttft_ms":57.0,"p99_ttft_ms":80.4,` +
	`"median_tpot_ms":5.2,"median_itl_ms":5.3,"generated_texts":["` + secrets + `"],"accept_length":null}
{"date":"20260822-140305","backend":"vllm","model_id":"m","num_prompts":5,"request_rate":"inf","duration":2.0,"completed":5,"failed":1,"total_input_tokens":10,"mean_e2el_ms":10.0}
{"tag":null
`

func TestBench(t *testing.T) {
	_, set, diags := read(t, benchRecords)
	if len(set.Runs) != 2 || len(diags.All()) != 1 {
		t.Fatalf("%d runs, %v", len(set.Runs), diags.All())
	}
	a, b := &set.Runs[0], &set.Runs[1]
	if a.Completed != 400 || a.Concurrency != 16 || !math.IsInf(a.Rate, 1) || a.Duration != 200.5 || a.TTFT.Median != 0.057 || a.TTFT.P99 != 0.0804 || a.E2E.P90 != 0.7297 || a.ITL.Median != 0.0053 || a.TPOT.Median != 0.0052 || !math.IsNaN(a.ITL.P99) {
		t.Errorf("%+v", a)
	}
	if b.Backend != "vllm" || !math.IsInf(b.Rate, 1) || b.Failed != 1 || b.E2E.Mean != 0.01 || !math.IsNaN(b.TTFT.Median) {
		t.Errorf("%+v", b)
	}
}

// No prompt, response, or key is kept from any field.
func TestNothingSecretIsKept(t *testing.T) {
	for _, text := range []string{aiperfRecords, dynamoRecords, benchRecords} {
		spans, set, _ := read(t, text)
		for _, name := range spans.Syms.Names() {
			if strings.Contains(name, "Canary") || strings.Contains(name, "sk-abc") {
				t.Errorf("a name is %q", name)
			}
		}
		if all := fmt.Sprintf("%+v %s", set.Runs, show(spans)); strings.Contains(all, "Canary") {
			t.Error(all)
		}
	}
}

// Real bench_serving files give the results that their authors report.
func TestSharedRuns(t *testing.T) {
	dir := testinput.Shared(t, "data", "untraced")
	for name, want := range map[string][]float64{"rec01_bench_A0.json": {0.0571, 0.0573}, "rec02_bench_405b.jsonl": {0.219, 0.244, 0.602, 123.7, 0.182, 0.295}} {
		_, set, _ := read(t, string(testinput.ReadZstd(t, filepath.Join(dir, name+".zst"))))
		if len(set.Runs) != len(want) {
			t.Fatalf("%s: %d runs", name, len(set.Runs))
		}
		for i, w := range want {
			if got := set.Runs[i].TTFT.Median; math.Abs(got-w) > 0.005*w {
				t.Errorf("%s: run %d: TTFT p50 %g, want %g", name, i, got, w)
			}
		}
	}
}

// FuzzIndex reads arbitrary data: results are requests with increasing times.
func FuzzIndex(f *testing.F) {
	for _, text := range []string{aiperfRecords, dynamoRecords, benchRecords} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if kindOf([]byte(text)) == nil {
			return
		}
		spans, _, _ := read(t, text)
		for i := range spans.Len() {
			if s := spans.Span(i); s.Start <= 0 || s.End < s.Start {
				t.Fatalf("%+v", s)
			}
		}
	})
}
