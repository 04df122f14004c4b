package parse

import (
	"testing"

	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/testkit/testinput"
	"github.com/sgtrace/sgtrace/trace"
)

// BenchmarkParse measures only the parser, without goroutines and joins.
func BenchmarkParse(b *testing.B) {
	data := testinput.KinetoLike(3_000)
	for name, mode := range map[string]profile.ArgsMode{"all": profile.ArgsAll, "none": profile.ArgsNone} {
		b.Run(name, func(b *testing.B) {
			p := newParser(newSettings(Options{Syms: trace.NewSymbols(), Args: trace.NewArgs(), Filter: profile.Filter{Args: mode}}, Usual))
			b.SetBytes(int64(len(data)))
			b.ReportAllocs()
			for b.Loop() {
				p.run(data, 0, true, state{})
				p.out.take()
			}
		})
	}
}
