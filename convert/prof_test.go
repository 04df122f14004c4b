package convert

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/sgtrace/sgtrace/otlpjson"
	"github.com/sgtrace/sgtrace/perfetto"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

func TestPhases(t *testing.T) {
	name := os.Getenv("SGTRACE_BENCH_OTLP")
	for range 3 {
		runtime.GC()
		var diags trace.Diags
		t0 := time.Now()
		d := otlpjson.NewDump(&diags)
		f, _ := os.Open(name)
		d.Read(name, f)
		t1 := time.Now()
		set := request.Build(d)
		t2 := time.Now()
		tr := Layout(set, ViewBoth)
		t3 := time.Now()
		perfetto.Write(io.Discard, tr)
		t4 := time.Now()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		fmt.Println("read", t1.Sub(t0), "build", t2.Sub(t1), "layout", t3.Sub(t2), "write", t4.Sub(t3), "total", t4.Sub(t0), "heap", m.HeapSys>>20, m.NumGC)
	}
}
