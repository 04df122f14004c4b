package request

import (
	"cmp"
	"slices"

	"github.com/sgtrace/sgtrace/trace"
)

// An Interval is half open.
type Interval struct{ From, To trace.Time }

// Cut returns what of [from, to) is in it. The zero interval is all time.
func (iv Interval) Cut(from, to trace.Time) Interval {
	if iv == (Interval{}) {
		return Interval{from, to}
	}
	from = max(from, iv.From)
	return Interval{from, max(from, min(to, iv.To))}
}

// Has reports whether all of [from, to] is in it.
func (iv Interval) Has(from, to trace.Time) bool {
	return iv == (Interval{}) || from >= iv.From && to <= iv.To
}

// A Coverage is a set of instants: disjoint intervals in order, each with the time
// that those before it cover.
type Coverage struct {
	from, to []trace.Time
	before   []int64
}

// NewCoverage unites intervals; it reorders them.
func NewCoverage(list []Interval) Coverage {
	slices.SortFunc(list, func(x, y Interval) int { return cmp.Compare(x.From, y.From) })
	var c Coverage
	sum := int64(0)
	for _, iv := range list {
		last := len(c.to) - 1
		if last >= 0 && iv.From <= c.to[last] {
			if iv.To > c.to[last] {
				sum += int64(iv.To - c.to[last])
				c.to[last] = iv.To
			}
			continue
		}
		c.from, c.to, c.before = append(c.from, iv.From), append(c.to, iv.To), append(c.before, sum)
		sum += int64(iv.To - iv.From)
	}
	return c
}

// Until returns how much is covered before t, in ns.
func (c *Coverage) Until(t trace.Time) int64 {
	i, _ := slices.BinarySearch(c.from, t) // those before i begin before t
	if i == 0 {
		return 0
	}
	return c.before[i-1] + int64(min(t, c.to[i-1])-c.from[i-1])
}

// Overlap returns how much of [from, to) is covered, in ns.
func (c *Coverage) Overlap(from, to trace.Time) int64 {
	if to <= from || len(c.from) == 0 {
		return 0
	}
	return c.Until(to) - c.Until(from)
}

// Total returns how much is covered, in ns.
func (c *Coverage) Total() int64 {
	if len(c.to) == 0 {
		return 0
	}
	return c.Until(c.to[len(c.to)-1])
}
