package nsys

import (
	"cmp"
	"hash/fnv"
	"slices"

	"github.com/sgtrace/sgtrace/golden/simulator"
	"github.com/sgtrace/sgtrace/golden/torch"
)

// host is the recording of one host. Unlike elsewhere, times in it and in its parts are on the clock of the host.
type host struct {
	profile   *torch.Profile
	config    *Config
	at        int // index in Run.Hosts
	from, to  int64
	processes []*process
	samples   []sample
}

// sessionLead is the length of a session before the first step; the communicators are set up in it. A real nsys would begin
// in the middle of a server's life, and miss that, or have it hours before. sessionTrail is the length after the last step.
const (
	sessionLead  = 50 * ms
	sessionTrail = 5 * ms
)

// newHost collects the events on a host.
func newHost(p *torch.Profile, c *Config, at int) *host {
	h := &host{profile: p, config: c, at: at}
	var captures []*torch.Capture
	var passes [][]torch.Pass
	from, to := int64(0), int64(0)
	for _, k := range p.Captures {
		if k.Process().Host != at {
			continue
		}
		laid := k.Passes()
		first, last := k.Window(laid)
		if len(captures) == 0 {
			from, to = first, last
		}
		from, to = min(from, first), max(to, last)
		captures, passes = append(captures, k), append(passes, laid)
	}
	h.from, h.to = h.clock().At(from-sessionLead), h.clock().At(to+sessionTrail)
	for i, k := range captures {
		h.to = max(h.to, k.Warps(passes[i]).Shown(h.clock(), to+sessionTrail))
	}
	for i, k := range captures {
		h.processes = append(h.processes, newProcess(h, k, passes[i]))
	}
	if c.MetricHz > 0 {
		h.sample()
	}
	return h
}

func (h *host) host() *simulator.Host   { return &h.profile.Run.Hosts[h.at] }
func (h *host) clock() *simulator.Clock { return &h.host().Clock }

// named truncates the name of a process or thread as Linux does.
func (h *host) named(name string) string {
	const kept = 15
	if h.config.ShortNames && len(name) > kept {
		return name[:kept]
	}
	return name
}

// interval is a period of time.
type interval struct{ start, end int64 }

func (s interval) when() interval { return s }

// process records the activity of one scheduler.
type process struct {
	host    *host
	capture *torch.Capture
	pid     int
	comm    uint64      // NCCL communicator of its TP group; 0 is none
	warps   torch.Warps // stalls

	calls  []call
	work   []work
	ranges []nvtxRange
	os     []osCall
	scheds []sched
	memory []memory
}

// call is a call into CUDA by the main thread.
type call struct {
	interval
	api         torch.APIKind
	correlation int
	lost        bool // missing in the file
}

// work is a piece of work on the GPU. The whole run of a graph is an OpGraph.
type work struct {
	interval
	op          torch.OpKind
	correlation int
	node        int // in a graph, from 1 on, else 0
	bytes       int
	pageable    bool // host memory is not pinned
	call        int  // index in process.calls
	step        int  // index in process.ranges
}

// device returns the ordinal of the GPU in the process's numbering.
func (p *process) device() int {
	if p.host.config.VisibleDevices {
		return 0
	}
	return p.capture.Device()
}

// newProcess translates the steps of a scheduler. Correlation ids begin at the same number in all processes.
func newProcess(h *host, c *torch.Capture, passes []torch.Pass) *process {
	p := &process{host: h, capture: c, pid: c.Process().PID, warps: c.Warps(passes)}
	if c.Group.Size.TP > 1 {
		p.comm = communicator(c.Group)
	}
	p.begin()
	for i := range passes {
		p.pass(&passes[i])
	}
	p.stalls()
	p.lose(h.config.Orphans)
	if h.config.System {
		p.system(passes)
	}
	return p
}

// communicator returns the id of the communicator of a group.
func communicator(g *torch.Group) uint64 {
	hash := fnv.New64a()
	hash.Write([]byte{byte(g.Instance), byte(g.DP), byte(g.PP), 'n', 'c', 'c', 'l'})
	return hash.Sum64()
}

// shown translates true time.
func (p *process) shown(at int64) int64 { return p.warps.Shown(p.host.clock(), at) }

// interval translates true time.
func (p *process) interval(start, end int64) interval {
	return interval{p.shown(start), p.shown(end)}
}

// pass translates a step.
func (p *process) pass(s *torch.Pass) {
	step := p.annotate(s)
	calls := make([]int, len(s.Calls))
	for i := range s.Calls {
		k := &s.Calls[i]
		correlation := k.Correlation - torch.CorrelationShift*p.capture.TP
		if k.Seq != 0 { // NCCL's stream waits for the kernels before
			p.call(torch.APIEventRecord, correlation-2, k.At(torch.PartRecord), k.At(torch.PartWait)-1)
			p.call(torch.APIStreamWait, correlation-1, k.At(torch.PartWait), k.At(torch.PartLaunch)-1)
		}
		calls[i] = len(p.calls)
		p.call(torch.OpTable[k.Op].API, correlation, k.At(torch.PartLaunch), k.At(torch.PartLaunched))
	}
	for i := range s.Work {
		k := &s.Work[i]
		if k.Node != 0 && p.host.config.GraphTrace == GraphsWhole {
			if k.Node > 1 {
				run := &p.work[len(p.work)-1]
				run.end = max(run.end, p.shown(k.End))
				continue
			}
			k = &torch.Work{Op: torch.OpGraph, Call: k.Call, Start: k.Start, End: k.End}
		}
		w := work{interval: p.interval(k.Start, k.End), op: k.Op, node: int(k.Node), call: calls[k.Call], step: step}
		w.correlation = p.calls[w.call].correlation
		if torch.OpTable[k.Op].GPU == torch.CatMemcpy {
			w.bytes = s.Step.Tokens * torch.TokenBytes
		}
		p.work = append(p.work, w)
	}
}

func (p *process) call(api torch.APIKind, correlation int, start, end int64) {
	p.calls = append(p.calls, call{interval: p.interval(start, end), api: api, correlation: correlation})
}

// lose loses the first launches of kernels.
func (p *process) lose(n int) {
	for i := range p.work {
		if n == 0 {
			return
		}
		if torch.OpTable[p.work[i].op].GPU == torch.CatKernel && p.work[i].node <= 1 {
			p.calls[p.work[i].call].lost = true
			n--
		}
	}
}

// timed is anything that has a time.
type timed interface{ when() interval }

// owned is an event of a process.
type owned[T any] struct {
	process *process
	event   *T
}

// inOrder returns the events of all processes in a piece of the recording, in the order of their start; enclosing ones come
// before those inside.
func inOrder[T timed](s *piece, events func(*process) []T, has func(*process, *T) bool) []owned[T] {
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
