package torchdump

import (
	"bytes"
	"cmp"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/format"
	"github.com/sgtrace/sgtrace/golden/torch"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/profile/recorder"
	"github.com/sgtrace/sgtrace/testkit/testinput"
	"github.com/sgtrace/sgtrace/trace"
)

// readSnapshots reads a snapshot from memory.
func readSnapshots(t testing.TB, data []byte, filter profile.Filter) (*format.Source, *format.Options, *recorder.Snapshot) {
	t.Helper()
	syms := trace.NewSymbols()
	opt := &format.Options{Syms: syms, Args: trace.NewArgs(), Diags: &trace.Diags{}, Heap: recorder.NewMemory(syms), Filter: filter}
	in := &format.Input{Name: "1770000000-TP-0-memory.pickle", Path: "x", Open: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil }}
	src, err := MemorySnapshot.Index(in, opt)
	if err != nil {
		return nil, opt, nil
	}
	return src, opt, opt.Heap.Snapshots()[0]
}

// The memory that a simulated allocator held is found to the byte, however much of its history the ring buffer kept.
func TestReplay(t *testing.T) {
	for seed := range uint64(8) {
		for _, ring := range []int{1 << 20, 300, 17} {
			runs := []*torch.Allocator{torch.NewAllocator(seed, 0, 400, ring), torch.NewAllocator(seed+100, 2, 300, ring)}
			data := torch.MemorySnapshot(runs...)
			if !MemorySnapshot.Sniff(data[:min(len(data), 64<<10)]) {
				t.Fatal("it is not recognized")
			}
			_, opt, x := readSnapshots(t, data, profile.Filter{})
			if len(x.Devices) != 2 || len(opt.Diags.All()) > 0 {
				t.Fatalf("%d devices, %v", len(x.Devices), opt.Diags.All())
			}
			for i, run := range runs {
				d, want := x.Devices[i], run.Truth()
				r := d.Replay()
				allocated, pending, reserved := d.Now()
				failed := 0
				for _, e := range d.Entries {
					if e.Action == recorder.OutOfMemory {
						failed++
					}
				}
				got := torch.AllocatorTruth{Start: r.Start.Allocated, Peak: r.Peak.Allocated, End: r.End.Allocated, Reserved: reserved, MostReserved: r.MostReserved, Entries: len(d.Entries), Failed: failed,
					PeakTime: want.PeakTime}
				if r.PeakAt >= 0 {
					got.PeakTime = int64(d.Entries[r.PeakAt].Time) / 1000
				}
				if got != want || allocated+pending != want.End {
					t.Errorf("seed %d, ring %d, device %d: %+v, %d in use at the end, want %+v", seed, ring, d.Number, got, allocated, want)
				}
				for _, at := range []int{r.PeakAt, len(d.Entries) - 1} {
					sum := int64(0)
					for _, h := range d.Holdings(&r, at) {
						sum += h.Bytes
						if name := opt.Syms.Name(h.Where); h.Where != 0 && !strings.HasPrefix(name, "forward (layers/layer") {
							t.Errorf("where: %q", name)
						}
					}
					if want := map[bool]int64{true: want.Peak, false: want.End}[at == r.PeakAt]; sum != want {
						t.Errorf("seed %d, ring %d: holdings of %d, want %d", seed, ring, sum, want)
					}
				}
			}
		}
	}
}

// Stacks with only C++ frames are from a backward pass, and have no program line.
func TestNativeStacks(t *testing.T) {
	run := torch.IdleAllocator(0, 1<<20)
	run.Alloc(1<<20, torch.Backward)
	run.Alloc(1<<20, 3)
	_, opt, x := readSnapshots(t, torch.MemorySnapshot(run), profile.Filter{})
	for i, want := range []string{"MmBackward0 (backward pass)", "forward (layers/layer3.py:43)"} {
		if l := x.Devices[0].Lives()[i]; opt.Syms.Name(l.Where) != want || x.Native[l.Where] != (i == 0) {
			t.Errorf("%q, native %v, want %q", opt.Syms.Name(l.Where), x.Native[l.Where], want)
		}
	}
}

// A timeline shows the peak, and only values that occurred.
func TestCounters(t *testing.T) {
	run := torch.NewAllocator(3, 1, 500, 1<<20)
	src, opt, x := readSnapshots(t, torch.MemorySnapshot(run), profile.Filter{})
	want := run.Truth()
	had := map[float64]bool{}
	r := x.Devices[0].Replay()
	x.Devices[0].Walk(r.Start, func(_ int, u recorder.Usage) { had[float64(u.Allocated)], had[float64(u.Reserved)] = true, true })
	most := 0.0
	p := src.Profiles[0]
	for _, s := range p.Samples {
		if !had[s.Value] {
			t.Errorf("%v was never there", s.Value)
		}
		if p.Rows[s.Row].Name == profile.MemoryAllocated {
			most = max(most, s.Value)
		}
	}
	if int64(most) != want.Peak || len(p.Instants) != want.Failed || want.Failed == 0 {
		t.Errorf("peak %v, %d instants, want %d, %d", most, len(p.Instants), want.Peak, want.Failed)
	}
	opt.Filter = profile.Filter{From: p.First + 1000, To: p.Last - 1000}
	again, err := src.Stream(opt)
	if err != nil || len(again[0].Samples) == 0 || len(again[0].Samples) >= len(p.Samples) {
		t.Errorf("%v, %d samples in the window", err, len(again[0].Samples))
	}
}

// Damaged snapshots are read up to the damage, without other effects.
func TestMutants(t *testing.T) {
	data := torch.MemorySnapshot(torch.NewAllocator(1, 0, 60, 100), torch.NewAllocator(2, 1, 40, 100))
	s := &testinput.Subject{Data: data, Cuts: testinput.Pages(data, 64), Other: data, OtherCuts: testinput.Pages(data, 100)}
	n, err := strconv.Atoi(os.Getenv("SGTRACE_MUTANTS"))
	if err != nil {
		n = 28
	}
	for seed := range uint64(n) {
		_, _, x := readSnapshots(t, s.Mutate(seed).Data, profile.Filter{})
		for i := 0; x != nil && i < len(x.Devices); i++ {
			r := x.Devices[i].Replay()
			x.Devices[i].Holdings(&r, r.PeakAt)
		}
	}
}

// Real snapshots give the numbers that Python's pickle gives, byte for byte.
func TestShared(t *testing.T) {
	for name, want := range map[string]torch.AllocatorTruth{
		"mem01_jasper":  {Start: 8_771_952, Peak: 108_258_676, End: 48_748_928, Reserved: 134_217_728, Entries: 5803},
		"mem02_magma":   {Start: 1_373_919_236, Peak: 13_923_997_700, End: 1_373_919_236, Reserved: 14_180_941_824, Entries: 5163},
		"mem03_notrace": {Start: 544_460_336, Peak: 544_460_336, End: 544_460_336, Reserved: 5_559_549_952},
	} {
		_, opt, x := readSnapshots(t, testinput.ReadZstd(t, testinput.Shared(t, "data", "untraced", name+".pickle.zst")), profile.Filter{})
		d := x.Devices[0]
		r := d.Replay()
		allocated, _, _ := d.Now()
		got := torch.AllocatorTruth{Start: r.Start.Allocated, Peak: r.Peak.Allocated, End: r.End.Allocated, Reserved: r.End.Reserved, Entries: len(d.Entries)}
		if got != want || allocated != want.End || r.Lost != 0 {
			t.Errorf("%s: %+v, %d in use, %d lost, want %+v", name, got, allocated, r.Lost, want)
		}
		told := slices.ContainsFunc(opt.Diags.All(), func(x trace.Diag) bool { return x.Message == trace.MemoryNoTrace })
		if told != (len(d.Entries) == 0) {
			t.Errorf("%s: %v", name, opt.Diags.All())
		}
	}
}

// BenchmarkIndex measures the indexing time per byte of the pickle.
func BenchmarkIndex(b *testing.B) {
	data := torch.MemorySnapshot(torch.NewAllocator(1, 0, 3000, 1<<20))
	path := filepath.Join(b.TempDir(), "x.pickle")
	if err := os.WriteFile(path, data, 0o644); err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		if _, _, x := readSnapshots(b, data, profile.Filter{}); cmp.Or(len(x.Devices), 0) != 1 {
			b.Fatal("no device")
		}
	}
}
