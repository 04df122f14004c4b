package finders

import (
	"math"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/collective"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/gaps"
	"github.com/sgtrace/sgtrace/analyze/gpu"
	"github.com/sgtrace/sgtrace/analyze/gpuloss"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/analyze/straggler"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/profile/kernelname"
	"github.com/sgtrace/sgtrace/testkit/testset"
	"github.com/sgtrace/sgtrace/trace"
)

// plantedWaits has three ranks that meet every millisecond: TP1 comes first us late to the first 120
// meetings, and TP2 600 us to the next 80. All then transfer for transfer us. With byHost, the hosts
// launch that much later, too. For the share unmatched of the communication, it is unknown who met.
func plantedWaits(first, transfer int64, byHost bool, unmatched float64) *Measured {
	const us = 1000
	met := &testset.CollectiveMatches{}
	set := &profile.Set{Syms: trace.NewSymbols(), Ranks: []string{"TP0", "TP1", "TP2"}, Collectives: met}
	name := set.Syms.Intern("void (anonymous namespace)::all_reduce_two_shot_kernel<bf16>(Params)")
	collector := gaps.Collect(set)
	m := &Measured{Of: Inputs{Profiles: set}, GPUs: &gpu.GPUs{}, Gaps: &gaps.Gaps{}}
	for rank := range int32(3) {
		g := gpu.GPU{Rank: set.Ranks[rank], RankIndex: rank, Last: 200_000 * us, Rows: 1000}
		for i := range int64(200) {
			end := trace.Time((i + 1) * 1000 * us)
			late := rank == 1 && i < 120 || rank == 2 && i >= 120
			by := int64(600)
			if i < 120 {
				by = first
			}
			start := end - trace.Time((by+transfer)*us)
			if late {
				if start += trace.Time(by * us); byHost {
					gap := gpu.Gap{From: start - trace.Time(by*us), To: start}
					collector.Add(&gpu.IdleGap{Rank: rank, Gap: gap, Late: true, Launch: gap.To - 1, Launched: 1, Parts: []gpu.GapPart{{Gap: gap, Reason: gpu.HostWork}}})
				}
			}
			if rank == 0 {
				met.Points = append(met.Points, profile.CollectiveMatch{Name: name, In: -1, Out: -1, GroupSize: -1, Sync: true})
			}
			x := &met.Points[i]
			x.Arrivals = append(x.Arrivals, profile.Arrival{Rank: rank, Start: start, End: end})
			known := float64(i) >= unmatched*200
			met.Kernels = append(met.Kernels, profile.Part{Rank: rank, Matched: known, Collective: profile.Collective{Name: name, Time: start, Dur: int64(end - start), OnGPU: true}})
			g.Running[1<<kernelname.ClassCommunication] += int64(end - start)
		}
		g.Running[1<<kernelname.ClassCompute] = 200_000*us - g.Running[1<<kernelname.ClassCommunication]
		m.GPUs.GPUs = append(m.GPUs.GPUs, g)
	}
	met.Points = met.Points[int(unmatched*200):]
	m.Collectives = collective.Measure(set, 0, 0)
	collector.Measure(gaps.Options{Keep: true})
	m.waits = newWaits(m, collector)
	return m
}

// If exposed communication is mostly waiting, the finding says so, next to the one about transfers, and
// both together cost the time once. If too little of it is matched, the share of waiting is not reported.
func TestWaitingLeads(t *testing.T) {
	find := func(m *Measured) []finding.Finding {
		var list []Finder
		for _, f := range All {
			if f.Doc == "a rank that its group waits for in collectives" || f.Doc == "devices that communicate without computing at the same time" {
				list = append(list, f)
			}
		}
		r := m.Look(list)
		return r.Findings
	}
	const waits = "the 3 GPUs wait 40 % of the time in collectives, for TP1 until 00:00:00.120, then for TP2"
	for name, c := range map[string]struct {
		m    *Measured
		want []string // prefixes of the texts
		cost float64  // of all findings
	}{
		"hosts are late": {plantedWaits(600, 50, true, 0), []string{waits + ", whose hosts launch late: their GPUs wait 120 ms for them then"}, 0.4},
		"nobody knows":   {plantedWaits(600, 50, false, 0), []string{waits}, 0.4},
		"transfers":      {plantedWaits(600, 350, false, 0), []string{waits, "the 3 GPUs spend 35 % of the time on exposed transfers of collectives"}, 0.75},
		"a few waits":    {plantedWaits(0, 350, false, 0), []string{"the 3 GPUs spend 51 % of the time on exposed communication", "TP2 arrives last in 80 of 80 collectives"}, 0.51},
		"half is known":  {plantedWaits(600, 50, true, 0.5), []string{"TP2 arrives last in 80 of 80 collectives"}, 0.16},
	} {
		found, cost := find(c.m), 0.0
		for i := range found {
			if cost += found[i].Cost; i >= len(c.want) || !strings.HasPrefix(found[i].Text, c.want[i]) {
				t.Errorf("%s: %s, want %q", name, found[i].Text, c.want)
			}
		}
		if len(found) != len(c.want) || math.Abs(cost-c.cost) > 0.001 {
			t.Errorf("%s: %d findings cost %v, want %v", name, len(found), cost, c.cost)
		}
	}
}

// A spell that is one long wait is described as that, and a late rank together with the reason on its host or GPU.
func TestOneLongWait(t *testing.T) {
	w := &waits{waiting: 70, length: 100, waited: collective.Waited{Wait: 70}}
	for _, s := range []straggler.Spell{{Rank: 1, To: 4e9, SyncPoints: 50, Last: 30, Lost: 20}, {Rank: 1, From: 4e9, SyncPoints: 50, Last: 20, Lost: 50, Bulk: straggler.Bulk{N: 1, Lost: 48, At: 5e9}}} {
		w.late = append(w.late, lateRank{spell: &s, name: "TP1", host: gaps.Late{Time: 1e6}, blind: true})
	}
	const want = "the GPUs wait 70 % of the time in collectives, for TP1 until 00:00:04.000, then for TP1 (96 % of that in one collective that ended at 00:00:05.000), whose host launches late: its GPU waits 2 ms for it then"
	if got := w.text("the GPUs wait"); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	w.waited.Lacking = true
	if got := w.evidence(&gaps.Gaps{})[0].Text; !strings.HasSuffix(got, "0 % is data transfer, or waiting for ranks that are not in the files") {
		t.Error(got)
	}
	w.late[1].later, w.late[1].name, w.late[1].why = 1e9, "TP2", "compute-bound: its kernels run 20 % longer"
	if got, want := w.because(w.told()), "; the host of TP1 launches late, TP2 is compute-bound"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	w.late[1].why = ""
	if got := w.because(w.told()); got != "" {
		t.Errorf("nobody knows why one of them is late: %s", got)
	}
	if got, want := w.late[1].reason(), "the capture does not show what its host did"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// If some communication is hidden, it may be the waiting or the transfers: 32 ms of waiting
// and 15 ms of transfers, 12 ms of them hidden, leave at least 20 ms and 3 ms exposed.
func TestWaitingMayBeHidden(t *testing.T) {
	w := &waits{waiting: 20, atMost: 32, exposed: 35, length: 100, waited: collective.Waited{Wait: 32}}
	if got := w.text("the GPUs wait"); !strings.HasPrefix(got, "the GPUs wait at least 20 % of the time in collectives") {
		t.Error(got)
	}
	if got := w.evidence(&gaps.Gaps{})[0].Text; !strings.HasSuffix(got, "is 35 % of the time: at least 20 % is waiting for late ranks, at least 3 % is data transfer") {
		t.Error(got)
	}
	if w.atMost = 35; !strings.HasSuffix(w.evidence(&gaps.Gaps{})[0].Text, ", and some of the rest may be, too") {
		t.Error(w.evidence(&gaps.Gaps{})[0].Text)
	}
}

// If all ranks of one host come late, that is one finding. It is not if only some of them
// do, if ranks of two hosts do, or if the host has all ranks.
func TestRanksOfOneHost(t *testing.T) {
	for name, c := range map[string]struct {
		hosts, late []string
		want        string
		cost        float64
	}{
		"one host":      {[]string{"a", "b", "b"}, []string{"TP1", "TP2"}, "all 2 ranks of b keep those of other hosts waiting: TP1 is late", 0.15},
		"some of it":    {[]string{"a", "b", "b"}, []string{"TP1"}, "TP1 is late", 0.1},
		"two hosts":     {[]string{"a", "b", "b"}, []string{"TP0", "TP1"}, "TP0 is late", 0.1},
		"no other host": {[]string{"b", "b", ""}, []string{"TP0", "TP1"}, "TP0 is late", 0.1},
		"nobody knows":  {[]string{"a", "", ""}, []string{"TP1", "TP2"}, "TP1 is late", 0.1},
	} {
		set := &profile.Set{Ranks: []string{"TP0", "TP1", "TP2"}}
		for _, host := range c.hosts {
			set.Placements = append(set.Placements, profile.Placement{Host: host})
		}
		var found []finding.Finding
		for i, rank := range c.late {
			found = append(found, finding.Finding{Rank: rank, Text: rank + " is late", Cost: 0.1 / float64(1+i)})
		}
		m := &Measured{}
		m.Of.Profiles = set
		got := m.joinHost(found)
		if got[0].Text != c.want || math.Abs(got[0].Cost-c.cost) > 1e-9 || len(got) != len(found) && !strings.HasPrefix(got[0].Text, "all") {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// Calls that cover only a thousandth of a host's delay do not explain it.
func TestLittleIsKnownOfHosts(t *testing.T) {
	for known, want := range map[int64]string{1e5: ", for most of that with nothing recorded of what it does", 9e7: ", while the host is in cudaGraphLaunch for 90 ms"} {
		l := &lateRank{spell: &straggler.Spell{Rank: 1}, name: "TP1", host: gaps.Late{Time: 1e8, Causes: []gaps.Work{{Where: "cudaGraphLaunch", Time: known}}}}
		if got := (&waits{}).because([]*lateRank{l}); got != ", whose host launches late: its GPU waits 100 ms for it then"+want {
			t.Errorf("%d: %s", known, got)
		}
	}
}

// If steps of one kind wait much, the finding says so, even if communication is small overall.
func TestWaitingInSteps(t *testing.T) {
	m := plantedWaits(600, 50, false, 0)
	m.waits = nil
	for i := range m.GPUs.GPUs {
		g := &m.GPUs.GPUs[i]
		g.BySteps[profile.StepDecode].Running = g.Running
		g.BySteps[profile.StepPrefill].Running[1<<kernelname.ClassCompute] = 1_000_000_000
		g.Running[1<<kernelname.ClassCompute] += 1_000_000_000
		g.Last += 1_000_000_000
		r := m.Collectives.Ranks[i]
		m.Collectives.ByStep = append(m.Collectives.ByStep, collective.StepRank{Kind: profile.StepDecode, Rank: r})
	}
	found, _ := exposure(m)
	const want = "in decode, the 3 GPUs wait 40 % of the time in collectives, 60 % of that for TP1"
	for i := range m.Collectives.ByStep { // as if all waits were equally long
		m.Collectives.ByStep[i].Blame = 1000 + int64(i)
	}
	const even = "in decode, the 3 GPUs wait 40 % of the time in collectives, for each other: 33 % of that for TP2, and no more for any other"
	if evenly, _ := exposure(m); len(evenly) != 1 || evenly[0].Text != even {
		t.Errorf("%+v, want %s", evenly, even)
	}
	if len(found) != 1 || found[0].Text != want || math.Abs(found[0].Cost-0.4/6) > 0.001 || found[0].Metric.Name != "waiting in collectives in decode" {
		t.Errorf("%+v, want %s", found, want)
	}
}

// A straggler is mentioned in addition to the ranks that the others wait for most.
func TestStragglerBeside(t *testing.T) {
	m := plantedWaits(600, 50, true, 0.5)
	w := &waits{length: 600_000_000, late: []lateRank{{name: "TP1", spell: &straggler.Spell{Lost: 1}}}}
	if got, want := w.beside(m), "; beside that, they wait 16 % of the time for TP2, which comes last in 80 of 80 collectives"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if w.late[0].name = "TP2"; w.beside(m) != "" {
		t.Error("it is told twice")
	}
}

// If devices idle longer than the others, and the others wait for their ranks, that is one finding. It costs the
// waits plus the extra idle time.
func TestLateByIdling(t *testing.T) {
	for name, c := range map[string]struct {
		kind finding.Kind
		idle [3]float64 // shares of the time
		cost float64    // of a single finding; 0 if there are two
	}{
		"those waited for": {finding.GPU, [3]float64{0.1, 0.4, 0.4}, 0.4 + 0.6/3},
		"all of them":      {finding.GPU, [3]float64{0.3, 0.4, 0.3}, 0},
		"those who wait":   {finding.GPU, [3]float64{0.6, 0.1, 0.1}, 0},
		"the late one":     {finding.Straggler, [3]float64{0.1, 0.7, 0.1}, 0.4 + 0.6/3},
		"another one":      {finding.Straggler, [3]float64{0.1, 0.1, 0.7}, 0},
	} {
		m := plantedWaits(600, 50, false, 0)
		idle := finding.Finding{Kind: finding.GPU, Subkind: gpuloss.HostSubkind, Text: "GPUs are idle", CostBasis: finding.GPUTime, Metric: finding.Metric{Name: gpuloss.IdleMetric}}
		for i := range m.GPUs.GPUs {
			g := &m.GPUs.GPUs[i]
			g.Waits.Time[gpu.HostWork] = int64(c.idle[i] * 200e6)
			idle.Cost += c.idle[i] / 3
		}
		late := finding.Finding{Kind: c.kind, Text: "TP1 is late", Cost: 0.4, CostBasis: finding.GPUTime, Metric: finding.Metric{Name: gpuloss.WaitMetric}}
		if c.kind == finding.Straggler {
			late.At = place.Named("TP1")
		}
		found := finding.Merge([]finding.Finding{idle, late}, m.lateByIdling())
		switch {
		case c.cost == 0 && len(found) == 2:
		case c.cost == 0 || len(found) != 1 || math.Abs(found[0].Cost-c.cost) > 0.001:
			t.Errorf("%s: %+v, want %v", name, found, c.cost)
		case (c.kind == finding.Straggler) != (found[0].Text == "TP1 is late; GPUs are idle"):
			t.Errorf("%s: %s", name, found[0].Text)
		}
	}
}
