package allocations

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/golden/torch"
	"github.com/sgtrace/sgtrace/profile/recorder"
	"github.com/sgtrace/sgtrace/trace"
)

const mib = 1 << 20

// leaks are servers that leak memory, and what a report on their snapshots should say.
var leaks = []struct {
	name  string
	run   func(a *torch.Allocator, rng *rand.Rand)
	since bool // the growth began after the recording did
}{
	{"a block in each step", func(a *torch.Allocator, _ *rand.Rand) {
		steps(a, 60, func(int) { a.Keep(3*mib, 5) })
	}, false},
	{"from the middle on", func(a *torch.Allocator, _ *rand.Rand) {
		steps(a, 100, func(i int) {
			if i >= 50 {
				a.Keep(3*mib, 5)
			}
		})
	}, true},
	{"in one of three steps", func(a *torch.Allocator, rng *rand.Rand) {
		steps(a, 300, func(int) {
			if rng.IntN(3) == 0 {
				a.Keep(mib+rng.Int64N(mib), 5)
			}
		})
	}, false},
	{"where blocks come and go, too", func(a *torch.Allocator, _ *rand.Rand) {
		steps(a, 60, func(int) {
			i := a.Alloc(100*mib, 5)
			a.Keep(3*mib, 5)
			a.Free(i)
		})
	}, false},
	{"behind CUDA graphs, with few other blocks", func(a *torch.Allocator, _ *rand.Rand) {
		for range 300 {
			a.Free(a.Alloc(mib, 4))
			a.Keep(mib/8, 5)
			a.Wait(2000)
		}
	}, false},
	{"beside a warm-up", func(a *torch.Allocator, _ *rand.Rand) {
		for range 15 {
			a.Alloc(3*mib, 5)
		}
		steps(a, 60, func(i int) {
			if i >= 20 {
				a.Keep(3*mib, 5)
			}
		})
	}, true},
}

// steps runs decode steps of a model with 12 layers.
func steps(a *torch.Allocator, n int, each func(i int)) {
	for i := range n {
		a.Forward(12)
		each(i)
		a.Wait(1000)
	}
}

func TestLeaks(t *testing.T) {
	for _, c := range leaks {
		for seed := range uint64(3) {
			a := torch.IdleAllocator(0, 1<<20)
			a.Alloc(1<<30, 7) // weights
			c.run(a, rand.New(rand.NewPCG(seed, 1)))
			set := snapshot(t, a)
			m := Measure(set, nil)
			list, check := m.Leaks()
			if len(list) != 1 || check.State() != finding.LookedAt {
				t.Fatalf("%s, seed %d: %d findings, %s", c.name, seed, len(list), check.String())
			}
			f, g := &list[0], &m.Growing[0]
			if g.Bytes != a.BytesKept || len(g.Sites) != 1 || int64(g.From) != a.FirstKept*1000 || (f.Since != 0) != c.since || f.Since != 0 && f.Since != g.From {
				t.Errorf("%s, seed %d: %d bytes since %d of %d places, want %d since %d: %s", c.name, seed, g.Bytes, g.From, len(g.Sites), a.BytesKept, a.FirstKept, f.Text)
			}
			if want := float64(a.BytesKept) / float64(a.Truth().End); math.Abs(f.Cost-want) > 0.001 || !strings.Contains(f.Text, "layers/layer5.py:45") {
				t.Errorf("%s, seed %d: costs %v, want %v: %s", c.name, seed, f.Cost, want, f.Text)
			}
			// PyTorch before 2.2 records no times.
			for _, x := range set.Snapshots() {
				for i := range x.Devices[0].Entries {
					x.Devices[0].Entries[i].Time = 0
				}
			}
			if list, _ := Measure(set, nil).Leaks(); len(list) != 1 || list[0].Since != 0 || strings.Contains(strings.Join(finding.Sentences(list[0].Evidence), "\n"), "rate") {
				t.Errorf("%s, seed %d: without times, %v", c.name, seed, list)
			}
		}
	}
}

// sound are servers whose memory grows without a leak.
var sound = []struct {
	name string
	run  func(a *torch.Allocator, rng *rand.Rand)
}{
	{"nothing grows", func(a *torch.Allocator, _ *rand.Rand) {
		steps(a, 100, func(int) {})
	}},
	{"a warm-up", func(a *torch.Allocator, _ *rand.Rand) {
		steps(a, 200, func(i int) {
			if i < 60 {
				a.Alloc(3*mib, 5)
			}
		})
	}},
	{"a cache that is nearly full", func(a *torch.Allocator, rng *rand.Rand) {
		seen := map[int]bool{}
		steps(a, 300, func(int) {
			if k := rng.IntN(60); !seen[k] {
				seen[k] = true
				a.Alloc(3*mib, 5)
			}
		})
	}},
	{"a list that is emptied", func(a *torch.Allocator, rng *rand.Rand) {
		var list []int
		steps(a, 115+rng.IntN(25), func(i int) {
			list = append(list, a.Alloc(3*mib, 5))
			if i%50 == 49 {
				for _, k := range list {
					a.Free(k)
				}
				list = nil
			}
		})
	}},
	{"a cache of the newest 40", func(a *torch.Allocator, _ *rand.Rand) {
		var list []int
		steps(a, 150, func(int) {
			if list = append(list, a.Alloc(3*mib, 5)); len(list) > 40 {
				a.Free(list[0])
				list = list[1:]
			}
		})
	}},
	{"keys that are copied to grow", func(a *torch.Allocator, _ *rand.Rand) {
		last := a.Alloc(mib, 5)
		steps(a, 150, func(i int) {
			next := a.Alloc(int64(i+2)*mib, 5)
			a.Free(last)
			last = next
		})
	}},
	{"weights being loaded", func(a *torch.Allocator, _ *rand.Rand) {
		for range 126 {
			for place := range 7 {
				a.Alloc(int64(1+place)*mib, place)
			}
			a.Wait(1000)
		}
	}},
	{"activations of one forward pass", func(a *torch.Allocator, _ *rand.Rand) {
		for range 96 {
			forward(a)
		}
	}},
	{"a forward pass that keeps the inputs of 126 layers", func(a *torch.Allocator, _ *rand.Rand) {
		for range 126 {
			a.Forward(1)
			a.Alloc(3*mib, 5)
		}
	}},
	{"a training step, again and again, cut off in the middle", func(a *torch.Allocator, rng *rand.Rand) {
		for step := range 5 {
			var held [][]int
			for layer := range 48 {
				if step == 4 && layer == 40 {
					return
				}
				held = append(held, forward(a))
			}
			for i := range held {
				for _, k := range held[len(held)-1-i] {
					a.Free(k)
				}
				a.Free(a.Alloc(2*mib, 6))
			}
		}
	}},
	{"the first step of an optimizer, at the end", func(a *torch.Allocator, _ *rand.Rand) {
		var held []int
		for range 48 {
			held = append(held, forward(a)...)
		}
		for _, k := range held {
			a.Free(a.Alloc(2*mib, 6))
			a.Free(k)
		}
		for range 300 { // parameters
			a.Free(a.Alloc(mib, 4))
			a.Alloc(mib, 3)
			a.Alloc(mib, 5)
		}
	}},
	{"the first step of an optimizer, alone", func(a *torch.Allocator, rng *rand.Rand) {
		var sizes []int64
		for range 300 {
			sizes = append(sizes, mib*(1+rng.Int64N(5)))
			a.Alloc(sizes[len(sizes)-1], 6)
		}
		a.Forget()
		for _, size := range sizes {
			a.Free(a.Alloc(size, 4))
			a.Alloc(size, 3)
			a.Alloc(size, 5)
		}
	}},
	{"gradients of a backward pass", func(a *torch.Allocator, _ *rand.Rand) {
		for range 300 {
			a.Forward(1)
			a.Alloc(mib, torch.Backward)
		}
	}},
	{"CUDA graphs that are captured", func(a *torch.Allocator, _ *rand.Rand) {
		for i := range 60 {
			a.Forward(12)
			a.Pool(a.Alloc(int64(60-i)*mib, 5))
		}
	}},
	{"weights that are converted", func(a *torch.Allocator, _ *rand.Rand) {
		var old []int
		for range 60 {
			old = append(old, a.Alloc(4*mib, 6))
		}
		steps(a, 60, func(i int) {
			a.Alloc(2*mib, 5)
			a.Free(old[i])
		})
	}},
	{"a number of each step", func(a *torch.Allocator, _ *rand.Rand) {
		steps(a, 200, func(int) { a.Alloc(512, 5) })
	}},
}

// forward runs a layer of a model in training: most of its allocations wait for the backward pass.
func forward(a *torch.Allocator) (held []int) {
	for place := range 6 {
		a.Free(a.Alloc(mib, 7))
		held = append(held, a.Alloc(int64(1+place)*mib, place))
	}
	a.Wait(100)
	return held
}

func TestGrowthThatIsSound(t *testing.T) {
	for _, c := range sound {
		for seed := range uint64(3) {
			a := torch.IdleAllocator(0, 1<<20)
			a.Alloc(1<<30, 7)
			c.run(a, rand.New(rand.NewPCG(seed, 2)))
			list, check := Measure(snapshot(t, a), nil).Leaks()
			if len(list) != 0 || check.State() != finding.LookedAt {
				t.Errorf("%s, seed %d: %d findings, %s", c.name, seed, len(list), check.String())
			}
		}
	}
}

// A ring that holds only the newest entries still shows a leak that began before them; a very small ring is not enough data.
func TestLeakInARing(t *testing.T) {
	for ring, want := range map[int]int{5000: 1, 2000: 0, 50: 0} {
		a := torch.IdleAllocator(0, ring)
		steps(a, 100, func(int) { a.Keep(3*mib, 5) })
		list, check := Measure(snapshot(t, a), nil).Leaks()
		if len(list) != want || (check.State() == finding.LookedAt) != (ring > 50) || want > 0 && !strings.Contains(list[0].Text, "throughout the recording") {
			t.Errorf("ring of %d: %v, %s", ring, list, check.String())
		}
	}
}

// Empty stacks do not identify a place that keeps blocks.
func TestLeakWithoutStacks(t *testing.T) {
	a := torch.IdleAllocator(0, 1<<20)
	steps(a, 60, func(int) { a.Keep(3*mib, 5) })
	set := snapshot(t, a)
	for _, x := range set.Snapshots() {
		for i := range x.Devices[0].Entries {
			x.Devices[0].Entries[i].Where = trace.Sym(0)
		}
	}
	d := set.Snapshots()[0].Devices[0]
	if r := d.Replay(); grows(d, &r, nil) != nil {
		t.Error("a place is known")
	}
}

// A process that takes memory from the device while it works waits for the driver. The report
// says so if that may be a tenth of the time or more.
func TestTakingMemory(t *testing.T) {
	for took, want := range map[int64]bool{99_000_000: false, 200_000_000: true} {
		entries := []recorder.Entry{{Action: recorder.Alloc, Address: 1, Size: 512, Time: 1_000_000_000},
			{Action: recorder.SegmentAlloc, Address: 2, Size: 1 << 21, Time: trace.Time(1_000_000_000 + took)}, {Action: recorder.Alloc, Address: 2, Size: 512, Time: 2_000_000_000}}
		set := recorder.NewMemory(trace.NewSymbols())
		set.Add(&recorder.Snapshot{File: "a.pickle", Devices: []*recorder.Device{{Entries: entries}}})
		text := Measure(set, nil).Words()
		if got := strings.Contains(text, ", 1 call for more of the device took at most 200 ms of the 1 s recorded"); got != want {
			t.Errorf("%s, after %d ns", text, took)
		}
	}
}
