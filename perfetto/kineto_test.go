package perfetto

import (
	"fmt"
	"math/rand/v2"

	"github.com/sgtrace/sgtrace/trace"
)

const kinetoRanks = 8

// kineto returns a trace like that of PyTorch's profiler with shapes and stacks for 8 ranks, in
// about n slices: Python functions nested 5 to 50 deep, operators with shapes, launches, and their
// kernels.
func kineto(n int) *trace.Trace {
	b := trace.NewBuilder(trace.NewSymbols(), trace.NewArgs(), &trace.Diags{})
	for rank := range kinetoRanks {
		r := newKinetoRank(b, rank)
		for r.slices < n/kinetoRanks {
			r.step()
		}
	}
	return b.Finish()
}

// kinetoRank draws one rank.
type kinetoRank struct {
	*trace.Builder
	put     *trace.ArgsAppender
	rand    *rand.Rand
	threads [6]trace.TrackID
	streams [6]trace.TrackID
	now     [6]trace.Time // by thread
	free    [6]trace.Time // by stream
	thread  int           // the running thread
	slices  int
	list    trace.ArgList // buffer for the current list
	elems   trace.ArgList // buffer for the current array
}

func newKinetoRank(b *trace.Builder, rank int) *kinetoRank {
	r := &kinetoRank{Builder: b, put: b.Args().Appender(), rand: rand.New(rand.NewPCG(1, uint64(rank)))}
	process := b.Track(trace.Track{Kind: trace.KindProcess, Name: b.Intern(fmt.Sprintf("TP%d", rank))})
	for i := range r.threads {
		r.threads[i] = b.Track(trace.Track{Parent: process, Kind: trace.KindThread, Name: b.Intern(fmt.Sprintf("thread %d", i))})
		r.streams[i] = b.Track(trace.Track{Parent: process, Kind: trace.KindStream, Name: b.Intern(fmt.Sprintf("stream %d", i))})
		r.now[i] = 1_758_600_000_000_000_000 + trace.Time(rank*37)
	}
	return r
}

// pick returns a number below n, preferring small ones.
func (r *kinetoRank) pick(n int) int {
	x := r.rand.Float64()
	return int(x * x * x * float64(n))
}

func (r *kinetoRank) tick() { r.now[r.thread] += trace.Time(100 + r.rand.IntN(900)) }

// step draws one call at the top of a thread's stack.
func (r *kinetoRank) step() {
	r.thread = r.pick(len(r.threads))
	r.python(5 + r.pick(46))
}

// span draws a slice on the thread around everything that body draws.
func (r *kinetoRank) span(name, cat string, args trace.ArgsID, body func()) trace.SliceID {
	from := r.now[r.thread]
	r.slices++
	r.tick()
	body()
	r.tick()
	return r.Slice(trace.Slice{Time: from, Dur: int64(r.now[r.thread] - from), Track: r.threads[r.thread],
		Name: r.Intern(name), Cat: r.Intern(cat), Args: args}, 0)
}

// args stores the arguments in kinetoRank.list.
func (r *kinetoRank) args(list trace.ArgList) trace.ArgsID {
	r.list = list[:0]
	return r.put.Put(list)
}

// ints appends an array.
func (r *kinetoRank) ints(l trace.ArgList, name string, v ...int) trace.ArgList {
	r.elems = r.elems[:0]
	for _, x := range v {
		r.elems = r.elems.Int(0, int64(x))
	}
	return l.Array(r.Intern(name), r.elems)
}

// python draws a function that calls others, depth levels deep.
func (r *kinetoRank) python(depth int) {
	id := int64(r.slices)
	l := r.list.Int(r.Intern("Python parent id"), id-1).Int(r.Intern("Python id"), id).Int(r.Intern("Ev Idx"), 2*id)
	name := r.pick(9000)
	r.span(fmt.Sprintf("torch/nn/modules/module_%d.py(%d): function_%d", name%77, name, name), "python_function", r.args(l), func() {
		for range r.rand.IntN(3) {
			r.operator(2)
		}
		if depth > 0 {
			r.python(depth - 1)
		}
	})
}

// operator draws an operator that launches kernels.
func (r *kinetoRank) operator(depth int) {
	id := int64(r.slices)
	l := r.list.Int(r.Intern("External id"), id).Int(r.Intern("Record function id"), 0)
	rows, columns := int64(1<<r.rand.IntN(6)), int64(128<<r.pick(8))
	var dims, types, inputs trace.ArgList
	for i := range 1 + r.rand.IntN(4) {
		if i%2 == 0 {
			dims = dims.Array(0, trace.ArgList(nil).Int(0, rows).Int(0, columns))
			types, inputs = types.String(0, "c10::BFloat16"), inputs.String(0, "")
		} else {
			dims, types, inputs = dims.Array(0, nil), types.String(0, "Scalar"), inputs.String(0, fmt.Sprint(rows))
		}
	}
	l = l.Array(r.Intern("Concrete Inputs"), inputs).Array(r.Intern("Input type"), types).Array(r.Intern("Input Dims"), dims)
	name := fmt.Sprintf("aten::operator_%d", r.pick(300))
	r.span(name, "cpu_op", r.args(l.Int(r.Intern("Ev Idx"), 2*id)), func() {
		switch {
		case depth > 0 && r.rand.IntN(2) == 0:
			r.operator(depth - 1)
		case r.rand.IntN(3) > 0:
			r.launch(id)
		}
	})
}

// launch draws a call of the runtime, a kernel and the arrow between them.
func (r *kinetoRank) launch(op int64) {
	correlation := int64(600_000 + r.slices)
	l := r.list.Int(r.Intern("External id"), op).Int(r.Intern("cbid"), 211).Int(r.Intern("correlation"), correlation)
	call := r.span("cudaLaunchKernel", "cuda_runtime", r.args(l), func() {})

	stream := r.pick(len(r.streams))
	name := r.pick(800)
	l = r.list.Int(r.Intern("External id"), op).Int(r.Intern("queued"), 0).Int(r.Intern("device"), 0).Int(r.Intern("context"), 1)
	l = l.Int(r.Intern("stream"), int64(7+stream)).Int(r.Intern("correlation"), correlation)
	l = l.Int(r.Intern("registers per thread"), 40).Int(r.Intern("shared memory"), int64(name%9*1024))
	l = l.Float(r.Intern("blocks per SM"), float64(name)/132).Float(r.Intern("warps per SM"), float64(name)/33)
	l = r.ints(r.ints(l, "grid", 1+name%5*132, 1, 1), "block", 128, 1+name%3, 1)
	from := max(r.free[stream], r.now[r.thread])
	dur := 400 + 3*int64(name)
	r.free[stream] = from + trace.Time(dur)
	r.slices++
	kernel := r.Slice(trace.Slice{Time: from, Dur: dur, Track: r.streams[stream],
		Name: r.Intern(fmt.Sprintf("void at::native::vectorized_elementwise_kernel<%d, at::native::bfloat16_copy_kernel>(int, std::array<char*, 2ul>)", name)),
		Cat:  r.Intern("kernel"), Args: r.args(l.Int(r.Intern("est. achieved occupancy %"), int64(name%101)))}, 0)
	r.Flow(trace.Flow{From: call, To: kernel})
}
