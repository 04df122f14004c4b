package main

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/golden/nsys"
	"github.com/sgtrace/sgtrace/testkit/testinput"
)

// readCSV returns the rows of a table as maps from column to cell.
func readCSV(t *testing.T, text string) (rows []map[string]string) {
	t.Helper()
	all, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil || len(all) == 0 {
		t.Fatalf("%v: %.200s", err, text)
	}
	for _, cells := range all[1:] {
		row := map[string]string{}
		for i, name := range all[0] {
			row[name] = cells[i]
		}
		rows = append(rows, row)
	}
	return rows
}

// launchProof are the arguments in which HIP launch calls name their kernel; CUDA calls lack them.
var launchProof = []string{`"kernel":`, `"grid":`, `"block":`}

// For two real graphs, each kernel gets the operator, shapes, and module that an independent
// program found, and operators get the same GPU time. The same holds if launches at capture do not
// name their kernels, as in CUDA, and one launch is missing from the replays.
func TestRealGraphs(t *testing.T) {
	var folders []string
	for _, pair := range []string{"vllm_gptoss_decode", "xdit_flux1_sage"} {
		folders = append(folders, testinput.Shared(t, "data", "graphs", pair))
	}
	for _, folder := range folders {
		truth, capture, replay := readTruth(t, folder), filepath.Join(folder, "capture.json.zst"), filepath.Join(folder, "replay.json.zst")
		checkGraph(t, folder, truth, capture, replay)
		plain := testinput.ReadZstd(t, capture)
		for _, key := range launchProof {
			plain = bytes.ReplaceAll(plain, []byte(key), []byte(`"unknown":`))
		}
		like := filepath.Join(t.TempDir(), "capture.json")
		if err := os.WriteFile(like, plain, 0o600); err != nil {
			t.Fatal(err)
		}
		checkGraph(t, folder+" as of CUDA", truth, like, replay)
	}
}

// gpt-oss uses a 128-key sliding window in every second layer. If arguments do not reveal it, the
// row of these layers would exceed the memory roof, and has no window; with FlashAttention's
// arguments, the bytes are those of 32 tokens x 128 keys.
func TestRealSlidingWindow(t *testing.T) {
	folder := testinput.Shared(t, "data", "graphs", "vllm_gptoss_decode")
	capture, replay := filepath.Join(folder, "capture.json.zst"), filepath.Join(folder, "replay.json.zst")
	roofs := func(capture string) (rows []map[string]string) {
		r := sgtrace(t, t.TempDir(), "report", "--kernels", "--table", "kernels.roof", "--format", "csv", "--captures", capture, replay)
		for _, row := range readCSV(t, r.out) {
			if strings.Contains(row["operator"], "fa3") || strings.Contains(row["operator"], "attention") {
				rows = append(rows, row)
			}
		}
		return rows
	}
	over := func(row map[string]string) bool {
		share, err := strconv.ParseFloat(row["roof_share"], 64)
		return err == nil && share > 1
	}
	if rows := roofs(capture); len(rows) != 2 || over(rows[0]) || !over(rows[1]) || rows[1]["window"] != "" {
		t.Errorf("without arguments: %v", rows)
	}
	layer := 0
	planted := regexp.MustCompile(`"vllm::unified_attention_with_output"((?s:.*?))"Concrete Inputs": \[[^\]]*\]`).ReplaceAllFunc(testinput.ReadZstd(t, capture), func(b []byte) []byte {
		left := []string{"127", "-1"}[layer%2]
		layer++
		b = bytes.Replace(b, []byte("vllm::unified_attention_with_output"), []byte("_vllm_fa3_C::fwd"), 1)
		at := bytes.LastIndexByte(b, '[')
		return append(b[:at:at], "["+strings.Repeat(`"", `, 24)+`"True", "`+left+`", "`+[]string{"0", "-1"}[(layer+1)%2]+`"]`...)
	})
	like := filepath.Join(t.TempDir(), "capture.json")
	if err := os.WriteFile(like, planted, 0o600); err != nil {
		t.Fatal(err)
	}
	rows := roofs(like)
	if layer != 24 || len(rows) != 2 || over(rows[0]) || over(rows[1]) || rows[1]["window"] != "128" || rows[1]["instances"] != "12" {
		t.Fatalf("%d layers: %v", layer, rows)
	}
	const heads, kv, dims, tokens, window = 64, 8, 128, 32, 128
	const want = 12 * (tokens*heads*dims + tokens*window*kv*dims) * 2
	if got, err := strconv.ParseFloat(rows[1]["bytes"], 64); err != nil || got < 0.99999*want || got > 1.00001*want {
		t.Errorf("%s bytes, want %d", rows[1]["bytes"], want)
	}
}

// The matrix products of gpt-oss's experts have the weights that the capture shows. TraceLens
// assumes an inner size of 3,072, the hidden size; it is 2,944.
func TestRealExperts(t *testing.T) {
	folder := testinput.Shared(t, "data", "graphs", "vllm_gptoss_decode")
	r := sgtrace(t, t.TempDir(), "report", "--kernels", "--table", "kernels.roof", "--format", "csv", "--captures", filepath.Join(folder, "capture.json.zst"), filepath.Join(folder, "replay.json.zst"))
	want := map[string]float64{"_matmul_ogs_NNT_bf16xbf16xmxfp4_16x128x256x1_swiglu": 24 * 2 * 128 * 3072 * 5888, "_matmul_ogs_NNT_bf16xbf16xmxfp4_16x128x256x1": 24 * 2 * 128 * 2944 * 3072}
	found := 0
	for _, row := range readCSV(t, r.out) {
		if flops, ok := want[row["kernel"]]; ok {
			found++
			if got, err := strconv.ParseFloat(row["flops"], 64); err != nil || math.Abs(got/flops-1) > 1e-5 || row["operator"] != "vllm::moe_forward" || row["bound"] != "memory" {
				t.Errorf("%v, want %.0f operations", row, flops)
			}
		}
	}
	if found != len(want) {
		t.Errorf("%d of %d products", found, len(want))
	}
}

// NCCL kernels have the sizes that PyTorch recorded around their launch: 10 all-gathers of 128,256
// 16-bit numbers over 4 GPUs, each of which sends three quarters over a 450 GB/s link.
func TestRealLinkRoof(t *testing.T) {
	capture := testinput.Shared(t, "data", "reality2", "vllm_llama_tp4_h100__rank0.pt.trace.json.zst")
	r := sgtrace(t, t.TempDir(), "report", "--kernels", "--table", "kernels.roof", "--format", "csv", capture)
	for _, row := range readCSV(t, r.out) {
		if strings.Contains(row["kernel"], "AllGather") {
			total, err1 := strconv.ParseFloat(row["total_ns"], 64)
			share, err2 := strconv.ParseFloat(row["roof_share"], 64)
			if want := 10 * 0.75 * 2 * 128256 / 450 / total; err1 != nil || err2 != nil || row["bound"] != "link" || math.Abs(share/want-1) > 1e-3 {
				t.Errorf("%v, want %v of the roof", row, want)
			}
			return
		}
	}
	t.Error("no all-gather")
}

// readTruth reads the facts that an independent program found about each kernel of a graph.
func readTruth(t *testing.T, folder string) []map[string]string {
	if text, err := os.ReadFile(filepath.Join(folder, "map.csv")); err == nil {
		return readCSV(t, string(text))
	}
	return readCSV(t, string(testinput.ReadZstd(t, filepath.Join(folder, "map.csv.zst"))))
}

// checkGraph compares the kernels of the first replay with the truth.
func checkGraph(t *testing.T, what string, truth []map[string]string, capture, replay string) {
	t.Helper()
	r := sgtrace(t, t.TempDir(), "report", "--ops", "--table", "ops.graphkernels", "--format", "csv", "--captures", capture, replay)
	rows := readCSV(t, r.out)
	if len(rows) < len(truth) || len(rows)%len(truth) != 0 {
		t.Fatalf("%s: %d rows, want %d for each replay: %s", what, len(rows), len(truth), r.err)
	}
	compact := func(list string) string {
		var b bytes.Buffer
		if json.Compact(&b, []byte(list)) != nil {
			return list
		}
		return b.String()
	}
	wrong := 0
	for i, want := range truth {
		got := rows[i]
		if got["kernel"] != want["kernel"] || got["operator"] != want["op"] || compact(got["shapes"]) != compact(want["input_dims"]) || compact(got["types"]) != compact(want["input_types"]) || got["module"] != want["module"] {
			if wrong++; wrong <= 3 {
				t.Errorf("%s, kernel %d: %s %s in %s by %q, want %s %s in %s", what, i, got["operator"], got["shapes"], got["module"], got["matched by"], want["op"], want["input_dims"], want["module"])
			}
		}
	}
	if wrong > 0 {
		t.Errorf("%s: %d of %d are wrong", what, wrong, len(truth))
	}
}

// A graphKernel is a kernel in writeGraph's graph, with the operator that launched it at capture.
type graphKernel struct{ name, operator, shapes, types, module string }

// graphModel returns the kernels of a model with the given number of layers and batch of tokens.
func graphModel(layers, tokens int) (list []graphKernel) {
	bf16 := `["c10::BFloat16","c10::BFloat16"]`
	for i := range layers {
		add := func(name, operator, shapes, module string) {
			list = append(list, graphKernel{name, operator, strings.ReplaceAll(shapes, "T", fmt.Sprint(tokens)), bf16, fmt.Sprintf("%s_%d", module, i)})
		}
		add("fused_add_rmsnorm_kernel", "sgl_kernel::fused_add_rmsnorm", "[[T,4096],[T,4096],[4096]]", "RMSNorm")
		add("nvjet_tst_64x8_qkv", "aten::mm", "[[T,4096],[4096,6144]]", "QKVParallelLinear")
		add("fused_rope_kernel", "sgl_kernel::rotary_embedding", "[[T,4096],[T,1024]]", "RotaryEmbedding")
		add("flash_fwd_splitkv_kernel", "sgl_kernel::fwd", "[[T,32,128],[900,1,8,128],[900,1,8,128]]", "RadixAttention")
		add("nvjet_tst_64x8_o", "aten::mm", "[[T,4096],[4096,4096]]", "RowParallelLinear")
		add("nvjet_tst_64x8_gate", "aten::mm", "[[T,4096],[4096,28672]]", "MergedColumnParallelLinear")
		add("act_and_mul_kernel_silu", "sgl_kernel::silu_and_mul", "[[T,28672],[T,14336]]", "SiluAndMul")
		add("nvjet_tst_64x8_down", "aten::mm", "[[T,14336],[14336,4096]]", "DownProj")
	}
	return list
}

// writeGraph writes the traces of a server in CUDA's form: decode/ has one replay for 5 requests,
// and capture_traces/ the captures for 4 and 8.
func writeGraph(dir string) error {
	const head = `{"schemaVersion":1,"deviceProperties":[{"id":0,"name":"NVIDIA H100 80GB HBM3","numSms":132}],"distributedInfo":{"backend":"nccl","rank":0,"world_size":1},"traceEvents":[`
	var events []string
	event := func(cat, name string, ts, dur int, args string, tid int) {
		events = append(events, fmt.Sprintf(`{"ph":"X","cat":%q,"name":%q,"pid":10,"tid":%d,"ts":%d,"dur":%d,"args":{%s}}`, cat, name, tid, ts, dur, args))
	}
	write := func(path string) error {
		path = filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			return err
		}
		text := head + strings.Join(events, ",\n") + "]}\n"
		events = nil
		return os.WriteFile(path, []byte(text), 0o666)
	}
	for _, tokens := range []int{4, 8} {
		at := 1_770_000_000_000_000 + tokens*1_000_000
		event("cuda_runtime", "cudaStreamBeginCapture", at, 2, `"correlation":1`, 10)
		for i, k := range graphModel(3, tokens) {
			at += 100
			event("python_function", fmt.Sprintf("nn.Module: DecoderLayer_%d", i/8), at-2, 90, `"Python id":1`, 10)
			event("python_function", "nn.Module: "+k.module, at-1, 80, `"Python id":2`, 10)
			event("python_function", "sglang/srt/layers/layer.py(7): forward", at, 70, `"Python id":3`, 10)
			event("cpu_op", k.operator, at+1, 60, `"Input Dims":`+k.shapes+`,"Input type":`+k.types, 10)
			event("cuda_runtime", "cudaLaunchKernel", at+9, 5, fmt.Sprintf(`"correlation":%d`, i+2), 10)
		}
		event("cuda_runtime", "cudaStreamEndCapture", at+100, 2, `"correlation":99`, 10)
		if err := write(fmt.Sprintf("capture_traces/bs_%d_rank0.json", tokens)); err != nil {
			return err
		}
	}
	at := 1_770_000_100_000_000
	event("user_annotation", "step[DECODE bs=5]", at, 900, `"External id":1`, 10)
	event("cuda_runtime", "cudaGraphLaunch", at+10, 5, `"correlation":1`, 10)
	for i, k := range graphModel(3, 8) {
		dur := 100 + len(k.shapes)%7
		event("kernel", k.name, at+20+i*120, dur, `"device":0,"stream":7,"correlation":1,"grid":[64,1,1],"block":[128,1,1]`, 7)
	}
	return write("decode/1770000100.0-TP-0.trace.json")
}

// graphReplay writes the traces of writeGraph, and returns the folder with the replay.
func graphReplay(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := writeGraph(dir); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, "decode")
}

// If an export contains the capture of its graphs, each kernel gets the operator, sizes, and module that
// were open when its node was captured, and so do stacks, gaps, and sums. The written data is the truth.
func TestGraphsOfExports(t *testing.T) {
	dir := t.TempDir()
	export := filepath.Join(dir, "node0.sqlite")
	db, err := nsys.Create(export, nsys.Schema2024)
	if err != nil {
		t.Fatal(err)
	}
	const pid = int64(1<<48 | 700<<24)
	db.Insert("PROCESSES", "globalPid", pid, "name", "sglang::scheduler_TP0")
	span := func(text string, from, to int64) {
		db.Insert("NVTX_EVENTS", "start", from, "end", to, "eventType", 59, "text", text, "globalTid", pid|700)
	}
	model := graphModel(3, 8)
	for i, k := range model {
		at := int64(1e9) + int64(i)*1000
		span(fmt.Sprintf("{'Module': 'model.layers.%d.part%d', 'TrainableParams': {}}", i/8, i%8), at, at+900)
		span(fmt.Sprintf("%s, op_id = %d, sizes = %s", k.operator, i, strings.ReplaceAll(k.shapes, ",", ", ")), at+100, at+800)
		node, copied := int64(2<<32+i+1), int64(3<<32+i+1)
		created := func(at, id int64, of any) {
			db.Insert("CUDA_GRAPH_NODE_EVENTS", "start", at, "end", at+100, "eventClass", 77, "globalTid", pid|700,
				"nameId", nsys.ID("Graph Node Creation"), "graphNodeId", id, "originalGraphNodeId", of)
		}
		created(at+400, node, nil)
		created(at+400+1e6, copied, node)
	}
	const replays = 3
	for r := range int64(replays) {
		at := int64(2e9) + r*1e6
		db.Insert("CUPTI_ACTIVITY_KIND_RUNTIME", "start", at, "end", at+5000, "globalTid", pid|700, "correlationId", r+1, "nameId", nsys.ID("cudaGraphLaunch_v10000"))
		for i, k := range model {
			start := at + 10000 + int64(i)*10000
			db.Insert("CUPTI_ACTIVITY_KIND_KERNEL", "start", start, "end", start+9000, "globalPid", pid, "correlationId", r+1,
				"graphNodeId", int64(3<<32+i+1), "demangledName", nsys.ID(k.name), "shortName", nsys.ID(k.name))
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	merged := sgtrace(t, dir, "merge", export, "-o", "out.json")
	for i, k := range model {
		module := fmt.Sprintf("model.layers.%d.part%d", i/8, i%8)
		if got := strings.Count(merged.file, `"cat":"graph_module","name":"`+module+`"`); got != replays {
			t.Errorf("timeline: %s is there %d times, want %d: %s", module, got, replays, merged.err)
		}
		if !strings.Contains(merged.file, `"cat":"graph_operator","name":"`+k.operator+`"`) {
			t.Errorf("timeline: %s is not there", k.operator)
		}
	}
	rows := readCSV(t, sgtrace(t, dir, "report", "--ops", "--table", "ops.graphkernels", "--format", "csv", export).out)
	if len(rows) != replays*len(model) {
		t.Fatalf("%d rows, want %d", len(rows), replays*len(model))
	}
	for n, got := range rows {
		i := n % len(model)
		module := fmt.Sprintf("model.layers.%d.part%d", i/8, i%8)
		if got["kernel"] != model[i].name || got["operator"] != model[i].operator || got["shapes"] != model[i].shapes || got["module"] != module || got["matched_by"] != "node" {
			t.Errorf("kernel %d: %v, want %+v in %s", n, got, model[i], module)
		}
	}
	if out := sgtrace(t, dir, "report", "--gaps", "--table", "gaps.longest", "--format", "csv", export).out; !strings.Contains(out, model[7].operator+" in model.layers.0.part7,"+model[8].operator+" in model.layers.1.part0") {
		t.Errorf("gaps:\n%s", out)
	}
	if out := sgtrace(t, dir, "report", "--ops", "--table", "ops.modules", "--format", "csv", export).out; !strings.Contains(out, "model.layers.*.part5") {
		t.Errorf("modules:\n%s", out)
	}
}

// annotatedTrace writes the trace of a rank that replays graphModel's graph twice, with node
// numbers, and one kernel outside a graph. It returns the node numbers.
func annotatedTrace(t *testing.T, path string, rank, graph int) (numbers []int64) {
	t.Helper()
	var events []string
	event := func(cat, name string, ts, dur int, args string, tid int) {
		events = append(events, fmt.Sprintf(`{"ph":"X","cat":%q,"name":%q,"pid":%d,"tid":%d,"ts":%d,"dur":%d,"args":{%s}}`, cat, name, 10+rank, tid, ts, dur, args))
	}
	at := 1_770_000_100_000_000
	event("cuda_runtime", "cudaLaunchKernel", at, 5, `"correlation":9`, 10)
	event("kernel", "warm_up", at+10, 50, `"device":0,"stream":7,"correlation":9,"graph node id":0`, 7)
	for replay := range 2 {
		at += 10_000
		event("cuda_runtime", "cudaGraphLaunch", at, 5, fmt.Sprintf(`"correlation":%d`, 10+replay), 10)
		for i, k := range graphModel(2, 8) {
			number := int64(graph)<<32 | int64(i+1)
			if replay == 0 {
				numbers = append(numbers, number)
			}
			event("kernel", k.name, at+20+i*120, 100, fmt.Sprintf(`"device":0,"stream":7,"correlation":%d,"graph node id":%d`, 10+replay, number), 7)
		}
	}
	text := fmt.Sprintf(`{"schemaVersion":1,"distributedInfo":{"backend":"nccl","rank":%d,"world_size":2},"traceEvents":[%s]}`, rank, strings.Join(events, ",\n"))
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o777), os.WriteFile(path, []byte(text), 0o666)); err != nil {
		t.Fatal(err)
	}
	return numbers
}

// Kernels of a graph are named by the annotations that the program recorded for their nodes at capture.
// Annotations apply per rank, because node numbers are local to a process. The written data is the truth.
func TestAnnotationsOfNodes(t *testing.T) {
	dir := t.TempDir()
	want := map[[2]string]string{} // by rank and index
	for rank := range 2 {
		numbers := annotatedTrace(t, filepath.Join(dir, "traces", "step_14", fmt.Sprintf("%d.77.pt.trace.json", rank)), rank, 3)
		var lines []string
		for i, n := range numbers {
			name, value := "", ""
			switch i % 8 {
			case 0: // no annotation
				continue
			case 1:
				name, value = fmt.Sprintf("rank %d qkv", rank), fmt.Sprintf(`["outer", "rank %d qkv"]`, rank)
			case 2:
				name, value = fmt.Sprintf("rope layer=%d", i/8), fmt.Sprintf(`[{"str": "rope", "stream": 7}, {"layer": %d}]`, i/8)
			default:
				name, value = fmt.Sprintf("part%d", i), fmt.Sprintf(`[{"name": "part%d", "stream": 60}]`, i)
			}
			want[[2]string{fmt.Sprint(rank), fmt.Sprint(i)}] = name
			lines = append(lines, fmt.Sprintf("%q: %s", fmt.Sprint(n), value))
		}
		path := filepath.Join(dir, "traces", fmt.Sprintf("kernel_annotations_rank%d_42.json", rank))
		if err := os.WriteFile(path, []byte("{"+strings.Join(lines, ",\n")+"}"), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	ask := []string{"report", "--ops", "--table", "ops.graphkernels", "--format", "csv"}
	check := func(what string, args ...string) {
		t.Helper()
		r := sgtrace(t, dir, append(ask, args...)...)
		rows := readCSV(t, r.out)
		if len(rows) != 2*2*16 {
			t.Fatalf("%s: %d rows: %s", what, len(rows), r.err)
		}
		for _, got := range rows {
			name := want[[2]string{got["rank"][len(got["rank"])-1:], got["index"]}]
			by := ""
			if name != "" {
				by = "annotation"
			}
			if got["module"] != name || got["matched_by"] != by || got["operator"] != "" {
				t.Errorf("%s: %v, want %q", what, got, name)
			}
		}
	}
	check("of the folder", "traces")
	check("beside the folder", filepath.Join("traces", "step_14"))
	moved := filepath.Join(dir, "elsewhere")
	if err := os.Mkdir(moved, 0o777); err != nil {
		t.Fatal(err)
	}
	for rank := range 2 {
		name := fmt.Sprintf("kernel_annotations_rank%d_42.json", rank)
		if err := os.Rename(filepath.Join(dir, "traces", name), filepath.Join(moved, name)); err != nil {
			t.Fatal(err)
		}
	}
	check("that --captures names", "--captures", moved, "traces")
	if out := sgtrace(t, dir, "report", "--stacks", "--table", "stacks.gpu", "--format", "folded", "--captures", moved, "traces").out; !strings.Contains(out, "rank 1 qkv;nvjet_tst_64x8_qkv") {
		t.Errorf("stacks:\n%s", out)
	}
	if r := sgtrace(t, dir, "merge", "--captures", moved, "traces", "-o", "out.json"); !strings.Contains(r.file, `"cat":"graph_module","name":"rank 1 qkv"`) {
		t.Errorf("no row of modules: %s", r.err)
	}

	// A file with a different name is recognized by its content, and applies to the only rank.
	one := filepath.Join(dir, "traces", "step_14", "1.77.pt.trace.json")
	other := filepath.Join(dir, "names.json")
	if err := os.Rename(filepath.Join(moved, "kernel_annotations_rank1_42.json"), other); err != nil {
		t.Fatal(err)
	}
	if out := sgtrace(t, dir, append(ask, one, other)...).out; !strings.Contains(out, "rank 1 qkv") {
		t.Errorf("by content:\n%s", out)
	}
	text, err := os.ReadFile(other)
	if err != nil {
		t.Fatal(err)
	}
	for _, bad := range []struct{ text, says string }{
		{string(text[:len(text)-20]), "names.json: data loss: annotations of nodes of CUDA graphs end here: at byte "},
		{`{"12": [7], "x": ["a"], ` + string(text[1:]), "annotations that do not say what a node of a CUDA graph is called were left out [annotations-odd] (2 times; this is the first)"},
	} {
		if err := os.WriteFile(other, []byte(bad.text), 0o666); err != nil {
			t.Fatal(err)
		}
		r := sgtrace(t, dir, append(ask, one, other)...)
		if r.status != exitPartial || !strings.Contains(r.err, bad.says) || !strings.Contains(r.out, "rank 1 qkv") {
			t.Errorf("%s\n%s, want %s", r.err, r.out, bad.says)
		}
	}
}

// A launch missing from the capture costs at most that launch and its surroundings: for the real
// graph, in CUDA's form, at least 99% of the kernels are right, and none is wrong.
func TestRealGraphWithoutALaunch(t *testing.T) {
	folder := testinput.Shared(t, "data", "graphs", "vllm_gptoss_decode")
	truth, replay := readTruth(t, folder), filepath.Join(folder, "replay.json.zst")
	plain := testinput.ReadZstd(t, filepath.Join(folder, "capture.json.zst"))
	for _, key := range launchProof {
		plain = bytes.ReplaceAll(plain, []byte(key), []byte(`"unknown":`))
	}
	var file map[string]json.RawMessage
	var events []json.RawMessage
	if err := errors.Join(json.Unmarshal(plain, &file), json.Unmarshal(file["traceEvents"], &events)); err != nil {
		t.Fatal(err)
	}
	launches := launchesAtCapture(t, events)
	if len(launches) != len(truth) {
		t.Fatalf("%d launches, want %d", len(launches), len(truth))
	}
	for _, lost := range []int{3, 113, 187, 290, 420} {
		before, after, found := bytes.Cut(plain, events[launches[lost]])
		capture := filepath.Join(t.TempDir(), "capture.json")
		if err := os.WriteFile(capture, slices.Concat(before, after[bytes.IndexByte(after, ',')+1:]), 0o600); err != nil || !found {
			t.Fatal(err, found)
		}
		rows := readCSV(t, sgtrace(t, t.TempDir(), "report", "--ops", "--table", "ops.graphkernels", "--format", "csv", "--captures", capture, replay).out)
		right := 0
		for i, want := range truth {
			switch got := rows[i]; {
			case got["operator"] == "" && got["module"] == "":
			case got["operator"] == want["op"] && got["module"] == want["module"]:
				right++
			case i != lost:
				t.Errorf("without launch %d, kernel %d is said to be of %s, not %s", lost, i, got["operator"], want["op"])
			}
		}
		if 100*right < 99*(len(truth)-1) {
			t.Errorf("without launch %d, %d of %d are right", lost, right, len(truth)-1)
		}
	}
}

// launchesAtCapture returns the indexes of the launches during the only capture among some events, in order of time.
func launchesAtCapture(t *testing.T, events []json.RawMessage) (list []int) {
	t.Helper()
	type event struct {
		Name, Cat, Ph string
		Ts, Dur       float64
		at            int
	}
	var begin, end float64
	var calls []event
	for i, raw := range events {
		var e event
		if err := json.Unmarshal(raw, &e); err != nil {
			t.Fatal(err)
		}
		switch {
		case e.Cat != "cuda_runtime" && e.Cat != "cuda_driver":
		case strings.Contains(e.Name, "StreamBeginCapture"):
			begin = e.Ts + e.Dur
		case strings.Contains(e.Name, "StreamEndCapture"):
			end = e.Ts
		case strings.Contains(e.Name, "Launch") || strings.Contains(e.Name, "Memcpy") || strings.Contains(e.Name, "Memset"):
			e.at = i
			calls = append(calls, e)
		}
	}
	slices.SortStableFunc(calls, func(a, b event) int { return cmp.Compare(a.Ts, b.Ts) })
	for _, c := range calls {
		if begin <= c.Ts && c.Ts < end {
			list = append(list, c.at)
		}
	}
	return list
}
