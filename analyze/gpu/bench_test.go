package gpu

import (
	"fmt"
	"testing"

	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/testkit/testset"
	"github.com/sgtrace/sgtrace/trace"
)

// manyKernels returns n consecutive kernels of one rank, on two streams, each with its call.
func manyKernels(syms *trace.Symbols, n int) *testset.RowStream {
	s := &testset.RowStream{}
	names := make([]trace.Sym, 60)
	for i := range names {
		names[i] = syms.Intern(fmt.Sprintf("void kernel_of_some_layer<%d>(int, float)", i))
	}
	launch := syms.Intern("cudaLaunchKernel")
	step := syms.Intern("step[DECODE bs=3]")
	for i := range n {
		at := trace.Time(i) * 10_000
		correlation := int64(i + 1)
		s.CallRows = append(s.CallRows, profile.Call{Event: profile.Event{Start: at, End: at + 4000, Correlation: correlation, Name: launch}})
		start := at + 6000 + trace.Time(i*7919%2000)
		s.KernelRows = append(s.KernelRows, profile.Kernel{Stream: uint32(i % 2),
			Event: profile.Event{Start: start, End: start + trace.Time(i*104729%9000), Correlation: correlation, Name: names[i%len(names)]}})
		if i%500 == 0 {
			s.RangeRows = append(s.RangeRows, profile.Range{Event: profile.Event{Start: at, End: at + 4_900_000, Name: step}})
		}
	}
	return s
}

// Measuring a kernel takes as long among millions as among thousands.
func BenchmarkMeasureGPUs(b *testing.B) {
	for _, n := range []int{10_000, 100_000, 1_000_000} {
		syms := trace.NewSymbols()
		set := testset.SetOf(syms, []string{"rank"}, manyKernels(syms, n))
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				Measure(set, Options{})
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/kernel")
		})
	}
}
