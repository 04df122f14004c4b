package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A comparison leads with differences between the machines that the profiles describe.
func TestDiffTellsWhatFilesSay(t *testing.T) {
	dir := t.TempDir()
	for name, gpu := range map[string]string{"a.json": "NVIDIA H100 80GB HBM3", "b.json": "NVIDIA H200"} {
		text := fmt.Sprintf(`{"schemaVersion":1,"deviceProperties":[{"id":0,"name":"%s"}],"distributedInfo":{"backend":"nccl","rank":0,"world_size":1},"traceEvents":[
{"ph":"X","cat":"kernel","name":"gemm","pid":0,"tid":7,"ts":1787000000000000,"dur":5,"args":{"device":0,"stream":7}}]}`, gpu)
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	r := sgtrace(t, dir, "diff", "a.json", "b.json")
	if want := "Setup differs: devices NVIDIA H100 80GB HBM3 -> NVIDIA H200"; !strings.HasPrefix(r.out, want) {
		t.Errorf("%s%s, want %s", r.out, r.err, want)
	}
}
