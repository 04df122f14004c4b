package inputs

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// Graph captures are found wherever servers write them, and nothing else counts as one.
func TestCapturesOfLayouts(t *testing.T) {
	for _, test := range []struct {
		name             string
		files            []string
		list             string // content of execution_details.json, in the folder of the last file
		args             []string
		others, captures []string
		sizes            map[string]int64
	}{
		{name: "SGLang, a file for each size", files: []string{"run/x-TP-0.trace.json", "run/capture_traces/bs_8_rank0.json", "run/capture_traces/bs_32_rank0.json"},
			args: []string{"run"}, others: []string{"run/x-TP-0.trace.json"}, captures: []string{"run/capture_traces/bs_32_rank0.json", "run/capture_traces/bs_8_rank0.json"}},
		{name: "the same, only the trace is named", files: []string{"run/x-TP-0.trace.json", "run/capture_traces/bs_8_rank0.json"},
			args: []string{"run/x-TP-0.trace.json"}, others: []string{"run/x-TP-0.trace.json"}, captures: []string{"run/capture_traces/bs_8_rank0.json"}},
		{name: "beside the folder of the traces", files: []string{"run/decode/x-TP-0.trace.json", "run/capture_traces/bs_8_rank0.json"},
			args: []string{"run/decode"}, others: []string{"run/decode/x-TP-0.trace.json"}, captures: []string{"run/capture_traces/bs_8_rank0.json"}},
		{name: "vLLM", files: []string{"run/rank0.1773.pt.trace.json", "run/capture_torch_profiler/graph_capture_rank_0.1773.pt.trace.json"},
			list: `[{"file": "graph_capture_rank_0.1773.pt.trace.json", "batch_size": 32, "mode": "full"}]`,
			args: []string{"run"}, others: []string{"run/rank0.1773.pt.trace.json"}, captures: []string{"run/capture_torch_profiler/graph_capture_rank_0.1773.pt.trace.json"},
			sizes: map[string]int64{"run/capture_torch_profiler/graph_capture_rank_0.1773.pt.trace.json": 32}},
		{name: "a list beside traces", files: []string{"run/x.json", "run/start.json"}, list: `[{"file": "/srv/start.json", "batch_size": 4, "mode": "PIECEWISE"}]`,
			args: []string{"run"}, others: []string{"run/x.json"}, captures: []string{"run/start.json"}, sizes: map[string]int64{"run/start.json": 4}},
		{name: "one file for all sizes", files: []string{"run/x-TP-0.json", "run/cuda_graph_capture-decode-TP-0.json"},
			args: []string{"run"}, others: []string{"run/x-TP-0.json"}, captures: []string{"run/cuda_graph_capture-decode-TP-0.json"}},
		{name: "names of nodes, beside the folder of the traces", files: []string{"run/step_14/0.77.pt.trace.json", "run/kernel_annotations_rank0_42.json"},
			args: []string{"run/step_14"}, others: []string{"run/step_14/0.77.pt.trace.json"}, captures: []string{"run/kernel_annotations_rank0_42.json"}},
		{name: "names of nodes that are named as inputs", files: []string{"run/0.77.pt.trace.json", "run/kernel_annotations_rank0_42.json"},
			args: []string{"run/0.77.pt.trace.json", "run/kernel_annotations_rank0_42.json"}, others: []string{"run/0.77.pt.trace.json"}, captures: []string{"run/kernel_annotations_rank0_42.json"}},
		{name: "captures are what is asked for", files: []string{"run/capture_traces/bs_8_rank0.json"},
			args: []string{"run/capture_traces"}, others: []string{"run/capture_traces/bs_8_rank0.json"}},
		{name: "none", files: []string{"run/bs_32.json", "run/x-TP-0-DECODE.json"}, args: []string{"run"}, others: []string{"run/bs_32.json", "run/x-TP-0-DECODE.json"}},
	} {
		dir := t.TempDir()
		in := func(names []string) (paths []string) {
			for _, name := range names {
				paths = append(paths, filepath.Join(dir, name))
			}
			return paths
		}
		write := func(path, text string) {
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		for _, path := range in(test.files) {
			write(path, `{"traceEvents": [{"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 1, "dur": 1}]}`)
		}
		if test.list != "" {
			write(filepath.Join(dir, filepath.Dir(test.files[len(test.files)-1]), captureList), test.list)
		}
		files, err := Find(in(test.args))
		if err != nil {
			t.Fatalf("%s: %v", test.name, err)
		}
		others, captures := SplitCaptures(files)
		for _, check := range []struct {
			got  []Input
			want []string
		}{{others, test.others}, {captures, test.captures}} {
			var got []string
			for _, x := range check.got {
				if filepath.Base(x.Path()) != captureList {
					got = append(got, x.Path())
				}
			}
			slices.Sort(got)
			if !slices.Equal(got, in(check.want)) {
				t.Errorf("%s: got %v, want %v", test.name, got, in(check.want))
			}
		}
		sizes := CaptureSizes(captures)
		for name, want := range test.sizes {
			if got := sizes[filepath.Join(dir, name)]; got != want {
				t.Errorf("%s: got %+v, want %+v", test.name, got, want)
			}
		}
		if len(sizes) != len(test.sizes) {
			t.Errorf("%s: %v, want %v", test.name, sizes, test.sizes)
		}
	}
}
