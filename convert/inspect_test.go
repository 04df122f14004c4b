package convert

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/sgtrace/sgtrace/convert/inputs"
	"github.com/sgtrace/sgtrace/format/inventory"
	"github.com/sgtrace/sgtrace/trace"
)

// Logs and flight recorder dumps are listed, too, each file with what it contains and lacks.
func TestInspectLogs(t *testing.T) {
	dir := t.TempDir()
	var paths []string
	for name, text := range map[string]string{
		"dmesg.log": "2025-02-23T16:24:18+00:00 node3 kernel: NVRM: Xid (PCI:0000:91:00): 79, x\n2025-02-23T16:24:20+00:00 node3 kernel: NVRM: Xid (PCI:0000:91:00): 31, x\n",
		"boot.log":  "[12.5] NVRM: Xid (PCI:0000:91:00): 79, x\n",
		"rank3.json": `{"version": "2.4", "nccl_version": "2.27.3", "pg_config": {"0": {"name": "0", "desc": "default_pg", "ranks": "[0, 1, 2, 3]"}}, "entries": [
{"record_id": 0, "pg_id": 0, "process_group": ["0", "default_pg"], "collective_seq_id": 1, "profiling_name": "nccl:all_reduce", "time_created_ns": 1740328000000000000, "state": "completed"},
{"record_id": 1, "pg_id": 0, "process_group": ["0", "default_pg"], "collective_seq_id": 2, "profiling_name": "nccl:all_reduce", "time_created_ns": 1740328001000000000, "state": "scheduled"}]}`,
	} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		paths = append(paths, path)
	}
	files, err := inputs.Find(paths)
	if err != nil {
		t.Fatal(err)
	}
	var v inventory.Inventory
	if _, _, err := Inspect(files, inputs.Options{}, &trace.Diags{}, &v); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"dmesg.log":  "kernel log [node3] [] lines 2 events 2 collectives -1 of them -1 from 1740327858 to 1740327860 []",
		"boot.log":   "kernel log [] [] lines 1 events 1 collectives -1 of them -1 from 0 to 0 [when it was the host]",
		"rank3.json": "PyTorch flight recorder 2.4, NCCL 2.27.3 [] [rank 3] lines -1 events -1 collectives 2 of them 1 from 1740328000 to 1740328001 []",
	}
	for _, l := range v.Logs {
		name := filepath.Base(l.File)
		if got := fmt.Sprintf("%s %v %v lines %d events %d collectives %d of them %d from %d to %d %v", l.Format, l.Servers, l.Ranks, l.Lines, l.Events, l.Collectives, l.Pending, l.First/1e9, l.Last/1e9, l.NotKnown); got != want[name] {
			t.Errorf("%s:\n%s, want\n%s", name, got, want[name])
		}
		delete(want, name)
	}
	if len(want) > 0 {
		t.Errorf("not listed: %v", want)
	}
}
