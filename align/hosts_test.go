package align

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/sgtrace/sgtrace/align/matching"
)

// A hostRun has ranks that meet on their hosts once per step, as in gloo's all-reduce, each on its own clock.
type hostRun struct {
	ranks  []matching.Rank
	names  *matching.Names
	begins []int   // the step at which the recording of each rank begins
	ahead  []int64 // each clock
}

// newHostRun makes n steps of 9 ms plus up to uneven ns. In each, the last rank comes at least 2 ms before all of
// them leave, within 0.3 ms.
func newHostRun(rng *rand.Rand, ranks, n int, uneven int64, ahead []int64) *hostRun {
	r := &hostRun{names: &matching.Names{}, ahead: ahead}
	comm, call := r.names.Comm(matching.Comm{Group: "TP ranks"}), r.names.Call(matching.Call{Op: "gloo:all_reduce"})
	lists := make([]calls, ranks)
	for i := range ranks {
		r.begins = append(r.begins, rng.IntN(4)*i)
	}
	at := int64(1_790_000_000_000_000_000)
	for k := range n {
		at += 9_000_000 + rng.Int64N(uneven)
		for i := range ranks {
			if k < r.begins[i] {
				continue
			}
			from, to := at-2_000_000-rng.Int64N(4_000_000), at+rng.Int64N(300_000)
			lists[i] = append(lists[i], matching.Collective{Start: from + ahead[i], End: to + ahead[i], Seq: -1, Comm: comm, Call: call, Step: -1})
		}
	}
	for i := range ranks {
		r.ranks = append(r.ranks, matching.Rank{Clock: i, Global: int32(i), Calls: lists[i]})
	}
	return r
}

// Matching finds the meetings of hosts with clocks that are any distance apart, and they bound
// the clocks, though their ends are less exact than those on devices.
func TestMeetingsOfHosts(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 7))
		ahead := []int64{0, 1_000_000_000 + rng.Int64N(9_000_000_000), -1_000_000_000 - rng.Int64N(9_000_000_000), 1_000_000}
		r := newHostRun(rng, 4, 60, 1_500_000, ahead)
		matches, _ := matching.FindOnHosts(r.ranks, r.names)
		found := 0
		for _, m := range matches.All() {
			found += len(m.Members)
			for _, x := range m.Members {
				if step, want := int(x.Index)+r.begins[x.Rank], int(m.Members[0].Index)+r.begins[m.Members[0].Rank]; step != want {
					t.Fatalf("seed %d: rank %d at step %d is matched with step %d", seed, x.Rank, step, want)
				}
			}
		}
		if found < 210 { // of 240, minus the steps before all ranks were recorded
			t.Errorf("seed %d: %d calls matched", seed, found)
		}
		bounds := MeetBounds(r.ranks, &matches)
		for _, b := range bounds {
			if off := ahead[b.B] - ahead[b.A]; b.Hi < off || b.Lo != NoLo {
				t.Fatalf("seed %d: %+v, and the truth is %d", seed, b, off)
			}
		}
		p := Problem{Clocks: 4, Bounds: bounds, Claims: []bool{true, true, true, true}}
		sol := Solve(p)
		for i := 1; i < 4; i++ {
			f := sol.Clocks[i]
			off := f.Offset - ahead[i]
			if f.By != ByHosts || max(off, -off) > f.Bound || f.Bound > 12_000_000 {
				t.Errorf("seed %d: clock %d is %d ns off: %+v", seed, i, off, f)
			}
		}
		if sol.Clocks[3].Moves() || !sol.Clocks[1].Moves() || !sol.Clocks[2].Moves() || len(sol.Conflicts) != 0 {
			t.Errorf("seed %d: a clock that may be right moves, or one that is wrong stays: %+v", seed, sol.Clocks)
		}
	}
}

// Matches depend neither on what clocks show nor on which other ranks were recorded.
func TestMeetingsOfHostsHold(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	pairs := func(r *hostRun) (list [][4]int) {
		matches, _ := matching.FindOnHosts(r.ranks, r.names)
		for _, m := range matches.All() {
			for i, x := range m.Members {
				for _, y := range m.Members[:i] {
					a, b := r.ranks[x.Rank].Global, r.ranks[y.Rank].Global
					list = append(list, [4]int{int(a), int(x.Index), int(b), int(y.Index)})
				}
			}
		}
		slices.SortFunc(list, func(a, b [4]int) int { return slices.Compare(a[:], b[:]) })
		return list
	}
	plain := newHostRun(rand.New(rand.NewPCG(5, 6)), 4, 60, 1_500_000, make([]int64, 4))
	want := pairs(plain)
	for range 10 {
		ahead := []int64{rng.Int64N(1e12), rng.Int64N(1e12), rng.Int64N(1e12), rng.Int64N(1e12)}
		if got := pairs(newHostRun(rand.New(rand.NewPCG(5, 6)), 4, 60, 1_500_000, ahead)); !slices.Equal(got, want) {
			t.Fatalf("clocks ahead by %v: %d pairs, want %d", ahead, len(got), len(want))
		}
	}
	for gone := range 4 {
		r := newHostRun(rand.New(rand.NewPCG(5, 6)), 4, 60, 1_500_000, make([]int64, 4))
		r.ranks = slices.Delete(r.ranks, gone, gone+1)
		left := slices.DeleteFunc(slices.Clone(want), func(p [4]int) bool { return p[0] == gone || p[2] == gone })
		if got := pairs(r); !slices.Equal(got, left) {
			t.Errorf("without rank %d: %d pairs, want %d", gone, len(got), len(left))
		}
	}
}

// If all steps are equally long, gaps cannot identify a step. Then clocks decide, if they agree as
// closely as clocks of one host do.
func TestEvenMeetingsOfHosts(t *testing.T) {
	for name, c := range map[string]struct {
		ahead int64
		want  int // at least
		most  int
	}{"one host": {200_000, 200, 240}, "far apart": {4_000_000_000_000, 0, 0}} {
		r := newHostRun(rand.New(rand.NewPCG(8, 9)), 4, 60, 1000, []int64{0, c.ahead, 2 * c.ahead, 3 * c.ahead})
		matches, _ := matching.FindOnHosts(r.ranks, r.names)
		n := 0
		for _, m := range matches.All() {
			n += len(m.Members)
			for _, x := range m.Members {
				if int(x.Index)+r.begins[x.Rank] != int(m.Members[0].Index)+r.begins[m.Members[0].Rank] {
					t.Fatalf("%s: another step: %+v", name, m)
				}
			}
		}
		if n < c.want || n > c.most {
			t.Errorf("%s: %d calls matched", name, n)
		}
	}
}
