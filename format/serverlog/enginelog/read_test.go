package enginelog

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sgtrace/sgtrace/format"
	"github.com/sgtrace/sgtrace/request/spantable"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
)

// TestEnded reads the same request, which took 4 s with 0.5 s for its prompt, in the lines of different servers and versions.
func TestEnded(t *testing.T) {
	const llamas = "%sslot print_timing: id  0 | task 7 | \n%sprompt eval time =     500.00 ms /    40 tokens (   12.50 ms per token,    80.00 tokens per second)\n" +
		"%s       eval time =    3500.00 ms /    70 tokens (   50.00 ms per token,    20.00 tokens per second)\n%s      total time =    4000.00 ms /   110 tokens\n"
	in := func(stamp string) string { return strings.ReplaceAll(llamas, "%s", stamp) }
	const prompt = "slot update_slots: id  0 | task 7 | new prompt, n_ctx_slot = 4096, n_keep = 0, task.n_tokens = 100\n"
	const tgi = `total_time="4s" validation_time="5.6ms" queue_time="900.5µs" inference_time="3.5s" time_per_token="50ms" seed="None"`
	for name, c := range map[string]struct{ text, want string }{
		"TGI":        {"2026-08-17T22:53:20.500000Z  INFO generate_stream{parameters=GenerateParameters { best_of: None } " + tgi + "}: text_generation_router::server: router/src/server.rs:422: Success\n", "16.5 20.5 70"},
		"TGI's JSON": {`{"timestamp":"2026-08-17T22:53:20.500000Z","level":"INFO","message":"Success","span":{"inference_time":"3.5s","queue_time":"900.5µs","time_per_token":"50ms","total_time":"4s","name":"generate"}}` + "\n", "16.5 20.5 70"},
		"TEI":        {"2026-08-17T22:53:20.500000Z  INFO embed{total_time=\"4s\" tokenization_time=\"1ms\" queue_time=\"2µs\" inference_time=\"3.9s\"}: text_embeddings_router::http::server: router/src/http/server.rs:12: Success\n", "16.5 20.5"},
		"stamped":    {in("2026-08-17T22:53:20.500000000Z "), "16.5 20.5 ttft 0.5 40 70"},
		"journal":    {in("Aug 17 22:53:20 n1 llama-server[24689]: "), "16 20 ttft 0.5 40 70"},
		"compose":    {in("llama-1  | 2026-08-17T22:53:20.500Z "), "16.5 20.5 ttft 0.5 40 70"},
		"cached":     {"2026-08-17T22:53:16.600Z " + prompt + in("2026-08-17T22:53:20.500Z "), "16.5 20.5 ttft 0.5 100 70"},
		"2024": {`{"tid":"1","timestamp":1787007200,"level":"INFO","function":"print_timings","line":321,"msg":"prompt eval time     =     500.00 ms /    40 tokens (   12.50 ms per token)","id_slot":0,"id_task":7}` + "\n" +
			`{"tid":"1","timestamp":1787007200,"level":"INFO","function":"print_timings","line":337,"msg":"generation eval time =    3500.00 ms /    70 runs   (   50.00 ms per token)","id_slot":0,"id_task":7}` + "\n" +
			`{"tid":"1","timestamp":1787007200,"level":"INFO","function":"print_timings","line":347,"msg":"          total time =    4000.00 ms","id_slot":0,"id_task":7}` + "\n", "16 20 ttft 0.5 40 70"},
		"uptime":    {in("0.12.345.000 I ") + "0.13.345.000 I srv  update_slots: all slots are idle\n", "15.5 19.5 ttft 0.5 40 70"}, // 1 s before the last line, at 20.5
		"no stamp":  {in(""), ""},
		"field":     {in("") + "INFO [ main] x | tid=\"1\" timestamp=1787007200\n" + in(""), "16 20 ttft 0.5 40 70"},
		"no server": {"2026-08-17T22:53:20.500Z llama_perf_context_print:        load time =     618.92 ms\n2026-08-17T22:53:20.500Z llama_perf_context_print:       total time =   20699.49 ms /   227 tokens\n", ""},
	} {
		records, set := readLog(t, c.text)
		spans := spantable.New(set.Diags)
		spans.Syms = set.Syms
		records.Emit(spans)
		got := ""
		for i := range spans.Len() {
			x := spans.Span(i)
			if name := spans.Syms.Name(x.Name); !strings.HasPrefix(strings.TrimSpace(name), "Req") {
				continue
			}
			at := func(x trace.Time) string { return fmt.Sprint(float64(x-1787007180e9) / 1e9) }
			got = at(x.Start) + " " + at(x.End)
			for a := range spans.Args.All(x.Args) {
				switch spans.Syms.Name(a.Key) {
				case "gen_ai.latency.time_to_first_token":
					got += fmt.Sprintf(" ttft %.6g", a.Float())
				case "gen_ai.usage.prompt_tokens", "gen_ai.usage.completion_tokens":
					got += fmt.Sprintf(" %d", a.Int())
				}
			}
		}
		if got != c.want {
			t.Errorf("%s: %q, not %q", name, got, c.want)
		}
	}
}

// readLog reads a log with modification time 22:53:20.5, and returns its contents.
func readLog(t testing.TB, text string) (*spantable.RequestRecords, *series.Set) {
	path := filepath.Join(t.TempDir(), "a.log")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	written := time.Unix(0, 1787007200500e6)
	if err := os.Chtimes(path, written, written); err != nil {
		t.Fatal(err)
	}
	diags := &trace.Diags{}
	set := series.New(trace.NewSymbols(), diags)
	records := spantable.NewRequestRecords(set)
	in := &format.Input{Name: "a.log", Path: path, Open: func() (io.ReadCloser, error) { return os.Open(path) }}
	if _, err := Format.Index(in, &format.Options{Series: set, Records: records, Diags: diags}); err != nil {
		t.Fatal(err)
	}
	set.Finish(series.Known{})
	return records, set
}

// Errors are reported without anything they may quote, and llama.cpp's error responses are counted.
func TestErrors(t *testing.T) {
	_, set := readLog(t, "2026-08-17T22:53:20.500Z ERROR chat_completions:async_stream:generate_stream: text_generation_router::infer: router/src/infer/mod.rs:105: Request failed during generation: Server error: CUDA out of memory\n"+
		"2026-08-17T22:53:20.500Z srv  log_server_r: done request: POST /v1/chat/completions 10.0.0.1 500\n2026-08-17T22:53:20.500Z srv  log_server_r: done request: POST /v1/chat/completions 10.0.0.1 200\n")
	if len(set.Instants) != 1 || set.Syms.Name(set.Instants[0].Text) != "an error: Request failed during generation: out of memory" || len(set.List) != 1 || set.N(0) != 1 {
		t.Errorf("%d instants, %d series", len(set.Instants), len(set.List))
	}
	_, set = readLog(t, `{"timestamp":"2025-08-29T14:40:17.288163Z","level":"ERROR","message":"Request failed during generation: Server error: CUDA out of memory","target":"text_generation_router_v3::backend","filename":"backends/v3/src/backend.rs"}`+"\n")
	if len(set.Instants) != 1 || set.Syms.Name(set.Instants[0].Text) != "an error: Request failed during generation: out of memory" {
		t.Errorf("in JSON: %d instants", len(set.Instants))
	}
}

// TGI's launcher reports how a shard ended.
func TestEnds(t *testing.T) {
	_, set := readLog(t, "2026-08-17T22:53:20.500Z ERROR shard-manager: text_generation_launcher: Shard complete standard error output:\n"+
		"2026-08-17T22:53:20.500Z ERROR shard-manager: text_generation_launcher: Shard process was signaled to shutdown with signal 11 rank=0\n"+
		"[E ProcessGroupNCCL.cpp:828] [Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=1, OpType=ALLREDUCE, Timeout(ms)=60000) ran for 69027 milliseconds before timing out.\n"+
		"2026-08-17T22:53:20.500Z ERROR shard-manager: text_generation_launcher: Shard process was signaled to shutdown with signal 6 rank=1\n"+
		"2026-08-17T22:53:20.600Z ERROR text_generation_launcher: Shard 0 crashed\n2026-08-17T22:53:20.700Z ERROR text_generation_launcher: Nobody answers\n")
	got := ""
	for _, x := range set.Instants {
		got += fmt.Sprintf("%s %s\n", x.Kind, set.Syms.Name(x.Text))
	}
	if want := "exception a shard ended with exit code -11 (segmentation fault)\ntimeout a collective timed out: ALLREDUCE number 1\ncrash a shard ended with exit code -6 (aborted)\ncrash a shard crashed\ncomplaint an error: Nobody answers\n"; got != want {
		t.Errorf("%q", got)
	}
}

// FuzzIndex checks that no input causes a panic.
func FuzzIndex(f *testing.F) {
	f.Add(`2026-08-17T22:53:20.5Z  INFO generate{total_time="4s" queue_time="9µs" inference_time="3.5s" time_per_token="50ms"}: text_generation_router::server: a.rs:1: Success`)
	f.Add("0.12.345.000 I slot print_timing: id  0 | task 7 | \nprompt eval time = 5 ms / 4 tokens\n eval time = 3 ms / 7 tokens\n total time = 8 ms / 11 tokens")
	f.Fuzz(func(t *testing.T, text string) {
		sniff([]byte(text))
		readLog(t, text)
	})
}

// A failure of ggml is told once, with what its other lines add, in the order of every version; errors keep no text of requests.
func TestFails(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"srv  update_slots: all slots are idle\nCUDA error: misaligned address\n  current device: 0, in function launch_mul_mat_q at /x/ggml-cuda/t/../mmq.cuh:2454\n  cudaFuncSetAttribute(f)\nGGML_ASSERT: /x/ggml-cuda.cu:100: !\"CUDA error\"\nAborted\n",
			"exception CUDA error: misaligned address in launch_mul_mat_q (mmq.cuh:2454)\ncrash was aborted\n"},
		{"ggml/src/ggml-cuda.cu:70: CUDA error\nCUDA error: out of memory\n  current device: 1, in function alloc at ggml/src/ggml-cuda.cu:14\n", "exception CUDA error: out of memory in alloc (ggml-cuda.cu:14)\n"},
		{"a-1  | CUDA error: invalid argument\nb-1  | CUDA error: misaligned address\n", "exception CUDA error: invalid argument\nexception CUDA error: misaligned address\n"},
		{`D:\a\ggml-sycl\common.hpp:107: SYCL error` + "\n", "exception SYCL error\n"},
		{"2026-08-17T22:53:20.500Z /app/src/llama-graph.cpp:185: GGML_ASSERT(a < b && \"too large\") failed\n", "exception GGML_ASSERT(a < b && \"too large\") failed, at llama-graph.cpp:185\n"},
		{"GGML_ASSERT: /x/ggml-cuda.cu:5484: false\n", "exception GGML_ASSERT(false) failed, at ggml-cuda.cu:5484\n"},
		{"src/llama.cpp:15099: this model does not support K-shift\n", "exception this model does not support K-shift, at llama.cpp:15099\n"},
		{"ggml_backend_cuda_buffer_type_alloc_buffer: allocating 16722.37 MiB on device 0: cudaMalloc failed: out of memory\nllama_model_load: error loading model: unable to allocate CUDA0 buffer\nsrv    load_model: failed to load model, '/m.gguf'\nmain: exiting due to model loading error\n",
			"out of memory device 0 ran out of memory: it tried to allocate 16722.37 MiB\ncrash its model did not load, and it ends\n"},
		{"llama_model_load: error loading model: unknown model architecture: 'x9'\nsrv    load_model: failed to load model, '/m.gguf'\n", "exception its model did not load: unknown model architecture: 'x9'\ncrash its model did not load, and it ends\n"},
		{"srv  params_from_: Chat format: x\nterminate called after throwing an instance of 'std::runtime_error'\n  what():  Invalid diff: 'CANARY' not found\nAborted (core dumped)\n", "crash an uncaught C++ exception ended it: std::runtime_error: Invalid diff\ncrash was aborted\n"},
		{"srv    send_error: task id = 3, error: input is too large to process. increase the physical batch size\nslot update_slots: id  0 | task 7 | slot context shift, n_keep = 0, n_left = 9\n", "complaint an error: a request failed: input is too large to process. increase the physical batch size\n"},
		{"slot update_slots: id  0 | task 7 | slot context shift, n_keep = 0, n_left = 9\n", "complaint a warning: requests outgrow their context, and lose their oldest tokens (context shift)\n"},
	} {
		_, set := readLog(t, c.text)
		got := ""
		for _, x := range set.Instants {
			got += fmt.Sprintf("%s %s", x.Kind, set.Syms.Name(x.Text))
			if x.Stack != 0 {
				got += " in " + set.Syms.Name(x.Stack)
			}
			got += "\n"
		}
		if got != c.want {
			t.Errorf("%s\n%s not\n%s", c.text, got, c.want)
		}
	}
}
