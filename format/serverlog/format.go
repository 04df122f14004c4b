package serverlog

import (
	"bytes"
	"io"
	"slices"

	"github.com/sgtrace/sgtrace/format"
	"github.com/sgtrace/sgtrace/format/logline"
	"github.com/sgtrace/sgtrace/format/serverlog/requestlog"
	"github.com/sgtrace/sgtrace/internal/lazyregexp"
)

// Format is the log of an LLM server.
//
// # What is odd
//
//   - Stamps of SGLang are local times in whole seconds without a zone. A log collector may add
//     a stamp of its own with a zone (kubectl --timestamps, docker, containerd); then that one counts.
//   - Until 2024, stamps have no date. We assume the day of the first stamp in the log that has one, or the last days before the file was written; a clock that goes back has passed midnight.
//   - Stamps of servers of diffusion models have no year, "[12-16 14:27:08]".
//   - A store of logs may show the newest line first: such a log is read from its end.
//   - The first batch line after a pause has a throughput near 0: it is the mean since the previous line.
//   - Since 2025-05, batch lines end in "cuda graph: True"; on NPUs until 2026-01-22 this reads "cpu graph: True".
//   - "Decode batch" is followed by a period until 2025-10, by a comma since, and by "[iteration]" on request. Lines of late 2025 end in a comma.
//   - The first layout of disaggregation (2025-04) has blanks where others have commas.
//   - Under Dynamo, batch lines have no rank, and UTC instead of local time, often with colors.
//   - Progress bars write several segments, divided by carriage returns, before a stamp.
//   - Until 2026-08 at least, a scheduler runs no batch while it writes a profile: from "Stop profiling" to "Profiling done",
//     often tens of seconds. Garbage collections are logged after the fact, with --gc-warning-threshold-secs.
//   - Every TP rank prints each failed transfer; the number of rooms is the number of transfers.
//   - Tracebacks of ranks interleave, line by line.
//   - Since 2.26, NCCL puts a stamp of its own before its warnings.
//   - A model with pools for states (Mamba) or for sliding windows logs how full each one is: the fullest one keeps requests waiting.
//   - Since 2024, a watchdog prints the requests that it saw, with their token IDs, which we don't read. With --log-requests, lines contain whole
//     prompts in Python's notation: of a finished request, we read SGLang's measurements, and nothing else.
//   - vLLM's stamps have no year. vLLM prints no line while it is idle, and "EngineDeadError" when it is stopped.
//   - TensorRT-LLM's stamps begin with the month. Its prev_device_step_time belongs to the previous iteration.
var Format = &format.Format{
	Name:     "server log",
	Noun:     "server log",
	Doc:      "logs of SGLang, vLLM, and TensorRT-LLM, as they are or as Kubernetes, docker, Ray, systemd, or a store of logs keeps them; SGLang's records of requests",
	For:      "'sgtrace merge' or 'sgtrace report'",
	Sniff:    sniff,
	Index:    index,
	Requests: true,
	Series:   true,
	Text:     true,
}

// signOf matches a line that identifies the log of a server: about a batch, about its start, or from one of its ranks.
var signOf = lazyregexp.New(`(?m)(?:Prefill|Decode) batch[,. [].*#(?:running|queue)-req|Avg prompt throughput: [\d.]+ tokens/s|server_args=ServerArgs\(|\[TRT-LLM\]|\[TensorRT-LLM\]\[(?:INFO|WARNING|ERROR)\]|` +
	`^\[rank\d+\]:\s{1,3}(?:Traceback \(most recent|  File ")|^(?:.{0,200} )?\[ ?(?:(?:DP|PP|TP|EP|ATTN_CP|MOE_DP)\d+ ?)+\] (?:Scheduler|Prefill|Decode|Load weight|Received|KV)|` +
	`^\W*(?:.{0,200} )?\[20\d\d-\d\d-\d\d \d\d:\d\d:\d\d(?:[.,]\d+)?(?: (?:DP|PP|TP|EP|ATTN_CP|MOE_DP)\d+)+\]|ReqTimeStats\(rid=|` +
	`\[20\d\d-\d\d-\d\d \d\d:\d\d:\d\d[^\]]*\].*(?:sglang|Scheduler hit an exception|The server is fired up|torch distributed|Load weight|KVTransferError\(|LMCache (?:DEBUG|INFO|WARNING|ERROR):)|^Unexpected transfer worker error for room|^(?:Prefill|Decode) \w+ failed for request rank=\d|` +
	`^(?:.{0,200}[ )\]])?(?:DEBUG|INFO|WARNING|ERROR) \d\d-\d\d \d\d:\d\d:\d\d \[?[\w/.]+\.py:\d+\]|"event": ?"request\.(?:finished|received)|Workers \(tasks / actors\) killed due to memory pressure|` +
	`^(?:.{0,100} )?INFO:     [\d.]+:\d+ - "POST /(?:v1/(?:chat/)?completions|generate) HTTP|\((?:ServeController|ServeReplica:\S+) pid=\d+|` +
	`^(?:.{0,100} )?[IWEF]\d{4} \d\d:\d\d:\d\d\.\d+ +(?:\d+ )?(?:transfer_|tcp_transport|rdma_|ascend_direct_|nixl_|client\.cpp)|^[IWEF]\d{4} \d\d:\d\d:\d\d\.\d{6} +\d+ [\w./-]+\.(?:cpp|cc|cu|h):\d+\] |WorkHCCL\(SeqNum=|ProcessGroupNCCL's watchdog got stuck|watchdog thread terminated with exception: CUDA|Heartbeat monitor timed out!|\] Caught signal \d+ \(|HCCL watchdog thread|^(?:\[Error\]: |E[EH]9999|.{0,300}Memory access fault by GPU node-\d|:0:rocdevice\.cpp)|` +
	`\((?:EngineCore|APIServer|ApiServer|Worker|VllmWorker|RayWorker)\w*(?: \w+)? pid=\d+\) |File "[^"\n]{1,200}/(?:vllm|sglang|tensorrt_llm|lmdeploy|lmcache|dynamo|ray/(?:serve|data|llm))/[^"\n]{1,200}\.py", line \d+,? in |` +
	`(?m)^\(raylet|^20\d\d-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}\s+(?:INFO|WARNING|ERROR|CRITICAL) \w+\.py:\d+ -- |lmdeploy - (?:INFO|WARNING|ERROR) - |^20\d\d-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} - .{0,200}(?:sglang|vllm|lmdeploy)|\[TM\]\[(?:DEBUG|INFO|WARNING|ERROR|FATAL)\]|^\[\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d+)?(?: (?:DP|PP|TP|EP|ATTN_CP|MOE_DP)\d+)*\] (?:server_args: |.*sglang|\[\w+Stage\] |Worker \d|Rank \d|Running pipeline stages)|` +
	` - vllm\.[\w.]+ - |^(?:.{0,60} )?(?:slurmstepd|srun): error: |^(?:.{0,60} )?Root Cause \(first observed failure\):|multiprocessing[./]api(?:\.py)?:(?:\d+\] )?failed \(exitcode: | deployment_state\.py:\d+ - |^(?:.{0,60} )?ERROR: {4}Exception in ASGI application|\[c10d\] The client (?:network )?socket has timed out`)

// A log of Dynamo is a worker's, unless it has a line that only the frontend writes, which is a router.
var (
	ofDynamo   = lazyregexp.New(`(?m)^20\S{17,30}Z +(?:INFO|WARN|ERROR) dynamo`)
	ofFrontend = lazyregexp.New(`\b` + logline.DynamoFrontend)
)

// signWords are words of the signs; each sign contains one, except for stamps.
var signWords = [...]string{"#running-req", "#queue-req", "Avg prompt throughput", "server_args=ServerArgs(", "RT-LLM]", "ReqTimeStats(rid=", `"event":`, "DEBUG ", "INFO ", "WARNING ", "ERROR ", "killed due to memory pressure", "transfer worker error for room", "failed for request rank=",
	"[rank", "] Scheduler", "] Prefill", "] Decode", "] Load weight", "] Received", "] KV", "\"POST /", "(Serve", "transfer_", "_transport", "nixl_", "client.cpp", "HCCL", "watchdog got stuck", "terminated with exception", "Heartbeat monitor", "Caught signal ", ".cpp:", ".cc:", ".cu:", ".h:", "9999", "[Error]: ", "Memory access fault", "rocdevice", " pid=", "/vllm/", "/sglang/", "/tensorrt_llm/", "/lmdeploy/", "/lmcache/", "/dynamo/", "/ray/", "] server_args: ", "Stage] ", "] Worker ", "] Rank ", "] Running pipeline", "(raylet", ".py:", "lmdeploy - ", "sglang server", "vllm server", "[TM][", " - vllm.", " dynamo", "slurmstepd: ", "srun: error", "Root Cause (", "(exitcode: ", "in ASGI application", "[c10d] "}

// isSigned searches for the words, or for the year of a stamp, before it tries the expression, which takes 20 ms for a head
// without a match.
func isSigned(head []byte) bool {
	has := slices.ContainsFunc(signWords[:], func(word string) bool { return bytes.Contains(head, []byte(word)) })
	for rest := head; !has; {
		i := bytes.Index(rest, []byte("[20"))
		if i < 0 {
			return false
		}
		const year = len("[2024")
		has = i+year < len(rest) && rest[i+year] == '-'
		rest = rest[i+1:]
	}
	return signOf.Match(head) || bytes.Contains(head, []byte(" dynamo")) && ofDynamo.Match(head) && !ofFrontend.Match(head)
}

// sniff looks for lines that only servers write. A dump of spans or a trace may quote a log, but begins as JSON.
func sniff(head []byte) bool {
	text := logline.New().Bare(bytes.TrimLeft(head, "\xef\xbb\xbf \t\r\n"))
	if len(text) == 0 {
		return false
	}
	if text[0] == '{' {
		return requestlog.IsRecord(text) || logline.IsRecord(text) && (isSigned(head) || bytes.Contains(head, []byte("dynamo")) || bytes.Contains(head, []byte("vllm")))
	}
	return isSigned(head)
}

// Alone is the end of a Python program: a traceback, or PyTorch's message that a device has no memory, without a log
// around it.
//
// # What is odd
//
//   - It has no time and no rank: it belongs to the file, and to no moment.
//   - Of several tracebacks, the first one has the cause, and the last one ended the program.
var Alone = &format.Format{
	Name:     "Python traceback",
	Noun:     "Python traceback",
	Doc:      "tracebacks of Python, and PyTorch's message that a device ran out of memory, without a log around them",
	For:      "'sgtrace report'",
	Sniff:    sniffAlone,
	Index:    indexAlone,
	Requests: true,
	Series:   true,
	Text:     true,
}

// noMemory is in the message that a device ran out of memory.
var noMemory = []byte("out of memory. Tried to allocate ")

// sniffAlone looks at the first line: other texts quote tracebacks.
func sniffAlone(head []byte) bool {
	line, rest, _ := bytes.Cut(bytes.TrimLeft(head, "\xef\xbb\xbf \t\r\n"), []byte("\n"))
	line = bytes.TrimRight(line, "\r")
	const longest = 100 // "torch.OutOfMemoryError: CUDA ": precedes it
	if _, said, ok := logline.CutRank(line); ok {
		line = said
	}
	if i := bytes.Index(line, noMemory); i >= 0 {
		return i <= longest && line[0] != '{' && line[0] != '['
	}
	return bytes.Equal(line, []byte("Traceback (most recent call last):")) && bytes.HasPrefix(rest, []byte("  File "))
}

func indexAlone(in *format.Input, opt *format.Options) (*format.Source, error) {
	r := newReader(in, opt)
	r.alone = true
	return r.readAll(opt)
}

// index reads a log.
func index(in *format.Input, opt *format.Options) (*format.Source, error) {
	return newReader(in, opt).readAll(opt)
}

func (r *reader) readAll(opt *format.Options) (*format.Source, error) {
	content, err := r.in.Open()
	if err != nil {
		return nil, err
	}
	const looked = 64 << 10
	head := make([]byte, looked)
	n, _ := io.ReadFull(content, head)
	rest := io.MultiReader(bytes.NewReader(head[:n]), content)
	src, done := r.f.Source(), false
	if logline.NewestFirst(head[:n]) {
		if rest, done, err = r.readTurned(rest); err == nil && done {
			err = content.Close()
		}
	}
	if !done && err == nil {
		r.begin(head[:n])
		whole := struct {
			io.Reader
			io.Closer
		}{rest, content}
		src.Bytes, err = logline.Read(whole, r.in.Name, opt.Diags, func(b []byte, n int64) {
			r.line = n
			r.take(b)
		})
	}
	r.end()
	return &format.Source{}, err
}

// readTurned reads a log from its end, unless it is too long to be kept: then it returns all of it.
func (r *reader) readTurned(content io.Reader) (all io.Reader, done bool, err error) {
	const most, ofHead = 256 << 20, 100 // bytes, lines
	text, err := io.ReadAll(io.LimitReader(content, most+1))
	if err != nil || len(text) > most {
		return io.MultiReader(bytes.NewReader(text), content), false, err
	}
	lines, numbers := logline.OldestFirst(text)
	r.f.Source().Bytes = int64(len(text))
	r.begin(bytes.Join(lines[:min(len(lines), ofHead)], []byte("\n")))
	for i, line := range lines {
		r.line = numbers[i]
		r.take(line)
	}
	r.line = int64(len(lines))
	return nil, true, nil
}
