package document

import (
	"fmt"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/internal/order"
)

// A Rank is one of all ranks.
type Rank struct {
	Name, Host string // as reports print them; Host is "" if unknown
	At         place.Location
}

// A Group is the ranks of a group of hosts, or the hosts themselves.
type Group struct {
	Members []string
	what    string // what members are: "ranks", or "hosts" each of which has a rank
	title   string // "rack r12"
	level   int    // 0 means a single host
}

// String counts the members: "all 8 ranks of rack r12", "all 4 hosts of rack r12".
func (g *Group) String() string {
	return fmt.Sprintf("all %d %s of %s", len(g.Members), g.what, g.title)
}

// CompleteGroups returns the groups of hosts all ranks of which are named, the largest groups
// first; ranks are all ranks. A rank is in one group at most.
func (c *Ranks) CompleteGroups(ranks []Rank) (list []Group) {
	told := map[string]bool{}
	for level := len(c.Hosts.levels()) - 1; level >= 0; level-- {
		var members order.Groups[string, []string]
		for _, rank := range ranks {
			if name := c.Hosts.group(level, rank.Host); name != "" {
				of := members.Of(name)
				*of = append(*of, rank.Name)
			}
		}
		for i, all := range members.List {
			if len(all) < 2 || len(members.List) < 2 || slices.ContainsFunc(all, func(rank string) bool { return !c.Named[rank] || told[rank] }) {
				continue
			}
			for _, rank := range all {
				told[rank] = true
			}
			list = append(list, Group{all, "ranks", c.Hosts.title(level, members.Keys[i]), level})
		}
	}
	return list
}

// withHosts returns CompleteGroups, and the groups in which every host has a named rank.
func (c *Ranks) withHosts(ranks []Rank) []Group {
	list := c.CompleteGroups(ranks)
	told := order.Set(order.EachRow(list, func(g *Group) string { return g.title }))
	onHosts := &Ranks{Hosts: c.Hosts, Named: map[string]bool{}}
	var hosts []Rank
	seen := map[string]bool{}
	for _, r := range ranks {
		if !seen[r.Host] {
			seen[r.Host] = true
			hosts = append(hosts, Rank{Name: r.Host, Host: r.Host})
		}
		onHosts.Named[r.Host] = onHosts.Named[r.Host] || c.Named[r.Name]
	}
	for _, g := range onHosts.CompleteGroups(hosts) {
		if !told[g.title] {
			g.what = "hosts"
			list = append(list, g)
		}
	}
	return list
}

// are describes the ranks that findings of a kind are about.
var are = map[finding.Kind]string{finding.Straggler: "late", finding.Slower: "slow", finding.Lifecycle: "hung, gone, or new"}

// words returns a sentence about the group, for findings of a kind.
func (g *Group) words(kind finding.Kind) string {
	switch is := are[kind]; {
	case is == "":
		return g.String() + " have such a finding"
	case g.what == "hosts":
		return g.String() + " have a rank that is " + is
	default:
		return g.String() + " are " + is
	}
}

// Annotate adds, as the first evidence of findings of a kind, that these are about all ranks
// or all hosts of a group: "all 8 ranks of rack r12 are late". For a single host it does so
// only if several findings are about it, as each names its host anyway. Nil hosts add nothing.
func (h *Hosts) Annotate(found []finding.Finding, ranks []Rank) {
	if h == nil {
		return
	}
	var kinds []finding.Kind
	for i := range found {
		kinds = order.With(kinds, found[i].Kind)
	}
	for _, kind := range kinds {
		c := &Ranks{Hosts: h, Named: map[string]bool{}}
		of := map[string][]*finding.Finding{} // by name of a rank, and of a host
		for i := range found {
			if f := &found[i]; f.Kind == kind {
				for _, r := range namedBy(&f.At, ranks) {
					c.Named[r.Name] = true
					of[r.Name], of[r.Host] = append(of[r.Name], f), append(of[r.Host], f)
				}
			}
		}
		for _, g := range c.withHosts(ranks) {
			g.tell(kind, of)
		}
	}
}

// tell adds a sentence about the group to the findings about its members.
func (g *Group) tell(kind finding.Kind, of map[string][]*finding.Finding) {
	var about []*finding.Finding
	for _, member := range g.Members {
		for _, f := range of[member] {
			about = order.With(about, f)
		}
	}
	if g.level == 0 && len(about) < 2 {
		return
	}
	for _, f := range about {
		f.Evidence = slices.Insert(slices.Clone(f.Evidence), 0, finding.Evidence{Text: g.words(kind)})
	}
}

// Covered returns the groups all of whose ranks some places cover, and those in which every host has such a rank, the largest first.
func (h *Hosts) Covered(places []place.Location, ranks []Rank) []Group {
	c := &Ranks{Hosts: h, Named: map[string]bool{}}
	for i := range places {
		for _, r := range namedBy(&places[i], ranks) {
			c.Named[r.Name] = true
		}
	}
	return c.withHosts(ranks)
}

// namedBy returns the ranks at a place.
func namedBy(at *place.Location, ranks []Rank) (list []*Rank) {
	if at.Scope != place.OneRank {
		return nil
	}
	name := at.String()
	for i := range ranks {
		if r := &ranks[i]; r.Name == name || at.Host != "" && at.Overlaps(&r.At) {
			list = append(list, r)
		}
	}
	return list
}
