package tokens

import (
	"fmt"
	"math"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/sgtrace/sgtrace/analyze/gpu"
	"github.com/sgtrace/sgtrace/analyze/profilewalk"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/golden/nsys"
	"github.com/sgtrace/sgtrace/golden/simulator"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/testkit/testexport"
	"github.com/sgtrace/sgtrace/testkit/testinput"
	"github.com/sgtrace/sgtrace/testkit/testset"
	"github.com/sgtrace/sgtrace/trace"
)

const ms = int64(1e6)

// A planted step takes took ns on the device; its kernel comes from a graph or from a plain launch.
type planted struct {
	name  string
	took  int64 // ns; 0 launches nothing
	graph bool
}

// measurePlanted records one step of a rank every 10 ms, and measures them.
func measurePlanted(steps ...planted) *Tokens {
	syms := trace.NewSymbols()
	s := &testset.RowStream{}
	event := func(name string, from, to, correlation int64) profile.Event {
		return profile.Event{Start: trace.Time(from), End: trace.Time(to), Correlation: correlation, Name: syms.Intern(name), PID: 7}
	}
	end := 10 * ms * int64(len(steps))
	s.RangeRows = append(s.RangeRows, profile.Range{Event: event("ProfilerStep#3", 0, end, 0), TID: 1})
	for i, step := range steps {
		at, call := 10*ms*int64(i), "cudaLaunchKernel"
		if step.graph {
			call = "cudaGraphLaunch"
		}
		s.RangeRows = append(s.RangeRows, profile.Range{Event: event(step.name, at, at+2*ms, 0), TID: 1})
		if step.took > 0 {
			s.CallRows = append(s.CallRows, profile.Call{Event: event(call, at+ms, at+ms+1000, int64(i+1)), TID: 1})
			s.KernelRows = append(s.KernelRows, profile.Kernel{Event: event("gemm", at+2*ms, at+2*ms+step.took, int64(i+1))})
		}
	}
	return Measure(gpu.Measure(testset.SetOf(syms, []string{"TP0"}, s), gpu.Options{}))
}

// The first step of a recording copies its inputs, waits 400 ms for work that was
// launched before, and then takes 10 ms for its 320 tokens: the wait does not count.
// If the wait has no call, it is unknown what the device did.
func TestStepBehindWorkThatWasNotRecorded(t *testing.T) {
	for _, waits := range []bool{true, false} {
		syms, s := trace.NewSymbols(), &testset.RowStream{}
		event := func(name string, from, to, correlation int64) profile.Event {
			return profile.Event{Start: trace.Time(from * ms), End: trace.Time(to * ms), Correlation: correlation, Name: syms.Intern(name), PID: 7}
		}
		s.RangeRows = []profile.Range{{Event: event("step[DECODE bs=320]", 0, 420, 0), TID: 1}}
		s.CallRows = []profile.Call{{Event: event("cudaMemcpyAsync", 1, 1, 1), TID: 1}, {Event: event("cudaGraphLaunch", 405, 405, 2), TID: 1}}
		if waits {
			s.CallRows = append(s.CallRows, profile.Call{Event: event("cudaStreamSynchronize", 2, 403, 0), TID: 1})
		}
		s.CopyRows = []profile.Copy{{Event: event("Memcpy DtoD (Device -> Device)", 2, 3, 1)}}
		s.KernelRows = []profile.Kernel{{Event: event("gemm", 405, 412, 2)}}
		got := Measure(gpu.Measure(testset.SetOf(syms, []string{"TP0"}, s), gpu.Options{})).Ranks[0].ByKind[profile.StepDecode].onDevice()
		if want := map[bool]float64{true: 32_000, false: 320 / 0.410}[waits]; math.Abs(got-want) > 1e-6 {
			t.Errorf("%v tokens/s, want %v", got, want)
		}
	}
}

// Steps of both servers in one recording of 100 ms, classified by their names.
func TestReport(t *testing.T) {
	tokens := measurePlanted(
		planted{"step[EXTEND bs=2 toks=3000]", 5 * ms, false},
		planted{"step[EXTEND bs=2 toks=1000]", 3 * ms, false},
		planted{"step[DECODE bs=8]", 1 * ms, true},
		planted{"step[DECODE bs=8]", 1 * ms, true},
		planted{"step[DECODE bs=7]", 2 * ms, false},  // smaller than a batch with a graph
		planted{"step[DECODE bs=40]", 4 * ms, false}, // larger than all graphs
		planted{"execute_600_context_1(sq592sk592)_generation_8(sq8sk900)", 6 * ms, false},
		planted{"execute_context_0(0)_generation_8(24)", 0, false}, // speculative decoding; launches nothing
		planted{"step[TARGET_VERIFY bs=64]", 4 * ms, false},        // does not name its number of tokens
		planted{"step[IDLE bs=0]", 0, false},
	)
	const want = `
Tokens by kind of step, batch size and rank

kind     batch  rank  steps  tokens  per step   p50  per second in steps  per second captured  graph  no graph  beyond graphs
-------  -----  ----  -----  ------  --------  ----  -------------------  -------------------  -----  --------  -------------
prefill  2      TP0       2    4000      2000  1000               500000                40000      -         -              -
other    0      TP0       1       -         -     -                    -                    -      -         -              -
other    9-16   TP0       1     600       600   600               100000                 6000      -         -              -
decode   5-8    TP0       4      47      11.8     8                 5750                  470      2         1              0
decode   33-64  TP0       2      40      40.0    40                10000                    -      0         2              2

note: the names of 2 of 10 steps do not tell how many tokens they compute
note: 2 decode steps had more requests than any that ran as a CUDA graph; the largest batch with a graph is an option of the server: cuda-graph-max-bs of SGLang, cudagraph_capture_sizes of vLLM
`
	if got := "\n" + testset.Text(t, tokens.Report(), table.FormatText, table.Style{}); got != want {
		t.Errorf("got %s", got)
	}
	if got, want := tokens.Words(), "500,000/s in prefill steps, 7,875/s in decode steps, 100,000/s in mixed steps"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// Ranks that prefill do not count as decoding ranks.
func TestWordsOfSeveralRanks(t *testing.T) {
	tokens := &Tokens{}
	for _, r := range []struct {
		kind profile.StepKind
		n    int64
	}{{profile.StepDecode, 90}, {profile.StepPrefill, 7000}, {profile.StepDecode, 10}, {profile.StepDecode, 50}} {
		rank := Rank{}
		rank.ByKind[r.kind] = Count{Projected: r.n, Device: 1000 * ms}
		tokens.Ranks = append(tokens.Ranks, rank)
	}
	if got, want := tokens.Words(), "7,000/s in prefill steps, 50/s in decode steps (median of 3 ranks)"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// Without any graph, no batch is larger than all graphs. Without names that contain tokens, nothing is reported.
func TestNothingKnown(t *testing.T) {
	for _, steps := range [][]planted{
		{{"execute_new_0_cached_64", ms, false}, {"execute_new_0_cached_8", ms, false}},
		{{"gpu_model_runner: forward", ms, false}, {"forward.decode", ms, false}},
		{{"gemm", ms, false}},
	} {
		tokens := measurePlanted(steps...)
		for i := range tokens.Rows {
			if r := &tokens.Rows[i]; r.Known.N != 0 || r.Graphs.Beyond != 0 || !math.IsNaN(r.onDevice()) || !math.IsNaN(r.over(r.Captured)) {
				t.Errorf("%v: %+v", steps, r)
			}
		}
		if text := tokens.Words(); text != "" {
			t.Errorf("%v: %q", steps, text)
		}
	}
}

// The steps of a simulated server are found in exports: the tokens in their names,
// their time on devices, and which ran as graphs.
func TestSimulatedExports(t *testing.T) {
	config := simulator.DefaultConfig(3)
	config.Mode = simulator.Unified
	config.Unified = simulator.Parallel{TP: 2, PP: 1, DP: 1}
	config.RanksPerHost = 2
	run, err := simulator.Play(config)
	if err != nil {
		t.Fatal(err)
	}
	export := nsys.DefaultConfig(run)
	export.Torch.To, export.Torch.Layers, export.Torch.Graphs = export.Torch.From+400*time.Millisecond, 4, true
	export.Orphans = 0 // if the launch of a step is lost, it is unknown how it ran
	dir := t.TempDir()
	truth, err := nsys.WriteDir(dir, run, export)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range truth.Files {
		tokens := Measure(gpu.Measure(testexport.Set(t, filepath.Join(dir, "nsys", file.Name)), gpu.Options{}))
		for i := range file.Processes {
			compareProcess(t, tokens, &file.Processes[i])
		}
	}
}

// compareProcess compares the measures of a process with the truth.
func compareProcess(t *testing.T, tokens *Tokens, p *nsys.ProcessTruth) {
	t.Helper()
	var want, got [len(Rank{}.ByKind)]string
	type sum struct{ steps, tokens, span int64 }
	sums := map[profile.StepKind]sum{}
	for _, s := range p.Steps {
		kind, batch, toks := profile.StepDecode, int64(0), int64(0)
		if _, err := fmt.Sscanf(s.Name, "step[DECODE bs=%d]", &toks); err != nil {
			if _, err := fmt.Sscanf(s.Name, "step[EXTEND bs=%d toks=%d]", &batch, &toks); err != nil {
				t.Fatal(err)
			}
			kind = profile.StepPrefill
		}
		of := sums[kind]
		sums[kind] = sum{of.steps + int64(s.N), of.tokens + int64(s.N)*toks, of.span + s.GPUSpanNs}
	}
	for kind, s := range sums {
		want[kind] = fmt.Sprint(s.steps, s.tokens, s.span)
	}
	graphs, others := 0, 0
	for i := range tokens.Rows {
		if r := &tokens.Rows[i]; r.Rank == strconv.Itoa(p.PID) {
			graphs, others = graphs+r.Graphs.Graph.N, others+r.Graphs.Eager.N+r.Graphs.Beyond
		}
	}
	for i := range tokens.Ranks {
		if r := &tokens.Ranks[i]; r.Name == strconv.Itoa(p.PID) {
			for kind := range r.ByKind {
				if c := &r.ByKind[kind]; c.Steps > 0 {
					got[kind] = fmt.Sprint(c.Steps, c.Known.Total, c.Device)
				}
			}
		}
	}
	if got != want || len(sums) == 0 {
		t.Errorf("%d: %v, want %v", p.PID, got, want)
	}
	if int64(graphs) != sums[profile.StepDecode].steps || others != 0 {
		t.Errorf("%d: %d graphs and %d others of %d decode steps", p.PID, graphs, others, sums[profile.StepDecode].steps)
	}
}

// Numbers in real captures match an independent script that counted in the JSON. For the last
// capture, it excluded 493.2085 ms in which nothing runs and the host is in hipMemcpyWithStream.
func TestRealCaptures(t *testing.T) {
	for _, c := range []struct {
		file            string
		kind            profile.StepKind
		batch           string
		tokens, decoded int64
		perSecond       float64 // tokens per second, in steps
		graphs          int
	}{
		{"real/tracelens+tests__traces__inference__vllm_decode_full__graph_execution.json.gz", profile.StepDecode, "17-32", 32, 32, 2978.6334, 1},
		{"real/tracelens+tests__traces__inference__vllm_prefilldecode_piecewise__graph_execution.json.gz", profile.StepOther, "33-64", 8192, 37, 52356.2833, 0},
		{"tp8_skew_2host/1758600000.1234567-TP-0-DP-0-PP-0-EP-0.trace.json.gz", profile.StepPrefill, "9-16", 30720, 0, 19878.7067, 0},
	} {
		set, _ := testset.TorchSet(t, testinput.Shared(t, "data", "torch", c.file))
		tokens := Measure(gpu.Measure(set, gpu.Options{}))
		if len(tokens.Rows) != 1 {
			t.Errorf("%s: %+v", c.file, tokens.Rows)
			continue
		}
		r := &tokens.Rows[0]
		if r.Kind != c.kind || profilewalk.BatchWords(r.MinBatch, r.MaxBatch) != c.batch || r.Known.Total != c.tokens || r.Decoded != c.decoded ||
			r.Projected != c.tokens || r.Graphs.Graph.N != c.graphs || r.Graphs.Eager.N != 0 || math.Abs(r.onDevice()/c.perSecond-1) > 1e-6 {
			t.Errorf("%s: %+v, %v/s", c.file, r, r.onDevice())
		}
	}
}
