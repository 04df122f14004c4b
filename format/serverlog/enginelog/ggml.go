package enginelog

import (
	"bytes"
	"strings"

	"github.com/sgtrace/sgtrace/format/logline"
	"github.com/sgtrace/sgtrace/format/serverlog/errortext"
	"github.com/sgtrace/sgtrace/internal/lazyregexp"
	"github.com/sgtrace/sgtrace/series"
)

// A failure is what llama.cpp and its library ggml print as they fail, without a level: on standard error, below a line
// about a request, or in any wrapping. Messages quote source code and sizes, and no requests.
type failure struct {
	of   *lazyregexp.Regexp
	kind series.InstantKind
	says func(m [][]byte) string
	// follows is set if an earlier line may have said the same: then this line adds nothing.
	follows bool
}

// failures are tried in this order.
var failures = []failure{
	// "ggml-cuda.cu:70: CUDA error", of the abort, precedes or follows "CUDA error: out of memory".
	{lazyregexp.New(`^(?:GGML_ASSERT: )?\S+\.(?:c|cc|cpp|cu|cuh|h|hpp|m|mm):\d+: (?:!"|)(CUDA|ROCm|MUSA|SYCL|CANN|HIP) error"?$`), series.Exception, deviceCall, true},
	{lazyregexp.New(`^(CUDA|ROCm|MUSA|HIP) error(?: \d+ at \S+)?: (.+)$`), series.Exception, deviceCall, true},
	{lazyregexp.New(`^\S+\.(?:c|cc|cpp|cu|h|hpp):\d+: (CANN) error: (.+)$`), series.Exception, deviceCall, true},
	{lazyregexp.New(`^(Native API) failed. Native API returns: (.+)$`), series.Exception, deviceCall, true},
	{lazyregexp.New(`^(SYCL) error: CHECK_TRY_ERROR`), series.Exception, deviceCall, true},
	{lazyregexp.New(`^(GGML_ASSERT: )?\S*?([\w.-]+\.(?:c|cc|cpp|cu|cuh|h|hpp|m|mm):\d+): (.+)$`), series.Exception, aborted, false},
	{lazyregexp.New(`allocating ([\d.]+) MiB on device (\d+): \w+ failed: out of memory`), series.OutOfMemory, func(m [][]byte) string {
		return "device " + string(m[2]) + " ran out of memory: it tried to allocate " + string(m[1]) + " MiB"
	}, false},
	{lazyregexp.New(`^ggml_vulkan: Device memory allocation of size (\d+) failed`), series.OutOfMemory, func(m [][]byte) string {
		return "the device ran out of memory: it tried to allocate " + string(m[1]) + " bytes"
	}, false},
	{lazyregexp.New(`error loading model: (.+)$`), series.Exception, func(m [][]byte) string { return unready + ": " + logline.Message(m[1]) }, true},
	{lazyregexp.New(`failed to initialize the context: (.+)$`), series.Exception, func(m [][]byte) string { return unready + ": " + logline.Message(m[1]) }, true},
	{lazyregexp.New(`(?:exiting due to model loading error|load_model: failed to load model)`), series.Crash, func([][]byte) string { return unready + ", and it ends" }, false},
	{lazyregexp.New(`couldn't bind (?:to server|HTTP server) socket, hostname: (\S+), port: (\d+)`), series.Exception, func(m [][]byte) string {
		return "cannot listen on " + string(m[1]) + ":" + string(m[2]) + ", so it ends"
	}, false},
}

const unready = "its model did not load"

func deviceCall(m [][]byte) string {
	if len(m) > 2 {
		return string(m[1]) + " error: " + logline.Message(m[2])
	}
	return string(m[1]) + " error"
}

// aborted words an abort of ggml: a failed assertion, or why it gave up.
func aborted(m [][]byte) string {
	where, why := string(m[2]), strings.TrimSuffix(logline.Message(m[3]), ".")
	switch {
	case why == "fatal error":
		return "aborted at " + where
	case len(m[1]) > 0: // until 2024
		why = "GGML_ASSERT(" + why + ") failed"
	}
	return why + ", at " + where
}

// where matches the line below a failed call of a device.
var where = lazyregexp.New(`\bin function (\w+) at (?:\S*[/\\])?([\w.-]+:\d+)$`)

// sent matches the error that answers a request.
var sent = lazyregexp.New(`send_error: task id = \d+, error: (.+)$`)

// full are parts of lines about a context or KV cache without room.
var full = []struct{ text, says string }{
	{"failed to find free space in the KV cache", "finds no free space in its KV cache, and tries smaller batches"},
	{"context shift, n_keep", "requests outgrow their context, and lose their oldest tokens (context shift)"},
	{"context shift - n_keep", "requests outgrow their context, and lose their oldest tokens (context shift)"}, // until 2024
}

// failing are parts of all such lines: nearly all lines have none.
var failing = logline.NewWordSet(".c:", ".cc:", ".cpp:", ".cu:", ".cuh:", ".h:", ".hpp:", ".m:", ".mm:", "rror", "ailed", "fault", "illed", "borted", "nstruction", "context shift", "terminate called ", "what():", " bind ", "in function ", "panic", "timeout: Work")

// fails reads a line about a failure, and reports whether it is one.
func (r *reader) fails(b []byte, server int32) bool {
	const looked = 400
	if b = b[:min(len(b), looked)]; failing.In(b) == 0 {
		if bytes.Contains(b, []byte("load_model: loading model")) || bytes.Contains(b, []byte("llama_model_loader: loaded meta data")) { // the next start
			r.told[server] = ""
		}
		return false
	}
	at := series.Instant{Time: r.now, Place: r.placeOf(server), Line: uint32(r.line), Count: 1}
	if m := where.FindSubmatch(b); m != nil && r.told[server] != "" {
		last := &r.f.Set.Instants[len(r.f.Set.Instants)-1]
		last.Stack = r.f.Set.Syms.Intern(string(m[1]) + " (" + string(m[2]) + ")")
		return true
	}
	if m := sent.FindSubmatch(b); m != nil {
		return r.complaints.Add("a request failed: "+errortext.Said(m[1], ""), at)
	}
	if what, ok := bytes.CutPrefix(b, []byte("what():  ")); ok {
		return r.f.Explain(errortext.UncaughtEnd, errortext.What(what))
	}
	for _, x := range full {
		if bytes.Contains(b, []byte(x.text)) {
			r.complaints.Warn(x.says, at)
			return true
		}
	}
	if g, rest, ok := logline.GlogOf(b); ok && (g.Level == 'E' || g.Level == 'F') { // of PyTorch, in a shard of TGI
		if says := errortext.Collective(rest); says != "" {
			at.Kind = series.Timeout
			r.f.Instant(at, says)
			return true
		}
	}
	if says, kind := errortext.LastWord(b); says != "" {
		at.Kind = kind
		r.f.Instant(at, says)
		return true
	}
	for i := range failures {
		if m := failures[i].of.FindSubmatch(b); m != nil {
			at.Kind = failures[i].kind
			r.tell(failures[i].says(m), failures[i].follows, server, at)
			return true
		}
	}
	return false
}

// tell adds a failure, or to the last one what a line about the same adds: the call of a device that failed, or nothing.
func (r *reader) tell(says string, follows bool, server int32, at series.Instant) {
	told := r.told[server]
	switch more, ok := strings.CutPrefix(says, told+": "); {
	case told == says || follows && told != "" && !ok:
		return
	case follows && told != "":
		r.f.Explain(told, more)
	default:
		r.f.Instant(at, says)
	}
	r.told[server] = says
}
