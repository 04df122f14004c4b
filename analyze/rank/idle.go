package rank

import (
	"fmt"
	"math"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/analyze/straggler"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/trace"
)

// IdleSubkind is that of findings of DP ranks without requests.
const IdleSubkind = "idle DP rank"

// idleRanks tells of DP ranks that get no request, or none since some time, while the other DP ranks of their server do: so many
// that chance would have sent it some. Ranks are numbered without gaps, so that a number between others that
// no request names is a rank that never had one. Requests of which nobody knows the rank may have gone there.
func (r *Ranks) idleRanks() (out []finding.Finding) {
	arrivals := map[place.Location]map[int16][]trace.Time{} // of servers, by DP rank
	var servers []place.Location
	for _, l := range r.Loads {
		at := l.Location
		if !l.Lead || at.Rank.DP < 0 || r.unrouted[at.Role] > 0 {
			continue
		}
		at.Rank = trace.NoRank
		if arrivals[at] == nil {
			arrivals[at] = map[int16][]trace.Time{}
			servers = append(servers, at)
		}
		dp := l.Location.Rank.DP
		arrivals[at][dp] = append(arrivals[at][dp], l.arrivals...)
	}
	for _, at := range servers {
		out = append(out, idleOf(at, arrivals[at])...)
	}
	return out
}

// idleOf is idleRanks of a server, given when requests came to each of its DP ranks.
func idleOf(at place.Location, arrivals map[int16][]trace.Time) (out []finding.Finding) {
	var all []trace.Time
	least, most := int16(math.MaxInt16), int16(0)
	for rank, list := range arrivals {
		all = append(all, list...)
		least, most = min(least, rank), max(most, rank)
	}
	slices.Sort(all)
	ranks := int(most-least) + 1
	for rank := least; rank <= most; rank++ {
		since := trace.Time(0)
		if list := arrivals[rank]; len(list) > 0 {
			since = slices.Max(list)
		}
		after, _ := slices.BinarySearch(all, since+1)
		n := len(all) - after
		if p := math.Pow(1-1/float64(ranks), float64(n)); ranks < 3 || n < routesInBlock*minBlocks || p > straggler.ErrorLevel {
			continue
		}
		f := finding.Finding{Subkind: IdleSubkind, At: at, Since: since, Confidence: finding.Certain, Metric: finding.Metric{Name: "share of requests", Unit: table.Share, Before: 1 / float64(ranks)}}
		f.At.Rank.DP = rank
		f.Text = fmt.Sprintf("%s gets no requests", f.At.DP())
		if since != 0 {
			f.Text += " since " + words.TimeOfDay(since)
		}
		f.Text += fmt.Sprintf(", while the other %d DP ranks of its server get %s", ranks-1, words.Thousands(int64(n)))
		out = append(out, f)
	}
	return out
}
