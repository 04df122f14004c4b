package golden

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// meeting is a collective of a group, by Comms Id, or by ordinal if there is none.
type meeting struct {
	group int
	id    string
}

// attendance is a rank in a collective, by true time.
type attendance struct {
	trace      *torchTrace
	event      *torchEvent
	start, end int64
}

// meetings returns the collectives of a recording, and for each the ranks in it in
// the order in which they came.
func meetings(rec *recording) map[meeting][]attendance {
	met := map[meeting][]attendance{}
	for _, tr := range rec.traces {
		ordinal := 0
		for _, e := range tr.ofCategory("kernel") {
			if e.Args["Collective name"] == nil {
				continue
			}
			m := meeting{tr.truth.Group, fmt.Sprint(e.Args["Comms Id"])}
			if !rec.config.WithSeq {
				m.id = fmt.Sprint(ordinal)
			}
			ordinal++
			c := &tr.host.clock
			met[m] = append(met[m], attendance{tr, e, c.undo(e.start), c.undo(e.end)})
		}
	}
	for _, came := range met {
		slices.SortFunc(came, func(a, b attendance) int { return cmp.Compare(a.start, b.start) })
	}
	return met
}

// checkCollectives undoes the clocks of the hosts, and looks whether the ranks of
// a group leave each collective together.
func checkCollectives(t *testing.T, rec *recording) {
	c := &rec.config
	groups, err := Groups(rec.run, *c)
	if err != nil {
		t.Fatal(err)
	}
	counts, lasts := make([]int, len(groups)), map[*torchTrace]int{}
	for m, came := range meetings(rec) {
		counts[m.group]++
		if len(came) != groups[m.group].Size && c.Ragged == 0 {
			t.Fatalf("%d ranks in %s", len(came), m.id)
		}
		last := came[len(came)-1]
		lasts[last.trace]++
		for _, a := range came {
			if off := abs(a.end - last.end); a.end < last.start || off > 6*int64(c.EndJitter)+2 {
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
	for _, tr := range rec.traces {
		if c.Ragged == 0 && !c.Graphs && lasts[tr] != tr.truth.LastArrivals {
			t.Errorf("%s: last in %d collectives, truth %d", tr.truth.Name, lasts[tr], tr.truth.LastArrivals)
		}
	}
}

// Groups returns what truth says about the groups of a recording.
func Groups(r *Run, c TorchConfig) ([]TorchGroup, error) {
	p, err := newProfile(r, c)
	if err != nil {
		return nil, err
	}
	var groups []TorchGroup
	for _, g := range p.groups {
		groups = append(groups, g.truth())
	}
	return groups, nil
}

// TestStragglerComesLast looks for the straggler as a user would: who keeps the
// others waiting?
func TestStragglerComesLast(t *testing.T) {
	r := simulate(t, 2, twoHosts)
	c := DefaultTorchConfig(r)
	truth, err := WriteTorchDir(t.TempDir(), r, c)
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

// TestStepsAgreeWithSpans compares the annotations of steps with the OTLP of the
// same rank, both on the clock of its host.
func TestStepsAgreeWithSpans(t *testing.T) {
	for _, change := range []func(*Config){
		func(c *Config) { c.DecodeDrift = -30 },
		twoHosts,
		func(c *Config) { c.Mode, c.Unified, c.Straggler.Factor = Unified, Parallel{TP: 2, PP: 2, DP: 2}, 0 },
	} {
		r := simulateSmall(t, 4, change)
		c := DefaultTorchConfig(r)
		c.Layers, c.Stacks, c.To = 2, 0, c.From+300*time.Millisecond
		scheduled, ended := schedules(t, r)
		for _, tr := range record(t, r, c) {
			steps := tr.steps()
			if len(steps) == 0 {
				t.Errorf("%s has no steps", tr.truth.Name)
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
				of := fmt.Sprintf("%s/%d", tr.host.id, tr.truth.PID)
				if !within(scheduled[fmt.Sprint(of, "/", size, "/", mode)], e.start-11*us, e.start-9*us) {
					t.Errorf("%s: no batch of %d is scheduled for a %s at %d", tr.truth.Name, size, e.Name, e.start)
				}
				if mode == "decode" && r.instances[0].size.PP == 1 && !within(ended[of], e.end, e.end+2*us) {
					t.Errorf("%s: no decode_loop ends with a %s at %d", tr.truth.Name, e.Name, e.end)
				}
			}
		}
	}
}

// schedules returns the times of the schedule events in the OTLP of a run, by
// host, pid, size and mode, and the ends of decode_loop by host and pid.
func schedules(t *testing.T, r *Run) (scheduled, ended map[string][]int64) {
	t.Helper()
	scheduled, ended = map[string][]int64{}, map[string][]int64{}
	for _, s := range readBack(t, r).spans {
		if s.layer() != layerThread && s.layer() != layerSlice {
			continue
		}
		a := s.thread().Attributes
		of := a.text("host_id") + "/" + a.text("pid")
		if s.Name == "decode_loop" {
			ended[of] = append(ended[of], s.End)
		}
		for _, e := range s.Events {
			k := of + "/" + e.Attributes.text("batch_size") + "/" + e.Attributes.text("forward_mode")
			scheduled[k] = append(scheduled[k], e.Time)
		}
	}
	return scheduled, ended
}

// within reports whether one of some times lies between two others.
func within(times []int64, from, to int64) bool {
	return slices.ContainsFunc(times, func(t int64) bool { return from <= t && t <= to })
}
