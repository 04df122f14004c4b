package collective

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// An AllToAll is what one rank sent to one rank of its group in all-to-alls.
type AllToAll struct {
	Rank  string
	Group string // "" if unknown
	To    int    // number of the rank in the group
	N     int    // all-to-alls
	Bytes int64
	// Imbalance is what the receiver got from all recorded ranks, divided by the mean over the ranks of the group.
	Imbalance float64

	rankIndex int32
}

// An exchange adds up what ranks send each other.
type exchange struct {
	set   *profile.Set
	sent  map[exchangeKey]*AllToAll
	split map[trace.Sym][]int64 // parsed texts of splits
}

type exchangeKey struct {
	rank  int32
	group trace.Sym
	to    int
}

// add adds a kernel of an all-to-all, if its sizes are known.
func (x *exchange) add(p *profile.Part) {
	if p.In < 0 || p.GroupSize < 2 {
		return
	}
	name := x.set.Syms.Name
	bytes := profile.ElementBytes(name(p.Dtype))
	splits := x.splits(p)
	for to, elements := range splits {
		key := exchangeKey{p.Rank, p.Group, to}
		s := order.Memo(x.sent, key, func() *AllToAll {
			return &AllToAll{Rank: x.set.Ranks[p.Rank], rankIndex: p.Rank, Group: name(p.Group), To: to}
		})
		s.N++
		s.Bytes = distribution.AddTimes(s.Bytes, elements*bytes)
	}
}

// splits returns how many elements a rank sends to each rank of its group: as recorded, in rows of a tensor, or else in equal parts.
func (x *exchange) splits(p *profile.Part) []int64 {
	rows := order.Memo(x.split, p.Splits, func() []int64 { return parseSplits(x.set.Syms.Name(p.Splits)) })
	n := int(p.GroupSize)
	out := make([]int64, n)
	sum := distribution.SumTimes(rows)
	for i := range out {
		switch {
		case len(rows) != n:
			out[i] = p.In / int64(n)
		case sum > 0:
			out[i] = int64(float64(p.In) * (float64(rows[i]) / float64(sum)))
		}
	}
	return out
}

// parseSplits parses a list of counts: "[12, 0, 3]". It returns nil for an empty or truncated list.
func parseSplits(text string) []int64 {
	inside, ok := strings.CutPrefix(strings.TrimSuffix(text, "]"), "[")
	if !ok || inside == "" {
		return nil
	}
	var out []int64
	for field := range strings.SplitSeq(inside, ",") {
		n, err := strconv.ParseInt(strings.TrimSpace(field), 10, 64)
		if err != nil || n < 0 {
			return nil
		}
		out = append(out, n)
	}
	return out
}

// finish returns the matrix, ordered by group, rank, and receiver.
func (x *exchange) finish() []AllToAll {
	type receiver struct {
		group string
		to    int
	}
	received := map[receiver]int64{}
	total, receivers := map[string]int64{}, map[string]int{}
	var out []AllToAll
	for _, s := range x.sent {
		key := receiver{s.Group, s.To}
		if _, ok := received[key]; !ok {
			receivers[s.Group]++
		}
		received[key] = distribution.AddTimes(received[key], s.Bytes)
		total[s.Group] = distribution.AddTimes(total[s.Group], s.Bytes)
		out = append(out, *s)
	}
	for i := range out {
		s := &out[i]
		mean := float64(total[s.Group]) / float64(receivers[s.Group])
		s.Imbalance = distribution.Ratio(float64(received[receiver{s.Group, s.To}]), mean)
	}
	slices.SortFunc(out, func(a, b AllToAll) int {
		return cmp.Or(strings.Compare(a.Group, b.Group), cmp.Compare(a.rankIndex, b.rankIndex), cmp.Compare(a.To, b.To))
	})
	return out
}
