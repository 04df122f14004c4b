package nsys

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/golden/torch"
)

// truth returns the content of the file of a piece.
func (s *piece) truth(name string) FileTruth {
	h := s.host
	c := h.config
	f := FileTruth{
		Name: name, Host: h.host().Name, Schema: int(c.Schema), Piece: s.n, Pieces: c.Pieces, GraphTrace: string(c.GraphTrace),
		StartNs: s.from, DurationNs: s.to - s.from, ClockOffsetNs: s.from - h.clock().Undo(s.from), ShiftNs: int64(c.Shift),
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
func (s *piece) process(p *process) ProcessTruth {
	t := ProcessTruth{PID: p.pid, Rank: p.capture.Process().Rank.String(), Device: p.device(), GPU: p.capture.Device()}
	calls, ranges := sums{}, sums{}
	for i := range p.calls {
		if k := &p.calls[i]; s.hasCall(p, k) {
			t.Calls++
			calls.add(callNames[k.api], k.end-k.start)
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
			t.Comm = &CommTruth{r.payload.comm, r.payload.rank, r.payload.ranks}
		}
	}
	t.OSCalls, t.Scheds, t.MemoryEvents = count(s, p.os), count(s, p.scheds), count(s, p.memory)
	t.CallNs, t.RangeNs = byNames(calls), byNames(ranges)
	s.work(p, &t)
	return t
}

// work counts the work of a process on its GPU.
func (s *piece) work(p *process, t *ProcessTruth) {
	kernels := sums{}
	for i := range p.work {
		k := &p.work[i]
		if !s.hasWork(p, k) {
			continue
		}
		switch row := &torch.OpTable[k.op]; {
		case k.op == torch.OpGraph:
			t.GraphRuns++
			t.GraphRunNs += k.end - k.start
		case row.GPU == torch.CatMemcpy:
			t.Memcpys++
			t.CopiedBytes += int64(k.bytes)
		default:
			t.Kernels++
			kernels.add(row.Kernel, k.end-k.start)
			if k.node != 0 {
				t.NodeKernels++
			}
			if !s.hasLaunch(p, k) {
				t.Orphans++
			}
		}
	}
	t.KernelNs, t.Steps = byNames(kernels), s.steps(p)
}

// steps projects the ranges of steps to the GPU.
func (s *piece) steps(p *process) []StepTruth {
	kernels, all := map[int]*projection{}, map[int]*projection{}
	for i := range p.work {
		k := &p.work[i]
		if k.step < 0 || !s.hasLaunch(p, k) || !s.hasRange(p, &p.ranges[k.step]) {
			continue
		}
		project(all, k)
		if k.op != torch.OpGraph && torch.OpTable[k.op].GPU == torch.CatKernel {
			project(kernels, k)
		}
	}
	byName := map[string]*StepTruth{}
	for i := range p.ranges {
		r := &p.ranges[i]
		if !r.step || !s.hasRange(p, r) {
			continue
		}
		t := byName[r.text]
		if t == nil {
			t = &StepTruth{Name: r.text}
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
	return byNames(byName)
}

// byNames returns the values in the order of their names; never nil.
func byNames[T any](byName map[string]*T) []T {
	list := []T{}
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		list = append(list, *byName[name])
	}
	return list
}

// projection is the work that a range launched on the GPU.
type projection struct {
	interval
	n int
}

func project(steps map[int]*projection, k *work) {
	p := steps[k.step]
	if p == nil {
		p = &projection{interval: k.interval}
		steps[k.step] = p
	}
	p.start, p.end = min(p.start, k.start), max(p.end, k.end)
	p.n++
}

// metrics sums the samples.
func (s *piece) metrics() []MetricTruth {
	type key struct{ gpu, metric int }
	all := map[key]*MetricTruth{}
	for i := range s.host.samples {
		x := &s.host.samples[i]
		if !s.has(x.interval) {
			continue
		}
		m := all[key{x.gpu, x.metric}]
		if m == nil {
			m = &MetricTruth{GPU: x.gpu, Name: metricTable[x.metric].name}
			all[key{x.gpu, x.metric}] = m
		}
		m.N++
		m.Sum += x.value
	}
	var list []MetricTruth
	for _, m := range all {
		list = append(list, *m)
	}
	slices.SortFunc(list, func(a, b MetricTruth) int {
		return cmp.Or(cmp.Compare(a.GPU, b.GPU), strings.Compare(a.Name, b.Name))
	})
	return list
}

// sums are durations by name.
type sums map[string]*SumTruth

func (s sums) add(name string, took int64) {
	if s[name] == nil {
		s[name] = &SumTruth{Name: name}
	}
	s[name].N++
	s[name].SumNs += took
}

// count returns the number of events in the session.
func count[T timed](s *piece, events []T) int {
	n := 0
	for i := range events {
		if s.has(events[i].when()) {
			n++
		}
	}
	return n
}
