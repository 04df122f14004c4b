package convert

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/sgtrace/sgtrace/convert/inputs"
	"github.com/sgtrace/sgtrace/convert/ranks"
	"github.com/sgtrace/sgtrace/trace"
)

// Files that people mistake for inputs are recognized, and the error says what to do.
func TestForeignInputs(t *testing.T) {
	var text bytes.Buffer
	binary.Write(&text, binary.LittleEndian, utf16.Encode([]rune("\ufeff{\"resourceSpans\":[]}")))
	for _, test := range []struct{ name, content, advice string }{
		{"powershell.json", text.String(), "iconv -f UTF-16"},
		{"dump.zip", "PK\x03\x04 and more", "unzip it"},
		{"dump.xz", "\xfd7zXZ\x00 and more", "unxz -k"},
		{"dump.tar", strings.Repeat("n", 257) + "ustar\x00", "unpack it"},
		{"lost.jsonl", strings.Repeat("\x00", 5000), "begins with zeros"},
		{"window.zst", "\x28\xb5\x2f\xfd\x00\xb8" + strings.Repeat("x", 100), "unzstd --long=31 -k"},
		{"py.speedscope.json", `{"$schema":"https://www.speedscope.app/file-format-schema.json","profiles":[]}`, "is a speedscope profile"},
		{"perf.data", "PERFILE2 and more", "is a recording of Linux perf"},
		{"stacks.txt", "main;run;step 12\nmain;run 3\n", "is a list of collapsed stacks"},
		{"out.prof", "{\xa9\x03 and more", "cProfile"},
		{"memory.raw.json", "[[-1, 1, 37888, 7], [-1, 1, 512, 7], [1696966047096061874, 4, -37888, 7]]", "is a memory timeline of PyTorch"},
		{"memory.json", "[[-1, 1696966047096061, 1696966047096102, 1696966047096106, 1696966047096109], [[0, 512, 0, 0, 0, 0, 0, 0]]]", "is a memory timeline of PyTorch"},
		{"resnet_et.json", "{\n  \"schema\": \"1.1.1-chakra.0.0.4\", \"pid\": 177708, \"nodes\": []}", "is an execution trace of PyTorch"},
		{"pmc_perf.csv", "Dispatch_ID,GPU_ID,Grid_Size,Kernel_Name\n0,0,77824,fill\n", "is a table of counters of rocprof-compute"},
		{"kernel_stats.csv", "\"Name\",\"Calls\",\"TotalDurationNs\"\n\"fill\",1,5920\n", "is a table of totals of rocprof"},
		{"host.xplane.pb", "\x0a\xa1\xf0\x08\x12\x0e/host:metadata\"\xbf\x14", "is an XPlane of JAX"},
		{"tpu.xplane.pb", "\x0a\x85\x06\x08\x02\x12\x0d/device:TPU:0\x1a\x04", "is an XPlane of JAX"},
		{"kernels.csv", "Time (%),Total Time (ns),Instances\n", "give the .sqlite"},
		{"StringIds.parquet", "PAR1 and more", "give the folder"},
		{"notes.txt", "what we know so far", "not a format that sgtrace reads"},
	} {
		name := filepath.Join(t.TempDir(), test.name)
		if err := os.WriteFile(name, []byte(test.content), 0o644); err != nil {
			t.Fatal(err)
		}
		var forRequests, forAll trace.Diags
		if _, err := inputs.Load([]inputs.Input{{Name: name}}, inputs.Options{Requests: true}, &forRequests); err == nil {
			t.Errorf("%s has requests", test.name)
		}
		if _, _, err := Read([]inputs.Input{{Name: name}}, inputs.Options{}, ranks.Options{}, &forAll); err == nil {
			t.Errorf("%s has events", test.name)
		}
		for _, diags := range []*trace.Diags{&forRequests, &forAll} {
			if all := diags.All(); len(all) != 1 || all[0].Code != "input-unusable" || !strings.Contains(all[0].Msg, test.advice) {
				t.Errorf("%s: %v, want %q", test.name, all, test.advice)
			}
		}
	}
}
