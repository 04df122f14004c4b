package diff

import (
	"slices"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/gpu"
	"github.com/sgtrace/sgtrace/analyze/walk"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// addGPUs adds where the time of every device went, a value for each piece, and the tokens that
// it computed.
func (d *Collected) addGPUs(set *profile.Set, window *walk.Options, pieces *diffPieces, work *stepWork, names []string) {
	cuts, before := work.cuts(pieces)
	measured := gpu.Measure(set, gpu.Options{From: window.From, To: window.To, Cuts: cuts})
	if from, to := measured.Bounds(); to > from {
		d.side.widen(from, to)
	}
	groups := map[diffKey]*diffGroup{}
	for i := range measured.GPUs {
		g := &measured.GPUs[i]
		for piece := range g.Pieces[min(before, len(g.Pieces)):] {
			for _, amount := range g.Pieces[before+piece].Amounts() {
				if amount.Time > 0 {
					addTo(groups, diffKey{GPU, amount.Name, names[g.RankIndex]}).add(pieces.first+piece, pieces.n(), amount.Time, d.in)
				}
			}
		}
	}
	d.putAll(groups)
	d.addTokens(measured.Served, pieces)
}

// addCollectives adds how long each rank waited for the last one in collectives, and how
// much later than the median of the ranks it came.
func (d *Collected) addCollectives(set *profile.Set, window *walk.Options, pieces *diffPieces, names []string) {
	groups := map[diffKey]*diffGroup{}
	var starts []trace.Time
	for x := range set.SyncPoints(false) {
		if !x.Sync {
			continue
		}
		starts = starts[:0]
		for _, a := range x.Arrivals {
			starts = append(starts, a.Start)
		}
		slices.Sort(starts)
		first, last, median := starts[0], starts[len(starts)-1], starts[(len(starts)-1)/2]
		if window.From != 0 && last < window.From || window.To != 0 && first > window.To {
			continue
		}
		piece := pieces.at(first)
		for _, a := range x.Arrivals {
			addTo(groups, diffKey{Collective, "wait for the last rank", names[a.Rank]}).add(piece, pieces.n(), distribution.Between(a.Start, last), d.in)
			addTo(groups, diffKey{Collective, "lateness", names[a.Rank]}).add(piece, pieces.n(), distribution.Between(median, max(median, a.Start)), d.in)
		}
	}
	d.putAll(groups)
}

// addTo returns the group of a key, which it makes first where there is none.
func addTo(groups map[diffKey]*diffGroup, key diffKey) *diffGroup {
	if groups[key] == nil {
		groups[key] = &diffGroup{}
	}
	return groups[key]
}

func (d *Collected) putAll(groups map[diffKey]*diffGroup) {
	for key, g := range groups {
		d.put(key, g)
	}
}
