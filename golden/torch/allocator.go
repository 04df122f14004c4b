package torch

import (
	"fmt"
	"math/rand/v2"

	"github.com/sgtrace/sgtrace/golden/internal/ground"
)

// A Allocator is an allocator at work, and what it really had.
type Allocator struct {
	device         int64
	next           uint64
	blocks         []memoryBlock
	reserved       int64
	entries        []ground.Dict
	frames         [][]any // of places
	ring           int
	use            []memoryUse // behind each entry that is in the ring
	beforeRing     memoryUse
	FailedRequests int
}

type memoryUse struct{ allocated, reserved int64 }

type memoryBlock struct {
	address uint64
	asked   int64
	place   int
	free    bool
}

// AllocatorTruth is what happened since the first entry that the ring holds, in bytes.
type AllocatorTruth struct {
	Start, Peak, End, Reserved, MostReserved int64
	Entries, Failed                          int
	PeakTime                                 int64 // us
}

const allocatorStart = 1_770_000_000_000_000 // us

// NewAllocator simulates some allocations and frees on a device. The ring holds the newest entries.
func NewAllocator(seed uint64, device int64, steps, ring int) *Allocator {
	r := &Allocator{device: device, next: 0x7f0000000000, ring: ring}
	rng := rand.New(rand.NewPCG(seed, 38))
	for i := range 8 {
		r.frames = append(r.frames, []any{
			ground.Dict{{"name", "torch::unwind::unwind()"}, {"filename", "??"}, {"line", int64(0)}},
			ground.Dict{{"name", "_call_impl"}, {"filename", "/usr/lib/python3.12/site-packages/torch/nn/modules/module.py"}, {"line", int64(1750)}},
			ground.Dict{{"name", "forward"}, {"filename", fmt.Sprintf("/sgl/srt/layers/layer%d.py", i)}, {"line", int64(40 + i)}},
		})
	}
	for step := range steps {
		switch live := r.live(); {
		case rng.IntN(50) == 0:
			r.record(step, "oom", ground.Dict{{"device_free", int64(1 << 20)}}, 1<<34, rng.IntN(8))
		case len(live) > 0 && rng.IntN(100) < 45:
			b := &r.blocks[live[rng.IntN(len(live))]]
			r.record(step, "free_requested", ground.Dict{{"addr", int64(b.address)}}, b.asked, b.place)
			b.free = true
			r.record(step, "free_completed", ground.Dict{{"addr", int64(b.address)}}, b.asked, b.place)
		default:
			b := memoryBlock{address: r.next, asked: 1 + rng.Int64N(8<<20), place: rng.IntN(8)}
			r.next += uint64(rounded(b.asked))
			r.reserved += rounded(b.asked)
			r.record(step, "segment_alloc", ground.Dict{{"addr", int64(b.address)}}, rounded(b.asked), b.place)
			r.blocks = append(r.blocks, b)
			r.record(step, "alloc", ground.Dict{{"addr", int64(b.address)}}, b.asked, b.place)
		}
	}
	return r
}

// rounded is how much a block takes.
func rounded(n int64) int64 { return (n + 511) / 512 * 512 }

func (r *Allocator) live() (list []int) {
	for i := range r.blocks {
		if !r.blocks[i].free {
			list = append(list, i)
		}
	}
	return list
}

func get(d ground.Dict, key string) any {
	for _, item := range d {
		if item[0] == key {
			return item[1]
		}
	}
	return nil
}

// record adds an entry, and drops the oldest one of a full ring.
func (r *Allocator) record(step int, action string, what ground.Dict, size int64, place int) {
	now := memoryUse{reserved: r.reserved}
	for _, i := range r.live() {
		now.allocated += r.blocks[i].asked
	}
	e := append(ground.Dict{{"action", action}}, what...)
	r.entries = append(r.entries, append(e, [2]any{"size", size}, [2]any{"stream", int64(0)}, [2]any{"time_us", int64(allocatorStart + 10*step)}, [2]any{"frames", r.frames[place]}))
	r.use = append(r.use, now)
	if len(r.entries) > r.ring {
		r.beforeRing = r.use[0]
		r.entries, r.use = r.entries[1:], r.use[1:]
	}
}

// Truth is what happened.
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

// An AllocationFailure is what the allocator had when the device had no memory.
type AllocationFailure struct{ Allocated, Reserved int64 }

// Failures are those that the ring holds.
func (r *Allocator) Failures() (list []AllocationFailure) {
	for i, u := range r.use {
		if get(r.entries[i], "action") == "oom" {
			list = append(list, AllocationFailure{u.allocated, u.reserved})
		}
	}
	return list
}

// MemorySnapshot is the file that runs of several devices leave.
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
		for i, b := range r.blocks {
			state := "active_allocated"
			if b.free {
				state = "inactive"
			}
			of := ground.Dict{{"address", int64(b.address)}, {"size", rounded(b.asked)}, {"requested_size", b.asked}, {"state", state}, {"frames", r.frames[b.place]}}
			segments = append(segments, ground.Dict{{"device", r.device}, {"address", int64(b.address)}, {"total_size", rounded(b.asked)}, {"stream", int64(0)}, {"segment_type", "large"},
				{"segment_pool_id", ground.Pair{int64(i % 2), int64(0)}}, {"is_expandable", false}, {"blocks", []any{of}}})
		}
	}
	return ground.Pickled(4, ground.Dict{{"segments", segments}, {"device_traces", traces}, {"allocator_settings", ground.Dict{{"PYTORCH_CUDA_ALLOC_CONF", ""}}}})
}
