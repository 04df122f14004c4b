package naming

import "github.com/sgtrace/sgtrace/trace"

// fields lists the parts of r; -1 is unknown.
func fields(r *trace.Rank) [5]int32 {
	return [5]int32{int32(r.DP), int32(r.PP), int32(r.TP), int32(r.EP), r.Global}
}

// compare counts the parts that a and b both know, and reports whether one of
// them differs.
func compare(a, b trace.Rank) (shared int, differ bool) {
	x, y := fields(&a), fields(&b)
	for i := range x {
		if x[i] >= 0 && y[i] >= 0 {
			shared++
			differ = differ || x[i] != y[i]
		}
	}
	return shared, differ
}

// text is r for messages. Unlike String it has both TP3 and rank 3.
func text(r trace.Rank) string {
	g := trace.NoRank
	g.Global, r.Global = r.Global, -1
	switch {
	case r == trace.NoRank:
		return g.String()
	case g == trace.NoRank:
		return r.String()
	}
	return r.String() + " (" + g.String() + ")"
}

// inWorld reports whether a process with the parts r can be rank global of a
// torch.distributed world of the given size (0 is unknown). The two are
// different notions:
//   - A DP replica may have a world of its own, in which ranks start at 0
//     again, or share one, in which they are shifted by its number.
//   - SGLang's DP attention divides the TP ranks, so that TP alone tells;
//     with PP the rank is PP * TP size + TP.
//   - EP is ignored.
//
// shifted says that r.Global may be the rank inside a replica although r does
// not know the DP rank: vLLM before 0.17.
func inWorld(r trace.Rank, global, size int32, shifted bool) bool {
	switch {
	case size == 1: // alone in its world: says nothing
		return true
	case r.Global >= 0:
		return r.Global == global || r.DP > 0 && shift(global, r.Global, int32(r.DP), size) ||
			shifted && r.DP < 0 && anyShift(global, r.Global, size)
	case r.TP >= 0 && r.PP > 0:
		return shift(global, int32(r.TP), int32(r.PP), size)
	case r.TP >= 0:
		return int32(r.TP) == global
	}
	return true
}

// shift reports whether global = inner + outer * n, for blocks of n > inner ranks
// that divide the world.
func shift(global, inner, outer, size int32) bool {
	d := global - inner
	return d > 0 && d%outer == 0 && d/outer > inner && (size <= 0 || size%(d/outer) == 0)
}

// anyShift is shift for some outer > 0.
func anyShift(global, inner, size int32) bool {
	const most = 1 << 20 // no world is that large; a damaged header may say so
	for n := inner + 1; n <= min(global-inner, size-1, most); n++ {
		if size%n == 0 && (global-inner)%n == 0 {
			return true
		}
	}
	return false
}
