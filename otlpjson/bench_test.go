package otlpjson

import (
	"bytes"
	"encoding/json"
	"runtime"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/request/spantable"
	"github.com/sgtrace/sgtrace/trace"
)

// bench runs f on a simulated dump of about 20 MB; f returns the number of spans it found. It
// reports MB/s, and time and allocated memory per span.
func bench(b *testing.B, prepare func(dump string) string, f func(data string) int) {
	dump := simulated(b, 800)
	spans := read(b, dump).Len()
	data := prepare(dump)
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for b.Loop() {
		if n := f(data); n != spans {
			b.Fatalf("%d spans of %d", n, spans)
		}
	}
	runtime.ReadMemStats(&after)
	total := float64(b.N) * float64(spans)
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/total, "ns/span")
	b.ReportMetric(float64(after.TotalAlloc-before.TotalAlloc)/total, "B/span")
}

func unchanged(dump string) string { return dump }

func countSpans(data string) int {
	d := spantable.New(new(trace.Diags))
	if err := Read(d, "dump", strings.NewReader(data)); err != nil {
		return -1
	}
	return d.Len()
}

// BenchmarkRead reads a dump on all cores; the others use one, so compare with -cpu 1. Pass one
// number at a time: with a list like -cpu 1,2, b.Loop measures the first run in the trial run, on
// the largest number of cores.
func BenchmarkRead(b *testing.B) { bench(b, unchanged, countSpans) }

// BenchmarkReadProto reads the same spans from protobuf frames.
func BenchmarkReadProto(b *testing.B) {
	bench(b, func(dump string) string { return frames(protoMessages(b, dump)...) }, countSpans)
}

// BenchmarkSonic and BenchmarkEncodingJSON decode the same lines into structs and discard them: the
// minimum work of a reader built on these libraries.
func BenchmarkSonic(b *testing.B)        { bench(b, unchanged, countWith(sonicConfig.Unmarshal)) }
func BenchmarkEncodingJSON(b *testing.B) { bench(b, unchanged, countWith(json.Unmarshal)) }

func countWith(unmarshal func([]byte, any) error) func(data string) int {
	return func(data string) (n int) {
		for line := range bytes.Lines([]byte(data)) {
			var doc wireDocument
			if err := unmarshal(line, &doc); err != nil {
				return -1
			}
			for _, rs := range doc.ResourceSpans {
				for _, ss := range rs.ScopeSpans {
					n += len(ss.Spans)
				}
			}
		}
		return n
	}
}

func BenchmarkTree(b *testing.B) {
	var d *spantable.Table
	bench(b, func(dump string) string { d = read(b, dump).Table; return dump }, func(string) int {
		spantable.NewTree(d)
		return d.Len()
	})
}
