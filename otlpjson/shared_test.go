package otlpjson

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/golden/simulator"
	"github.com/sgtrace/sgtrace/testkit/testinput"
)

// shared returns a shared file, decompressed if its name ends in .zst.
func shared(t *testing.T, name string) string {
	t.Helper()
	path := testinput.Shared(t, "data", "otel", name)
	if strings.HasSuffix(name, ".zst") {
		return string(testinput.ReadZstd(t, path))
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// compare reads data with the package and with the reference reader.
func compare(t *testing.T, data string) reading {
	t.Helper()
	got := read(t, data)
	want, err := reference([]byte(data))
	if err != nil {
		t.Fatalf("the reference refuses it: %v", err)
	}
	if d := diff(got.inOrder(), want.inOrder()); d != "" {
		t.Errorf("against encoding/json: %s", d)
	}
	if f := got.Files[0]; f.Documents != want.documents || f.Other != want.other || f.Spans != got.Len() || f.Bytes != int64(len(data)) {
		t.Errorf("%+v of %d bytes, want %d documents and %d others", f, len(data), want.documents, want.other)
	}
	if got.loss() {
		t.Errorf("reported: %v", got.diags)
	}
	return got
}

func compareWithSonic(t *testing.T, got reading, data string) {
	t.Helper()
	if d := diff(got.inOrder(), sonicInOrder(t, data)); d != "" {
		t.Errorf("against sonic: %s", d)
	}
}

// head returns about n bytes, in whole lines.
func head(data string, n int) string {
	if len(data) <= n {
		return data
	}
	return data[:strings.LastIndexByte(data[:n], '\n')+1]
}

func TestSharedDumps(t *testing.T) {
	dir := testinput.Shared(t, "data", "otel")
	for _, c := range []struct {
		pattern string
		spans   map[string]int // as data/README.md states them
	}{
		{"*.jsonl*", map[string]int{"a_unified_tp2.jsonl": 13282, "b_pd_smg_tp2.jsonl.zst": 27344, "b2_pd_nosmg_tp2.jsonl.zst": 5438,
			"c_pp2_dp2.jsonl.zst": 17570, "d_big_tp2.jsonl.zst": 410338, "e_legacy_v1_pd_minilb.jsonl.zst": 1632, "i_vllm_llm_request.jsonl": 60}},
		{"damaged/*.zst", nil},
		{"f_collector_variants/*.json*.zst", map[string]int{"file_default.jsonl.zst": 2150, "compression_zstd_native.jsonl.zst": 2150}},
	} {
		names, _ := filepath.Glob(filepath.Join(dir, c.pattern))
		if len(names) == 0 {
			t.Errorf("%s: no files", c.pattern)
		}
		for _, name := range names {
			rel, _ := filepath.Rel(dir, name)
			if rel == "damaged/truncated_last_line.jsonl.zst" {
				continue // see TestSharedTruncated
			}
			t.Run(rel, func(t *testing.T) {
				if strings.HasPrefix(rel, "d_big") && testing.Short() {
					t.Skip("185 MB")
				}
				data := shared(t, rel)
				got := read(t, data)
				if want := c.spans[filepath.Base(rel)]; want != 0 && got.Len() != want || got.Len() == 0 || len(got.diags) > 0 {
					t.Errorf("%d spans, want %d; diagnostics: %v", got.Len(), want, got.diags)
				}
				if !strings.HasPrefix(rel, "damaged/") {
					data = head(data, 1<<18) // encoding/json is slow
				}
				got = compare(t, data)
				if !strings.HasPrefix(rel, "damaged/array") {
					compareWithSonic(t, got, data)
				}
			})
		}
	}
}

func TestSharedTruncated(t *testing.T) {
	data := shared(t, "damaged/truncated_last_line.jsonl.zst")
	whole := shared(t, "f_collector_variants/file_default.jsonl.zst")
	if !strings.HasPrefix(whole, data) {
		t.Fatal("it is no longer the beginning of file_default")
	}
	got, want := read(t, data), read(t, whole).inOrder()
	complete := strings.Count(data, `"status":{}},`) + strings.Count(data, `"status":{}}]`) +
		strings.Count(data, `"status":{"code":2}},`) + strings.Count(data, `"status":{"code":2}}]`)
	if d := diff(got.inOrder(), want[:complete]); d != "" {
		t.Errorf("the spans before the cut: %s", d)
	}
	last := read(t, data[:strings.LastIndexByte(data, '\n')+1])
	if n := last.Files[0].Documents + 1; len(got.diags) != 1 || got.diags[0].Code != "otlp-truncated" || got.diags[0].Pos.Line != int64(n) {
		t.Errorf("diagnostics %v, want one otlp-truncated in line %d", got.diags, n)
	}
}

// All Collector encodings of the same spans are read the same.
func TestSharedCollectorVariants(t *testing.T) {
	const dir = "f_collector_variants/"
	// The native dump is from a different run, so its processes have different ids.
	instance := regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)
	spans := func(inputs ...string) ([]string, reading) {
		r := read(t, inputs...)
		out := r.inOrder()
		for i := range out {
			out[i] = instance.ReplaceAllString(out[i], "INSTANCE")
		}
		return out, r
	}
	want, _ := spans(shared(t, dir+"file_default.jsonl.zst"))
	for _, c := range []struct {
		encoding string
		names    []string
	}{
		{"json", []string{"compression_zstd_native.jsonl.zst"}},
		{"zstd frames", []string{"compression_zstd_legacy_framed.bin"}},
		{"protobuf frames", []string{"format_proto_framed.bin"}},
		{"json", []string{"v_rot-2026-11-20T16-32-11.577-size.json.zst", "v_rot.json.zst"}},
	} {
		t.Run(c.names[0], func(t *testing.T) {
			var inputs []string
			for _, name := range c.names {
				inputs = append(inputs, shared(t, dir+name))
			}
			text, got := spans(inputs...)
			if d := diff(text, want); d != "" {
				t.Error(d)
			}
			if got.Files[0].Encoding != c.encoding || len(got.diags) > 0 {
				t.Errorf("encoding %q, diagnostics %v", got.Files[0].Encoding, got.diags)
			}
		})
	}
}

// simulated returns a dump with everything that SGLang and its gateway emit, about 20 kB per
// request.
func simulated(t testing.TB, requests int) string {
	t.Helper()
	config := simulator.DefaultConfig(7)
	config.Requests = requests
	data, _ := testinput.Simulate(t, config)
	return string(data)
}

func TestSimulatedDump(t *testing.T) {
	data := simulated(t, 100)
	got := compare(t, data)
	compareWithSonic(t, got, data)
	if got.Len() < 1000 || got.EventCount() == 0 || len(got.diags) > 0 {
		t.Errorf("%d spans, %d events, %v", got.Len(), got.EventCount(), got.diags)
	}
}
