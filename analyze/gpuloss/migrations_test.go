package gpuloss

import (
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/gpu"
	"github.com/sgtrace/sgtrace/analyze/profilewalk"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/testkit/testset"
	"github.com/sgtrace/sgtrace/trace"
)

// Pages that move during a kernel hold it up; copies that run beside it do not.
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

// Evidence says which copies use pageable memory, and why that is bad, if most copies of a kind do.
func TestPageableCopies(t *testing.T) {
	for pageable, want := range map[int64]string{
		100 * ms: "HtoD: 4 copies, 100 ms, of pageable memory; " + gpu.AboutPageable, 60 * ms: "HtoD: 4 copies, 100 ms, 60 ms of pageable memory; " + gpu.AboutPageable,
		20 * ms: "HtoD: 4 copies, 100 ms, 20 ms of pageable memory", 1 * ms: "HtoD: 4 copies, 100 ms", 0: "HtoD: 4 copies, 100 ms",
	} {
		device := gpu.GPU{Copies: []gpu.CopyKind{{Name: "HtoD", Copied: profilewalk.Copied{N: 4, Time: 100 * ms}, Pageable: pageable}}}
		var got []string
		for _, e := range largestCopies(&gpu.GPUs{GPUs: []gpu.GPU{device}}) {
			got = append(got, e.Text)
		}
		if strings.Join(got, "; ") != want {
			t.Errorf("%d ns of pageable memory: %q, want %q", pageable, got, want)
		}
	}
}
