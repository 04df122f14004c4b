package golden

import (
	"cmp"
	"slices"
	"strings"
)

// truth returns what is in the file of a piece.
func (s *nsysPiece) truth(name string) NsysFile {
	h := s.host
	c := h.config
	f := NsysFile{
		Name: name, Host: h.host().name, Schema: int(c.Schema), Piece: s.n, Pieces: c.Pieces, GraphTrace: string(c.GraphTrace),
		StartNs: s.from, DurationNs: s.to - s.from, ClockOffsetNs: s.from - h.clock().undo(s.from), ShiftNs: int64(c.Shift),
		Metrics: s.metrics(),
	}
	if s.clocked() {
		f.SessionStartNs = s.from
	}
	for _, p := range h.processes {
		f.Processes = append(f.Processes, s.process(p))
	}
	for _, m := range c.Messages {
		if m.Severity >= 2 && c.Schema.Has("DIAGNOSTIC_EVENT") {
			f.Messages = append(f.Messages, m)
		}
	}
	return f
}

// process counts the events of a process.
func (s *nsysPiece) process(p *nsysProcess) NsysProcess {
	t := NsysProcess{PID: p.pid, Rank: p.capture.process().rank.String(), Device: p.device(), GPU: p.capture.device()}
	calls, ranges := sums{}, sums{}
	for i := range p.calls {
		if k := &p.calls[i]; s.hasCall(p, k) {
			t.Calls++
			calls.add(nsysCalls[k.api], k.end-k.start)
			if k.syncs() {
				t.Syncs++
			}
		}
	}
	for i := range p.ranges {
		r := &p.ranges[i]
		switch {
		case !s.hasRange(p, r):
			continue
		case s.isOpen(r):
			t.Open++
		default:
			ranges.add(r.text, r.end-r.start)
		}
		t.Ranges++
		if s.tells(r) {
			t.MessageBytes += r.payload.bytes
		}
		if s.tells(r) && r.payload.layout == ncclInitID {
			t.Comm = &NsysComm{r.payload.comm, r.payload.rank, r.payload.ranks}
		}
	}
	t.OSCalls, t.Scheds, t.MemoryEvents = count(s, p.os), count(s, p.scheds), count(s, p.memory)
	t.CallNs, t.RangeNs = calls.list(), ranges.list()
	s.work(p, &t)
	return t
}

// work counts what a process ran on its GPU.
func (s *nsysPiece) work(p *nsysProcess, t *NsysProcess) {
	kernels := sums{}
	for i := range p.work {
		k := &p.work[i]
		if !s.hasWork(p, k) {
			continue
		}
		switch row := &opTable[k.op]; {
		case k.op == opGraph:
			t.GraphRuns++
			t.GraphRunNs += k.end - k.start
		case row.gpu == catMemcpy:
			t.Memcpys++
			t.CopiedBytes += int64(k.bytes)
		default:
			t.Kernels++
			kernels.add(row.kernel, k.end-k.start)
			if k.node != 0 {
				t.NodeKernels++
			}
			if !s.hasLaunch(p, k) {
				t.Orphans++
			}
		}
	}
	t.KernelNs, t.Steps = kernels.list(), s.steps(p)
}

// steps projects the ranges of steps to the GPU.
func (s *nsysPiece) steps(p *nsysProcess) []NsysStep {
	kernels, all := map[int]*projection{}, map[int]*projection{}
	for i := range p.work {
		k := &p.work[i]
		if k.step < 0 || !s.hasLaunch(p, k) || !s.hasRange(p, &p.ranges[k.step]) {
			continue
		}
		project(all, k)
		if k.op != opGraph && opTable[k.op].gpu == catKernel {
			project(kernels, k)
		}
	}
	byName := map[string]*NsysStep{}
	for i := range p.ranges {
		r := &p.ranges[i]
		if !r.step || !s.hasRange(p, r) {
			continue
		}
		t := byName[r.text]
		if t == nil {
			t = &NsysStep{Name: r.text}
			byName[r.text] = t
		}
		t.N++
		if k := kernels[i]; k != nil {
			t.Kernels += k.n
			t.SpanNs += k.end - k.start
		}
		if k := all[i]; k != nil {
			t.GPUSpanNs += k.end - k.start
		}
	}
	list := []NsysStep{}
	for _, t := range byName {
		list = append(list, *t)
	}
	slices.SortFunc(list, func(a, b NsysStep) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// projection is what a range launched on the GPU.
type projection struct {
	interval
	n int
}

func project(steps map[int]*projection, k *nsysWork) {
	p := steps[k.step]
	if p == nil {
		p = &projection{interval: k.interval}
		steps[k.step] = p
	}
	p.start, p.end = min(p.start, k.start), max(p.end, k.end)
	p.n++
}

// metrics sums the samples.
func (s *nsysPiece) metrics() []NsysMetric {
	type key struct{ gpu, metric int }
	all := map[key]*NsysMetric{}
	for i := range s.host.samples {
		x := &s.host.samples[i]
		if !s.has(x.interval) {
			continue
		}
		m := all[key{x.gpu, x.metric}]
		if m == nil {
			m = &NsysMetric{GPU: x.gpu, Name: nsysMetrics[x.metric].name}
			all[key{x.gpu, x.metric}] = m
		}
		m.N++
		m.Sum += x.value
	}
	var list []NsysMetric
	for _, m := range all {
		list = append(list, *m)
	}
	slices.SortFunc(list, func(a, b NsysMetric) int {
		return cmp.Or(cmp.Compare(a.GPU, b.GPU), strings.Compare(a.Name, b.Name))
	})
	return list
}

// sums are durations by name.
type sums map[string]*NsysSum

func (s sums) add(name string, took int64) {
	if s[name] == nil {
		s[name] = &NsysSum{Name: name}
	}
	s[name].N++
	s[name].SumNs += took
}

// list returns the sums in the order of names.
func (s sums) list() []NsysSum {
	list := []NsysSum{}
	for _, x := range s {
		list = append(list, *x)
	}
	slices.SortFunc(list, func(a, b NsysSum) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// count returns how many of some events lie in the session.
func count[T timed](s *nsysPiece, events []T) int {
	n := 0
	for i := range events {
		if s.has(events[i].when()) {
			n++
		}
	}
	return n
}
