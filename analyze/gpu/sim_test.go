package gpu

import (
	"fmt"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/sgtrace/sgtrace/analyze/profilewalk"
	"github.com/sgtrace/sgtrace/golden/nsys"
	"github.com/sgtrace/sgtrace/golden/simulator"
	"github.com/sgtrace/sgtrace/golden/torch"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/profile/kernelname"
	"github.com/sgtrace/sgtrace/testkit/testexport"
	"github.com/sgtrace/sgtrace/testkit/testset"
)

// simulateServer runs a server of four ranks; the last one computes slower.
func simulateServer(t testing.TB) *simulator.Run {
	t.Helper()
	config := simulator.DefaultConfig(3)
	config.Mode = simulator.Unified
	config.Unified = simulator.Parallel{TP: 4, PP: 1, DP: 1}
	config.RanksPerHost = 4
	config.Straggler = simulator.Straggler{TP: 3, Factor: 1.1}
	run, err := simulator.Play(config)
	if err != nil {
		t.Fatal(err)
	}
	return run
}

// GPU measures find what the simulator put into exports: kernels, graphs, lost
// calls, and the work that steps launched.
func TestGPUsOfSimulatedExports(t *testing.T) {
	run := simulateServer(t)
	config := nsys.DefaultConfig(run)
	config.Torch.To, config.Torch.Layers = config.Torch.From+400*time.Millisecond, 6
	for _, graphs := range []nsys.GraphTrace{nsys.GraphsByNode, nsys.GraphsWhole} {
		config.Torch.Graphs, config.GraphTrace = true, graphs
		dir := t.TempDir()
		truth, err := nsys.WriteDir(dir, run, config)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range truth.Files {
			set := testexport.Set(t, filepath.Join(dir, "nsys", file.Name))
			gpus := Measure(set, Options{})
			for _, p := range file.Processes {
				compareProcess(t, gpus, &p)
			}
		}
	}
}

// compareProcess compares the measures of a process with the truth.
func compareProcess(t *testing.T, gpus *GPUs, p *nsys.ProcessTruth) {
	t.Helper()
	rank := strconv.Itoa(p.PID)
	for i := range gpus.GPUs {
		g := &gpus.GPUs[i]
		if g.Rank != rank {
			continue
		}
		rows := p.Kernels + p.GraphRuns + p.Memcpys
		if int(g.GraphKernels) != p.NodeKernels+p.GraphRuns || int(g.Kernels) != p.Kernels+p.GraphRuns || int(g.Rows) != rows || g.Device != int32(p.Device) {
			t.Errorf("rank %s: %d kernels, %d of graphs, %d rows on device %d; truth %+v", rank, g.Kernels, g.GraphKernels, g.Rows, g.Device, p)
		}
		if missing := int(g.Rows - g.Called); missing < p.Orphans || missing > p.Orphans+p.Memcpys {
			t.Errorf("rank %s: %d rows without a call, %d kernels", rank, missing, p.Orphans)
		}
	}
	found := map[string]*RankKernel{}
	for i := range gpus.Kernels {
		if k := &gpus.Kernels[i]; k.Rank == rank {
			found[k.Name] = k
		}
	}
	for _, want := range p.KernelNs {
		if k := found[want.Name]; k == nil || k.Summary.N != want.N || k.Summary.Total != want.SumNs {
			t.Errorf("rank %s: %+v; truth %+v", rank, k, want)
		}
	}
	type sum struct {
		n    int
		span int64
	}
	want, got := map[string]sum{}, map[string]sum{}
	for _, s := range p.Steps {
		label, _ := profile.ParseStep(s.Name)
		from, to := profilewalk.BatchBucket(label.Batch)
		key := fmt.Sprint(label.Kind, from, to)
		want[key] = sum{want[key].n + s.N, want[key].span + s.GPUSpanNs}
	}
	for _, s := range gpus.Steps {
		if s.Rank == rank {
			got[fmt.Sprint(s.Kind, s.MinBatch, s.MaxBatch)] = sum{s.Host.N, s.Device.Total}
		}
	}
	if fmt.Sprint(got) != fmt.Sprint(want) || len(want) == 0 {
		t.Errorf("rank %s: steps %v, truth %v", rank, got, want)
	}
}

// The rank that computes slower is the one with longer kernels than the others, and with shorter collectives.
func TestKernelsOfStraggler(t *testing.T) {
	run := simulateServer(t)
	config := torch.DefaultConfig(run)
	config.To, config.Layers, config.Stacks, config.Gzip = config.From+300*time.Millisecond, 6, 0, false
	dir := t.TempDir()
	if _, err := torch.WriteDir(dir, run, config); err != nil {
		t.Fatal(err)
	}
	paths, _ := filepath.Glob(filepath.Join(dir, "torch", "*TP-*"))
	if len(paths) != 4 {
		t.Fatalf("traces: %v", paths)
	}
	set, _ := testset.TorchSet(t, paths...)
	gpus := Measure(set, Options{})
	slow, short := 0, 0
	for _, k := range gpus.Kernels[:6] {
		switch {
		case k.Rank != "3":
			t.Errorf("rank %s stands out with %s", k.Rank, k.Name)
		case k.Class == kernelname.ClassCompute && k.RelTotal > 1.05 && k.RelTotal < 1.15:
			slow++
		case k.Class == kernelname.ClassCommunication && k.Excess < 0:
			short++
		default:
			t.Errorf("%s of the slow rank: %+v", k.Name, k)
		}
	}
	if slow == 0 || short == 0 {
		t.Errorf("%d kernels are slow, %d collectives short", slow, short)
	}
}
