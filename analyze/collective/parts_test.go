package collective

import (
	"math"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// part adds a kernel for 1000 elements of two bytes in a group of eight ranks.
func (s syncPointsOf) part(rank int32, op string, start, dur int64, met bool) *profile.Part {
	s.met.Kernels = append(s.met.Kernels, profile.Part{Rank: rank, Matched: met, Collective: profile.Collective{
		Name: s.Syms.Intern("ncclDevKernel_" + op), Op: s.Syms.Intern(op), Dtype: s.Syms.Intern("BFloat16"), Group: s.Syms.Intern("tp"),
		In: 1000, Out: 1000, GroupSize: 8, Time: trace.Time(start), Dur: dur, OnGPU: true,
	}})
	return &s.met.Kernels[len(s.met.Kernels)-1]
}

// With only one rank in the files, its long kernels waited for ranks without files.
func TestLongKernelsOfOneRank(t *testing.T) {
	s := newSyncPoints("a")
	const us = 1000
	for i := range int64(9) {
		s.part(0, "allreduce", i*1000*us, (20+i)*us, false)
	}
	s.part(0, "allreduce", 10_000*us, 5_024*us, false) // waits
	s.part(0, "broadcast", 20_000*us, 900*us, true)
	c := Measure(s.Set, 0, 0)
	if len(c.Parts) != 2 {
		t.Fatalf("%+v", c.Parts)
	}
	p := c.Parts[0]
	// The median of ten is the fifth, 24 us; the shortest is 20 us.
	most := int64(0)
	for i := range int64(9) {
		most += i * us
	}
	if most += 5_004 * us; p.Name() != "allreduce" || p.Took.N != 10 || p.Alone != 10 || p.Long != 1 || p.LongWait != 5_000*us || p.MostWait != most {
		t.Errorf("%+v, want %d at most", p, most)
	}
	if want := 2 * 7. / 8 * 2000 / (20 * us); math.Abs(p.BusBandwidth()-want) > 1e-9 {
		t.Errorf("%v GB/s, want %v", p.BusBandwidth(), want)
	}
	if b := c.Parts[1]; b.Name() != "broadcast" || b.Alone != 0 || b.MostWait != 0 || b.Long != 0 {
		t.Errorf("%+v", b)
	}
	told := c.Waiting()
	if len(told) != 1 || !strings.HasPrefix(told[0].Text, "a likely waited for ranks that are not in the files: 1 of its 10 `allreduce` took 5 ms longer") {
		t.Errorf("%v", told)
	}
	if told := c.Unseen(); len(told) != 1 || told[0].Text != "of 6.14 ms in collectives, 5.04 ms is beyond the shortest of each kind: waiting for other ranks, or moving more data; the trace of one rank cannot tell which" {
		t.Errorf("%v", told)
	}
	if c.Counts.kernels != 11 || c.Counts.alone != 10 || len(c.Reports()) != 1 {
		t.Errorf("%+v, %d tables", c.Counts, len(c.Reports()))
	}
	if in := Measure(s.Set, 19_000*us, 0); len(in.Parts) != 1 || in.Parts[0].Name() != "broadcast" {
		t.Errorf("in a window: %+v", in.Parts)
	}
}

// Kernels that are only slightly long, or too few, do not count as waits.
func TestKernelsThatAreNotLong(t *testing.T) {
	s := newSyncPoints("a", "b")
	for i := range int64(20) {
		s.part(0, "allreduce", i*1e6, 50_000+(i%2)*90_000, false) // 40 us over twice the median
	}
	for i := range int64(fewestLong - 1) {
		s.part(1, "allreduce", i*1e9, 1000+i*100_000_000, false)
	}
	c := Measure(s.Set, 0, 0)
	for _, p := range c.Parts {
		if p.Long != 0 || p.LongWait != 0 {
			t.Errorf("%+v", p)
		}
	}
	if told := c.Waiting(); told != nil {
		t.Errorf("%v", told)
	}
}

// The matrix of an all-to-all follows the splits, and the amounts that receivers get
// are compared with their mean.
func TestAllToAllMatrix(t *testing.T) {
	s := newSyncPoints("a", "b")
	send := func(rank int32, in int64, splits string) {
		p := s.part(rank, "all_to_allv", 0, 10, true)
		p.In, p.GroupSize, p.Splits = in, 2, s.Syms.Intern(splits)
	}
	send(0, 100, "[1, 3]") // 25 and 75 elements
	send(0, 40, "[]")      // 20 each
	send(1, 60, "[5, 0]")
	send(1, 8, "[1, 1, ...]") // cut off: assumed to be 4 each
	s.part(1, "allreduce", 0, 10, true)
	want := []AllToAll{
		{Rank: "a", Group: "tp", To: 0, N: 2, Bytes: 90}, {Rank: "a", Group: "tp", To: 1, N: 2, Bytes: 190},
		{Rank: "b", Group: "tp", To: 0, N: 2, Bytes: 128, rankIndex: 1}, {Rank: "b", Group: "tp", To: 1, N: 2, Bytes: 8, rankIndex: 1},
	}
	got := Measure(s.Set, 0, 0).AllToAlls
	if len(got) != len(want) {
		t.Fatalf("%+v", got)
	}
	for i := range want {
		want[i].Imbalance = []float64{218. / 208, 198. / 208}[want[i].To]
		if got[i] != want[i] {
			t.Errorf("%+v, want %+v", got[i], want[i])
		}
	}
}

// Waits are separated by prefill and decode, and add up to the total.
func TestWaitsByKindOfStep(t *testing.T) {
	s := newSyncPoints("a", "b")
	s.meet(100, 50, 130, 20).Step = profile.StepPrefill
	s.meet(200, 50, 210, 40).Step = profile.StepDecode
	s.meet(350, 15, 320, 45).Step = profile.StepDecode
	s.meet(400, 10, 405, 5)
	c := Measure(s.Set, 0, 0)
	want := []struct {
		kind profile.StepKind
		rank string
		sync int
		wait int64
	}{
		{profile.StepPrefill, "a", 1, 30}, {profile.StepPrefill, "b", 1, 0}, {profile.StepDecode, "a", 2, 10}, {profile.StepDecode, "b", 2, 30},
		{profile.StepOther, "a", 1, 5}, {profile.StepOther, "b", 1, 0},
	}
	if len(c.ByStep) != len(want) {
		t.Fatalf("%+v", c.ByStep)
	}
	for i, w := range want {
		if r := c.ByStep[i]; r.Kind != w.kind || r.Rank.Rank != w.rank || r.Sync != w.sync || r.Wait != w.wait {
			t.Errorf("%+v, want %+v", r, w)
		}
	}
	s.met.Points = s.met.Points[3:]
	if c := Measure(s.Set, 0, 0); c.ByStep != nil {
		t.Errorf("without steps: %+v", c.ByStep)
	}
}

// In collectives that each rank may leave once it has its own part, a rank waits until
// it leaves or the last rank arrives. Without clocks, the order of arrivals is unknown.
func TestRanksThatLeaveApart(t *testing.T) {
	s := newSyncPoints("a", "b", "c")
	s.meet(100, 50, 110, 100, 130, 60).Apart = true // a receives its part 20 ns after c came
	s.meet(1000, 20, 1010, 100, 1060, 30).Apart = true
	x := s.meet(2000, 50, 2010, 40, 2020, 30)
	x.Apart, x.Bound = true, -1
	c := Measure(s.Set, 0, 0)
	if c.Counts.Sync != 2 || c.Counts.all != 3 || c.Counts.impossible != 0 {
		t.Errorf("%+v", c.Counts)
	}
	for i, want := range []int64{30 + 20, 20 + 50, 0} {
		if got := c.Ranks[i]; got.Wait != want || got.Last != []int{0, 0, 2}[i] {
			t.Errorf("%s waited %d, was last %d times, want %d", got.Rank, got.Wait, got.Last, want)
		}
	}
}
