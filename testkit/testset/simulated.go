package testset

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/sgtrace/sgtrace/golden/cluster"
	"github.com/sgtrace/sgtrace/golden/otlp"
	"github.com/sgtrace/sgtrace/golden/simulator"
	"github.com/sgtrace/sgtrace/golden/torch"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/request"
)

// DisaggregatedRequest adds one request through gateway, prefill, and decode server, in us. The second TP rank of the
// decode server is 500 us late with step 3.
func DisaggregatedRequest(d *Dump) {
	const id = "00000000000000000000000000000001"
	gateway := d.Add(Span{Service: "smg", Trace: id, Name: "http_request", From: 0, To: 200_000, Attrs: Attrs{"module": "smg", "status_code": "200"}})

	prefill := Span{Trace: id, Parent: gateway, Name: "prefill Req 11111111", From: 1000, To: 60_000,
		Attrs: Attrs{"rid": "11111111aaaa", "module": "sglang::request", "bootstrap_room": "0x7c54"}}
	root := d.Add(prefill)
	d.Thread(prefill, root, PrefillHost, "PrefillTokenizer", -1, 88,
		Span{Name: "tokenize", From: 1000, To: 2000}, Span{Name: "api_server_dispatch", From: 2000, To: 2500})
	d.Thread(prefill, root, PrefillHost, "Prefill Scheduler", 0, 245,
		Span{Name: "prefill_prepare", From: 4000, To: 4100}, Span{Name: "prefill_bootstrap", From: 4100, To: 9000},
		Span{Name: "prefill_waiting", From: 9000, To: 19_000}, Span{Name: "prefill_forward", From: 19_000, To: 39_000},
		Span{Name: "prefill_transfer_kv_cache", From: 39_100, To: 59_000})

	decode := Span{Trace: id, Parent: gateway, Name: "decode Req 22222222", From: 3000, To: 199_000,
		Attrs: Attrs{"rid": "22222222bbbb", "module": "sglang::request", "bootstrap_room": "0x7c54",
			"gen_ai.usage.completion_tokens": 18, "gen_ai.latency.time_to_first_token": 0.0593}}
	root = d.Add(decode)
	d.Thread(decode, root, DecodeHost, "DecodeTokenizer", -1, 88, Span{Name: "tokenize", From: 3000, To: 4000})
	for tp := range 2 {
		stages := []Span{
			{Name: "decode_prepare", From: 5000, To: 5100}, {Name: "decode_bootstrap", From: 5100, To: 8800},
			{Name: "decode_transferred", From: 8800, To: 60_000}, {Name: "decode_waiting", From: 60_000, To: 60_500},
			{Name: "decode_forward", From: 60_500, To: 198_000}, {Name: "fake_output", Parent: "^", From: 60_500, To: 61_000},
		}
		for step := range 17 {
			from := float64(61_000 + 8000*step)
			to := from + 8000
			if tp == 1 && step == 3 {
				to += 500
			}
			stages = append(stages, Span{Name: "decode_loop", Parent: "^", From: from, To: to})
		}
		d.Thread(decode, root, DecodeHost, "Decode Scheduler", tp, 245+tp, stages...)
	}
}

// Deployment makes the shape of deployment number seed.
func Deployment(seed uint64, c simulator.Config) simulator.Config {
	switch c.Mode = simulator.Mode(seed % 4); seed % 4 {
	case 3:
		c.Mode, c.Unified, c.Straggler.Factor = simulator.Unified, simulator.Parallel{TP: 1, PP: 2, DP: 2}, 0
	}
	return c
}

// Simulated runs the simulator and returns the requests of its dump and the truth about them.
func Simulated(t testing.TB, c simulator.Config) (*request.Set, *simulator.Truth) {
	t.Helper()
	run, err := simulator.Play(c)
	if err != nil {
		t.Fatal(err)
	}
	return read(t, "sim", func(w io.Writer) error { return otlp.Write(w, run) }), run.Truth()
}

// read returns the requests of a dump of many megabytes, which is read while it is written.
func read(t testing.TB, name string, write func(io.Writer) error) *request.Set {
	t.Helper()
	r, w := io.Pipe()
	go func() { w.CloseWithError(write(w)) }()
	return BuildSet(t, name, r)
}

// WithoutSpans drops every tenth span of a dump.
func WithoutSpans(dump []byte, seed uint64) []byte {
	rng := rand.New(rand.NewPCG(seed, 0))
	return KeepSpans(dump, func(_, _ []byte) bool { return rng.IntN(10) != 0 })
}

// KeepSpans returns a dump of the simulators with only the spans that keep accepts, given the JSON of a resource and of a
// span.
func KeepSpans(dump []byte, keep func(resource, span []byte) bool) []byte {
	const resource, begin, status = `{"resource":`, `{"traceId":"`, `"status":{`
	kept := make([]byte, 0, len(dump))
	var of []byte
	for {
		before, span, ok := bytes.Cut(dump, []byte(begin))
		kept = append(kept, before...)
		if !ok {
			break
		}
		if i := bytes.Index(before, []byte(resource)); i >= 0 {
			of = before[i:]
		}
		end := bytes.Index(span, []byte(status))
		end += bytes.Index(span[end:], []byte("}}")) + len("}}")
		if keep(of, span[:end]) {
			kept = append(append(kept, begin...), span[:end]...)
		}
		dump = span[end:]
	}
	for _, list := range [...]struct{ from, to string }{{",,", ","}, {"[,", "["}, {",]", "]"}} {
		for bytes.Contains(kept, []byte(list.from)) {
			kept = bytes.ReplaceAll(kept, []byte(list.from), []byte(list.to))
		}
	}
	return kept
}

var TimeText = regexp.MustCompile(`imeUnixNano":"(\d+)"`)

// Clustered plays a run of a scenario, and returns the requests of its dump and the truth about them.
func Clustered(t testing.TB, s *cluster.Scenario, seed uint64) (*request.Set, *cluster.Truth) {
	t.Helper()
	return ClusteredAs(t, s, s.Config(seed))
}

// ClusteredAs is Clustered for a changed run of a scenario.
func ClusteredAs(t testing.TB, s *cluster.Scenario, c cluster.Config) (*request.Set, *cluster.Truth) {
	t.Helper()
	run, err := cluster.Play(c)
	if err != nil {
		t.Fatal(err)
	}
	truth, err := s.Truth(run)
	if err != nil {
		t.Fatal(err)
	}
	return OfCluster(t, run), truth
}

// OfCluster returns the requests of the dump of a run.
func OfCluster(t testing.TB, run *cluster.Run) *request.Set {
	t.Helper()
	return read(t, "cluster", func(w io.Writer) error { return cluster.Write(w, run) })
}

// A ServedBy is a request: its start in ms, and the threads that worked on it.
type ServedBy struct {
	At      int
	Threads []ServedThread
}

type ServedThread struct {
	Host string
	TP   int // -1 is the tokenizer
	PID  int
}

// Served makes a set of requests.
func Served(t *testing.T, list []ServedBy) *request.Set {
	var d Dump
	for i, r := range list {
		from := float64(1000 * r.At)
		root := Span{Trace: fmt.Sprintf("%032x", i+1), Name: fmt.Sprintf(" Req %08x", i), From: from, To: from + 900,
			Attrs: Attrs{"rid": fmt.Sprintf("%012x", i), "module": "sglang::request", "gen_ai.usage.completion_tokens": 1, "gen_ai.usage.prompt_tokens": 10}}
		id := d.Add(root)
		for _, th := range r.Threads {
			label, stage := "Scheduler", "prefill_forward"
			if th.TP < 0 {
				label, stage = "Tokenizer", "tokenize"
			}
			d.Thread(root, id, th.Host, label, th.TP, th.PID, Span{Name: stage, From: from, To: from + 800})
		}
	}
	return d.Set(t)
}

// Stalled returns the trace of the only rank of a simulated server that stalls.
func Stalled(t testing.TB, seed uint64, stall torch.Stall) *profile.Set {
	t.Helper()
	run := SmallServer(t, seed)
	recording := torch.DefaultConfig(run)
	recording.Layers, recording.Stacks, recording.Shapes, recording.Stall = 4, 3, false, stall
	dir := t.TempDir()
	if _, err := torch.WriteDir(dir, run, recording); err != nil {
		t.Fatal(err)
	}
	paths, _ := filepath.Glob(filepath.Join(dir, "torch", "*TP-0*"))
	set, _ := TorchSet(t, paths...)
	return set
}

// SmallServer runs a server of one rank.
func SmallServer(t testing.TB, seed uint64) *simulator.Run {
	t.Helper()
	config := simulator.DefaultConfig(seed)
	config.Mode, config.Unified = simulator.Unified, simulator.Parallel{TP: 1, PP: 1, DP: 1}
	config.Straggler = simulator.Straggler{}
	run, err := simulator.Play(config)
	if err != nil {
		t.Fatal(err)
	}
	return run
}
