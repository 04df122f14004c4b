package torch_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sgtrace/sgtrace/golden/simulator"
	"github.com/sgtrace/sgtrace/golden/torch"
	"github.com/sgtrace/sgtrace/testkit/testinput"
)

// A syncPoint is a collective of a group, identified by Comms Id, or else by its ordinal.
type syncPoint struct {
	group int
	id    string
}

// An attendance is a rank's participation in a collective, in true time.
type attendance struct {
	trace      *testinput.Trace
	event      *testinput.Event
	start, end int64
}

// syncPoints returns the collectives of a recording, each with its ranks in order of arrival.
func syncPoints(rec *testinput.Recording) map[syncPoint][]attendance {
	met := map[syncPoint][]attendance{}
	for _, tr := range rec.Traces {
		ordinal := 0
		for _, e := range tr.OfCategory("kernel") {
			if e.Args["Collective name"] == nil {
				continue
			}
			m := syncPoint{tr.Truth.Group, fmt.Sprint(e.Args["Comms Id"])}
			if !rec.Config.WithSeq {
				m.id = fmt.Sprint(ordinal)
			}
			ordinal++
			c := &tr.Host.Clock
			met[m] = append(met[m], attendance{tr, e, c.Undo(e.Start), c.Undo(e.End)})
		}
	}
	for _, came := range met {
		slices.SortFunc(came, func(a, b attendance) int { return cmp.Compare(a.start, b.start) })
	}
	return met
}

// checkCollectives corrects the clocks of the hosts, and checks that the ranks of a group leave
// each collective together.
func checkCollectives(t *testing.T, rec *testinput.Recording) {
	c := &rec.Config
	groups, err := torch.Groups(rec.Run, *c)
	if err != nil {
		t.Fatal(err)
	}
	counts, lasts := make([]int, len(groups)), map[*testinput.Trace]int{}
	for m, came := range syncPoints(rec) {
		counts[m.group]++
		if len(came) != groups[m.group].Size && c.Ragged == 0 {
			t.Fatalf("%d ranks in %s", len(came), m.id)
		}
		last := came[len(came)-1]
		lasts[last.trace]++
		for _, a := range came {
			if off := testinput.Abs(a.end - last.end); a.end < last.start || off > 6*int64(c.EndJitter)+2 {
				t.Fatalf("a rank leaves %s %d ns off, %d ns after the last one came", m.id, off, a.end-last.start)
			}
			if a.event.Args["Collective name"] != last.event.Args["Collective name"] || a.event.Args["Seq"] != last.event.Args["Seq"] {
				t.Fatalf("%v and %v under one id", a.event.Args, last.event.Args)
			}
		}
	}
	for i, g := range groups {
		if counts[i] != g.Collectives {
			t.Errorf("%d collectives in group %d, truth %d", counts[i], i, g.Collectives)
		}
	}
	for _, tr := range rec.Traces {
		if c.Ragged == 0 && !c.Graphs && lasts[tr] != tr.Truth.LastArrivals {
			t.Errorf("%s: last in %d collectives, truth %d", tr.Truth.Name, lasts[tr], tr.Truth.LastArrivals)
		}
	}
}

// TestStragglerComesLast looks for the straggler as a user would: which rank keeps the others
// waiting?
func TestStragglerComesLast(t *testing.T) {
	r := testinput.Play(t, 2, testinput.TwoHosts)
	c := torch.DefaultConfig(r)
	truth, err := torch.WriteDir(t.TempDir(), r, c)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range truth.Files {
		slow := f.Rank == r.Truth().Straggler.Rank
		if slow != (f.WaitNs == 0) || slow != (f.LastArrivals == f.Collectives) || f.Collectives == 0 {
			t.Errorf("%s: last in %d of %d collectives, waits for %d ns", f.Rank, f.LastArrivals, f.Collectives, f.WaitNs)
		}
	}
}

// TestStepsAgreeWithSpans compares step annotations with the OTLP spans of the same rank, both on
// the clock of its host.
func TestStepsAgreeWithSpans(t *testing.T) {
	for _, change := range []func(*simulator.Config){
		func(c *simulator.Config) { c.DecodeDrift = -30 },
		testinput.TwoHosts,
		func(c *simulator.Config) {
			c.Mode, c.Unified, c.Straggler.Factor = simulator.Unified, simulator.Parallel{TP: 2, PP: 2, DP: 2}, 0
		},
	} {
		r := testinput.PlaySmall(t, 4, change)
		c := torch.DefaultConfig(r)
		c.Layers, c.Stacks, c.To = 2, 0, c.From+300*time.Millisecond
		scheduled, ended := schedules(t, r)
		for _, tr := range testinput.ReadTraces(t, r, c) {
			steps := tr.Steps()
			if len(steps) == 0 {
				t.Errorf("%s has no steps", tr.Truth.Name)
			}
			for _, e := range steps {
				var size, tokens int
				mode := "decode"
				if strings.HasPrefix(e.Name, "step[EXTEND") {
					mode = "prefill"
					fmt.Sscanf(e.Name, "step[EXTEND bs=%d toks=%d]", &size, &tokens)
				} else {
					fmt.Sscanf(e.Name, "step[DECODE bs=%d]", &size)
				}
				of := fmt.Sprintf("%s/%d", tr.Host.ID, tr.Truth.PID)
				if !within(scheduled[fmt.Sprint(of, "/", size, "/", mode)], e.Start-11_000, e.Start-9_000) {
					t.Errorf("%s: no batch of %d is scheduled for a %s at %d", tr.Truth.Name, size, e.Name, e.Start)
				}
				if mode == "decode" && r.Instances[0].Size.PP == 1 && !within(ended[of], e.End, e.End+2_000) {
					t.Errorf("%s: no decode_loop ends with a %s at %d", tr.Truth.Name, e.Name, e.End)
				}
			}
		}
	}
}

// schedules returns the times of the schedule events in the OTLP dump of a run by host, pid, batch
// size, and mode, and the ends of decode_loop by host and pid.
func schedules(t *testing.T, r *simulator.Run) (scheduled, ended map[string][]int64) {
	t.Helper()
	scheduled, ended = map[string][]int64{}, map[string][]int64{}
	for _, s := range testinput.ReadSpans(t, r).Spans {
		if s.Layer() != testinput.LayerThread && s.Layer() != testinput.LayerSlice {
			continue
		}
		a := s.Thread().Attributes
		of := a.Text("host_id") + "/" + a.Text("pid")
		if s.Name == "decode_loop" {
			ended[of] = append(ended[of], s.End)
		}
		for _, e := range s.Events {
			k := of + "/" + e.Attributes.Text("batch_size") + "/" + e.Attributes.Text("forward_mode")
			scheduled[k] = append(scheduled[k], e.Time)
		}
	}
	return scheduled, ended
}

// within reports whether any of the times lies between from and to.
func within(times []int64, from, to int64) bool {
	return slices.ContainsFunc(times, func(t int64) bool { return from <= t && t <= to })
}
