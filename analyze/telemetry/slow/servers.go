package slow

import (
	"fmt"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/analyze/telemetry"
	"github.com/sgtrace/sgtrace/analyze/telemetry/judge"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/internal/parallel"
	"github.com/sgtrace/sgtrace/trace"
)

// slowServers finds servers of several ranks, all of which take longer for their tokens than the ranks of other servers.
func (c *comparison) slowServers() (out []finding.Finding) {
	var by order.Groups[int32, []*telemetry.Rank]
	for i := range c.l.Ranks {
		order.Add(&by, c.l.Ranks[i].Server, &c.l.Ranks[i])
	}
	found := make([]finding.Finding, len(by.List))
	parallel.Each(len(by.List), func(k int) { found[k], _ = c.slowServer(by.List[k]) })
	return order.Only(found, func(f finding.Finding) bool { return f.Text != "" })
}

// slowServer makes the finding of a server, of the costliest of its ranks.
func (c *comparison) slowServer(own []*telemetry.Rank) (f finding.Finding, ok bool) {
	if len(own) < 2 {
		return f, false
	}
	s := &c.l.Set.Servers[own[0].Server]
	on := fmt.Sprintf("all %d ranks of %s", len(own), telemetry.Host(s))
	cost := 0.0
	for _, r := range own {
		ranks := likes(c.l, r)
		elsewhere := order.Only(slices.Clone(ranks), func(o *telemetry.Rank) bool { return o.Server != r.Server })
		one, ok := c.slowerThan(r, ranks, elsewhere, on, fmt.Sprintf("the %d of other servers", len(elsewhere)))
		if !ok || f.Text != "" && !judge.Meet(&f, &one) {
			return finding.Finding{}, false
		}
		if cost += one.Cost; one.Cost > f.Cost || f.Text == "" {
			f = one
		}
	}
	f.At, f.Cost = place.At(telemetry.Role(s), telemetry.Host(s), trace.NoRank, c.l.Names), min(1, cost)
	return f, true
}
