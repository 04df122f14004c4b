package compare

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/analyze/profilewalk"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/trace"
)

const (
	minAlike     = 20      // kernels of a name that each capture must have
	clockPart    = 0.9     // part of their time that must change by about the same factor, half of it beyond doubt
	clockChange  = 0.1     // smallest relative change that is taken for a clock, and not for day-to-day differences
	clockScatter = 1.0 / 4 // by which fraction of the change, as a logarithm, names may differ
	fewestNames  = 5       // kernel names of one rank that must change alike
)

// A Kernel is all kernels of one name, in two captures.
type Kernel struct {
	Before, After float64 // mean time, in any unit
	N             [2]int64
	Blocks        [2]float64 // mean of the launches; 0 is unknown
	Known         bool       // it changed beyond doubt
}

// WhyAlike says why nearly all kernels take longer or less time by the same factor; "" if they do not. A problem of one
// kernel does not look like that: either each launch has more or less to do, or the GPU clock seems to have changed.
func WhyAlike(kernels []Kernel) string {
	factor, blocks, _ := alike(kernels)
	if factor == 0 {
		return ""
	}
	return profilewalk.WhyAlike(blocks, factor, "the GPU clock")
}

// alike returns by which factor nearly all kernels take longer, 0 if they do not, by which factor their launches have more
// blocks (see [profilewalk.More]), and how many names agree.
func alike(kernels []Kernel) (factor, blocks float64, names int) {
	type kernel struct {
		change, weight float64
		known          bool
	}
	var list []kernel
	var resized []profilewalk.Resized
	total := 0.0
	for _, k := range kernels {
		if min(k.N[0], k.N[1]) >= minAlike && k.Before > 0 && k.After > 0 {
			weight := k.Before * float64(k.N[0])
			list, total = append(list, kernel{math.Log(k.After / k.Before), weight, k.Known}), total+weight
			resized = append(resized, profilewalk.Resized{Before: k.Blocks[0], After: k.Blocks[1], Time: weight})
		}
	}
	slices.SortFunc(list, func(a, b kernel) int { return cmp.Compare(a.change, b.change) })
	half, middle := 0.0, 0.0
	for _, k := range list {
		if middle = k.change; half+k.weight >= total/2 {
			break
		}
		half += k.weight
	}
	same, known := 0.0, 0.0
	for _, k := range list {
		if math.Abs(k.change-middle) > clockScatter*math.Abs(middle) {
			continue
		}
		names++
		if same += k.weight; k.known {
			known += k.weight
		}
	}
	if math.Abs(middle) < math.Log1p(clockChange) || same < clockPart*total || known < same/2 {
		return 0, 0, 0
	}
	factor = math.Exp(middle)
	return factor, profilewalk.More(resized, factor), names
}

// ClocksOfRanks returns a finding for each rank on which kernels take longer or less time
// alike, but not because they have more or less to do, unless they do on all ranks. Each rank is compared with itself. Unless
// launches show how much there is to do, another rank that has the same to do must show that this did not change.
func ClocksOfRanks(byRank map[string][]Kernel) (found []finding.Finding) {
	type result struct {
		factor, blocks float64
		names          int
	}
	results, others := map[string]result{}, map[place.Location]bool{}
	for rank, kernels := range byRank {
		factor, blocks, names := alike(kernels)
		results[rank] = result{factor, blocks, names}
		others[sameTokens(rank)] = others[sameTokens(rank)] || factor == 0
	}
	for _, rank := range slices.Sorted(maps.Keys(byRank)) {
		r := results[rank]
		if r.names < fewestNames || r.blocks != 1 && (r.blocks != 0 || !others[sameTokens(rank)]) {
			continue
		}
		factor := r.factor
		changed := "lower"
		if factor < 1 {
			changed = "higher"
		}
		found = append(found, finding.Finding{Kind: finding.Change, Subkind: ClockOf(rank), At: place.Named(rank), Severity: finding.Info, Confidence: finding.Certain, CostBasis: finding.GPUTime,
			Text:   fmt.Sprintf("nearly all kernels that compute take %s times as long on %s, and not on all ranks, as if its GPU clock were %s (%s)", words.ThreeDigits(factor), rank, changed, finding.Certain),
			Metric: finding.Metric{Name: "time of kernels", Unit: table.Number, Before: 1, After: factor}})
	}
	if len(found) == len(byRank) {
		return nil
	}
	return found
}

// ClockOf returns the subkind of a finding about the clock of a rank.
func ClockOf(rank string) string { return "kernels on " + rank }

// sameTokens returns the place of all ranks that compute the same tokens as a rank does: those of its role and DP rank.
func sameTokens(rank string) place.Location {
	at := place.Named(rank)
	return place.Location{Role: at.Role, Rank: trace.Rank{DP: at.Rank.DP}}
}
