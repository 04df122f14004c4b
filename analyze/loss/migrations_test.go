package loss

import (
	"testing"

	"github.com/sgtrace/sgtrace/analyze/gpu"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/testkit/testset"
	"github.com/sgtrace/sgtrace/trace"
)

// Pages that move while a kernel runs hold it up; copies that run beside it do not.
func TestMigrations(t *testing.T) {
	for _, c := range []struct {
		name  string
		found int
	}{{"[CUDA memcpy Unified Host-to-Device]", 1}, {"[CUDA memcpy Host-to-Device]", 0}} {
		syms := trace.NewSymbols()
		s := &testset.RowStream{KernelRows: []profile.Kernel{{Event: profile.Event{Start: 1000, End: 101_000, Name: syms.Intern("add")}}}}
		for at := trace.Time(10_000); at < 60_000; at += 10_000 {
			s.CopyRows = append(s.CopyRows, profile.Copy{Event: profile.Event{Start: at, End: at + 5000, Name: syms.Intern(c.name)}, Bytes: 4096})
		}
		found, _ := Migrations(gpu.Measure(testset.SetOf(syms, []string{"TP0"}, s), gpu.Options{}))
		if len(found) != c.found || len(found) == 1 && found[0].Cost != 0.25 {
			t.Errorf("%s: %+v", c.name, found)
		}
	}
}
