package recorder

import (
	"cmp"
	"slices"

	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/internal/order"
)

// ExpertCounts are a server's counts of one recording: the sum of the dumps of its ranks.
type ExpertCounts struct {
	ExpertDump // File is the first one
	// Ranks are those in the sum; a file of all ranks has no rank.
	Ranks []int32
	// Times is how often each token is in Counts: ranks that share an attention all count all tokens.
	Times uint32
	// Partial is the number of passes that were dropped because not all ranks have them.
	Partial int
	// Local is the number of GPUs that share the experts, if the counts show that each rank counted only its own
	// experts; else 0.
	Local int
}

// Recordings groups dumps that were recorded together: files in one directory with equal shapes, one for each
// rank, in the order of their times. Files without counts, which only have the placement of experts, do not
// count; they supply the map to recordings in their directory that have none.
func (s *Experts) Recordings() []*ExpertCounts {
	type key struct {
		where           string
		layers, experts int
		physical        bool
	}
	list := order.Only(s.Dumps, func(d *ExpertDump) bool { return len(d.Passes) > 0 })
	slices.SortStableFunc(list, func(a, b *ExpertDump) int { return cmp.Compare(a.Time, b.Time) })
	var groups [][]*ExpertDump
	last := map[key]int{}
	for _, d := range list {
		k := key{d.Where, d.Layers, d.Experts, d.Physical}
		g, ok := last[k]
		if !ok || d.Rank < 0 || slices.ContainsFunc(groups[g], func(o *ExpertDump) bool { return o.Rank == d.Rank || o.Rank < 0 }) {
			g = len(groups)
			groups = append(groups, nil)
			last[k] = g
		}
		groups[g] = append(groups[g], d)
	}
	out := make([]*ExpertCounts, len(groups))
	for i, g := range groups {
		out[i] = addUp(g)
		out[i].locate(s.Dumps)
	}
	slices.SortStableFunc(out, func(a, b *ExpertCounts) int { return cmp.Or(cmp.Compare(a.Time, b.Time), cmp.Compare(a.File, b.File)) })
	return out
}

// locate takes the map from a file in the same directory that has no counts.
func (r *ExpertCounts) locate(all []*ExpertDump) {
	for _, d := range all {
		if len(d.Passes) == 0 && r.Map == nil && d.Where == r.Where && len(d.Map) == r.Layers {
			r.Map = d.Map
		}
	}
}

// addUp adds up the dumps of ranks.
func addUp(dumps []*ExpertDump) *ExpertCounts {
	slices.SortStableFunc(dumps, func(a, b *ExpertDump) int { return cmp.Compare(a.Rank, b.Rank) })
	r := &ExpertCounts{ExpertDump: *dumps[0]}
	for _, d := range dumps {
		if d.Rank >= 0 {
			r.Ranks = append(r.Ranks, d.Rank)
		}
		r.Time = max(r.Time, d.Time)
		if r.Map == nil {
			r.Map = d.Map
		}
	}
	if len(dumps) > 1 || hasTwice(dumps[0].Passes) {
		r.sum(dumps)
	}
	r.Local = local(dumps)
	r.Times = common(r.Counts)
	return r
}

func hasTwice(passes []int64) bool {
	seen := map[int64]bool{}
	for _, p := range passes {
		if seen[p] {
			return true
		}
		seen[p] = true
	}
	return false
}

// sum adds up the passes that the most dumps have, by their numbers. It drops the others.
func (r *ExpertCounts) sum(dumps []*ExpertDump) {
	in := map[int64]int{} // number of dumps with a pass
	for _, d := range dumps {
		seen := map[int64]bool{}
		for _, p := range d.Passes {
			if !seen[p] {
				seen[p] = true
				in[p]++
			}
		}
	}
	most := 0
	for _, n := range in {
		most = max(most, n)
	}
	r.Passes, r.Partial = nil, 0
	place := map[int64]int{}
	for p, n := range in {
		if n == most {
			r.Passes = append(r.Passes, p)
		} else {
			r.Partial++
		}
	}
	slices.Sort(r.Passes)
	for i, p := range r.Passes {
		place[p] = i
	}
	size := r.Layers * r.Experts
	r.Counts = memory.Make[uint32](len(r.Passes) * size)
	for _, d := range dumps {
		for i, p := range d.Passes {
			to, ok := place[p]
			if !ok {
				continue
			}
			sums := r.Counts[to*size : (to+1)*size]
			for k, n := range d.Counts[i*size : (i+1)*size] {
				sums[k] += n
			}
		}
	}
}

// local returns the number of ranks if each of them counted its own part of the experts, and nothing else;
// otherwise 0.
func local(dumps []*ExpertDump) int {
	n := len(dumps)
	if n < 2 || !dumps[0].Physical || dumps[0].Experts%n != 0 {
		return 0
	}
	own := dumps[0].Experts / n
	for i, d := range dumps {
		if int(d.Rank) != i {
			return 0
		}
		for k, c := range d.Counts {
			if c != 0 && k%d.Experts/own != i {
				return 0
			}
		}
	}
	return n
}

// fewCounts is the number of counts that shows a common factor: with that many, all are even by chance with a
// probability of one in a million.
const fewCounts = 20

// common returns the greatest common divisor of the counts; 1 if there are too few.
func common(counts []uint32) uint32 {
	g, n := uint32(0), 0
	for _, c := range counts {
		if c == 0 {
			continue
		}
		n++
		for c != 0 {
			g, c = c, g%c
		}
		if g == 1 && n >= fewCounts {
			return 1
		}
	}
	if n < fewCounts {
		return 1
	}
	return max(g, 1)
}
