package nsys

import (
	"cmp"
	"slices"

	"github.com/sgtrace/sgtrace/golden/simulator"
	"github.com/sgtrace/sgtrace/golden/torch"
)

// Threads of a scheduler, counted from its pid, which is the main thread.
const (
	ioThread       = 21 // of ZeroMQ
	watchdogThread = 30 // of NCCL in PyTorch
)

// osCall is a call of the operating system.
type osCall struct {
	interval
	name   string
	thread int // tid minus pid
}

// sched is a moment at which the main thread got a core, or lost it.
type sched struct {
	interval // of length 0
	in       bool
	cpu      int
}

// memory is an allocation or a release of GPU memory.
type memory struct {
	interval // of length 0
	address  int64
	bytes    int64
	free     bool
}

// coresPerRank is the number of cores on which the scheduler runs.
const coresPerRank = 12

// system adds other activities: a thread that waits for requests and a watchdog thread, the main thread asleep while the
// GPU works, and the memory for the activations of prefill steps.
func (p *process) system(passes []torch.Pass) {
	for at := p.host.from + ms; at+100*ms < p.host.to; at += 100 * ms {
		p.os = append(p.os, osCall{interval{at, at + 99*ms}, "pthread_cond_timedwait", watchdogThread})
	}
	for i := range passes {
		s := &passes[i]
		if i > 0 {
			wait := p.interval(passes[i-1].Rank.Scheduled+5*us, s.Rank.Formed)
			if wait.end-wait.start > us {
				p.os = append(p.os, osCall{wait, "epoll_wait", ioThread})
			}
		}
		for j := range s.Calls {
			if k := &s.Calls[j]; k.Op == torch.OpSync && k.End-k.Start > 30*us {
				p.sched(k.Start+3*us, false)
				p.sched(k.End-2*us, true)
			}
		}
		if s.Step.Mode == simulator.ModePrefill && s.End != 0 {
			bytes, address := int64(s.Step.Tokens)*torch.HiddenSize*8, 0x7f0000000000+int64(s.At)<<21
			p.memory = append(p.memory,
				memory{p.interval(s.Begin+us, s.Begin+us), address, bytes, false},
				memory{p.interval(s.End-us, s.End-us), address, bytes, true})
		}
	}
}

func (p *process) sched(at int64, in bool) {
	cpu := p.capture.Device()*coresPerRank + len(p.scheds)/2%coresPerRank
	p.scheds = append(p.scheds, sched{p.interval(at, at), in, cpu})
}

// metricTable are the sampled metrics, with their share of the time in which something runs.
var metricTable = []struct {
	name    string
	percent int64
}{
	{"GR Active [Throughput %]", 100},
	{"SMs Active [Throughput %]", 92},
	{"DRAM Read Bandwidth [Throughput %]", 61},
}

// sample is the value of a metric.
type sample struct {
	interval
	gpu, metric int
	value       int64
}

// sample samples the metrics of all GPUs: the share of the time since the previous sample in which something ran.
func (h *host) sample() {
	every := 1_000_000_000 / int64(h.config.MetricHz)
	for _, p := range h.processes {
		busy := make([]int64, (h.to-h.from)/every+1)
		last := h.from
		ran := slices.Clone(p.work)
		slices.SortStableFunc(ran, func(a, b work) int { return cmp.Compare(a.start, b.start) })
		for i := range ran {
			// Concurrent work on another stream counts once.
			for at := max(ran[i].start, last); at < ran[i].end; {
				n := (at - h.from) / every
				next := min(h.from+(n+1)*every, ran[i].end)
				busy[n] += next - at
				at = next
			}
			last = max(last, ran[i].end)
		}
		for i := range busy[:len(busy)-1] {
			at := h.from + int64(i+1)*every
			for m := range metricTable {
				value := busy[i] * metricTable[m].percent / every
				h.samples = append(h.samples, sample{interval{at, at}, p.capture.Device(), m, value})
			}
		}
	}
	slices.SortStableFunc(h.samples, func(a, b sample) int { return cmp.Compare(a.start, b.start) })
}

// system writes calls of the operating system, its scheduler, and GPU memory.
func (w *writer) system() {
	calls := w.db.Table("OSRT_API")
	for _, o := range inOrder(w.piece, func(p *process) []osCall { return p.os }, holds[osCall](w.piece)) {
		w.times(calls, o.event.interval)
		calls.Insert("eventClass", classOS, "globalTid", GlobalTID(o.process.pid, o.process.pid+o.event.thread), "nameId", ID(o.event.name),
			"nestingLevel", 0)
	}
	scheds := w.db.Table("SCHED_EVENTS")
	for _, o := range inOrder(w.piece, func(p *process) []sched { return p.scheds }, holds[sched](w.piece)) {
		scheds.Insert("start", w.time(o.event.start), "cpu", int64(o.event.cpu), "isSchedIn", bit(o.event.in),
			"globalTid", GlobalTID(o.process.pid, o.process.pid))
	}
	events := w.db.Table("CUDA_GPU_MEMORY_USAGE_EVENTS")
	for _, o := range inOrder(w.piece, func(p *process) []memory { return p.memory }, holds[memory](w.piece)) {
		events.Insert("start", w.time(o.event.start), "globalPid", GlobalPID(o.process.pid), "deviceId", int64(o.process.device()),
			"contextId", cudaContext, "address", o.event.address, "bytes", o.event.bytes, "memKind", deviceMemory,
			"memoryOperationType", bit(o.event.free))
	}
}

// bit returns a boolean as in exports.
func bit(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// metrics writes the samples of the GPUs, and the meanings of their numbers.
func (w *writer) metrics() {
	names, samples := w.db.Table("TARGET_INFO_GPU_METRICS"), w.db.Table("GPU_METRICS")
	if len(w.host.samples) == 0 {
		return
	}
	for _, p := range w.host.processes {
		gpu := p.capture.Device()
		for m := range metricTable {
			names.Insert("typeId", metricSource(gpu), "sourceId", metricSource(0), "typeName", gpuLabel("GPU Metrics", gpu), "metricId", int64(m),
				"metricName", metricTable[m].name)
		}
	}
	for i := range w.host.samples {
		x := &w.host.samples[i]
		if !w.has(x.interval) {
			continue
		}
		samples.Insert("rawTimestamp", w.time(x.start), "timestamp", w.time(x.start), "typeId", metricSource(x.gpu),
			"metricId", int64(x.metric), "value", x.value)
	}
}

// metricSource returns the id of the metrics of a GPU; its low byte is that of the GPU.
func metricSource(gpu int) int64 { return GlobalVID() | 10<<16 | int64(gpu) }

// stalls adds the host's activity in its stalls, as far as exports have it: Python's activity is not in them.
func (p *process) stalls() {
	for i, w := range p.warps {
		s := stall{p, w.At, stallCorrelations + i}
		switch p.host.config.Torch.Stall.Cause {
		case torch.StallItem:
			s.copy(torch.OpCopyOut, 3, 5, 10, 515)
			s.call(torch.APIStreamSync, 6, 525)
		case torch.StallPageable:
			s.copy(torch.OpCopyIn, 3, 992, 960, 990)
		case torch.StallMalloc:
			s.call(torch.APIMalloc, 2, 993)
		case torch.StallModule:
			s.call(torch.APIModuleLoad, 2, 993)
		case torch.StallLock: // the interpreter lock is a condition; each wait takes 5 ms at most
			s.system("pthread_cond_timedwait", 2, 995)
		case torch.StallTokenizer:
			s.system("pthread_cond_wait", 2, 995)
		}
	}
}

// stallCorrelations is the first correlation of the calls in stalls.
const stallCorrelations = 900_000

// A stall is the stall that is being added. Times are permilles of it.
type stall struct {
	*process
	at          int64
	correlation int
}

func (s *stall) call(api torch.APIKind, from, to int64) {
	s.process.call(api, s.correlation, s.at+from, s.at+to)
}

// copy adds a copy from or to memory that is not pinned, and its call.
func (s *stall) copy(op torch.OpKind, callFrom, callTo, from, to int64) {
	s.work = append(s.work, work{interval: s.interval(s.at+from, s.at+to), op: op, correlation: s.correlation, bytes: torch.TokenBytes,
		pageable: true, call: len(s.calls), step: -1})
	s.call(torch.APIMemcpy, callFrom, callTo)
}

// system adds a call of the main thread into the operating system.
func (s *stall) system(name string, from, to int64) {
	s.os = append(s.os, osCall{interval: s.interval(s.at+from, s.at+to), name: name})
}
