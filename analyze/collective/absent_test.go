package collective

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/gpu"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// A rank that spends at least a tenth of its time waiting for ranks without files is
// found, if equal sizes show that it has no more to send.
func TestAbsentRanks(t *testing.T) {
	const us = 1000
	s := newSyncPoints("TP0", "TP1")
	for i := range int64(19) {
		s.part(0, "allreduce", i*1000*us, 20*us, false)
		s.part(1, "allreduce", i*1000*us, 20*us, true)
	}
	s.part(0, "allreduce", 20_000*us, 5_020*us, false)
	s.part(1, "allreduce", 20_000*us, 5_020*us, true) // for TP0, for example
	devices := func(ms int64) *gpu.GPUs {
		return &gpu.GPUs{GPUs: []gpu.GPU{{RankIndex: 0, Last: trace.Time(ms * 1000 * us)}, {RankIndex: 1, Last: trace.Time(3 * ms * 1000 * us)}}}
	}
	found, check := Measure(s.Set, 0, 0).Absent(devices(20))
	if len(found) != 1 || check.State() != finding.LookedAt {
		t.Fatalf("%+v, %+v", found, check)
	}
	f := found[0]
	if f.Text != "TP0 waited 25 % of its GPU time in collectives for ranks that are not in the files" || f.Cost != 1./16 || f.At.Rank.TP != 0 || len(f.Evidence) != 1 {
		t.Errorf("%+v", f)
	}
	if found, _ := Measure(s.Set, 0, 0).Absent(devices(51)); found != nil {
		t.Errorf("less than a tenth: %+v", found)
	}
	for i := range s.met.Kernels {
		s.met.Kernels[i].Dtype = 0 // makes the size unknown
	}
	if found, _ := Measure(s.Set, 0, 0).Absent(devices(20)); len(found) != 1 {
		t.Errorf("of unknown size, 250 times as long as those around: %+v", found)
	}
	s.met.Kernels[38].Dur = 300 * us
	if found, _ := Measure(s.Set, 0, 0).Absent(devices(1)); found != nil {
		t.Errorf("of unknown size, and 15 times as long: it may have more to send: %+v", found)
	}
	for i := range s.met.Kernels {
		s.met.Kernels[i].Matched = true
	}
	if _, check := Measure(s.Set, 0, 0).Absent(devices(20)); check.State() != finding.NotApplicable {
		t.Errorf("all ranks are there: %+v", check)
	}
}

// Tasks of collectives name the rank that is waited for. It is reported if it has no file, and nothing is said of all data being transferred.
func TestAwaitedByTasks(t *testing.T) {
	const ms = 1_000_000
	s := newSyncPoints("rank 0", "rank 1")
	hccl := s.Syms.Intern("HCCL 586")
	for i, task := range []profile.CollectiveTasks{{Member: 1, Awaited: 6, AwaitedNs: 30 * ms, AtLeast: 8}, {Member: 2, Awaited: 6, AwaitedNs: 20 * ms, AtLeast: 8}, {Member: 2, Awaited: 1, AwaitedNs: 40 * ms, AtLeast: 8}} {
		s.part(int32(min(i, 1)), "allreduce", int64(i)*100*ms, 45*ms, true)
		k := &s.met.Kernels[i]
		k.Group, k.GroupSize, k.Tasks = hccl, -1, task
	}
	g := &gpu.GPUs{GPUs: []gpu.GPU{{RankIndex: 0, Last: 100 * ms}, {RankIndex: 1, Last: 150 * ms}}}
	c := Measure(s.Set, 0, 0)
	found, _ := c.Absent(g)
	if len(found) != 1 || found[0].Cost != 0.2 || found[0].Text != "the recorded ranks spend 20 % of their GPU time in collectives waiting for rank 5 of `HCCL 586`, which is not in the files" || c.AbsentWait() != 50*ms {
		t.Errorf("%+v, %d", found, c.AbsentWait())
	}
	if g.GPUs[1].Last = 450 * ms; len(c.byTasks(g)) > 0 {
		t.Error("9 % of the time is not much")
	}
}

// Waits of less than a hundredth of the time in collectives are not reported, and
// neither is the time of a kernel that is the only one of its kind.
func TestShortWaitsAreNotTold(t *testing.T) {
	const us = 1000
	for _, c := range []struct {
		wait int64 // us, of one of ten broadcasts; 99 all-reduces of 1 ms are the rest
		told int
	}{{5000, 1}, {3000, 1}, {500, 0}} {
		s := newSyncPoints("a")
		for i := range int64(99) {
			s.part(0, "allreduce", i*1000*us, 1000*us, false)
		}
		for i := range int64(9) {
			s.part(0, "broadcast", (200+i)*1000*us, us, false)
		}
		s.part(0, "broadcast", 300_000*us, (1+c.wait)*us, false)
		if told := Measure(s.Set, 0, 0).Waiting(); len(told) != c.told {
			t.Errorf("%d us: %v", c.wait, told)
		}
	}
	s := newSyncPoints("a")
	s.part(0, "allreduce", 0, 50*us, false)
	if told := Measure(s.Set, 0, 0).Unseen(); told != nil {
		t.Error(told)
	}
}

// If a collective goes on for far longer than others of its kind after all recorded ranks have
// arrived, they wait for a rank that was not recorded. That requires a group with more ranks than
// were seen, according to its size, or because groups of the seen size could not divide the job.
func TestAllThatAreThereWait(t *testing.T) {
	const us = 1000
	for name, c := range map[string]struct {
		size, job int // of the group and of the job; -1 is unknown
		wait      int64
		want      float64 // of GPU time
	}{
		"size of the group":         {4, 4, 2000, 2000. / 20_000},
		"no divisor of the job":     {-1, 4, 3000, 3000. / 20_000},
		"group may be whole":        {-1, 6, 3000, 0},
		"group is whole":            {3, 4, 3000, 0},
		"less than a tenth":         {4, 4, 1900, 0},
		"as others of that kind":    {4, 4, 30, 0},
		"missing ranks are unknown": {4, -1, 3000, 3000. / 20_000},
	} {
		s := newSyncPoints("TP0", "TP1", "TP2")
		if c.job > 0 {
			s.Set.MissingRanks = []profile.MissingRanks{{Seen: 3, Size: c.job}}
		}
		for i := range int64(20) {
			took := int64(40 * us)
			if i == 7 {
				took += c.wait * us
			}
			at := i * 5000 * us
			x := s.meet(at, took+200*us, at+100*us, took+100*us, at+200*us, took)
			if x.GroupSize = int32(c.size); c.size < 0 {
				x.Dtype = 0 // as for kernels in graphs
			}
		}
		g := &gpu.GPUs{}
		for rank := range int32(3) {
			g.GPUs = append(g.GPUs, gpu.GPU{RankIndex: rank, Last: 20_000 * us})
		}
		m := Measure(s.Set, 0, 0)
		found, _ := m.Absent(g)
		if c.want == 0 {
			if found != nil {
				t.Errorf("%s: %+v", name, found)
			}
			continue
		}
		if len(found) != 1 || math.Abs(found[0].Cost-c.want) > 1e-9 || found[0].Confidence != finding.Likely || !strings.Contains(found[0].Evidence[0].Text, "1 of 20") {
			t.Errorf("%s: %+v", name, found)
		}
		if !m.Waited().Lacking {
			t.Errorf("%s: ranks without files may be waited for", name)
		}
		if told := m.Waiting(); !strings.HasSuffix(told[0].Text, "or waiting for ranks that are not in the files") {
			t.Errorf("%s: %v", name, told)
		}
	}
}

// A rank that is absent from most collectives of its peers is reported, unless its own unmatched kernels
// may belong to them, or it is not in their group.
func TestLackingRanks(t *testing.T) {
	for _, c := range []struct {
		name        string
		ranks       []string
		without     int // of 40 collectives, those without the last rank
		sized       bool
		alone       int  // unmatched kernels of the last rank
		noDevice    bool // there is a fourth rank without a device
		wantN, want int  // fields of Lack; 0 means no finding
	}{
		{"half of them", []string{"rank 0", "rank 1", "rank 2"}, 20, true, 0, false, 20, 40},
		{"half of them, beside processes without devices", []string{"rank 0", "rank 1", "rank 2"}, 20, true, 0, true, 20, 40},
		{"all", []string{"rank 0", "rank 1", "rank 2"}, 40, true, 0, false, 40, 40},
		{"all, of a group of unknown size", []string{"rank 0", "rank 1", "rank 2"}, 40, false, 0, false, 0, 0},
		{"all, of tensor parallelism", []string{"TP0 EP0", "TP1 EP1", "TP2 EP2"}, 40, false, 0, false, 40, 40},
		{"all, of another pipeline stage", []string{"TP0 PP0", "TP1 PP0", "TP0 PP1"}, 40, false, 0, false, 0, 0},
		{"a few", []string{"rank 0", "rank 1", "rank 2"}, 3, true, 0, false, 0, 0},
		{"they were not matched", []string{"rank 0", "rank 1", "rank 2"}, 20, true, 20, false, 0, 0},
	} {
		names := c.ranks
		if c.noDevice {
			names = append(slices.Clone(names), "other processes")
		}
		s, g := newSyncPoints(names...), &gpu.GPUs{}
		for i, name := range c.ranks {
			g.GPUs = append(g.GPUs, gpu.GPU{Rank: name, RankIndex: int32(i)})
		}
		for i := range int64(40) {
			last := 1000*i + 20
			if int(i) >= 40-c.without {
				last = -1
			}
			x := s.meet(1000*i, 100, 1000*i+10, 90, last, 80)
			if x.GroupSize = 3; !c.sized {
				x.GroupSize = 0
			}
		}
		for i := range int64(c.alone) {
			s.part(2, "allreduce", 1000*i+20, 80, false)
		}
		got := Measure(s.Set, 0, 0).Lacking(g)
		switch {
		case c.want == 0 && len(got) == 0:
		case len(got) != 1 || got[0] != (Lack{c.ranks[2], c.wantN, c.want}):
			t.Errorf("%s: %+v, want %d of %d", c.name, got, c.wantN, c.want)
		}
	}
}
