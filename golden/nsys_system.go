package golden

import (
	"cmp"
	"slices"
)

// Threads of a scheduler, counted from its pid, which is the main one.
const (
	ioThread       = 21 // of ZeroMQ
	watchdogThread = 30 // of NCCL in PyTorch
)

// nsysOSCall is a call of the operating system.
type nsysOSCall struct {
	interval
	name   string
	thread int // tid minus pid
}

// nsysSched is a moment at which the main thread got a core, or lost it.
type nsysSched struct {
	interval // of no length
	in       bool
	cpu      int
}

// nsysMemory is an allocation of GPU memory, or its end.
type nsysMemory struct {
	interval // of no length
	address  int64
	bytes    int64
	free     bool
}

// coresPerRank is how many cores the scheduler moves about on.
const coresPerRank = 12

// system adds what else is going on: a thread that waits for requests and one that
// looks at its watch, the main thread asleep while the GPU works, and the memory
// for the activations of prefill steps.
func (p *nsysProcess) system(passes []pass) {
	for at := p.host.from + ms; at+100*ms < p.host.to; at += 100 * ms {
		p.os = append(p.os, nsysOSCall{interval{at, at + 99*ms}, "pthread_cond_timedwait", watchdogThread})
	}
	for i := range passes {
		s := &passes[i]
		if i > 0 {
			wait := p.interval(passes[i-1].rank.scheduled+5*us, s.rank.formed)
			if wait.end-wait.start > us {
				p.os = append(p.os, nsysOSCall{wait, "epoll_wait", ioThread})
			}
		}
		for j := range s.calls {
			if k := &s.calls[j]; k.op == opSync && k.end-k.start > 30*us {
				p.sched(k.start+3*us, false)
				p.sched(k.end-2*us, true)
			}
		}
		if s.st.mode == modePrefill && s.end != 0 {
			bytes, address := int64(s.st.tokens)*hiddenSize*8, 0x7f0000000000+int64(s.at)<<21
			p.memory = append(p.memory,
				nsysMemory{p.interval(s.begin+us, s.begin+us), address, bytes, false},
				nsysMemory{p.interval(s.end-us, s.end-us), address, bytes, true})
		}
	}
}

func (p *nsysProcess) sched(at int64, in bool) {
	cpu := p.capture.device()*coresPerRank + len(p.scheds)/2%coresPerRank
	p.scheds = append(p.scheds, nsysSched{p.interval(at, at), in, cpu})
}

// nsysMetrics are the metrics that are sampled, with their part of the time in
// which something runs.
var nsysMetrics = []struct {
	name    string
	percent int64
}{
	{"GR Active [Throughput %]", 100},
	{"SMs Active [Throughput %]", 92},
	{"DRAM Read Bandwidth [Throughput %]", 61},
}

// nsysSample is the value of a metric.
type nsysSample struct {
	interval
	gpu, metric int
	value       int64
}

// sample samples the metrics of all GPUs: how much of the time since the last
// sample something ran.
func (h *nsysHost) sample() {
	every := 1_000_000_000 / int64(h.config.MetricHz)
	for _, p := range h.processes {
		busy := make([]int64, (h.to-h.from)/every+1)
		last := h.from
		work := slices.Clone(p.work)
		slices.SortStableFunc(work, func(a, b nsysWork) int { return cmp.Compare(a.start, b.start) })
		for i := range work {
			// What runs at the same time on another stream counts once.
			for at := max(work[i].start, last); at < work[i].end; {
				n := (at - h.from) / every
				next := min(h.from+(n+1)*every, work[i].end)
				busy[n] += next - at
				at = next
			}
			last = max(last, work[i].end)
		}
		for i := range busy[:len(busy)-1] {
			at := h.from + int64(i+1)*every
			for m := range nsysMetrics {
				value := busy[i] * nsysMetrics[m].percent / every
				h.samples = append(h.samples, nsysSample{interval{at, at}, p.capture.device(), m, value})
			}
		}
	}
	slices.SortStableFunc(h.samples, func(a, b nsysSample) int { return cmp.Compare(a.start, b.start) })
}
