package rank

import (
	"maps"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/trace"
)

// dataParallelAttention reports whether there is a server whose DP ranks are different TP
// ranks, one each: TP0-DP0, TP1-DP1 and so on.
func (r *Ranks) dataParallelAttention() bool {
	ranks := map[place.Where]int{} // of a server
	taken := map[place.Where]bool{}
	for i := range r.Loads {
		server, of := r.Loads[i].Where, r.Loads[i].Rank
		byTP, byDP := server, server
		server.Rank = trace.NoRank
		byTP.Rank = trace.Rank{TP: of.TP, PP: of.PP, DP: -1}
		byDP.Rank = trace.Rank{TP: -1, PP: of.PP, DP: of.DP}
		if of.TP < 0 || of.DP < 0 || taken[byTP] || taken[byDP] {
			return false
		}
		taken[byTP], taken[byDP] = true, true
		ranks[server]++
	}
	return len(ranks) > 0 && slices.Max(slices.Collect(maps.Values(ranks))) > 1
}
