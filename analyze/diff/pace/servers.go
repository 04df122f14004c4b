package pace

import (
	"fmt"
	"math"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/diff/compare"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/internal/significance"
)

// names are the distinct servers or ranks of one side.
type names []string

// index returns the index of a name, adding it if it is new.
func (n *names) index(name string) int16 {
	at := slices.Index(*n, name)
	if at < 0 {
		at = len(*n)
		*n = append(*n, name)
	}
	return int16(at)
}

// onlyServers are the servers that alone take longer, or less time, for the same work; none if
// all servers changed, or if it might be any of them.
type onlyServers struct {
	names         []string
	before, after float64        // ns
	change        compare.Change // of all of them together
}

// certainlyOne is the error probability of naming a server. It is low because nobody asked for a name.
const certainlyOne = 0.01

// apart returns the largest difference between one server and all servers of a side, as the
// logarithm of a factor; infinite for fewer than three servers, which is too few to tell.
func apart(side *steps, common []step, usual *usual) (most float64) {
	if len(side.servers) < 3 {
		return math.Inf(1)
	}
	all := usual.sample(common).Quantity.Value
	for i := range side.servers {
		if own := order.Only(common, func(st step) bool { return st.server == int16(i) }); len(own) > 0 {
			most = max(most, math.Abs(math.Log(usual.sample(own).Quantity.Value/all)))
		}
	}
	return most
}

// findOnly finds the servers that alone became slower or faster. It compares each server with itself before; one whose name
// is new, with all servers before, as servers of a role do the same work, allowing for how much these differ from each other.
func findOnly(sides [2]*steps, common [2][]step) (found onlyServers) {
	names := sides[1].servers
	if len(names) < 2 {
		return found
	}
	usual := newUsual(common[0])
	changed := func(was, is func(server int16) bool) (b, a significance.Sample, c significance.Change) {
		of := func(list []step, is func(int16) bool) significance.Sample {
			return usual.sample(order.Only(list, func(st step) bool { return is(st.server) }))
		}
		b, a = of(common[0], was), of(common[1], is)
		return b, a, compare.ChooseTest(b.Pieces, a.Pieces, false).Compare(b, a)
	}
	before := func(server int16) func(int16) bool {
		at := slices.Index(sides[0].servers, names[server])
		return func(s int16) bool { return at < 0 || s == int16(at) }
	}
	differ := apart(sides[0], common[0], usual)
	list := make([]compare.Change, len(names))
	for i := range names {
		_, _, list[i].Change = changed(before(int16(i)), func(s int16) bool { return s == int16(i) })
	}
	var own []int16
	least, most := math.Inf(1), 0.0
	for i, p := range significance.Holm(order.EachRow(list, func(c *compare.Change) float64 { return c.Change.P })) {
		c := &list[i]
		c.Change.P = p
		switch {
		case !c.Tested(): // it may have changed as well
			return found
		case p <= certainlyOne && c.Size() >= math.Log1p(compare.MinChange) && (slices.Contains(sides[0].servers, names[i]) || c.Size() > 2*differ):
			own = append(own, int16(i))
			least = min(least, c.Size())
			if (c.Change.Ratio > 1) != (list[own[0]].Change.Ratio > 1) {
				return found
			}
		default:
			most = max(most, c.Size())
		}
	}
	if len(own) == 0 || len(own) == len(names) || 2*most > least {
		return found
	}
	b, a, c := changed(func(s int16) bool { return slices.ContainsFunc(own, func(o int16) bool { return before(o)(s) }) },
		func(s int16) bool { return slices.Contains(own, s) })
	for _, i := range own {
		found.names = append(found.names, names[i])
	}
	found.before, found.after, found.change = b.Quantity.Value, a.Quantity.Value, compare.Change{Change: c, Sure: finding.Certain}
	return found
}

// whoIsLate names the rank that others now wait for, if that makes up at least half of the extra time of steps.
func (p *Pace) whoIsLate(sides [2]*steps, common [2][]step) string {
	was, is := p.Took()
	grown := is - was
	var waits [2]map[string]float64 // by rank: how long others wait for it in a step, ns
	for side, list := range common {
		waits[side] = map[string]float64{}
		n := 0.0
		for i := range list {
			st := &list[i]
			if len(p.only.names) > 0 && !slices.Contains(p.only.names, sides[side].servers[st.server]) {
				continue
			}
			if n++; st.last >= 0 {
				waits[side][sides[side].ranks[st.last]] += float64(st.waited)
			}
		}
		for rank := range waits[side] {
			waits[side][rank] /= n
		}
	}
	for _, rank := range sides[1].ranks {
		if before, after := waits[0][rank], waits[1][rank]; grown > 0 && 2*(after-before) >= grown {
			return fmt.Sprintf(", as others wait %s in each for %s (%s before)", words.Nearly(int64(after)), rank, words.Nearly(int64(before)))
		}
	}
	return ""
}
