package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/sgtrace/sgtrace/golden"
	"github.com/sgtrace/sgtrace/golden/nsys"
	"github.com/sgtrace/sgtrace/golden/simulator"
	"github.com/sgtrace/sgtrace/golden/torch"
	"github.com/sgtrace/sgtrace/testkit/testinput"
)

// A kind is an input format with the commands that read it.
type kind struct {
	name     string
	commands []string // IN is the mutant, WITH an undamaged file of another kind
}

var (
	kindOTLP = &kind{"otlp", []string{
		"convert otel2perfetto IN -o OUT.pftrace",
		"report IN",
		"report --by-rank --format json IN",
		"requests --format json IN",
		"merge IN WITH -o OUT.json",
		"report --tail p90 IN",
		"inspect --format json IN",
		"report --timeline --format json IN",
		"report --by request,host --format csv IN",
		"report -o OUT.html IN",
		"diff IN IN",
	}}
	kindTorch = &kind{"torch", []string{
		"merge IN -o OUT.pftrace",
		"report --kernels IN",
		"report --by-rank --format json IN",
		"merge IN WITH --from +1ms -o OUT.json",
		"inspect IN",
		"report --launches --by-rank --format csv IN",
		"report --nvtx IN",
		"report -o OUT.html IN WITH",
	}}
	kindNsys = &kind{"nsys", []string{
		"convert nsys2perfetto IN -o OUT.pftrace",
		"report --kernels --format json IN",
		"report --by-rank IN",
		"merge IN WITH -o OUT.json",
		"inspect --format json IN",
		"report --nvtx-kernels --format csv IN",
		"report --memcpy IN",
		"report -o OUT.html IN",
		"diff IN IN",
	}}
)

// A subject is a file of some kind, in one of its forms.
type subject struct {
	testinput.Subject
	name, ext string
	kind      *kind
	with      string // the undamaged file that replaces WITH
	packed    bool   // the damage is in the compressed bytes
}

// forms returns a JSON file as it is, in gzip members, and in zstd frames; in the last form, the
// compressed bytes are damaged.
func forms(name string, k *kind, data, other []byte, with string) []*subject {
	plain := testinput.Subject{Data: data, Cuts: testinput.Tokens(data), Other: other, OtherCuts: testinput.Tokens(other)}
	var gz, zst testinput.Subject
	gz.Data, gz.Cuts = testinput.Gzip(data, 5)
	gz.Other, gz.OtherCuts = testinput.Gzip(other, 5)
	zst.Data, zst.Cuts = testinput.Zstd(data, 5)
	zst.Other, zst.OtherCuts = testinput.Zstd(other, 5)
	return []*subject{
		{plain, name, ".json", k, with, false},
		{gz, name + ".gz", ".json.gz", k, with, true},
		{zst, name + ".zst", ".json.zst", k, with, true},
	}
}

// exportPages returns an export that is damaged page by page.
func exportPages(name string, data, other []byte, with string) *subject {
	return &subject{testinput.Subject{
		Data: data, Cuts: testinput.Pages(data, testinput.SQLitePage),
		Other: other, OtherCuts: testinput.Pages(other, testinput.SQLitePage),
	}, name, ".sqlite", kindNsys, with, false}
}

// recorded writes a small simulated run: otel.jsonl, torch/ and nsys/.
func recorded(t testing.TB, seed uint64) (dir string) {
	t.Helper()
	return recordedOf(t, seed, 24)
}

// recordedOf is recorded with the given number of requests.
func recordedOf(t testing.TB, seed uint64, requests int) (dir string) {
	t.Helper()
	config := simulator.DefaultConfig(seed)
	config.Requests = requests
	run, err := simulator.Play(config)
	if err != nil {
		t.Fatal(err)
	}
	traces, exports := torch.DefaultConfig(run), nsys.DefaultConfig(run)
	for _, c := range []*torch.Config{&traces, &exports.Torch} {
		c.To = c.From + time.Duration(min(requests, 20))*5*time.Millisecond
		c.Layers, c.Stacks, c.Gzip = 2, 1, false
	}
	exports.MetricHz = 100
	dir = t.TempDir()
	if err := golden.WriteDir(dir, run, &traces, &exports); err != nil {
		t.Fatal(err)
	}
	return dir
}

// largestFile returns the largest file in a folder of a run: in a run this short, not all ranks are
// busy.
func largestFile(t testing.TB, elem ...string) (name string) {
	t.Helper()
	matches, _ := filepath.Glob(filepath.Join(append(elem, "*")...))
	largest := int64(0)
	for _, m := range matches {
		info, err := os.Stat(m)
		if err != nil {
			t.Fatal(err)
		}
		if info.Size() > largest {
			name, largest = m, info.Size()
		}
	}
	if largest == 0 {
		t.Fatalf("no file in %v", elem)
	}
	return name
}

func readFile(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// simulatedSubjects returns files of all kinds from two simulated runs with the given number of requests.
func simulatedSubjects(t testing.TB, requests int) []*subject {
	t.Helper()
	a, b := recordedOf(t, 1, requests), recordedOf(t, 2, requests)
	dumpA, dumpB := filepath.Join(a, "otel.jsonl"), filepath.Join(b, "otel.jsonl")
	rankA, rankB := largestFile(t, a, "torch"), largestFile(t, b, "torch")
	nodeA, nodeB := largestFile(t, a, "nsys"), largestFile(t, b, "nsys")
	list := forms("otlp", kindOTLP, readFile(t, dumpA), readFile(t, dumpB), rankA)
	list = append(list, forms("torch", kindTorch, readFile(t, rankA), readFile(t, rankB), dumpA)...)
	return append(list, exportPages("nsys", readFile(t, nodeA), readFile(t, nodeB), rankA))
}

// realSubjects returns real files: a few of each kind, form, and producer, preferring small ones,
// since the number of mutants matters. One of each kind is compressed, too.
func realSubjects(t *testing.T) (list []*subject) {
	t.Helper()
	path := func(elem ...string) string { return testinput.Shared(t, append([]string{"data"}, elem...)...) }
	torch := func(name string) []byte { return testinput.Gunzip(t, path("torch", "real", name)) }
	unpacked := func(name string) []byte { return testinput.ReadZstd(t, path("otel", name)) }
	dump := path("otel", "i_vllm_llm_request.jsonl")
	trace := path("torch", "real", "hta+tests__data__amd_trace__mi250_minitoy_train_ROCm6_2_kineto.json.gz")

	legacy, sender := unpacked("e_legacy_v1_pd_minilb.jsonl.zst"), unpacked("f_collector_variants/v_rot.json.zst")
	list = append(list, forms("legacy", kindOTLP, legacy, sender, trace)...)
	list = append(list, forms("rotated", kindOTLP, sender, legacy, trace)[0], forms("vllm", kindOTLP, readFile(t, dump), sender, trace)[0])
	for _, name := range []string{"format_proto_framed.bin", "compression_zstd_legacy_framed.bin"} {
		data := readFile(t, path("otel", "f_collector_variants", name))
		list = append(list, &subject{testinput.Subject{Data: data, Cuts: testinput.Frames(data), Other: data, OtherCuts: testinput.Frames(data)},
			name, ".bin", kindOTLP, trace, false})
	}
	amd := torch("hta+tests__data__amd_trace__mi250_minitoy_train_ROCm6_2_kineto.json.gz")
	for i, name := range []string{
		"hta+tests__data__critical_path__cuda_event_sync__event_sync_trace.json.gz",
		"hta+tests__data__triton_example__triton_example.json.gz",
		"tracelens+tests__traces__inference__vllm_decode_full__graph_execution.json.gz",
		"hta+tests__data__critical_path__end_to_end__simple_add__input__trace.json.gz",
	} {
		all := forms(name, kindTorch, torch(name), amd, dump)
		if i > 0 {
			all = all[:1]
		}
		list = append(list, all...)
	}
	other := readFile(t, path("nsys", "synth", "s_json.sqlite"))
	for _, name := range []string{"synth/s_anom.sqlite", "synth/s_v2022_graph.sqlite", "synth/s_v2026_none.sqlite",
		"real/Meghakoranga+cupqc-openssl-core__report1__28fcd158.sqlite", "real/bwyogatama+Mordred-Deprecated__report1__95afc3a6.sqlite"} {
		list = append(list, exportPages(name, readFile(t, path("nsys", name)), other, trace))
	}
	return list
}
