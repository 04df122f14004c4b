package otlpjson

import (
	"os"
	"testing"

	"github.com/sgtrace/sgtrace/trace"
)

func BenchmarkRead(b *testing.B) {
	name := os.Getenv("SGTRACE_BENCH_OTLP")
	if name == "" {
		b.Skip("SGTRACE_BENCH_OTLP names no dump")
	}
	info, err := os.Stat(name)
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(info.Size())
	b.ReportAllocs()
	for b.Loop() {
		f, err := os.Open(name)
		if err != nil {
			b.Fatal(err)
		}
		var diags trace.Diags
		d := NewDump(&diags)
		if err := d.Read(name, f); err != nil {
			b.Fatal(err)
		}
		f.Close()
		b.ReportMetric(float64(d.Len()), "spans")
	}
}
