package drawing

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// usualRequests is how many requests "By request" shows by default. A viewer draws this many groups without
// delay, and nobody opens more.
const usualRequests = 300

// A requestGroup holds the requests that are drawn for the same reason, or that began in the same minute.
type requestGroup struct {
	name, desc string // "" if it is the only group
	requests   []int  // indexes into Set.Requests, in display order
}

// A chooser chooses the requests for the view by request, each for the first reason that applies to it.
type chooser struct {
	set    *request.Set
	left   int // how many more may be chosen
	zone   *time.Location
	chosen []bool
	groups []requestGroup
}

// chooseRequests returns the requests to show in the view by request. If there are more than the limit (see
// [Options]), it takes those that matter, and a sample of the others for comparison.
func chooseRequests(set *request.Set, opt Options) []requestGroup {
	c := chooser{set: set, left: opt.Requests, zone: cmp.Or(opt.Zone, time.UTC), chosen: make([]bool, len(set.Requests))}
	switch {
	case opt.Requests == 0:
		c.left = usualRequests
	case opt.Requests == Every:
		c.left = len(set.Requests)
	}
	most := c.left
	c.take("Named by findings", "requests that the findings name", most/3, slices.Concat(named(opt.Findings)...))
	c.take("Not finished", "requests that were aborted, failed or have no end", most/4,
		c.slowest(most/4, func(r *request.Request) int64 {
			if r.Status == request.Finished {
				return request.Unknown
			}
			return int64(r.End - r.Start)
		}))
	// At most a twentieth counts as slow: among a few requests, none stands out.
	few := min(most/10, len(set.Requests)/20)
	for _, by := range [...]struct {
		name, desc string
		of         func(m *request.Metrics) int64
	}{
		{"Slowest by TTFT", "requests whose first token took longest", func(m *request.Metrics) int64 { return m.TTFT }},
		{"Slowest by ITL", "requests with the longest gaps between two tokens", func(m *request.Metrics) int64 {
			if m.ITL.N == 0 {
				return request.Unknown
			}
			return m.ITL.Max
		}},
		{"Slowest by E2E", "requests that took longest as a whole", func(m *request.Metrics) int64 { return m.E2E }},
	} {
		c.take(by.name, by.desc, few, c.slowest(few, func(r *request.Request) int64 { return by.of(&r.Metrics) }))
	}
	c.takeOthers()
	if opt.Requests != 0 {
		return c.byMinute()
	}
	return c.groups
}

// named returns the requests that each finding names.
func named(findings []Finding) [][]int {
	return order.EachRow(findings, func(f *Finding) []int { return f.Requests })
}

// take chooses the first n requests of a list that are not chosen yet.
func (c *chooser) take(name, desc string, n int, list []int) {
	g := requestGroup{name: name, desc: desc}
	for _, r := range list {
		if len(g.requests) >= min(n, c.left) {
			break
		}
		if !c.chosen[r] {
			c.chosen[r] = true
			g.requests = append(g.requests, r)
		}
	}
	if len(g.requests) > 0 {
		c.left -= len(g.requests)
		c.groups = append(c.groups, g)
	}
}

// slowest returns the requests with the largest values of a known time, longest first: enough to find n
// that are not chosen yet.
func (c *chooser) slowest(n int, of func(*request.Request) int64) []int {
	var keys []order.Key
	for r := range c.set.AllRequests() {
		if v := of(&c.set.Requests[r]); v != request.Unknown {
			keys = memory.Append(keys, order.Key{Time: order.Descending(v), Index: uint32(r)})
		}
	}
	keys, _ = order.ByTime(keys, memory.Make[order.Key](len(keys)))
	for _, g := range c.groups {
		n += len(g.requests)
	}
	return order.Each(keys[:min(n, len(keys))], func(k order.Key) int { return int(k.Index) })
}

// takeOthers fills up with requests that no reason has chosen: all of them by arrival if there is room, or
// else a sample from the whole time, slowest first.
func (c *chooser) takeOthers() {
	var others []int
	for r := range c.chosen {
		if !c.chosen[r] {
			others = append(others, r)
		}
	}
	switch n := len(others); {
	case len(c.groups) == 0 && n <= c.left:
		c.take("", "", n, others)
	case n <= c.left:
		c.take("Others", "all other requests, by arrival", n, others)
	case c.left > 0:
		sample := make([]int, c.left)
		for k := range sample {
			sample[k] = others[k*n/c.left]
		}
		slices.SortStableFunc(sample, func(a, b int) int {
			x, y := &c.set.Requests[a], &c.set.Requests[b]
			return cmp.Compare(y.End-y.Start, x.End-x.Start)
		})
		c.take("Ordinary", fmt.Sprintf("%d of the other %d requests, from all over the time", c.left, n), c.left, sample)
	}
}

// byMinute regroups the chosen requests by the minute of arrival.
func (c *chooser) byMinute() []requestGroup {
	var groups []requestGroup
	all := c.set.Requests // sorted by start
	layout := "15:04"
	if all[len(all)-1].Start-all[0].Start >= trace.Time(24*time.Hour) {
		layout = "2006-01-02 15:04"
	}
	for r := range all {
		if !c.chosen[r] {
			continue
		}
		at := time.Unix(0, int64(all[r].Start)).In(c.zone)
		minute := at.Format(layout)
		if k := len(groups) - 1; k < 0 || groups[k].name != minute {
			groups = append(groups, requestGroup{name: minute, desc: "requests that arrived in this minute (" + at.Format("UTC-07:00") + ")"})
		}
		g := &groups[len(groups)-1]
		g.requests = append(g.requests, r)
	}
	return groups
}
