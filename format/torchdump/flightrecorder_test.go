package torchdump

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/sgtrace/sgtrace/format"
	"github.com/sgtrace/sgtrace/golden/torch"
	"github.com/sgtrace/sgtrace/profile/recorder"
	"github.com/sgtrace/sgtrace/trace"
)

// samples returns dumps of both forms.
func samples(t testing.TB) (list [][]byte) {
	t.Helper()
	for form := range torch.AsJSON + 1 {
		dir := t.TempDir()
		if _, err := torch.WriteHang(dir, torch.HangConfig{Seed: 3, TP: 4, DP: 1, Steps: 40, Fault: torch.OtherSize, Wrong: 1, Ring: 2000}, form); err != nil {
			t.Fatal(err)
		}
		files, err := filepath.Glob(dir + "/*")
		if err != nil || len(files) != 4 {
			t.Fatal(files, err)
		}
		data, err := os.ReadFile(files[0])
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, data)
	}
	return list
}

func readBytes(data []byte) (*recorder.InFlight, *trace.Diags, error) {
	syms, diags := trace.NewSymbols(), &trace.Diags{}
	set := recorder.NewInFlight(syms)
	in := &format.Input{Name: "nccl_trace_rank_0", Open: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil }}
	_, err := indexRecorder(in, &format.Options{Syms: syms, Diags: diags, Flight: set})
	return set, diags, err
}

// FuzzFlightRecorder reads arbitrary data: the results refer only to existing groups and stacks.
func FuzzFlightRecorder(f *testing.F) {
	for _, data := range samples(f) {
		f.Add(data)
		f.Add(data[:len(data)/2])
	}
	f.Add([]byte(`[{"id": 4, "pg_id": 0, "seq_id": 7, "profiling_name": "nccl:recv 0<-1", "state": "scheduled", "input_sizes": [[]], "collective_seq_id": null}]`))
	f.Fuzz(func(t *testing.T, data []byte) {
		set, _, err := readBytes(data)
		if err != nil {
			return
		}
		for _, d := range set.Dumps {
			for i := range d.Ops {
				if op := &d.Ops[i]; int(op.Group) >= len(d.Groups) || int(op.Stack) >= len(d.Stacks) || op.Stack < recorder.Unknown {
					t.Fatalf("%+v", op)
				}
			}
		}
	})
}

// Both forms give the same. A truncated dump is used up to the cut, and reported.
func TestFlightRecorderForms(t *testing.T) {
	all := samples(t)
	var ops []int
	for _, data := range all {
		set, diags, err := readBytes(data)
		if err != nil || len(diags.All()) != 0 {
			t.Fatal(err, diags.All())
		}
		d := set.Dumps[0]
		ops = append(ops, len(d.Ops))
		if op := &d.Ops[len(d.Ops)-1]; d.Rank != 0 || len(d.Groups) != 3 || d.Groups[op.Group].ID < 0 || d.Groups[0].Enqueued <= 0 || len(d.Stacks[op.Stack]) != 2 || set.Syms.Name(op.InT) == "" || d.NCCL != "2.27.3" {
			t.Errorf("%+v", d)
		}
		cut, diags, err := readBytes(data[:len(data)/2])
		if err != nil || len(diags.All()) != 1 || diags.All()[0].Code != "input-damaged" || !cut.Dumps[0].Lost || len(cut.Dumps[0].Ops) == 0 || len(cut.Dumps[0].Ops) >= len(d.Ops) {
			t.Errorf("cut off: %v, %v, %+v", err, diags.All(), cut.Dumps)
		}
	}
	if ops[0] != ops[1] {
		t.Errorf("%d entries of a pickle, %d of JSON", ops[0], ops[1])
	}
	if _, _, err := readBytes([]byte("\x80\x02cos\nsystem\nX\x04\x00\x00\x00echo\x85R.")); err == nil {
		t.Error("a pickle that calls os.system is read")
	}
}

// Ranks come from file names, or else from the groups.
func TestRankOf(t *testing.T) {
	for name, want := range map[string]int32{
		"nccl_trace_rank_3": 3, "/tmp/_dump_14": 14, "nccl_trace_rank_container-node02_5": 5, "comm_lib_trace_rank_12.json": 12, "trace.pkl": -1, "a/rank7/dump": -1, "x_007": 7,
	} {
		if got := rankOf(name); got != want {
			t.Errorf("%s: %d, want %d", name, got, want)
		}
	}
	d := &recorderReader{dump: &recorder.FlightDump{Groups: []recorder.Group{{Ranks: []int32{0, 1, 2, 3}}, {Ranks: []int32{2, 3}}, {Ranks: []int32{1, 3}}, {Name: "x"}}}}
	if d.only() != 3 || d.inAll(2) || !d.inAll(3) {
		t.Errorf("rank %d", d.only())
	}
}
