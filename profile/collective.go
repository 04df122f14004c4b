package profile

import (
	"cmp"
	"slices"

	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/trace"
)

// A Collective is a communication kernel, the call that requested one, or a thread's part in a collective of
// hosts, such as gloo's. The latter two are not OnGPU, and their names distinguish them
// ([kernelname.WaitsOnHost]).
type Collective struct {
	Event int32 // index in Events, or NoEvent
	Row   int32
	Time  trace.Time
	Dur   int64
	Name  trace.Sym // of the event
	OnGPU bool

	// From the producer; missing inside CUDA graphs, and for kernels that are known as communication only by name
	// (custom all-reduce).
	CommsID   uint64    // 0 is unknown
	Seq       int64     // -1 is unknown
	Op        trace.Sym // "allreduce"; 0 is unknown
	Group     trace.Sym // process group name
	Ranks     trace.Sym // process group ranks, as text
	Dtype     trace.Sym
	In, Out   int64 // elements; -1 is unknown
	GroupSize int32 // -1 is unknown
	// Splits are the numbers of rows of a tensor that an all-to-all sends to each rank of the group, as text: "[12,
	// 0, 3]". 0 is unknown, "[]" means equal parts.
	Splits trace.Sym
	// Tasks is what the producer recorded of the collective's tasks.
	Tasks CollectiveTasks

	// Correlation joins a kernel to the call that launched it; 0 is unknown. Step is the kind of the step that
	// contains this call, StepOther if no step does.
	Correlation int64
	Step        StepKind
	// Held means that the thread that requested a collective of hosts waited until it ended.
	Held bool
}

// CollectiveTasks are the tasks that a collective consists of on a device, as far as they are recorded. Ranks are numbers in
// its group, plus one: 0 is unknown.
type CollectiveTasks struct {
	Member    int32 // its own rank
	Awaited   int32 // the rank that it waited for longest
	AwaitedNs int64
	AtLeast   int32 // ranks in its group: it exchanged data with the last of them
}

// CommunicatorPrefix is the prefix of the names of groups that are only known by an id, which is unique among
// all servers: NCCL's communicators, in exports of Nsight Systems.
const CommunicatorPrefix = "NCCL 0x"

// A CollectiveAnnotation is an annotation of a thread that names the collective requested by the calls in it;
// see [kernelname.CollectiveOfAnnotation].
type CollectiveAnnotation struct {
	Row  int32
	Time trace.Time
	Dur  int64
	Op   trace.Sym
}

// PlaceCollectives completes the collectives on devices with the context of their launches: the kind of the
// step around the launch, and the operation from an annotation around it, if the kernel itself does not tell.
// launches are all calls with a correlation.
func (p *Profile) PlaceCollectives(launches []Launch, asked []CollectiveAnnotation) {
	if p.Collectives.Len() == 0 || len(p.Steps)+len(asked) == 0 {
		return
	}
	threads := p.threads()
	var steps, askings places
	for i := range p.Steps {
		if s := &p.Steps[i]; !s.OnGPU && s.Kind != StepOther {
			steps = append(steps, newPlace(threads[s.Row], s.Time, s.Dur, int32(i)))
		}
	}
	for i := range asked {
		x := &asked[i]
		askings = append(askings, newPlace(threads[x.Row], x.Time, x.Dur, int32(i)))
	}
	steps.settle()
	askings.settle()
	joins := map[string]*Join{} // by part
	for i := range p.Collectives.Len() {
		c := p.Collectives.At(i)
		if !c.OnGPU || c.Correlation == 0 {
			continue
		}
		part := p.Rows[c.Row].Part
		join := order.Memo(joins, part, func() *Join {
			return NewJoin(len(launches), func(i int) int64 {
				if p.Rows[launches[i].Row].Part != part {
					return 0
				}
				return launches[i].Correlation
			})
		})
		launch := join.Of(c.Correlation)
		if launch < 0 {
			continue
		}
		thread, time := threads[launches[launch].Row], launches[launch].Time
		if k := steps.at(thread, time); k >= 0 {
			c.Step = p.Steps[k].Kind
		}
		if k := askings.at(thread, time); k >= 0 && c.Op == 0 {
			c.Op = asked[k].Op
		}
		p.Collectives.Set(i, &c)
	}
}

// threads returns, by row, the first row of the same thread: a thread may have several rows, for instance for
// calls of libraries.
func (p *Profile) threads() []int32 {
	type thread struct {
		part, pidText, tidText string
		pid, tid               int64
	}
	first := map[thread]int32{}
	of := make([]int32, len(p.Rows))
	for i := range p.Rows {
		r := &p.Rows[i]
		key := thread{part: r.Part, pid: r.PID, tid: r.TID}
		if r.PID == 0 {
			key.pidText = r.PIDText
		}
		if r.TID == 0 {
			key.tidText = r.TIDText
		}
		if _, ok := first[key]; !ok {
			first[key] = int32(i)
		}
		of[i] = first[key]
	}
	return of
}

// A place is the time of something on a thread, with a link to the innermost place around it.
type place struct {
	thread, of int32
	from, to   trace.Time
	around     int32 // index of that place; -1 is none
}

func newPlace(thread int32, from trace.Time, dur int64, of int32) place {
	return place{thread: thread, of: of, from: from, to: from + trace.Time(dur), around: -1}
}

// places are sorted by thread and start after settle.
type places []place

func (p places) settle() {
	slices.SortStableFunc(p, func(a, b place) int {
		return cmp.Or(cmp.Compare(a.thread, b.thread), cmp.Compare(a.from, b.from), cmp.Compare(b.to, a.to))
	})
	for i := 1; i < len(p); i++ {
		around := int32(i - 1)
		for around >= 0 && (p[around].thread != p[i].thread || p[around].to <= p[i].from) {
			around = p[around].around
		}
		p[i].around = around
	}
}

// at returns the of value of the innermost place around an instant, -1 if there is none.
func (p places) at(thread int32, at trace.Time) int32 {
	n, _ := slices.BinarySearchFunc(p, thread, func(x place, thread int32) int {
		return cmp.Or(cmp.Compare(x.thread, thread), cmp.Compare(x.from, at+1))
	})
	for i := int32(n) - 1; i >= 0 && p[i].thread == thread; i = p[i].around {
		if at < p[i].to {
			return p[i].of
		}
	}
	return -1
}
