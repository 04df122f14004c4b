package operators

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/profilewalk"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// Up to fewOperators operators that take half of the time of all are told.
const (
	fewOperators = 3
	maxOfAll     = 0.5
)

// An ownTime is how long threads were in an operator itself, ns.
type ownTime struct {
	name string
	time int64
}

// Largest tells which operators take most of the time of processors. It is for captures in
// which no device ran: these are exact shares, whatever the number of calls.
func Largest(set *profile.Set, opt profilewalk.Options) ([]finding.Finding, finding.Check) {
	list, calls := ownTimes(set, opt)
	check := finding.Check{What: "operators that take most of the time", Of: "call", N: calls, Needed: 1}
	total := int64(0)
	for _, o := range list {
		total = distribution.AddTimes(total, o.time)
	}
	if total == 0 {
		check.Reason = "no operators were recorded"
		return nil, check
	}
	sum, n := int64(0), 0
	for n < min(fewOperators, len(list)) && distribution.Fraction(sum, total) < maxOfAll {
		sum = distribution.AddTimes(sum, list[n].time)
		n++
	}
	share := distribution.Fraction(sum, total)
	if share < maxOfAll {
		return nil, check
	}
	var parts []string
	for _, o := range list[:n] {
		parts = append(parts, fmt.Sprintf("%s %.0f %%", words.Clean(o.name), 100*distribution.Fraction(o.time, total)))
	}
	takes := "operators take"
	if n == 1 {
		takes = "operator takes"
	}
	f := finding.Finding{Subkind: "operators", Cost: share,
		Text:   fmt.Sprintf("no work of a device was recorded, and %d %s %.0f %% of the time of all operators on processors: %s", n, takes, 100*share, strings.Join(parts, ", ")),
		Metric: finding.Metric{Name: "time of operators", Unit: table.Share, Before: math.NaN(), After: share}}
	f.Evidence = []finding.Evidence{finding.Sentence("%s in all, in %s; the time of an operator is without those that it calls", words.Nearly(total), words.Counted(calls, "call"))}
	return []finding.Finding{f}, check
}

// ownTimes returns the operators of all ranks, that of the longest time first, and how many
// calls of them there are.
func ownTimes(set *profile.Set, opt profilewalk.Options) (list []ownTime, calls int) {
	type sums struct {
		times map[trace.Sym]int64
		calls int
	}
	streams := make([]sums, len(set.Streams))
	Each(set, opt, func(i int) Visitor {
		s := &streams[i]
		s.times = map[trace.Sym]int64{}
		return Visitor{
			Call: func(_ int32, name trace.Sym, _ trace.Time, self int64) {
				s.times[name] = distribution.AddTimes(s.times[name], self)
				s.calls++
			},
			Work: func(*profile.Kernel, trace.Sym) {},
		}
	})
	times := map[trace.Sym]int64{}
	for i := range streams {
		for name, t := range streams[i].times {
			times[name] = distribution.AddTimes(times[name], t)
		}
		calls += streams[i].calls
	}
	for name, t := range times {
		list = append(list, ownTime{set.Syms.Name(name), t})
	}
	slices.SortFunc(list, func(a, b ownTime) int { return cmp.Or(cmp.Compare(b.time, a.time), cmp.Compare(a.name, b.name)) })
	return list, calls
}
