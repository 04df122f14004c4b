package chrometrace

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/bytedance/sonic"

	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/testkit/testinput"
	"github.com/sgtrace/sgtrace/trace"
)

// BenchmarkRead reads a trace of about 60 MB on one core, with all arguments and with none.
func BenchmarkRead(b *testing.B) {
	data := testinput.KinetoLike(200_000)
	for name, mode := range map[string]profile.ArgsMode{"all": profile.ArgsAll, "min": profile.ArgsMin, "none": profile.ArgsNone} {
		b.Run(name, func(b *testing.B) { benchRead(b, data, Options{Workers: 1, Filter: profile.Filter{Args: mode}}) })
	}
	b.Run("index", func(b *testing.B) {
		benchRead(b, data, Options{Workers: 1, Filter: profile.Filter{Args: profile.ArgsNone, IndexOnly: true}})
	})
}

func benchRead(b *testing.B, data []byte, opt Options) {
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		opt.Syms, opt.Args, opt.Diags = trace.NewSymbols(), trace.NewArgs(), new(trace.Diags)
		f, err := Read("bench", bytes.NewReader(data), opt)
		if err != nil || f.Total < 200_000 {
			b.Fatal(f, err)
		}
	}
}

// A wireEvent is what a reader built on a library would decode into.
type wireEvent struct {
	Ph   string         `json:"ph"`
	Cat  string         `json:"cat"`
	Name string         `json:"name"`
	Pid  any            `json:"pid"`
	Tid  any            `json:"tid"`
	Ts   float64        `json:"ts"`
	Dur  float64        `json:"dur"`
	Args map[string]any `json:"args"`
}

// BenchmarkSonic and BenchmarkEncodingJSON decode the same trace into structs and discard them.
func BenchmarkSonic(b *testing.B)        { benchWith(b, sonic.Config{CaseSensitive: true}.Froze().Unmarshal) }
func BenchmarkEncodingJSON(b *testing.B) { benchWith(b, json.Unmarshal) }

func benchWith(b *testing.B, unmarshal func([]byte, any) error) {
	data := testinput.KinetoLike(20_000)
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		var doc struct {
			TraceEvents []wireEvent `json:"traceEvents"`
		}
		if err := unmarshal(data, &doc); err != nil || len(doc.TraceEvents) < 20_000 {
			b.Fatal(err)
		}
	}
}
