package allocations

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/format"
	"github.com/sgtrace/sgtrace/format/torchdump"
	"github.com/sgtrace/sgtrace/golden/torch"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/profile/recorder"
	"github.com/sgtrace/sgtrace/trace"
)

// snapshot reads what simulated allocators dump.
func snapshot(t testing.TB, runs ...*torch.Allocator) *recorder.Memory {
	t.Helper()
	syms := trace.NewSymbols()
	set := recorder.NewMemory(syms)
	data := torch.MemorySnapshot(runs...)
	in := &format.Input{Name: "1770000000-TP-3-memory.pickle", Path: "x", Open: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil }}
	if _, err := torchdump.MemorySnapshot.Index(in, &format.Options{Syms: syms, Args: trace.NewArgs(), Diags: &trace.Diags{}, Heap: set}); err != nil {
		t.Fatal(err)
	}
	set.Name(in.Name, "TP3")
	return set
}

// A device that ran out of memory is a finding, with the state of the allocator at that time; otherwise there is no finding.
func TestOutOfMemory(t *testing.T) {
	found := 0
	for seed := range uint64(6) {
		run := torch.NewAllocator(seed, 1, 300, 1<<20)
		m := Measure(snapshot(t, run), nil)
		list, check := m.Findings()
		truth := run.Truth()
		if check.State() != finding.LookedAt || (len(list) > 0) != (truth.Failed > 0) {
			t.Fatalf("seed %d: %d findings of %d failures, %s", seed, len(list), truth.Failed, check.String())
		}
		if len(list) == 0 {
			continue
		}
		found++
		if text := list[0].Text; !strings.Contains(text, "device 1 of TP3 ran out of memory: 17.2 GB were asked for, and it had 1.05 MB left") || list[0].Cost != 1 {
			t.Errorf("%s: %v", text, list[0].Cost)
		}
		for i, f := range m.Failed {
			if want := run.Failures()[i]; f.Use.Allocated != want.Allocated || f.Use.Reserved != want.Reserved {
				t.Errorf("seed %d, failure %d: %+v, want %+v", seed, i, f.Use, want)
			}
		}
		if text := strings.Join(finding.Sentences(list[0].Evidence), "\n"); !strings.Contains(text, "it was asked for in forward (layers/layer") || !strings.Contains(text, "not fragmentation") {
			t.Errorf("%s", text)
		}
	}
	if found == 0 {
		t.Error("nothing failed in any run")
	}
	if text := Measure(snapshot(t, torch.NewAllocator(0, 0, 300, 1<<20)), nil).Words(); !strings.HasPrefix(text, "TP3 device 0: ") || !strings.Contains(text, ", peak ") {
		t.Errorf("%q", text)
	}
}

// The report compares memory with that before the recording, and does not count
// allocations that only replace freed blocks: each step replaces gradients with new ones.
func TestMoreThanBefore(t *testing.T) {
	for _, c := range []struct {
		freed, allocated int // blocks of 1 MB
		want             string
	}{
		{0, 3, "3.15 MB more than before"},
		{3, 3, "as much as before"},
		{4, 2, "2.10 MB less than before"},
	} {
		run := torch.IdleAllocator(0, 1<<20)
		for range 8 {
			run.Alloc(1<<20, 1)
		}
		run.Forget()
		for i := range c.freed {
			run.Free(i)
		}
		for range c.allocated {
			run.Alloc(1<<20, 2)
		}
		if text := Measure(snapshot(t, run), nil).Words(); !strings.Contains(text, ", "+c.want) {
			t.Errorf("%d freed and %d allocated: %q", c.freed, c.allocated, text)
		}
	}
}

// calls are a rank's calls that a profiler recorded.
type calls struct {
	profile.Stream
	list []profile.Call
}

func (c *calls) Calls(yield func(*profile.Call) bool) {
	for i := range c.list {
		if !yield(&c.list[i]) {
			return
		}
	}
}

// A profiled call just before the time stamp of a segment gives the duration of the stall. Calls
// of another rank, longer calls, and calls with another name are ignored.
func TestStallsAreConfirmed(t *testing.T) {
	set := snapshot(t, torch.NewAllocator(5, 0, 60, 1<<20))
	plain := Measure(set, nil)
	p := &profile.Set{Syms: set.Syms, Ranks: []string{"TP2", "TP3"}}
	malloc, other := set.Syms.Intern("cudaMalloc"), set.Syms.Intern("cudaMemcpyAsync")
	c := &calls{}
	want := map[trace.Time]int64{}
	for i, s := range plain.Stalls {
		e := profile.Event{Start: s.Time - 5000, End: s.Time - 1000, Rank: 1, Name: malloc}
		switch i % 4 {
		case 0:
			want[s.Time] = 4000
		case 1:
			e.Rank = 0
		case 2:
			e.Name = other
		case 3:
			e.Start = s.Time - trace.Time(s.Most) - 100_000 // longer than the time since the previous entry
		}
		c.list = append(c.list, profile.Call{Event: e})
	}
	p.Streams = []profile.Stream{c}
	confirmed := 0
	for _, s := range Measure(set, p).Stalls {
		took, ok := want[s.Time]
		if !ok || s.Most < 0 {
			took = -1
		}
		if s.Took != took || took >= 0 && set.Syms.Name(s.Call) != "cudaMalloc" {
			t.Errorf("at %d: took %d, want %d (at most %d)", s.Time, s.Took, took, s.Most)
		}
		if took >= 0 {
			confirmed++
		}
	}
	if confirmed < 3 {
		t.Errorf("%d of %d stalls are confirmed", confirmed, len(plain.Stalls))
	}
}
