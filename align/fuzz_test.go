package align

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/sgtrace/sgtrace/align/matching"
	"github.com/sgtrace/sgtrace/trace"
)

// A draw turns bytes into a problem: 0 when they have run out, so that short inputs
// make small ones.
type draw struct{ data []byte }

func (d *draw) byte() int {
	if len(d.data) == 0 {
		return 0
	}
	b := d.data[0]
	d.data = d.data[1:]
	return int(b)
}

func (d *draw) pick(n int) int { return d.byte() % n }

// time returns a time that is near the others, or anywhere in the range of int64.
func (d *draw) time() int64 {
	switch kind := d.byte(); {
	case kind < 200:
		return simBase + int64(d.byte())*1_000_000 + int64(d.byte())*1000
	case kind < 230:
		return int64(d.byte()) - 128
	default:
		var b [8]byte
		for i := range b {
			b[i] = byte(d.byte())
		}
		return int64(binary.LittleEndian.Uint64(b[:]))
	}
}

// problem makes a problem of any kind; it need not make sense.
func (d *draw) problem() (*Problem, *matching.Names) {
	names := &matching.Names{}
	ops := []string{"allreduce", "_allgather_base", "broadcast", "send", "recv", "", "what"}
	p := &Problem{Clocks: 1 + d.pick(6)}
	p.Reference = d.pick(p.Clocks)
	for range d.pick(8) {
		r := matching.Rank{Clock: d.pick(p.Clocks), Job: d.pick(2), Global: int32(d.pick(9)) - 1, Calls: calls{}}
		for range d.pick(40) {
			c := matching.Collective{Start: d.time(), Seq: int64(d.pick(12)) - 1, CommsID: uint64(d.pick(6)), Step: int32(d.pick(4)) - 1}
			c.End = c.Start + int64(d.byte())*1000
			if d.pick(20) == 19 {
				c.End = d.time()
			}
			c.Comm = names.Comm(matching.Comm{Group: []string{"", "tp", "dp"}[d.pick(3)], Size: int32(d.pick(4))})
			c.Call = names.Call(matching.Call{Op: ops[d.pick(len(ops))], In: int64(d.pick(2)), Family: []string{"", "ncclDevKernel_AllReduce"}[d.pick(2)]})
			r.Calls = append(callsOf(r), c)
		}
		p.Ranks = append(p.Ranks, r)
	}
	near := func() int64 { return max(min(d.time()-simBase, 2e18), -2e18) }
	for range d.pick(4) {
		p.Fixed = append(p.Fixed, Fixed{A: d.pick(p.Clocks), B: d.pick(p.Clocks), At: d.time(), Offset: near(),
			DriftPPB: int64(d.byte()-128) * 1000, Bound: int64(d.byte()), Why: trace.SyncGiven})
	}
	for range d.pick(20) {
		b := Bound{A: d.pick(p.Clocks), B: d.pick(p.Clocks), At: d.time(), Lo: NoLo, Hi: NoHi}
		if d.pick(3) > 0 {
			b.Lo = near()
		}
		if d.pick(3) > 0 {
			b.Hi = near()
		}
		p.Bounds = append(p.Bounds, b)
	}
	return p, names
}

// checkMatching checks the invariants that matches promise.
func checkMatching(t *testing.T, p *Problem, report matching.Report) {
	t.Helper()
	seen := map[matching.Member]bool{}
	matched := 0
	for _, m := range p.Matches.All() {
		ranks := map[int32]bool{}
		job := p.Ranks[m.Members[0].Rank].Job
		for _, x := range m.Members {
			if seen[x] || ranks[x.Rank] || p.Ranks[x.Rank].Job != job {
				t.Fatalf("%+v: a member twice, a rank twice, or of another job", m)
			}
			seen[x], ranks[x.Rank] = true, true
			_ = p.Ranks[x.Rank].Calls.At(int(x.Index))
		}
		if len(m.Members) < 2 {
			t.Fatalf("a match of one: %+v", m)
		}
		matched += len(m.Members)
	}
	sum, collectives := 0, 0
	for _, n := range report.Matched {
		sum += n
	}
	for _, r := range p.Ranks {
		collectives += r.Calls.Len()
	}
	if sum != matched || report.Collectives != collectives || report.Alone != collectives-matched {
		t.Fatalf("%+v of %d collectives, %d of which are matched", report, collectives, matched)
	}
}

// checkSolution checks the invariants of every solution.
func checkSolution(t *testing.T, p *Problem, sol *Solution) {
	t.Helper()
	if len(sol.Clocks) != p.Clocks || len(sol.Ranks) != len(p.Ranks) || sol.Components < 1 || sol.Components > p.Clocks {
		t.Fatalf("%d clocks, %d ranks, %d components", len(sol.Clocks), len(sol.Ranks), sol.Components)
	}
	for i, c := range sol.Clocks {
		known := c.Bound != Unknown
		switch {
		case known && (c.Bound < 0 || c.BoundAtT0 < 0), c.DriftBoundPPB < 0, c.From > c.To, c.Matches < 0, c.Trimmed < 0:
			t.Fatalf("clock %d: %+v", i, c)
		case i == p.Reference && (c.Offset != 0 || c.DriftPPB != 0 || c.Bound != 0):
			t.Fatalf("the reference is moved: %+v", c)
		case known != (c.Component == sol.Clocks[p.Reference].Component):
			t.Fatalf("clock %d is known by another component's word: %+v", i, c)
		}
	}
	if !slices.IsSorted(sol.Rejected) || len(sol.Rejected) > 0 && sol.Rejected[len(sol.Rejected)-1] >= p.Matches.Len() {
		t.Fatalf("rejected: %v of %d", sol.Rejected, p.Matches.Len())
	}
}

// solve matches and solves, within a time limit.
func solve(t *testing.T, p *Problem, names *matching.Names) Solution {
	t.Helper()
	clock := time.AfterFunc(20*time.Second, func() { panic(fmt.Sprintf("hangs: %+v", p)) })
	defer clock.Stop()
	var report matching.Report
	p.Matches, report = matching.Find(p.Ranks, names)
	checkMatching(t, p, report)
	p.Bounds = append(p.Bounds, TransferBounds(p.Ranks, names, &p.Matches)...)
	sol := Solve(*p)
	checkSolution(t, p, &sol)
	return sol
}

// FuzzSolve solves nonsensical problems: nothing may panic or hang, bounds may not be negative,
// and neither a second run nor another order of ranks and bounds may change the result.
func FuzzSolve(f *testing.F) {
	rng := rand.New(rand.NewPCG(1, 2))
	for n := range 12 {
		data := make([]byte, n*n*30)
		for i := range data {
			data[i] = byte(rng.IntN(256))
		}
		f.Add(data, uint64(n))
	}
	f.Fuzz(func(t *testing.T, data []byte, seed uint64) {
		make := func() (*Problem, *matching.Names) { return (&draw{data}).problem() }
		p, names := make()
		want := solve(t, p, names)
		p, names = make()
		if again := solve(t, p, names); fmt.Sprint(again) != fmt.Sprint(want) {
			t.Fatalf("the same problem again: %+v, before: %+v", again, want)
		}
		turned, names := make()
		order := rand.New(rand.NewPCG(seed, 3)).Perm(len(turned.Ranks))
		for i, r := range order {
			turned.Ranks[i] = p.Ranks[r]
		}
		rand.New(rand.NewPCG(seed, 4)).Shuffle(len(turned.Bounds), func(i, k int) { turned.Bounds[i], turned.Bounds[k] = turned.Bounds[k], turned.Bounds[i] })
		got := solve(t, turned, names)
		if !distinct(p.Ranks) {
			return // only their order tells equal ranks apart
		}
		if fmt.Sprint(got.Clocks, got.Conflicts) != fmt.Sprint(want.Clocks, want.Conflicts) {
			t.Fatalf("ranks in the order %v: clocks\n%+v\nwant\n%+v\nconflicts %v, want %v", order, got.Clocks, want.Clocks, got.Conflicts, want.Conflicts)
		}
		for i, r := range order {
			if got.Ranks[i] != want.Ranks[r] {
				t.Fatalf("ranks in the order %v: %d is %+v, want %+v", order, i, got.Ranks[i], want.Ranks[r])
			}
		}
	})
}

// distinct reports whether no two ranks are equal in everything that orders them.
func distinct(ranks []matching.Rank) bool {
	for i := range ranks {
		for k := range i {
			if matching.Compare(&ranks[i], &ranks[k]) == 0 {
				return false
			}
		}
	}
	return true
}
