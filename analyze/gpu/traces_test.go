package gpu

import (
	"fmt"
	"math"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/profile/kernelname"
	"github.com/sgtrace/sgtrace/testkit/testexport"
	"github.com/sgtrace/sgtrace/testkit/testinput"
	"github.com/sgtrace/sgtrace/testkit/testset"
	"github.com/sgtrace/sgtrace/trace"
)

// An htaView yields the rows of a trace that Holistic Trace Analysis considers, at the times that it sees.
type htaView struct {
	profile.Stream
	time     func(e *profile.Event)
	launched map[int64]bool // launched by events that are considered; nil is any
}

func (v *htaView) Kernels(yield func(*profile.Kernel) bool) {
	v.Stream.Kernels(func(k *profile.Kernel) bool {
		v.time(&k.Event)
		return v.launched != nil && !v.launched[k.Correlation] || yield(k)
	})
}

func (v *htaView) Copies(yield func(*profile.Copy) bool) {
	v.Stream.Copies(func(c *profile.Copy) bool {
		v.time(&c.Event)
		return v.launched != nil && !v.launched[c.Correlation] || yield(c)
	})
}

func (v *htaView) Calls(yield func(*profile.Call) bool) {
	v.Stream.Calls(func(c *profile.Call) bool {
		v.time(&c.Event)
		return yield(c)
	})
}

// Ranges yields none: in Holistic Trace Analysis, the time of devices does not depend on steps.
func (v *htaView) Ranges(func(*profile.Range) bool) {}

// newHTAView drops the work that the last of several ProfilerSteps launched, and rounds times as the run did.
func newHTAView(s profile.Stream, syms *trace.Symbols, p *profile.Profile, run *htaRun) *htaView {
	v := &htaView{Stream: s}
	steps, last := map[trace.Sym]bool{}, trace.Time(math.MinInt64)
	s.Ranges(func(r *profile.Range) bool {
		if strings.HasPrefix(syms.Name(r.Name), "ProfilerStep") {
			steps[r.Name] = true
			last = max(last, r.Start)
		}
		return true
	})
	if len(steps) > 1 {
		v.launched = map[int64]bool{}
		s.Calls(func(c *profile.Call) bool {
			if c.Start < last {
				v.launched[c.Correlation] = true
			}
			return true
		})
	}
	base := trace.Time(p.Meta.Base)
	first := inMicroseconds(p.First - base)
	v.time = func(e *profile.Event) {
		start, dur := inMicroseconds(e.Start-base), e.End-e.Start
		e.Start = trace.Time(math.Round((start - first) * 1000))
		e.End = e.Start + dur
		if run.rounds() {
			up := math.Ceil(start)
			down := math.Floor(start + float64(dur)/1000)
			e.Start, e.End = trace.Time(up-math.Floor(first))*1000, trace.Time(down-math.Floor(first))*1000
		}
	}
	return v
}

// inMicroseconds returns the number that encoding/json reads for a time in a trace.
func inMicroseconds(t trace.Time) float64 {
	us, _ := strconv.ParseFloat(fmt.Sprintf("%d.%03d", t/1000, t%1000), 64)
	return us
}

// Measures of real traces equal those of Holistic Trace Analysis, with its classes and its
// rules for loading. The exceptions are events that it mistakes for work of a device. All of
// these traces communicate with NCCL only, so that its classes agree with our default ones.
func TestGPUsOfTracesAsHTA(t *testing.T) {
	// Expected values instead: idle time, compute time, and length in ns.
	exceptions := map[string][3]int64{
		// The device's side of a waiting call (cuda_sync) counts as busy there, for 5 us.
		"hta_cuda_event_sync": {212_000, 49_000, 263_000},
		// A host operator with an argument named stream counts as work of the device there.
		"hta_triton": {0, 1000, 1000},
	}
	dirs, _ := filepath.Glob(testinput.Shared(t, "data/torch/hta_expected", "*"))
	for _, dir := range dirs {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			o := openHTAOracle(t, dir)
			set, profiles := testset.TorchSet(t, o.run.inputs(t)...)
			for i := range set.Streams {
				set.Streams[i] = newHTAView(set.Streams[i], set.Syms, profiles[i], &o.run)
			}
			o.gpus = Measure(set, Options{Classes: kernelname.HTAClasses()})
			for i, g := range Measure(set, Options{}).GPUs {
				// Waits of MTIA's control cores count as computation there.
				if g.Running != o.gpus.GPUs[i].Running && filepath.Base(dir) != "hta_mtia_inference" {
					t.Errorf("under the default classes, %v ns, not %v", g.Running, o.gpus.GPUs[i].Running)
				}
			}
			if want, ok := exceptions[filepath.Base(dir)]; ok {
				g := o.gpu("0")
				if got := [3]int64{g.Idle.Total(), g.Time(kernelname.ClassCompute), g.Length()}; got != want {
					t.Errorf("idle, compute and length are %v, want %v", got, want)
				}
				return
			}
			o.temporal(t)
			o.overlap(t)
			o.types(t)
			o.kernels(t, "COMPUTATION", "COMMUNICATION")
			t.Logf("values equal: %v", o.counts)
		})
	}
}

// The parts of time add up in all recorded data, and all tables can be printed.
func TestGPUsOfSharedData(t *testing.T) {
	check := func(path string, open func(t testing.TB, path string) *profile.Set) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			gpus := Measure(open(t, path), Options{})
			for _, g := range gpus.GPUs {
				sum := g.Idle.Total()
				for _, c := range exposure {
					sum += g.Exposed(c)
				}
				if sum != g.Length() || g.Length() > g.Captured || g.GraphKernels > g.Kernels {
					t.Errorf("%s: length %d, parts %d, captured %d", g.Rank, g.Length(), sum, g.Captured)
				}
			}
			for _, report := range gpuReports {
				testset.CSV(t, report(gpus))
			}
		})
	}
	torch := func(t testing.TB, path string) *profile.Set {
		set, _ := testset.TorchSet(t, path)
		return set
	}
	for pattern, open := range map[string]func(testing.TB, string) *profile.Set{
		"torch/real/*.gz": torch, "torch/tp8_skew_2host/*-TP-5-*.gz": torch, "nsys/real/*.sqlite": testexport.Set,
	} {
		paths, _ := filepath.Glob(testinput.Shared(t, "data", pattern))
		for _, path := range paths {
			check(path, open)
		}
	}
}
