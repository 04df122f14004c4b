package diff

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/metric"
	"github.com/sgtrace/sgtrace/golden/simulator"
	"github.com/sgtrace/sgtrace/internal/significance"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/testkit/testset"
	"github.com/sgtrace/sgtrace/trace"
)

// A gauge of a row has the numbers of the row, whose probability alone is corrected for others.
func TestGaugesOfRows(t *testing.T) {
	same := func(*simulator.Config) {}
	d := Compare(collect(Capture{Requests: day(t, 1, same)}), collect(Capture{Requests: day(t, 2, same)}), Options{})
	equal := func(a, b float64) bool { return a == b || math.IsNaN(a) && math.IsNaN(b) }
	for i := range d.Rows {
		r := &d.Rows[i]
		for k := range diffNumbers {
			n := &diffNumbers[k]
			g, want := d.gaugeRows(r.Kind, r.Name, n.name), n.change(r)
			if g.Before != n.value(&r.Before) || g.After != n.value(&r.After) || !equal(g.Change.Ratio, want.Change.Ratio) || !equal(g.Change.Low, want.Change.Low) || !equal(g.Change.High, want.Change.High) {
				t.Errorf("%v %s %s: %g to %g, %+v; the row has %+v", r.Kind, r.Name, n.name, g.Before, g.After, g.Change, want)
			}
		}
	}
	for _, l := range d.Load {
		i := slices.IndexFunc(metric.Loads, func(m *metric.Metric) bool { return m.Title == l.Name })
		if i < 0 {
			if !strings.HasPrefix(l.Name, "share of requests on") {
				t.Errorf("%s is no metric", l.Name)
			}
			continue
		}
		if g := d.Gauge(metric.Loads[i], "", ""); g.Before != l.Before || g.After != l.After {
			t.Errorf("%s: %+v, the load has %+v", l.Name, g, l)
		}
	}
	if d.gaugeRows(Kernel, "", "total") != nil || d.gaugeRows(Stage, "no such stage", "p50") != nil || d.Gauge(metric.GoodShare, "", "") != nil {
		t.Error("something is gauged that is not there")
	}
	if g, p := d.gaugeDecodeSteps(), &d.Paces[0]; g.Before != p.Before || g.After != p.After {
		t.Errorf("decode steps: %+v, requests show %+v", g, p)
	}
}

// decoding records a server whose steps take 10 ms and 1 ms for each request in the batch, times
// a factor, with two kernels in each step. Batches grow by more requests on one side.
func decoding(rng *rand.Rand, steps, batch int, factor float64) *Collected {
	syms, rows := trace.NewSymbols(), &testset.RowStream{}
	at := trace.Time(1)
	for range steps {
		n := 1 + rng.IntN(4) + batch
		long := trace.Time(factor * (10e6 + 1e6*float64(n)) * (1 + 0.01*rng.Float64()))
		e := profile.Event{Start: at, End: at + long, Name: syms.Intern(fmt.Sprintf("step[DECODE bs=%d toks=%d]", n, n))}
		rows.RangeRows = append(rows.RangeRows, profile.Range{Event: e})
		for k, name := range []string{"attention", "gemm"} {
			e.Start, e.End, e.Name = at+trace.Time(k)*long/2, at+trace.Time(k+1)*long/2, syms.Intern(name)
			rows.KernelRows = append(rows.KernelRows, profile.Kernel{Event: e})
		}
		at += long + 1e6
	}
	return collect(Capture{Profiles: testset.SetOf(syms, []string{"TP0"}, rows)})
}

// Larger batches make steps longer, but not steps of the same size; a slower server
// makes those longer, too. The gauge of all kernels is the sum of the gauges by name.
func TestGaugesOfSteps(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	busier := Compare(decoding(rng, 400, 0, 1), decoding(rng, 400, 2, 1), Options{})
	if g := busier.gaugeRows(Step, "", "mean"); g.Above(1.05).P > 0.01 {
		t.Errorf("steps of larger batches: %s", g.Words())
	}
	if g := busier.gaugeDecodeSteps(); g.Above(1.01).P < 0.5 || math.Abs(g.Change.Ratio-1) > 0.005 {
		t.Errorf("steps of the same size: %s", g.Words())
	}
	slower := Compare(decoding(rng, 400, 0, 1), decoding(rng, 400, 2, 1.03), Options{})
	if g := slower.gaugeDecodeSteps(); g.Above(1.02).P > 0.01 || math.Abs(g.Change.Ratio-1.03) > 0.005 {
		t.Errorf("slower steps of the same size: %s", g.Words())
	}
	all, sum := slower.gaugeRows(Kernel, "", "total"), 0.0
	for _, name := range []string{"attention", "gemm"} {
		sum += slower.gaugeRows(Kernel, name, "total").After
	}
	if math.Abs(all.After-sum) > 1 {
		t.Errorf("all kernels take %g ns a step, each by itself %g", all.After, sum)
	}
	if d := Compare(decoding(rng, 50, 0, 1), decoding(rng, 50, 10, 1), Options{}); d.gaugeDecodeSteps() != nil {
		t.Error("steps are compared that have no size in common")
	}
}

// A shortage of data is reported in the unit of the pieces.
func TestShortage(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	d := Compare(decoding(rng, 4, 0, 1), decoding(rng, 3, 0, 1), Options{})
	for _, test := range []struct{ number, want string }{
		{"mean", "3 steps, 5 needed"}, // ten pieces can be split in 252 ways, and eight in 70
		{"p99", "6 kernels, "},
	} {
		g := d.gaugeRows(Kernel, "", test.number)
		if got := g.Shortage(g.Above(1.1), 0.01); !strings.HasPrefix(got, test.want) {
			t.Errorf("%s: %q, want %s", test.number, got, test.want)
		}
	}
	long := Compare(decoding(rng, 400, 0, 1), decoding(rng, 400, 0, 1), Options{})
	g := long.gaugeRows(Kernel, "", "mean")
	if got := g.Shortage(g.Above(1.1), 0.01); got != "" {
		t.Errorf("400 steps: %q", got)
	}
	if got := g.Shortage(significance.Crossing{P: math.NaN(), Least: math.NaN()}, 0.01); got == "" {
		t.Error("nothing is missing where nobody can tell")
	}
}
