package assembly

import (
	"bytes"
	"cmp"
	"slices"
	"testing"

	"github.com/sgtrace/sgtrace/golden/simulator"
	"github.com/sgtrace/sgtrace/otlpjson"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/request/spantable"
	"github.com/sgtrace/sgtrace/testkit/testinput"
	"github.com/sgtrace/sgtrace/trace"
)

// Each stage is in the phase of its meaning, and each watched meaning has exactly one name.
func TestStagesMeanWhatTheirPhasesSay(t *testing.T) {
	for _, s := range stages {
		if s.means != request.NoMeaning && s.means != request.Launching && s.means != request.Caching && s.phase != s.means.Phase() {
			t.Errorf("stage %s is in the phase %v, and means what is in %v", s.name, s.phase, s.means.Phase())
		}
	}
	for _, m := range request.Watched {
		n := 0
		for _, s := range stages {
			if s.means == m {
				n++
			}
		}
		if n != 1 {
			t.Errorf("%d stages mean %d", n, m)
		}
	}
}

// simulated returns the assembly of a simulated dump, optionally with its lines in reverse.
func simulated(t *testing.T, reversed bool) *Assembly {
	t.Helper()
	dump, _ := testinput.Simulate(t, simulator.DefaultConfig(2))
	lines := bytes.SplitAfter(dump, []byte("\n"))
	if reversed {
		slices.Reverse(lines)
	}
	d := spantable.New(&trace.Diags{})
	if err := otlpjson.Read(d, "sim", bytes.NewReader(slices.Concat(lines...))); err != nil {
		t.Fatal(err)
	}
	return Build(d)
}

// The order of rows does not depend on the order in which a dump is read.
func TestTiesDoNotDependOnTheOrderOfReading(t *testing.T) {
	order := func(a *Assembly) (list []uint64) {
		a.BreakTies()
		rows := make([]int, a.Set.Len())
		for i := range rows {
			rows[i] = i
		}
		slices.SortFunc(rows, a.Set.Compare)
		for k, i := range rows {
			list = append(list, a.dump.Span(i).ID)
			if k == 0 {
				continue
			}
			x, y := a.Set.Row(rows[k-1]), a.Set.Row(i)
			if cmp.Or(cmp.Compare(x.Start, y.Start), cmp.Compare(y.End, x.End), a.tree.CompareIDs(rows[k-1], i)) >= 0 {
				t.Fatalf("row %d is not behind %d", i, rows[k-1])
			}
		}
		return list
	}
	if !slices.Equal(order(simulated(t, false)), order(simulated(t, true))) {
		t.Error("rows have another order when they are read in another")
	}
}

// Tables remain valid after the spans are released.
func TestReleaseKeepsTables(t *testing.T) {
	a := simulated(t, false)
	rows, gaps := slices.Clone(a.Set.Rows), a.Set.Gaps(&a.Set.Requests[0])
	a.Release()
	if a.dump.Len() != 0 || !slices.Equal(rows, a.Set.Rows) || !slices.Equal(gaps, a.Set.Gaps(&a.Set.Requests[0])) {
		t.Error("tables changed when the spans were given up")
	}
	for i := range a.Set.Len() {
		if a.Set.Pos(i).File != "sim" || a.Set.Pos(i).Line == 0 {
			t.Fatalf("row %d is at %v", i, a.Set.Pos(i))
		}
	}
}

// Shifting times moves rows, instants, and everything derived from them; shifting back restores the
// tables.
func TestMoveThereAndBack(t *testing.T) {
	a := simulated(t, false)
	rows, requests := slices.Clone(a.Set.Rows), len(a.Set.Requests)
	instants := slices.Clone(a.Set.Instants)
	by := func(d trace.Time) func(int) func(trace.Time) trace.Time {
		return func(int) func(trace.Time) trace.Time { return func(at trace.Time) trace.Time { return at + d } }
	}
	a.Move(by(5000))
	if a.Set.Rows[3].Start != rows[3].Start+5000 || a.Set.Instants[3].Time != instants[3].Time+5000 {
		t.Error("times were not moved")
	}
	a.Move(by(-5000))
	if !slices.Equal(rows, a.Set.Rows) || !slices.Equal(instants, a.Set.Instants) || len(a.Set.Requests) != requests {
		t.Error("tables are not what they were")
	}
}
