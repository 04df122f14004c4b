package perfetto

import (
	"fmt"
	"io"
	"testing"

	"github.com/sgtrace/sgtrace/trace"
)

// counter counts the bytes written.
type counter int64

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}

// serving returns a trace like that of an inference server, in n slices: request tracks with stages
// and arguments about a request, a thread of nested operators, and a stream of kernels with arrows
// from the operators.
func serving(n int) *trace.Trace {
	b := trace.NewBuilder(trace.NewSymbols(), trace.NewArgs(), &trace.Diags{})
	var lanes [16]trace.TrackID
	for i := range lanes {
		lanes[i] = b.Track(trace.Track{Kind: trace.KindRequest, Name: b.Intern("lane"), Order: int32(i)})
	}
	thread := b.Track(trace.Track{Kind: trace.KindThread, Name: b.Intern("scheduler")})
	stream := b.Track(trace.Track{Kind: trace.KindStream, Name: b.Intern("stream 7")})
	var names [64]trace.Sym
	for i := range names {
		names[i] = b.Intern(fmt.Sprintf("void kernel_%d<float, 128>(Params)", i))
	}
	cat, rid, bs, module, corr := b.Intern("kernel"), b.Intern("rid"), b.Intern("bs"), b.Intern("module"), b.Intern("correlation")
	put := func(l trace.ArgList) trace.ArgsID { return b.Args().Put(l) }
	now := trace.Time(1_700_000_000_000_000_000)
	var subject trace.SubjectID
	for i := range n / 4 {
		if i%16 == 0 {
			id := fmt.Sprintf("%032x", i*7919)
			subject = b.Subject(trace.Subject{ID: b.Intern(id), Args: put(trace.ArgList(nil).String(rid, id))})
		}
		now += trace.Time(7 + i%13*100)
		b.Slice(trace.Slice{Time: now, Dur: 90, Track: lanes[i%16], Name: names[i%7],
			Args: put(trace.ArgList(nil).Int(bs, int64(i%32)))}, subject)
		op := b.Slice(trace.Slice{Time: now, Dur: 7, Track: thread, Name: names[i%9], Cat: cat,
			Args: put(trace.ArgList(nil).String(module, "model.layers."+fmt.Sprint(i%40)))}, 0)
		launch := b.Child(op, trace.Slice{Time: now + 1, Dur: 3, Name: names[i%64], Cat: cat,
			Args: put(trace.ArgList(nil).Int(corr, int64(i)))}, 0)
		kernel := b.Slice(trace.Slice{Time: now + 5, Dur: 2, Track: stream, Name: names[i%64], Cat: cat,
			Args: put(trace.ArgList(nil).Int(corr, int64(i)).Float(bs, 0.5))}, 0)
		b.Flow(trace.Flow{From: launch, To: kernel})
		if i%2 == 0 {
			b.Instant(trace.Instant{Time: now + 2, Track: thread, Name: names[3]})
		}
	}
	return b.Finish()
}

func BenchmarkServing(b *testing.B) { benchmark(b, serving(400_000)) }

// With -cpu 1,2, the first result is nearly the CPU time.
func BenchmarkKineto(b *testing.B) { benchmark(b, kineto(500_000)) }

func benchmark(b *testing.B, t *trace.Trace) {
	var n counter
	if err := Write(&n, t); err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(n))
	b.ReportAllocs()
	for b.Loop() {
		if err := Write(io.Discard, t); err != nil {
			b.Fatal(err)
		}
	}
	slices := float64(len(t.Slices) - 1)
	packets := 2*slices + float64(len(t.Instants)+len(t.Samples))
	perRun := float64(b.Elapsed().Nanoseconds()) / float64(b.N)
	b.ReportMetric(perRun/slices, "ns/slice")
	b.ReportMetric(perRun/packets, "ns/packet")
	b.ReportMetric(float64(n)/slices, "B/slice")
}
