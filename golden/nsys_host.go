package golden

import (
	"cmp"
	"hash/fnv"
	"slices"
)

// nsysHost is the recording of one host. Unlike elsewhere, times in it and in what
// it holds are by the clock of the host.
type nsysHost struct {
	profile   *profile
	config    *NsysConfig
	at        int // in Run.hosts
	from, to  int64
	processes []*nsysProcess
	samples   []nsysSample
}

// nsysLead is how long a session lasts before the first step; the communicators are
// set up in it. nsys would be told to begin in the middle of a server's life, and
// see none of that, or have it hours before. nsysTrail is how long it lasts after.
const (
	nsysLead  = 50 * ms
	nsysTrail = 5 * ms
)

// newNsysHost collects what happened on a host.
func newNsysHost(p *profile, c *NsysConfig, at int) *nsysHost {
	h := &nsysHost{profile: p, config: c, at: at}
	var captures []*capture
	var passes [][]pass
	from, to := int64(0), int64(0)
	for _, k := range p.captures {
		if k.process().host != at {
			continue
		}
		laid := k.passes()
		first, last := k.window(laid)
		if len(captures) == 0 {
			from, to = first, last
		}
		from, to = min(from, first), max(to, last)
		captures, passes = append(captures, k), append(passes, laid)
	}
	h.from, h.to = h.clock().at(from-nsysLead), h.clock().at(to+nsysTrail)
	for i, k := range captures {
		h.processes = append(h.processes, newNsysProcess(h, k, passes[i]))
	}
	if c.MetricHz > 0 {
		h.sample()
	}
	return h
}

func (h *nsysHost) host() *host   { return &h.profile.run.hosts[h.at] }
func (h *nsysHost) clock() *clock { return &h.host().clock }

// named cuts a name of a process or thread to what Linux keeps of it.
func (h *nsysHost) named(name string) string {
	const kept = 15
	if h.config.ShortNames && len(name) > kept {
		return name[:kept]
	}
	return name
}

// interval is a piece of time.
type interval struct{ start, end int64 }

func (s interval) when() interval { return s }

// nsysProcess is what one scheduler did.
type nsysProcess struct {
	host    *nsysHost
	capture *capture
	pid     int
	comm    uint64 // NCCL communicator of its TP group; 0 is none

	calls  []nsysCall
	work   []nsysWork
	ranges []nsysRange
	os     []nsysOSCall
	scheds []nsysSched
	memory []nsysMemory
}

// nsysCall is a call of CUDA, made by the main thread.
type nsysCall struct {
	interval
	api         apiKind
	correlation int
	lost        bool // not in the file
}

// nsysWork is something that ran on the GPU. The whole run of a graph is an opGraph.
type nsysWork struct {
	interval
	op          opKind
	correlation int
	node        int // of a graph, from 1 on, else 0
	bytes       int
	call        int // in nsysProcess.calls
	step        int // in nsysProcess.ranges
}

// device returns the ordinal of the GPU as the process counts.
func (p *nsysProcess) device() int {
	if p.host.config.VisibleDevices {
		return 0
	}
	return p.capture.device()
}

// newNsysProcess translates the steps of a scheduler. Correlation ids begin at the
// same number in all processes.
func newNsysProcess(h *nsysHost, c *capture, passes []pass) *nsysProcess {
	p := &nsysProcess{host: h, capture: c, pid: c.process().pid}
	if c.group.size.TP > 1 {
		p.comm = communicator(c.group)
	}
	p.begin()
	for i := range passes {
		p.pass(&passes[i])
	}
	p.lose(h.config.Orphans)
	if h.config.System {
		p.system(passes)
	}
	return p
}

// communicator returns the id of the communicator of a group.
func communicator(g *torchGroup) uint64 {
	hash := fnv.New64a()
	hash.Write([]byte{byte(g.instance), byte(g.dp), byte(g.pp), 'n', 'c', 'c', 'l'})
	return hash.Sum64()
}

// interval translates true time.
func (p *nsysProcess) interval(start, end int64) interval {
	c := p.host.clock()
	return interval{c.at(start), c.at(end)}
}

// pass translates a step.
func (p *nsysProcess) pass(s *pass) {
	step := p.annotate(s)
	calls := make([]int, len(s.calls))
	for i := range s.calls {
		k := &s.calls[i]
		correlation := k.correlation - correlationShift*p.capture.tp
		if k.seq != 0 { // the stream of NCCL waits for the kernels before
			p.call(apiEventRecord, correlation-2, k.at(partRecord), k.at(partWait)-1)
			p.call(apiStreamWait, correlation-1, k.at(partWait), k.at(partLaunch)-1)
		}
		calls[i] = len(p.calls)
		p.call(opTable[k.op].api, correlation, k.at(partLaunch), k.at(partLaunched))
	}
	for i := range s.work {
		k := &s.work[i]
		if k.node != 0 && p.host.config.GraphTrace == GraphsWhole {
			if k.node > 1 {
				run := &p.work[len(p.work)-1]
				run.end = max(run.end, p.host.clock().at(k.end))
				continue
			}
			k = &work{op: opGraph, call: k.call, start: k.start, end: k.end}
		}
		w := nsysWork{interval: p.interval(k.start, k.end), op: k.op, node: int(k.node), call: calls[k.call], step: step}
		w.correlation = p.calls[w.call].correlation
		if opTable[k.op].gpu == catMemcpy {
			w.bytes = s.st.tokens * tokenBytes
		}
		p.work = append(p.work, w)
	}
}

func (p *nsysProcess) call(api apiKind, correlation int, start, end int64) {
	p.calls = append(p.calls, nsysCall{interval: p.interval(start, end), api: api, correlation: correlation})
}

// lose loses the first launches of kernels.
func (p *nsysProcess) lose(n int) {
	for i := range p.work {
		if n == 0 {
			return
		}
		if opTable[p.work[i].op].gpu == catKernel && p.work[i].node <= 1 {
			p.calls[p.work[i].call].lost = true
			n--
		}
	}
}

// timed is what has a time.
type timed interface{ when() interval }

// owned is an event of a process.
type owned[T any] struct {
	process *nsysProcess
	event   *T
}

// inOrder returns what a piece of the recording holds of the events of all
// processes, in the order of their start; what contains others comes before them.
func inOrder[T timed](s *nsysPiece, events func(*nsysProcess) []T, has func(*nsysProcess, *T) bool) []owned[T] {
	var all []owned[T]
	for _, p := range s.host.processes {
		list := events(p)
		for i := range list {
			if has(p, &list[i]) {
				all = append(all, owned[T]{p, &list[i]})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b owned[T]) int {
		x, y := (*a.event).when(), (*b.event).when()
		return cmp.Or(cmp.Compare(x.start, y.start), cmp.Compare(y.end, x.end))
	})
	return all
}
