package operators

import (
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/profilewalk"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/testkit/testset"
	"github.com/sgtrace/sgtrace/trace"
)

// If the time of CUDA graphs is only known as a whole, a note names the option that records their kernels.
func TestNoteOnGraphs(t *testing.T) {
	syms := trace.NewSymbols()
	graph := profile.Kernel{Event: profile.Event{Start: 10, End: 2_000_010, Name: syms.Intern("graph 7"), Correlation: 1}, Graph: true}
	for _, whole := range []bool{true, false} {
		graph.Graph = whole
		o := Sum(testset.SetOf(syms, []string{"TP0"}, &testset.RowStream{KernelRows: []profile.Kernel{graph}}), profilewalk.Options{})
		text := testset.Text(t, o.Reports()[0], table.FormatText, table.Style{})
		if got := strings.Contains(text, "2.00 ms of GPU time is of whole CUDA graphs: nsys records their kernels with --cuda-graph-trace=node"); got != whole {
			t.Errorf("whole graphs %v:\n%s", whole, text)
		}
	}
}
