// Package testinput gives tests their inputs: simulated dumps, the folder of shared real data if there is one, and damaged
// copies of files ([Subject]).
package testinput

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/sgtrace/sgtrace/golden/otlp"
	"github.com/sgtrace/sgtrace/golden/simulator"
)

// Shared returns the path of a file in the shared data, which is outside of the project: $SGTRACE_SHARED, else ../shared
// next to it. If it does not exist, the test is skipped, visibly.
func Shared(t testing.TB, elem ...string) string {
	t.Helper()
	dir := os.Getenv("SGTRACE_SHARED")
	if dir == "" {
		dir = filepath.Join(root(t), "..", "shared")
	}
	path := filepath.Join(append([]string{dir}, elem...)...)
	if matches, err := filepath.Glob(path); err != nil || len(matches) == 0 {
		t.Skipf("no shared data at %s; set SGTRACE_SHARED", path)
	}
	return path
}

// root returns the folder of go.mod.
func root(t testing.TB) string {
	dir, err := os.Getwd()
	for err == nil {
		if _, missing := os.Stat(filepath.Join(dir, "go.mod")); missing == nil {
			return dir
		}
		if dir == filepath.Dir(dir) {
			break
		}
		dir = filepath.Dir(dir)
	}
	t.Fatal("no go.mod above the test")
	return ""
}

// ReadZstd returns the decompressed content of a file.
func ReadZstd(t testing.TB, path string) []byte {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	dec, err := zstd.NewReader(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer dec.Close()
	data, err := dec.DecodeAll(raw, nil)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// Simulate runs the simulator and returns its OTLP dump and the truth about it.
func Simulate(t testing.TB, c simulator.Config) ([]byte, *simulator.Truth) {
	t.Helper()
	run, err := simulator.Play(c)
	if err != nil {
		t.Fatal(err)
	}
	var dump bytes.Buffer
	if err := otlp.Write(&dump, run); err != nil {
		t.Fatal(err)
	}
	return dump.Bytes(), run.Truth()
}

// EveryMode returns a dump of a few requests of each kind of deployment, with short outputs, for fuzz tests to edit.
func EveryMode(t testing.TB, requests int) (dumps [][]byte) {
	t.Helper()
	for _, mode := range []simulator.Mode{simulator.PDGateway, simulator.PDDirect, simulator.Unified} {
		config := simulator.DefaultConfig(uint64(mode) + 1)
		config.Mode, config.Requests = mode, requests
		config.Output.Max = 3
		dump, _ := Simulate(t, config)
		dumps = append(dumps, dump)
	}
	return dumps
}

// Gunzip returns the decompressed content of a file.
func Gunzip(t testing.TB, path string) []byte {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// words are texts with and without a meaning to readers of dumps and traces.
var words = []string{"decode_forward", "prefill_forward", "Scheduler [TP 0]  [PP 0] (host:443ee9c0 | pid:88)", "Req", "Bootstrap Room",
	"", "0", "1", "9223372036854775807", "-1", "retract", "abort", "llm_request", "http_request", `"},{"spanId":"`, "null",
	"ProfilerStep#1", "nccl:all_reduce", "record_param_comms", "kernel", "gpu_memcpy", "cudaLaunchKernel", "X", "s", "f", "e", "1e300", "[TP00-DP01] 7"}

// Edit replaces keys, texts, and everything between them in a JSON document by other parts of it, or by one of some words.
// Four bytes of edits control one replacement.
func Edit(doc, edits []byte) []byte {
	tokens := strings.Split(string(doc), `"`)
	for ; len(edits) >= 4; edits = edits[4:] {
		at := (int(edits[0])<<8 | int(edits[1])) * 7 % len(tokens)
		switch from := (int(edits[2])<<8 | int(edits[3])) * 5 % len(tokens); edits[3] % 3 {
		case 0:
			tokens[at] = tokens[from]
		case 1:
			tokens[at] = words[from%len(words)]
		case 2:
			tokens[at], tokens[from] = tokens[from], tokens[at]
		}
	}
	return []byte(strings.Join(tokens, `"`))
}

const (
	// longest is the largest number of characters in a line of a golden file. Longer lines are folded, at foldAt.
	longest, foldAt = 200, 160
	// folded ends a line that continues in the next one.
	folded = "⏎\n"
)

// Fold breaks lines that would be unreadable in a diff: after a comma or a blank if there is one. [Unfold] is the inverse.
func Fold(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		for utf8.RuneCountInString(line) > longest {
			at := foldPlace(line)
			b.WriteString(line[:at] + folded)
			line = line[at:]
		}
		b.WriteString(line)
	}
	return b.String()
}

// foldPlace returns the index at which to break a line: after the last comma or blank of its first foldAt characters, or
// after these.
func foldPlace(line string) int {
	n, place := 0, 0
	for i, r := range line {
		if n++; n > foldAt {
			if place > 0 {
				return place
			}
			return i
		}
		if r == ',' || r == ' ' && strings.TrimLeft(line[:i], " ") != "" {
			place = i + 1
		}
	}
	return len(line)
}

// Unfold joins folded lines.
func Unfold(text string) string { return strings.ReplaceAll(text, folded, "") }

// KinetoLike returns a trace of about n events in the layout of libkineto, with the mixture of a server's trace: Python
// functions, operators, launches with their arrows, kernels.
func KinetoLike(n int) []byte {
	rng := rand.New(rand.NewPCG(1, 2))
	var b bytes.Buffer
	b.WriteString("{\n  \"schemaVersion\": 1,\n  \"deviceProperties\": [\n    {\n      \"id\": 0, \"name\": \"NVIDIA H100\", \"numSms\": 132\n    }\n  ],\n" +
		"  \"distributedInfo\": {\"backend\": \"nccl\", \"rank\": 3, \"world_size\": 8},\n" +
		"  \"displayTimeUnit\": \"ms\",\n  \"baseTimeNanoseconds\": 1775078550000000000,\n  \"traceEvents\": [\n")
	kernels := make([]string, 300)
	for i := range kernels {
		kernels[i] = fmt.Sprintf("void at::native::vectorized_elementwise_kernel<4, at::native::Functor%d<c10::BFloat16>, std::array<char*, 3ul> >(int, at::native::Functor%d<c10::BFloat16>, std::array<char*, 3ul>)", i, i)
	}
	ts := func() string { return fmt.Sprintf("%d.%03d", 4909913692199+rng.Int64N(1e7), rng.IntN(1000)) }
	const x = "  {\n    \"ph\": \"X\", \"cat\": \"%s\", \"name\": \"%s\", \"pid\": %d, \"tid\": %d,\n    \"ts\": %s, \"dur\": %d.%03d,\n    \"args\": {\n      %s\n    }\n  }"
	for i := range n {
		if i > 0 {
			b.WriteString(",\n")
		}
		id := 200000 + i
		switch k := rng.IntN(10); {
		case k < 4:
			fmt.Fprintf(&b, x, "python_function", fmt.Sprintf("/sgl-workspace/sglang/python/sglang/srt/layers/module_%d.py(%d): forward", rng.IntN(60), rng.IntN(90)), 1251, 1251, ts(), rng.IntN(9999), rng.IntN(1000),
				fmt.Sprintf(`"Python parent id": %d, "Python id": %d, "Ev Idx": %d`, id, id+1, i))
		case k < 6:
			fmt.Fprintf(&b, x, "cpu_op", fmt.Sprintf("aten::op_%d", rng.IntN(200)), 1251, 1251, ts(), rng.IntN(9999), rng.IntN(1000),
				fmt.Sprintf(`"External id": %d,"Record function id": 0, "Concrete Inputs": ["", "0", "%d", ""], "Input type": ["c10::BFloat16", "Scalar", "", ""], "Input Strides": [[4096, 1], [], [], []], "Input Dims": [[%d, 4096], [], [], []], "Ev Idx": %d`, id, rng.IntN(9), rng.IntN(9999), i))
		case k < 8:
			fmt.Fprintf(&b, x, "cuda_runtime", "cudaLaunchKernel", 1251, 1251, ts(), rng.IntN(99), rng.IntN(1000),
				fmt.Sprintf(`"External id": %d, "cbid": 211, "correlation": %d`, id, id))
			fmt.Fprintf(&b, ",\n  {\n    \"ph\": \"s\", \"id\": %d, \"pid\": 1251, \"tid\": 1251, \"ts\": %s,\n    \"cat\": \"ac2g\", \"name\": \"ac2g\"\n  }", id, ts())
		default:
			fmt.Fprintf(&b, x, "kernel", kernels[rng.IntN(len(kernels))], 3, 7, ts(), rng.IntN(999), rng.IntN(1000),
				fmt.Sprintf(`"External id": %d, "queued": 0, "device": 3, "context": 1, "stream": 7, "correlation": %d, "registers per thread": 32, "shared memory": 0, "blocks per SM": %d.%d, "warps per SM": 3.878788, "grid": [%d, 1, 1], "block": [128, 1, 1], "est. achieved occupancy %%": 6`, id, id, rng.IntN(9), rng.IntN(99999), rng.IntN(9999)))
			fmt.Fprintf(&b, ",\n  {\n    \"ph\": \"f\", \"id\": %d, \"pid\": 3, \"tid\": 7, \"ts\": %s,\n    \"cat\": \"ac2g\", \"name\": \"ac2g\", \"bp\": \"e\"\n  }", id, ts())
		}
	}
	b.WriteString("\n  ],\n  \"traceName\": \"/tmp/x.json\"\n}\n")
	return b.Bytes()
}

// Allocated returns how many bytes this process has ever allocated, including those that were freed.
func Allocated() uint64 {
	s := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}

// BoundMemory fails a test if f allocates more than most bytes.
func BoundMemory(t *testing.T, most uint64, f func()) {
	t.Helper()
	before := Allocated()
	f()
	if n := Allocated() - before; n > most {
		t.Errorf("allocated %d MB", n>>20)
	}
}

// AllocatedBy returns how many bytes f allocates in total: on one core and without the collector, so that it is the same in
// each run.
func AllocatedBy(f func()) int64 {
	defer alone()()
	before := Allocated()
	f()
	return int64(Allocated() - before)
}

// HeldBy returns the number of bytes held by the result of f, on one core.
func HeldBy(f func() any) int64 {
	defer alone()()
	before := live()
	held := f()
	bytes := live() - before
	runtime.KeepAlive(held)
	return bytes
}

// alone leaves one core, and stops the collector, until again is called.
func alone() (again func()) {
	cores, percent := runtime.GOMAXPROCS(1), debug.SetGCPercent(-1)
	return func() {
		runtime.GOMAXPROCS(cores)
		debug.SetGCPercent(percent)
	}
}

// live returns the number of reachable bytes; a second collection frees what finalizers and pools held.
func live() int64 {
	runtime.GC()
	runtime.GC()
	s := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(s)
	return int64(s[0].Value.Uint64())
}
