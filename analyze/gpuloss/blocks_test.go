package gpuloss

import (
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/gpu"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/testkit/testset"
	"github.com/sgtrace/sgtrace/trace"
)

func TestSingleBlocksFinding(t *testing.T) {
	for _, c := range []struct {
		threads int32
		until   trace.Time
		want    string
	}{
		{1, 1000, "for 91 % of the time, the GPU runs only 1 kernel of a single thread: "},
		{64, 1000, "for 91 % of the time, the GPU runs only 1 kernel of a single thread block: "},
		{0, 1000, ""}, // several blocks, or an unknown number
		{1, 20, ""},
	} {
		syms, s := trace.NewSymbols(), &testset.RowStream{}
		s.KernelRows = []profile.Kernel{{Event: profile.Event{Start: 0, End: c.until, Name: syms.Intern("reduce")}, Grid: profile.GridOf(1, int64(c.threads))},
			{Event: profile.Event{Start: c.until, End: c.until + 100, Name: syms.Intern("gemm")}}}
		found, _ := SingleBlocks(gpu.Measure(testset.SetOf(syms, []string{"TP0"}, s), gpu.Options{}))
		text := ""
		if len(found) > 0 {
			text = found[0].Text
		}
		if !strings.HasPrefix(text, c.want) || c.want == "" && text != "" {
			t.Errorf("%d threads until %d: %q, want %q", c.threads, c.until, text, c.want)
		}
	}
}
