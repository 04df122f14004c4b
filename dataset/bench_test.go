package dataset

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/sgtrace/sgtrace/format"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// benchRows is the number of kernels that the benchmarks write and read.
const benchRows = 1 << 20

// kernelsOf is a stream of kernels whose durations and gaps vary as in real traces.
type kernelsOf struct {
	profile.Stream
	names []trace.Sym
}

func (s kernelsOf) Kernels(yield func(*profile.Kernel) bool) {
	at, noise := trace.Time(1787000000000000000), uint64(1)
	for i := range benchRows {
		noise = noise*6364136223846793005 + 1442695040888963407
		dur := trace.Time(2000 + noise>>52)
		k := profile.Kernel{Event: profile.Event{Start: at, End: at + dur, Correlation: 7<<32 + int64(i), Name: s.names[i%len(s.names)], PID: 7}, Device: 0, Stream: 7}
		at += dur + trace.Time(noise>>40&0xff)
		if !yield(&k) {
			return
		}
	}
}

func benchWriter(dir string) (*walking, *trace.Symbols) {
	syms := trace.NewSymbols()
	s := kernelsOf{}
	for i := range 40 {
		s.names = append(s.names, syms.Intern("void flash::kernel<"+string(rune('a'+i))+">(Params)"))
	}
	w := &writer{dir: dir, content: &Content{Syms: syms, Source: &format.Source{}}}
	return &walking{writer: w, Stream: s, places: map[int32]*Place{}}, syms
}

func BenchmarkWriteKernels(b *testing.B) {
	dir := b.TempDir()
	for b.Loop() {
		x, _ := benchWriter(dir)
		x.kernels()
	}
	info, err := os.Stat(filepath.Join(dir, kernelsFile.name+".parquet"))
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(benchRows)*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
	b.ReportMetric(float64(info.Size())/benchRows, "B/row")
}

func BenchmarkReadKernels(b *testing.B) {
	dir := b.TempDir()
	x, syms := benchWriter(dir)
	x.kernels()
	c := &Capture{Dir: dir}
	n := 0
	for b.Loop() {
		opt := &format.Options{Syms: syms, Diags: &trace.Diags{}}
		c.newStream("", opt, func(int32) int32 { return 0 }).Kernels(func(*profile.Kernel) bool { n++; return true })
	}
	if n != benchRows*b.N {
		b.Fatal(n)
	}
	const columns = 8 // read by Kernels
	b.ReportMetric(columns*float64(n)/b.Elapsed().Seconds(), "values/s")
}
