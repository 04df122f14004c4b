package lifecycle

import (
	"fmt"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/otlpjson"
	"github.com/sgtrace/sgtrace/request/assembly"
	"github.com/sgtrace/sgtrace/request/spantable"
	"github.com/sgtrace/sgtrace/testkit/testset"
	"github.com/sgtrace/sgtrace/trace"
)

// Two dumps of two minutes each, a day apart, do not show that the server was away in between, nor that it died with the requests that the
// end of the first one cut off. In one dump of both, its silence is real.
func TestDumpsOfSeveralDays(t *testing.T) {
	const minute, day = 60_000_000, 24 * 60 * 60_000_000 // us
	var dumps [2]testset.Dump
	for k := range dumps {
		for i := range 240 {
			from := float64(k*day + i*minute/120)
			root := testset.Span{Trace: fmt.Sprintf("%032x", 1000*k+i+1), Name: fmt.Sprintf(" Req %08d", 1000*k+i), From: from, To: from + 3e6,
				Attrs: testset.Attrs{"rid": fmt.Sprintf("%08d", 1000*k+i), "module": "sglang::request"}}
			id := fmt.Sprintf("%016x", 1000*k+i+1)
			if i < 235 { // the last ones are still running
				id = dumps[k].Add(root)
			}
			dumps[k].Thread(root, id, testset.DecodeHost, "Tokenizer", -1, 40+100*k, testset.Span{Name: "tokenize", From: from, To: from + 500})
			dumps[k].Thread(root, id, testset.DecodeHost, "Scheduler", 0, 50+100*k, testset.Span{Name: "prefill_forward", From: from + 1000, To: from + 400_000})
		}
	}
	for _, files := range [][]string{{text(&dumps[0]), text(&dumps[1])}, {text(&dumps[0]) + text(&dumps[1])}} {
		d := spantable.New(new(trace.Diags))
		for i, file := range files {
			if err := otlpjson.Read(d, fmt.Sprint("day", i), strings.NewReader(file)); err != nil {
				t.Fatal(err)
			}
		}
		l := Find(assembly.Build(d).Set)
		if found := len(l.deaths) + len(l.restarts); (found > 0) != (len(files) == 1) {
			t.Errorf("%d files: %d deaths, %d restarts", len(files), len(l.deaths), len(l.restarts))
		}
	}
}

func text(d *testset.Dump) string { return strings.Join(d.Lines, "\n") + "\n" }
