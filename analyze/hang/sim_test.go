package hang

import (
	"archive/tar"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/format"
	"github.com/sgtrace/sgtrace/format/torchdump"
	"github.com/sgtrace/sgtrace/golden/torch"
	"github.com/sgtrace/sgtrace/internal/parallel"
	"github.com/sgtrace/sgtrace/profile/recorder"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/testkit/testinput"
	"github.com/sgtrace/sgtrace/testkit/testset"
	"github.com/sgtrace/sgtrace/trace"
)

// readDumps reads all files of a folder.
func readDumps(t testing.TB, dir string) (*recorder.InFlight, *trace.Diags) {
	t.Helper()
	syms, diags := trace.NewSymbols(), &trace.Diags{}
	set := recorder.NewInFlight(syms)
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	parallel.Each(len(files), func(i int) {
		name := filepath.Join(dir, files[i].Name())
		in := &format.Input{Name: name, Path: name, Open: func() (io.ReadCloser, error) { return os.Open(name) }}
		f := torchdump.FlightRecorder
		if strings.HasSuffix(name, ".log") {
			f = torchdump.Log
		}
		if _, err := f.Index(in, &format.Options{Syms: syms, Diags: diags, Flight: set, Series: series.New(syms, diags)}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	})
	set.Finish(func(int32) trace.Time { return 0 })
	return set, diags
}

// The planted cause leads, with its ranks, group, and sequence number, however much
// the recorders kept, in both formats, and even if dumps of other ranks are lost.
func TestRateOfHangs(t *testing.T) {
	for fault := range torch.Faults {
		t.Run(fault.String(), func(t *testing.T) {
			seeds := testset.Seeds(t)
			right := 0
			for _, seed := range seeds {
				r := rand.New(rand.NewPCG(seed, 1))
				c := torch.HangConfig{Seed: seed, TP: []int{4, 8}[r.IntN(2)], DP: 1 + r.IntN(4), Steps: 60 + r.IntN(100), Fault: fault, Wrong: 1,
					Ring: []int{20, 60, 2000}[r.IntN(3)], Active: r.IntN(3) == 0}
				if c.TP == 8 {
					c.Wrong += r.IntN(3)
				}
				if c.DP > 2 {
					c.Silent = r.IntN(2)
				}
				if fault == torch.OtherOrder || fault == torch.Missing { // else several would be in step with one another
					c.Wrong = 1
				}
				dir := t.TempDir()
				truth, err := torch.WriteHang(dir, c, torch.HangForm(r.IntN(2)))
				if err != nil {
					t.Fatal(err)
				}
				set, _ := readDumps(t, dir)
				h := Find(set)
				if ok := foundIt(h, truth); ok {
					right++
				} else {
					found, _ := h.Findings()
					t.Logf("seed %d, %+v: %v, planted %+v", seed, c, found, truth)
				}
			}
			testset.Rate(t, "hang: "+fault.String(), right, len(seeds), 100)
		})
	}
}

// The planted cause leads in logs, too, as far as they show it. The watchdog logs no types, and nothing
// about a rank in which nothing timed out; NCCL's log shows what was entered, but not what ended.
func TestRateOfHangsInLogs(t *testing.T) {
	for _, form := range []torch.HangForm{torch.WatchdogLog, torch.NCCLLogs, torch.NCCLLog} {
		for fault := range torch.Faults {
			name := fmt.Sprintf("%s in %s", fault, []string{"watchdog", "NCCL", "NCCL of all"}[form-torch.WatchdogLog])
			t.Run(name, func(t *testing.T) {
				seeds := testset.Seeds(t)
				right := 0
				for _, seed := range seeds {
					r := rand.New(rand.NewPCG(seed, 2))
					c := torch.HangConfig{Seed: seed, TP: []int{4, 8}[r.IntN(2)], DP: 1 + r.IntN(4), Steps: 60 + r.IntN(100), Fault: fault, Wrong: 1}
					if c.DP > 2 {
						c.Silent = r.IntN(2)
					}
					dir := t.TempDir()
					truth, err := torch.WriteHang(dir, c, form)
					if err != nil {
						t.Fatal(err)
					}
					set, _ := readDumps(t, dir)
					h := Find(set)
					if saysWhatItKnows(h, truth, form, seed%2 == 0) {
						right++
					} else {
						found, _ := h.Findings()
						t.Logf("seed %d, %+v: %+v, %+v, planted %+v", seed, c, h.Stuck[:min(2, len(h.Stuck))], found, truth)
					}
				}
				testset.Rate(t, "hang: "+name, right, len(seeds), 100)
			})
		}
	}
}

// saysWhatItKnows reports whether the planted cause is found as far as logs show it. In
// NCCL's log, it is a finding only if communicators were aborted.
func saysWhatItKnows(h *Hang, truth torch.HangTruth, form torch.HangForm, aborted bool) bool {
	if len(h.Stuck) == 0 {
		return false
	}
	s := &h.Stuck[0]
	found, _ := h.Findings()
	want := func(list []int, have []int32) bool {
		return slices.EqualFunc(list, have, func(a int, b int32) bool { return int32(a) == b })
	}
	blamedElsewhere := form == torch.WatchdogLog && truth.Fault == torch.Missing // a group in which ranks wait for that one may be blamed instead, if it shows more
	if !blamedElsewhere && (s.Seq != int64(truth.Seq) || !want(truth.Of, s.Of)) || len(found) > 0 && found[0].Confidence == finding.Certain && form != torch.WatchdogLog {
		return false
	}
	if form != torch.WatchdogLog && len(found) != map[bool]int{true: 1}[aborted] {
		return false
	}
	switch {
	case form == torch.WatchdogLog && truth.Fault == torch.OtherType:
		return s.Kind == AllEntered || s.Kind == Alone
	case form == torch.WatchdogLog && truth.Fault == torch.Missing:
		return s.Kind == NoDump && want(truth.Ranks, s.Silent) || s.Kind == NotEntered && want(truth.Ranks, s.Absent) || s.Kind == Alone && want(truth.Ranks, h.idle())
	case truth.Fault == torch.Missing:
		return s.Kind == NotEntered && want(truth.Ranks, s.Absent)
	case truth.Fault == torch.OtherOrder && form == torch.WatchdogLog:
		return s.Kind == OtherOp && want(truth.Ranks, s.Differ)
	}
	return s.Kind.String() == truth.Fault.String() && want(truth.Ranks, s.Differ)
}

// foundIt reports whether the first cause is the planted one.
func foundIt(h *Hang, truth torch.HangTruth) bool {
	found, check := h.Findings()
	if len(found) != 1 || check.N == 0 {
		return false
	}
	s := &h.Stuck[0]
	ranks := s.Differ
	if truth.Fault == torch.Missing {
		ranks = s.Absent
	}
	want := func(list []int, have []int32) bool {
		return slices.EqualFunc(list, have, func(a int, b int32) bool { return int32(a) == b })
	}
	return s.Kind.String() == truth.Fault.String() && want(truth.Ranks, ranks) && s.Seq == int64(truth.Seq) && s.Group == truth.Group && want(truth.Of, s.Of) && want(truth.Silent, h.Silent)
}

// If all ranks do the same, nothing hangs: all have entered everything in flight.
func TestNothingIsBlamed(t *testing.T) {
	dir := t.TempDir()
	if _, err := torch.WriteHang(dir, torch.HangConfig{Seed: 5, TP: 4, DP: 2, Steps: 80, Fault: torch.OtherOp, Ring: 2000}, torch.AsPickle); err != nil {
		t.Fatal(err)
	}
	set, _ := readDumps(t, dir)
	h := Find(set)
	if found, check := h.Findings(); len(found) != 0 || check.N != 8 {
		t.Errorf("%+v, %+v", found, check)
	}
}

// BenchmarkDumps reads and compares 32 dumps with half-full rings.
func BenchmarkDumps(b *testing.B) {
	dir := b.TempDir()
	if _, err := torch.WriteHang(dir, torch.HangConfig{Seed: 1, TP: 8, DP: 4, Steps: 2100, Fault: torch.Missing, Wrong: 1, Ring: 2000}, torch.AsPickle); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		set, _ := readDumps(b, dir)
		if h := Find(set); len(h.Stuck) == 0 {
			b.Fatal("nothing found")
		}
	}
}

// Ranks 9 and 14 hold a Python lock: they are missing in the all-to-all of six
// others, and those wait for the ranks that earlier stages wait for.
func TestRealHang(t *testing.T) {
	file := testinput.Shared(t, "data", "untraced", "fr", "lock_gil_1st.tar.zst")
	dir := t.TempDir()
	unpack(t, file, dir)
	set, _ := readDumps(t, dir)
	h := Find(set)
	found, _ := h.Findings()
	s := &h.Stuck[0]
	if len(found) != 1 || s.Kind != NotEntered || !slices.Equal(s.Absent, []int32{9, 14}) || s.Seq != 45265 || s.Op != "all_to_all" || s.Group != "EXPERT_MODEL_PARALLEL_GROUP" || len(s.HeldUp) != 14 {
		t.Errorf("%v, %+v", found, s)
	}
}

// unpack unpacks the files of an archive.
func unpack(t *testing.T, file, dir string) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := zstd.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if err == io.EOF {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Typeflag != tar.TypeReg {
			continue
		}
		data, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, filepath.Base(h.Name)), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// A log, a py-spy dump in it, and the watchdog describe one hang: the report is one sentence.
func TestPythonIsInTheSentence(t *testing.T) {
	dir := t.TempDir()
	truth, err := torch.WriteHang(dir, torch.HangConfig{Seed: 4, TP: 4, DP: 1, Steps: 80, Fault: torch.Missing, Wrong: 1}, torch.WatchdogLog)
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(filepath.Join(dir, "stderr.log"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(f, "Process 311: sglang::scheduler_TP%d\nPython v3.12.3 (/usr/bin/python3)\n\nThread 311 (active+gil): \"MainThread\"\n    re_match (libpython3.12.so.1.0)\n    regex_to_fsm (outlines/fsm.py:210)\n", truth.Ranks[0])
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	set, _ := readDumps(t, dir)
	found, _ := Find(set).Findings()
	if len(found) != 1 || !strings.HasSuffix(found[0].Text, fmt.Sprintf("; Python of rank %d stands in regex_to_fsm (fsm.py:210)", truth.Ranks[0])) {
		t.Errorf("%+v", found)
	}
}
