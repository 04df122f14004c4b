package torch

import (
	"fmt"
	"math/rand/v2"
	"slices"
)

// An Allocator is a simulated allocator, with the truth about it.
type Allocator struct {
	device               int64
	now                  int64 // µs since allocatorStart
	next                 uint64
	blocks               []memoryBlock
	reserved, allocated  int64
	entries              []dict
	frames               [][]any // of places
	ring                 int
	use                  []memoryUse // after each entry in the ring
	beforeRing           memoryUse
	FirstKept, BytesKept int64 // for blocks that Keep allocated: time of the first one in µs, and total size
}

type memoryUse struct{ allocated, reserved int64 }

type memoryBlock struct {
	address uint64
	asked   int64
	takes   int64
	place   int
	free    bool
	pool    bool
}

// AllocatorTruth summarizes the time since the first entry in the ring, in bytes.
type AllocatorTruth struct {
	Start, Peak, End, Reserved, MostReserved int64
	Entries, Failed                          int
	PeakTime                                 int64 // us
}

const allocatorStart = 1_770_000_000_000_000 // us

// places is the number of allocating lines of a program; Backward is the place of a backward pass, whose threads only have
// C++ on their stacks.
const (
	places   = 8
	Backward = places
)

// IdleAllocator returns an allocator without memory. The ring holds the newest entries.
func IdleAllocator(device int64, ring int) *Allocator {
	r := &Allocator{device: device, next: 0x7f0000000000, ring: ring}
	for i := range places {
		r.frames = append(r.frames, []any{
			dict{{"name", "torch::unwind::unwind()"}, {"filename", "??"}, {"line", int64(0)}},
			dict{{"name", "_call_impl"}, {"filename", "/usr/lib/python3.12/site-packages/torch/nn/modules/module.py"}, {"line", int64(1750)}},
			dict{{"name", "forward"}, {"filename", fmt.Sprintf("/sgl/srt/layers/layer%d.py", i)}, {"line", int64(40 + i)}},
		})
	}
	var native []any
	for _, name := range []string{"torch::unwind::unwind()", "c10::cuda::CUDACachingAllocator::Native::NativeCachingAllocator::allocate(unsigned long)", "at::_ops::mm::call(at::Tensor const&, at::Tensor const&)",
		"torch::autograd::generated::MmBackward0::apply(std::vector<at::Tensor>&&)", "execute_native_thread_routine"} {
		native = append(native, dict{{"name", name}, {"filename", "??"}, {"line", int64(0)}})
	}
	r.frames = append(r.frames, native)
	return r
}

// NewAllocator simulates some allocations and frees on a device.
func NewAllocator(seed uint64, device int64, steps, ring int) *Allocator {
	r := IdleAllocator(device, ring)
	rng := rand.New(rand.NewPCG(seed, 38))
	for range steps {
		switch live := r.live(); {
		case rng.IntN(50) == 0:
			r.record("oom", dict{{"device_free", int64(1 << 20)}}, 1<<34, rng.IntN(places))
		case len(live) > 0 && rng.IntN(100) < 45:
			r.Free(live[rng.IntN(len(live))])
		default:
			i := r.Alloc(1+rng.Int64N(8<<20), rng.IntN(places))
			r.blocks[i].pool = i%2 != 0
		}
		r.Wait(10)
	}
	return r
}

// Wait advances the time.
func (r *Allocator) Wait(us int64) { r.now += us }

// Alloc allocates a block in a place, 0 to 7 or Backward: a free block of the same size, or a new segment. It returns the
// number of the block.
func (r *Allocator) Alloc(size int64, place int) int {
	takes := rounded(size)
	i := slices.IndexFunc(r.blocks, func(b memoryBlock) bool { return b.free && b.takes == takes })
	if i < 0 {
		i = len(r.blocks)
		r.blocks = append(r.blocks, memoryBlock{address: r.next, takes: takes})
		r.next += uint64(takes)
		r.reserved += takes
		r.record("segment_alloc", dict{{"addr", int64(r.blocks[i].address)}}, takes, place)
	}
	b := &r.blocks[i]
	b.free, b.asked, b.place = false, size, place
	r.allocated += size
	r.record("alloc", dict{{"addr", int64(b.address)}}, size, place)
	return i
}

// Free gives a block back.
func (r *Allocator) Free(i int) {
	b := &r.blocks[i]
	r.record("free_requested", dict{{"addr", int64(b.address)}}, b.asked, b.place)
	b.free = true
	r.allocated -= b.asked
	r.record("free_completed", dict{{"addr", int64(b.address)}}, b.asked, b.place)
}

// Keep allocates a block that is never freed: a leak.
func (r *Allocator) Keep(size int64, place int) {
	if r.BytesKept == 0 {
		r.FirstKept = allocatorStart + r.now
	}
	r.BytesKept += size
	r.Alloc(size, place)
}

// Forget drops all entries: recording begins now.
func (r *Allocator) Forget() {
	r.beforeRing = r.use[len(r.use)-1]
	r.entries, r.use = nil, nil
}

// Pool marks a block as part of a CUDA graph's pool.
func (r *Allocator) Pool(i int) { r.blocks[i].pool = true }

// Forward runs a model: each layer allocates a block in places 0 to 2, and frees it.
func (r *Allocator) Forward(layers int) {
	for range layers {
		for place := range 3 {
			i := r.Alloc(int64(1+place)<<20, place)
			r.Wait(3)
			r.Free(i)
		}
	}
}

// rounded returns the real size of a block.
func rounded(n int64) int64 { return (n + 511) / 512 * 512 }

func (r *Allocator) live() (list []int) {
	for i := range r.blocks {
		if !r.blocks[i].free {
			list = append(list, i)
		}
	}
	return list
}

func get(d dict, key string) any {
	for _, item := range d {
		if item[0] == key {
			return item[1]
		}
	}
	return nil
}

// record adds an entry, and drops the oldest one of a full ring.
func (r *Allocator) record(action string, what dict, size int64, place int) {
	e := append(dict{{"action", action}}, what...)
	r.entries = append(r.entries, append(e, [2]any{"size", size}, [2]any{"stream", int64(0)}, [2]any{"time_us", allocatorStart + r.now}, [2]any{"frames", r.frames[place]}))
	r.use = append(r.use, memoryUse{r.allocated, r.reserved})
	if len(r.entries) > r.ring {
		r.beforeRing = r.use[0]
		r.entries, r.use = r.entries[1:], r.use[1:]
	}
}

// Truth returns the summary.
func (r *Allocator) Truth() AllocatorTruth {
	t := AllocatorTruth{Start: r.beforeRing.allocated, End: r.use[len(r.use)-1].allocated, Reserved: r.reserved, MostReserved: r.reserved, Entries: len(r.entries), PeakTime: get(r.entries[0], "time_us").(int64)}
	t.Peak = t.Start
	for i, u := range r.use {
		if u.allocated > t.Peak {
			t.Peak, t.PeakTime = u.allocated, get(r.entries[i], "time_us").(int64)
		}
		if get(r.entries[i], "action") == "oom" {
			t.Failed++
		}
	}
	return t
}

// An AllocationFailure is the state of the allocator when the device ran out of memory.
type AllocationFailure struct{ Allocated, Reserved int64 }

// Failures returns the failures in the ring.
func (r *Allocator) Failures() (list []AllocationFailure) {
	for i, u := range r.use {
		if get(r.entries[i], "action") == "oom" {
			list = append(list, AllocationFailure{u.allocated, u.reserved})
		}
	}
	return list
}

// MemorySnapshot returns the snapshot file of several devices.
func MemorySnapshot(runs ...*Allocator) []byte {
	segments, traces := []any{}, []any{}
	for _, r := range runs {
		for int64(len(traces)) <= r.device {
			traces = append(traces, []any{})
		}
		entries := []any{}
		for _, e := range r.entries {
			entries = append(entries, e)
		}
		traces[r.device] = entries
		for _, b := range r.blocks {
			pool := int64(0)
			if b.pool {
				pool = 1
			}
			state := "active_allocated"
			if b.free {
				state = "inactive"
			}
			of := dict{{"address", int64(b.address)}, {"size", b.takes}, {"requested_size", b.asked}, {"state", state}, {"frames", r.frames[b.place]}}
			segments = append(segments, dict{{"device", r.device}, {"address", int64(b.address)}, {"total_size", b.takes}, {"stream", int64(0)}, {"segment_type", "large"},
				{"segment_pool_id", pair{pool, int64(0)}}, {"is_expandable", false}, {"blocks", []any{of}}})
		}
	}
	return pickled(4, dict{{"segments", segments}, {"device_traces", traces}, {"allocator_settings", dict{{"PYTORCH_CUDA_ALLOC_CONF", ""}}}})
}
