package page

import (
	"slices"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/page/chart"
)

// The planted slow rank is late nearly all the time, and its peers are not.
func TestLatenessShowsTheSlowRank(t *testing.T) {
	o, p := incident(t)
	at := slices.IndexFunc(p.Sections, func(s Section) bool { return s.ID == "stragglers" })
	if at < 0 {
		t.Fatal("there is no section about stragglers")
	}
	slow := o.RankLoads.Stragglers()[0].Name
	heat := p.Sections[at].Figures[0].Body.(*chart.TimeHeat)
	for _, g := range heat.Groups {
		for _, r := range g.Rows {
			late, known := 0, 0
			for _, v := range r.Values {
				if v == v {
					known++
				}
				if v >= 0.1 {
					late++
				}
			}
			switch is := r.Name == slow && g.Name != "prefill: prefills"; {
			case known == 0:
				t.Errorf("%s: nothing is known of %s", g.Name, r.Name)
			case is && late < known*9/10:
				t.Errorf("%s: %s is late in %d of %d parts", g.Name, r.Name, late, known)
			case !is && late > known/10:
				t.Errorf("%s: %s is late in %d of %d parts", g.Name, r.Name, late, known)
			}
		}
	}
	if len(heat.Groups) < 3 {
		t.Errorf("%d groups", len(heat.Groups))
	}
}

// Ranks are compared with those that compute together with them, or else with their role.
func TestPeers(t *testing.T) {
	for _, c := range []struct{ ranks, want []string }{
		{[]string{"prefill TP0", "prefill TP1", "decode DP0 TP0", "decode DP0 TP1", "decode DP1 TP0", "decode DP1 TP1"},
			[]string{"prefill ", "prefill ", "decode DP0 ", "decode DP0 ", "decode DP1 ", "decode DP1 "}},
		{[]string{"prefill TP0", "decode DP0", "decode DP1"}, []string{"", "decode ", "decode "}},
		{[]string{"TP0 (a)", "TP0 (b)"}, []string{" ", " "}},
		{[]string{"python3 1", "python3 2"}, []string{"", ""}},
	} {
		if got := peersOf(c.ranks); !slices.Equal(got, c.want) {
			t.Errorf("%q have the peers %q, want %q", c.ranks, got, c.want)
		}
	}
}

// A kernel is compared with the same kernel on peers: a slow rank stands out even if
// the ranks of another role take ten times as long.
func TestKernelsWithinPeers(t *testing.T) {
	gpus := sampleGPUs(4, 1, func(int) string { return "gemm" })
	for i, name := range []string{"prefill TP0", "prefill TP1", "decode TP0", "decode TP1"} {
		gpus.GPUs[i].Rank, gpus.Kernels[i].Rank = name, name
		gpus.Kernels[i].RelTotal = []float64{10, 10, 1, 1.2}[i]
	}
	heat := kernelFigure(gpus, nil, Source{}).Body.(*chart.Heatmap)
	for c, want := range []float64{1, 1, 1, 1.2} {
		if got := heat.Cells[0][c].Value; got != want {
			t.Errorf("%s is at %g, want %g", heat.Columns[c], got, want)
		}
	}
}
