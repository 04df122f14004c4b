package collective

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/gpu"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/profile/kernelname"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// lateRank returns four ranks that meet every millisecond; TP2 arrives 100 us late.
func lateRank() *Collectives {
	r := rand.New(rand.NewPCG(7, 7))
	s := newSyncPoints("TP0", "TP1", "TP2", "TP3", "TP9")
	for i := range int64(400) {
		end := (i + 1) * 1_000_000
		var x []int64
		for rank := range 4 {
			dur := 150_000 + r.Int64N(20_000)
			if rank == 2 {
				dur -= 100_000
			}
			x = append(x, end-dur, dur)
		}
		s.meet(x...)
	}
	return Measure(s.Set, 0, 0)
}

// devices returns the time of the four ranks' devices over 400 ms. TP2 has extra
// time in kernels, and host and other add to its idle time.
func devices(extra map[string]int64, host, other int64) *gpu.GPUs {
	g := &gpu.GPUs{}
	for rank := range int32(4) {
		device := gpu.GPU{RankIndex: rank}
		device.Idle.Time = [gpu.NumCauses]int64{gpu.HostWait: 2_000_000, gpu.OtherWait: 1_000_000}
		if rank == 2 {
			device.Idle.Time[gpu.HostWait] += host
			device.Idle.Time[gpu.OtherWait] += other
		}
		g.GPUs = append(g.GPUs, device)
		for i, name := range []string{"void fused_moe<float, 8>(int*)", "gemm", "norm"} {
			k := gpu.RankKernel{Name: name, Class: kernelname.ClassCompute, RankIndex: rank, Summary: distribution.Summary{N: 400, Total: 100_000_000}}
			k.Sym = trace.Sym(i + 1)
			if rank == 2 {
				k.Summary.Total += extra[name]
			}
			g.Kernels = append(g.Kernels, k)
		}
		all := gpu.RankKernel{Name: "all-reduce", Class: kernelname.ClassCommunication, RankIndex: rank, Sym: 9, Summary: distribution.Summary{Total: 60_000_000}}
		if rank == 2 {
			all.Summary.Total = 20_000_000
			if n := extra["extra"]; n > 0 {
				g.Kernels = append(g.Kernels, gpu.RankKernel{Name: "extra", Class: kernelname.ClassCompute, RankIndex: 2, Sym: 8, Summary: distribution.Summary{Total: n}})
			}
		}
		g.Kernels = append(g.Kernels, all)
	}
	return g
}

// The cause of a straggler is the largest part of its lateness.
func TestCauseOfStraggler(t *testing.T) {
	const moe = "void fused_moe<float, 8>(int*)"
	for _, c := range []struct {
		name        string
		extra       map[string]int64
		host, other int64
		want        string
	}{
		{"one kernel", map[string]int64{moe: 40_000_000}, 0, 0, "compute-bound: its `fused_moe` kernels run 40 % longer"},
		{"one kernel and more", map[string]int64{moe: 27_000_000, "gemm": 13_000_000}, 0, 0, "compute-bound: its `fused_moe` kernels run 27 % longer, and so do other kernels"},
		{"two kernels", map[string]int64{moe: 20_000_000, "gemm": 19_000_000, "norm": 2_000_000}, 0, 0, "compute-bound: its kernels run 14 % longer, `fused_moe` most of all"},
		{"all kernels", map[string]int64{moe: 14_000_000, "gemm": 13_000_000, "norm": 13_000_000}, 0, 0,
			"compute-bound: its kernels run 13 % longer, nearly all of them, as if its GPU clock were lower"},
		{"a kernel of its own", map[string]int64{"extra": 40_000_000}, 0, 0, "compute-bound: it runs `extra`, which the other ranks do not"},
		{"launches", nil, 40_000_000, 0, "host-bound: its GPU idles longer because the host launches work later"},
		{"mostly launches", map[string]int64{moe: 10_000_000}, 30_000_000, 0, "host-bound: its GPU idles longer because the host launches work later"},
		{"idle", nil, 0, 40_000_000, "its GPU idles longer, although work was launched or its launch time is unknown"},
		{"nothing", nil, 0, 0, "neither compute nor idle time explains it"},
		{"too little", map[string]int64{moe: 10_000_000}, 5_000_000, 0, "neither compute nor idle time explains it"},
	} {
		found := lateRank().Stragglers(devices(c.extra, c.host, c.other))
		if len(found) != 1 || found[0].Rank != 2 || found[0].Name != "TP2" || found[0].Last != 400 {
			t.Fatalf("%s: found %+v", c.name, found)
		}
		if found[0].Cause != c.want {
			t.Errorf("%s: %s, want %s", c.name, found[0].Cause, c.want)
		}
	}
	once := devices(map[string]int64{moe: 40_000_000}, 0, 0) // the same excess, but in a single kernel
	for i := range once.Kernels {
		k := &once.Kernels[i]
		if k.Summary.Max = 250_000; k.RankIndex == 2 && k.Name == moe {
			k.Summary.Max = 40_250_000
		}
	}
	if found := lateRank().Stragglers(once); found[0].Cause != "compute-bound: one of its `fused_moe` kernels runs for 40.2 ms" {
		t.Errorf("one kernel once: %s", found[0].Cause)
	}
	for want, names := range map[string][]string{ // kernels that run more often, in proportion to their excess
		"it runs `fused_moe` 1.40 times as often, each time for as long":          {moe},
		"it runs nearly all of its kernels 1.40 times as often, each for as long": {moe, "gemm", "norm"},
	} {
		extra := map[string]int64{}
		for _, name := range names {
			extra[name] = 40_000_000
		}
		often := devices(extra, 0, 0)
		for i := range often.Kernels {
			if k := &often.Kernels[i]; k.RankIndex == 2 && extra[k.Name] > 0 {
				k.Summary.N = 560
			}
		}
		if found := lateRank().Stragglers(often); found[0].Cause != "compute-bound: "+want {
			t.Errorf("more often: %s, want %s", found[0].Cause, want)
		}
	}
	meets := devices(nil, 40_000_000, 0)
	for i := range meets.GPUs {
		if g := &meets.GPUs[i]; g.RankIndex == 2 {
			g.Waits.Time[gpu.Meeting] = 40_000_000 // all of its host's delay
		}
	}
	if found := lateRank().Stragglers(meets); found[0].Cause != "its GPU idles longer while its host is in gloo collectives" {
		t.Errorf("in gloo: %s", found[0].Cause)
	}
	found := lateRank().Stragglers(devices(map[string]int64{moe: 36_000_000}, 8_000_000, -390_000)) // -0.975 us of 100 is too little to mention
	want := "per collective it arrives 100 us later than the median of the other ranks; it computes 90 us longer; it idles 20 us longer while it waits for a launch"
	if got := found[0].Evidence[len(found[0].Evidence)-1].Text; got != want {
		t.Errorf("evidence %s, want %s", got, want)
	}
}

// The cost of a straggler appears in words and in its finding.
func TestVerdictOnCollectives(t *testing.T) {
	c := lateRank()
	found := c.Stragglers(nil)
	text := "TP2 arrives last in 400 of 400 collectives of 4 ranks, 100 us late on average; the other ranks lose 10 % of the time between collectives"
	if v := c.Verdict(found); len(v) != 1 || v[0] != text {
		t.Errorf("verdict %q, want %q", v, text)
	}
	f, check := c.Findings(nil)
	if check.State() != finding.LookedAt || check.N != 400 {
		t.Errorf("judged %+v", check)
	}
	if len(f) != 1 || f[0].Text != text || f[0].At.Rank.TP != 2 || f[0].At.Role != request.Other {
		t.Fatalf("findings %+v", f)
	}
	// Three of four ranks wait for a tenth of the time.
	if cost := f[0].Cost; cost < 0.07 || cost > 0.08 {
		t.Errorf("cost %v", cost)
	}
	if v := c.Verdict(nil); len(v) != 1 || !strings.HasPrefix(v[0], "no straggler: in 400 collectives of 4 ranks, no rank is repeatedly late") {
		t.Errorf("verdict on nothing %q", v)
	}
	few := threeRanks()
	if v := Measure(few.Set, 0, 0).Verdict(nil); len(v) != 1 || v[0] != "not enough data to find stragglers: 4 collectives" {
		t.Errorf("verdict on few %q", v)
	}
	if _, check := Measure(few.Set, 0, 0).Findings(nil); check.State() != finding.TooLittle || check.N != 4 {
		t.Errorf("few are judged %+v", check)
	}
	if v := Measure(newSyncPoints("TP0").Set, 0, 0); v.Verdict(nil) != nil || v.Reports() != nil {
		t.Errorf("verdict on one rank %q", v.Verdict(nil))
	}
}

func TestWhereIs(t *testing.T) {
	for name, want := range map[string]place.Location{
		"decode DP0 TP1 (node7)": {Role: request.Decode},
		"DP0 PP0 TP1 EP0":        {Role: request.Other},
		"prefill DP0 TP1":        {Role: request.Prefill},
	} {
		got := place.Named(name)
		if got.Scope != place.OneRank || got.Role != want.Role || got.Rank.TP != 1 || got.Rank.DP != 0 && got.Rank.DP != -1 || got.Host != "" {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if at := place.Named("python 4711").Rank; at.TP != -1 || at.DP != -1 {
		t.Errorf("a process is at %+v", at)
	}
}

// A rank that several groups wait for is reported once, for the group that loses the most time.
func TestStragglerOfTwoGroups(t *testing.T) {
	s := newSyncPoints("TP0", "TP1", "TP2", "TP3")
	for end := int64(1_000_000); end < 400_000_000; end += 1_000_000 {
		s.meet(end-90_000, 90_000, end-90_000, 90_000, end-20_000, 20_000, end-90_000, 90_000)
		end += 1_000_000
		s.meet(-1, 0, end-90_000, 90_000, end-20_000, 20_000, -1, 0)
	}
	c := Measure(s.Set, 0, 0)
	if len(c.peerGroups) != 2 || len(c.peerGroups[1].gathering.Stragglers()) != 1 {
		t.Fatalf("%d crowds", len(c.peerGroups))
	}
	if found := c.Stragglers(nil); len(found) != 1 || found[0].Name != "TP2" || found[0].Group != "4 ranks" {
		t.Errorf("found %+v", found)
	}
}
