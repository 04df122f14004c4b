package replay

import (
	"fmt"
	"math"
	"testing"

	"github.com/sgtrace/sgtrace/golden/cluster"
	"github.com/sgtrace/sgtrace/golden/simulator"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/testkit/testinput"
	"github.com/sgtrace/sgtrace/testkit/testset"
)

// off returns the largest relative deviation of a replay without a change from the recording, in p50 and p99 of E2E and TTFT.
func off(t *testing.T, s *request.Set) float64 {
	t.Helper()
	r := Read(s)
	r.FitSteps()
	recorded := r.Recorded()
	played, ok := r.Play(r.Plan(0))
	if !ok || len(played) != len(recorded) {
		t.Fatalf("%d of %d requests ended", len(played), len(recorded))
	}
	worst := 0.0
	for _, of := range []func(*Latency) int64{E2E, TTFT} {
		for _, percent := range []int{50, 99} {
			is, would := Percentile(recorded, of, percent), Percentile(played, of, percent)
			worst = max(worst, math.Abs(float64(would)/float64(is)-1))
		}
	}
	return worst
}

// A replay without a change reproduces the recording: of a simulator with prefill
// and decode servers, and of another with caches and speculative decoding.
func TestPlaysAsRecorded(t *testing.T) {
	for i, mode := range testset.AllModes {
		t.Run(mode.String(), func(t *testing.T) {
			c := testset.Calm(uint64(i + 1))
			c.Mode = mode
			s, _ := testset.Simulated(t, c)
			if by := off(t, s); by > 0.02 {
				t.Errorf("off by %.1f %%", 100*by)
			}
		})
	}
	for _, name := range []string{"healthy", "healthy_pd", "caches_and_drafts", "small_burst"} {
		t.Run(name, func(t *testing.T) {
			s, _ := testset.Clustered(t, cluster.Find(name), 2) // trace level 3
			if by := off(t, s); by > 0.03 {
				t.Errorf("off by %.1f %%", 100*by)
			}
		})
	}
}

// That also holds if requests wait for memory, some behind others that give up before they get any,
// and if transfers fail: memory that these held is available to others at the same step boundary.
func TestPlaysQueuesForMemory(t *testing.T) {
	for _, mode := range testset.AllModes {
		for _, seed := range []uint64{1, 9, 19} {
			c := simulator.DefaultConfig(seed)
			c.Mode = mode
			s, _ := testset.Simulated(t, c)
			if by := off(t, s); by > 0.035 {
				t.Errorf("%s, seed %d: off by %.1f %%", mode, seed, 100*by)
			}
		}
	}
}

// That also holds for servers that form a batch while the previous one runs, as SGLang's do.
func TestPlaysOverlapped(t *testing.T) {
	s := testset.LoadDump(t, "a_unified_tp2.jsonl")
	if by := off(t, s); by > 0.03 {
		t.Errorf("off by %.1f %%", 100*by)
	}
	if r := Read(s); r.Engines[0].lag != 1 {
		t.Errorf("lag %d, want 1: the overlap scheduler ran", r.Engines[0].lag)
	}
	for _, name := range []string{"otel/b_pd_smg_tp2.jsonl.zst", "otel2/prefill_node_dead.jsonl.zst"} {
		s := testset.LoadFile(t, testinput.Shared(t, "data", name))
		if by := off(t, s); by > 0.05 {
			t.Errorf("%s: off by %.1f %%", name, 100*by)
		}
	}
}

// If batches are formed ahead, their results are reported one after another. A request in a batch
// that was formed before the last step began was in that step, and not in one of no duration.
func TestFollows(t *testing.T) {
	steps := []Step{{End: 90e6}, {End: 185e6}}
	last := mark{from: 90e6, end: 185e6, kind: prefillEnd}
	for _, c := range []struct {
		what string
		m    mark
		want bool
	}{
		{"formed ahead", mark{from: 1e6, end: 185.2e6, kind: chunkEnd}, true},
		{"formed with it", mark{from: 90.05e6, end: 185.2e6, kind: prefillEnd}, true},
		{"formed later", mark{from: 92e6, end: 185.2e6, kind: prefillEnd}, false},
		{"formed ahead, and told much later", mark{from: 1e6, end: 188e6, kind: prefillEnd}, false},
		{"told together", mark{from: 92e6, end: 185.05e6, kind: prefillEnd}, true},
		{"another decode step", mark{from: 1e6, end: 185.2e6, kind: decodeEnd}, false},
	} {
		if got := c.m.follows(&last, steps); got != c.want {
			t.Errorf("%s: %v, want %v", c.what, got, c.want)
		}
	}
}

// A model recovers the planted costs of steps despite outliers.
func TestFitModel(t *testing.T) {
	var steps []Timed
	for i := range 400 {
		f := Features{New: int64(100 + i*7%900), Requests: int64(1 + i%5), Context: int64(1000 * (i % 11))}
		took := 6e6 + 70e3*float64(f.New) + 45e4*float64(f.Requests) + 200*float64(f.Context)
		if i%20 == 0 {
			took *= 4
		}
		steps = append(steps, Timed{f, int64(took)})
	}
	m := FitModel(steps)
	got := fmt.Sprintf("%.1f ms, %.0f, %.0f, %.0f", m.Base/1e6, m.New/1e3, m.Requests/1e3, m.Context)
	if want := "6.0 ms, 70, 450, 200"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// A round-robin router is recognized, in any order of servers.
func TestInTurn(t *testing.T) {
	for _, c := range []struct {
		after [][]int
		turns int
	}{
		{[][]int{{0, 9}, {8, 1}}, 17},
		{[][]int{{0, 1, 9}, {9, 0, 0}, {0, 8, 1}}, 26}, // in the order 0, 2, 1
		{[][]int{{9, 1, 0}, {0, 9, 1}, {1, 0, 9}}, 0},  // the same server again
		{[][]int{{0, 9, 0}, {9, 0, 0}, {9, 1, 0}}, 0},  // one server is left out
	} {
		if got := inTurn(c.after); got != c.turns {
			t.Errorf("%v: %d in turn, want %d", c.after, got, c.turns)
		}
	}
}
