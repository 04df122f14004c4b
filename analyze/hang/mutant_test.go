package hang

import (
	"bytes"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/format"
	"github.com/sgtrace/sgtrace/format/torchdump"
	"github.com/sgtrace/sgtrace/golden/torch"
	"github.com/sgtrace/sgtrace/profile/recorder"
	"github.com/sgtrace/sgtrace/testkit/testinput"
	"github.com/sgtrace/sgtrace/trace"
)

// told matches the keys of a dump whose values are compared between ranks.
var told = regexp.MustCompile(`"(input_sizes|output_sizes|input_dtypes|profiling_name|collective_seq_id|p2p_seq_id|process_group|pg_id|state|ranks|last_enqueued_collective|time_created_ns)": ?("[^"]*"|\[[^\]]*\]*|-?\d+)`)

// hostile are values that no recorder writes.
var hostile = []string{`null`, `""`, `[]`, `[[]]`, `[[-1]]`, `[["x"]]`, `[[1e400]]`, `[[9223372036854775807,9223372036854775807]]`, `-5`, `1e30`, `99999999999999999999`, `true`, `{}`, `"nccl:"`,
	`"nccl:send 1->"`, `"nccl:recv 99999999999<-0"`, `"nccl:send 0->0"`, `"\u0000\u001b[31m%s%d\n"`, `["", ""]`, `["a"]`, `"[0, 1, 1, -3, x"`, `"[]"`, `"completed"`}

// If one dump is damaged, or holds impossible entries, the rest is reported without
// a crash, with the ranks of the other dumps.
func TestMutants(t *testing.T) {
	for seed := range testinput.Seeds(60) {
		r := rand.New(rand.NewPCG(seed, 3))
		form := torch.HangForm(r.IntN(2))
		c := torch.HangConfig{Seed: seed % 50, TP: 4, DP: 1 + r.IntN(2), Steps: 20, Fault: torch.Fault(r.IntN(int(torch.Faults))), Wrong: 1, Ring: 20}
		dir := t.TempDir()
		if _, err := torch.WriteHang(dir, c, form); err != nil {
			t.Fatal(err)
		}
		files, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		bad := files[r.IntN(len(files))].Name()
		data, err := os.ReadFile(filepath.Join(dir, bad))
		if err != nil {
			t.Fatal(err)
		}
		if places := told.FindAllSubmatchIndex(data, -1); len(places) > 0 && r.IntN(3) > 0 {
			p := places[r.IntN(len(places))]
			data = append(append(bytes.Clone(data[:p[4]]), hostile[r.IntN(len(hostile))]...), data[p[5]:]...)
		} else {
			s := testinput.Subject{Data: data, Cuts: testinput.Tokens(data), Other: data}
			data = s.Mutate(seed).Data
		}
		syms, diags := trace.NewSymbols(), &trace.Diags{}
		set := recorder.NewInFlight(syms)
		for _, f := range files {
			text, err := os.ReadFile(filepath.Join(dir, f.Name()))
			if err != nil {
				t.Fatal(err)
			}
			if f.Name() == bad {
				text = data
			}
			in := &format.Input{Name: f.Name(), Path: f.Name(), Open: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(text)), nil }}
			if _, err := torchdump.FlightRecorder.Index(in, &format.Options{Syms: syms, Diags: diags, Flight: set}); err != nil && f.Name() != bad {
				t.Errorf("seed %d, %s: %v", seed, f.Name(), err)
			}
		}
		set.Finish(func(int32) trace.Time { return 0 })
		h := Find(set)
		if len(set.Dumps) < len(files)-1 || len(h.Ranks) < len(files)-1 {
			t.Errorf("seed %d: %d dumps and %d ranks of %d files", seed, len(set.Dumps), len(h.Ranks), len(files))
		}
		h.Findings()
		for _, of := range h.Report().Tables {
			if err := of.Write(io.Discard, table.FormatText, table.Style{}); err != nil {
				t.Errorf("seed %d: %v", seed, err)
			}
		}
	}
}
