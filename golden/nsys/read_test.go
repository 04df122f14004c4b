package nsys

import (
	"cmp"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/golden/simulator"
	"github.com/sgtrace/sgtrace/nsysexport/rows"
	"github.com/sgtrace/sgtrace/trace"
)

// An export is a file read back: a source with its rows.
type export struct {
	*rows.Source
	Comms        []rows.Comm
	Kernels      []rows.Kernel
	Memcpys      []rows.Memcpy
	Syncs        []rows.Sync
	GraphRuns    []rows.GraphRun
	GraphNodes   []rows.GraphNode
	API          []rows.Call
	OS           []rows.Call
	Ranges       []rows.Range
	Scheds       []rows.Sched
	Samples      []rows.Sample
	Metrics      []rows.Metric
	MemoryEvents []rows.MemoryEvent
	Messages     []rows.Message

	truth *FileTruth
	syms  *trace.Symbols
	args  *trace.Args
	diags []trace.Diag
}

// readExport reads a file, which must be undamaged.
func readExport(t *testing.T, dir string, truth *FileTruth) *export {
	t.Helper()
	opt := rows.Options{Syms: trace.NewSymbols(), Args: trace.NewArgs(), Diags: &trace.Diags{}}
	s, err := rows.Open(filepath.Join(dir, truth.Name), opt)
	if err != nil {
		t.Fatal(err)
	}
	all := s.Within(0, 0)
	f := &export{Source: s, truth: truth, syms: opt.Syms, args: opt.Args,
		Kernels: allOf(all.Kernels), Memcpys: allOf(all.Memcpys), Syncs: allOf(s.Syncs), GraphRuns: allOf(all.GraphRuns),
		GraphNodes: allOf(s.GraphNodes),
		API:        allOf(all.API), OS: allOf(all.OS), Ranges: allOf(all.Ranges), Scheds: allOf(s.Scheds),
		MemoryEvents: allOf(s.MemoryEvents), Messages: allOf(s.Messages)}
	s.Samples(func(x *rows.Sample, known []rows.Metric) bool {
		f.Samples, f.Metrics = append(f.Samples, *x), known
		return true
	})
	f.Comms = s.Comms()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	f.diags = opt.Diags.All()
	for _, d := range f.diags {
		if d.Severity >= trace.DataLoss {
			t.Errorf("%s: %s", truth.Name, d.Msg)
		}
	}
	return f
}

// allOf returns all rows of a table.
func allOf[T any](rows func(func(*T) bool)) (all []T) {
	for row := range rows {
		all = append(all, *row)
	}
	return all
}

// record writes the exports of a run and reads them back.
func record(t *testing.T, r *simulator.Run, c Config) []*export {
	t.Helper()
	dir := t.TempDir()
	truth, err := WriteDir(dir, r, c)
	if err != nil {
		t.Fatal(err)
	}
	var all []*export
	for i := range truth.Files {
		all = append(all, readExport(t, filepath.Join(dir, "nsys"), &truth.Files[i]))
	}
	return all
}

// of returns the events of a process.
func of[T any](events []T, pid int, pidOf func(*T) int32) []*T {
	var list []*T
	for i := range events {
		if int(pidOf(&events[i])) == pid {
			list = append(list, &events[i])
		}
	}
	return list
}

// process counts the events of a process in a file. Facts that the file lacks are copied from the
// truth: the rank, the GPU before 2026, the session end before 2022, and the device of an idle
// process.
func (f *export) process(want ProcessTruth) ProcessTruth {
	got := ProcessTruth{PID: want.PID, Rank: want.Rank, GPU: want.GPU, Open: want.Open, Device: want.Device}
	calls := map[uint32]*rows.Call{}
	callNs, rangeNs := sums{}, sums{}
	for _, k := range of(f.API, want.PID, func(k *rows.Call) int32 { return k.PID }) {
		calls[k.Correlation] = k
		callNs.add(f.syms.Name(k.Name), int64(k.End-k.Start))
		got.Calls++
	}
	ranges := of(f.Ranges, want.PID, func(k *rows.Range) int32 { return k.PID })
	got.Ranges = len(ranges)
	if f.truth.Schema >= int(Schema2022) {
		got.Open = 0
	}
	for _, r := range ranges {
		if size, ok := f.args.Find(r.Args, f.syms.Intern("Message size [bytes]")); ok && f.syms.Name(r.Domain) == "NCCL" {
			got.MessageBytes += size.Uint()
		}
		switch {
		case r.Open:
			got.Open++
		case r.End < f.Meta.SessionStart+trace.Time(f.truth.DurationNs):
			rangeNs.add(f.syms.Name(r.Text), int64(r.End-r.Start))
		}
	}
	got.OSCalls = len(of(f.OS, want.PID, func(k *rows.Call) int32 { return k.PID }))
	got.Scheds = len(of(f.Scheds, want.PID, func(k *rows.Sched) int32 { return k.PID }))
	got.Syncs = len(of(f.Syncs, want.PID, func(k *rows.Sync) int32 { return k.PID }))
	got.MemoryEvents = len(of(f.MemoryEvents, want.PID, func(k *rows.MemoryEvent) int32 { return k.PID }))
	for _, c := range of(f.Comms, want.PID, func(k *rows.Comm) int32 { return k.PID }) {
		got.Comm = &CommTruth{ID: c.ID, Rank: int(c.Rank), Size: int(c.Size)}
	}
	for _, d := range f.Meta.Devices {
		if int(d.PID) == want.PID {
			got.GPU = int(d.GPU)
		}
	}
	got.CallNs, got.RangeNs = byNames(callNs), byNames(rangeNs)
	f.work(&got, ranges, calls)
	return got
}

// An operation is work that a range may have launched.
type operation struct {
	rows.Place
	start, end trace.Time
	kernel     bool
}

// work counts the GPU work of a process.
func (f *export) work(got *ProcessTruth, ranges []*rows.Range, calls map[uint32]*rows.Call) {
	var operations []operation
	kernelNs := sums{}
	for _, k := range of(f.Kernels, got.PID, func(k *rows.Kernel) int32 { return k.PID }) {
		kernelNs.add(f.syms.Name(k.Name), int64(k.End-k.Start))
		got.Kernels++
		got.Device = int(k.Device)
		if k.Node != 0 {
			got.NodeKernels++
		}
		if calls[k.Correlation] == nil {
			got.Orphans++
		}
		operations = append(operations, operation{k.Place, k.Start, k.End, true})
	}
	for _, k := range of(f.Memcpys, got.PID, func(k *rows.Memcpy) int32 { return k.PID }) {
		got.Memcpys++
		got.CopiedBytes += int64(k.Bytes)
		got.Device = int(k.Device)
		operations = append(operations, operation{k.Place, k.Start, k.End, false})
	}
	for _, k := range of(f.GraphRuns, got.PID, func(k *rows.GraphRun) int32 { return k.PID }) {
		got.GraphRuns++
		got.GraphRunNs += int64(k.End - k.Start)
		operations = append(operations, operation{k.Place, k.Start, k.End, false})
	}
	got.KernelNs = byNames(kernelNs)
	got.Steps = f.steps(ranges, operations, calls)
}

// steps projects each step range separately, without optimization.
func (f *export) steps(ranges []*rows.Range, operations []operation, calls map[uint32]*rows.Call) []StepTruth {
	steps := []StepTruth{}
	for _, r := range ranges {
		name := f.syms.Name(r.Text)
		if !strings.HasPrefix(name, "step[") {
			continue
		}
		at, known := slices.BinarySearchFunc(steps, name, func(s StepTruth, name string) int { return cmp.Compare(s.Name, name) })
		if !known {
			steps = slices.Insert(steps, at, StepTruth{Name: name})
		}
		step := &steps[at]
		step.N++
		kernels, all := [2]trace.Time{1 << 62, 0}, [2]trace.Time{1 << 62, 0}
		for _, o := range operations {
			call := calls[o.Correlation]
			if call == nil || call.TID != r.TID || call.Start < r.Start || call.Start > r.End {
				continue
			}
			all = [2]trace.Time{min(all[0], o.start), max(all[1], o.end)}
			if o.kernel {
				step.Kernels++
				kernels = [2]trace.Time{min(kernels[0], o.start), max(kernels[1], o.end)}
			}
		}
		step.SpanNs += int64(max(kernels[1]-kernels[0], 0))
		step.GPUSpanNs += int64(max(all[1]-all[0], 0))
	}
	return steps
}

// metrics sums up the samples.
func (f *export) metrics() []MetricTruth {
	if len(f.Samples) == 0 {
		return nil
	}
	list := make([]MetricTruth, len(f.Metrics))
	for i, m := range f.Metrics {
		list[i] = MetricTruth{GPU: int(m.GPU), Name: m.Name}
	}
	for _, x := range f.Samples {
		list[x.Metric].N++
		list[x.Metric].Sum += int64(x.Value)
	}
	slices.SortFunc(list, func(a, b MetricTruth) int {
		return cmp.Or(cmp.Compare(a.GPU, b.GPU), cmp.Compare(a.Name, b.Name))
	})
	return slices.DeleteFunc(list, func(m MetricTruth) bool { return m.N == 0 })
}
