package slow

import (
	"cmp"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/telemetry"
	"github.com/sgtrace/sgtrace/analyze/telemetry/judge"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
)

// A roleMetric is a metric by which servers that do the same work are compared.
type roleMetric struct {
	role   request.Role
	engine string
	metric series.MetricID
}

func roleMetricOf(l *telemetry.Logged, server, place int32, metric series.MetricID) roleMetric {
	return roleMetric{l.Where(place).Role, l.Set.Servers[server].Engine, metric}
}

// sums are running totals over the intervals of a histogram, sorted by when they begin: n[i] and took[i] are the
// observations, and their seconds, in the first i intervals.
type sums struct {
	from    []trace.Time
	n, took []float64
}

func sumsOf(list []telemetry.Scraped) *sums {
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(a, b telemetry.Scraped) int { return cmp.Compare(a.From, b.From) })
	s := &sums{n: []float64{0}, took: []float64{0}}
	for i, one := range list {
		s.from, s.n, s.took = append(s.from, one.From), append(s.n, s.n[i]+one.N), append(s.took, s.took[i]+one.Took)
	}
	return s
}

// within sums up the intervals that begin in [from, to).
func (s *sums) within(from, to trace.Time) (n, took float64) {
	a, _ := slices.BinarySearch(s.from, from)
	b, _ := slices.BinarySearch(s.from, to)
	return s.n[b] - s.n[a], s.took[b] - s.took[a]
}

// forTokens are the metrics in which a server is compared with the others of its role. Queues are left out, because
// they come and go on every server.
var forTokens = []series.MetricID{series.ITL, series.TPOT, series.E2E}

// sumsOfRoles returns the sums over all meters of each role.
func sumsOfRoles(l *telemetry.Logged) map[roleMetric]*sums {
	lists := map[roleMetric][]telemetry.Scraped{}
	for _, m := range l.Meters() {
		for _, metric := range forTokens {
			if x := l.Scrapes(m, metric); len(x.List) > 0 {
				key := roleMetricOf(l, m.Server, x.Place, metric)
				lists[key] = append(lists[key], x.List...)
			}
		}
	}
	all := map[roleMetric]*sums{}
	for key, list := range lists {
		all[key] = sumsOf(list)
	}
	return all
}

// roseAlone finds when a meter takes longer for tokens, or for requests, relative to the others of its role at the
// same time, which rules out that all are asked for more. A smaller rise is enough than without that comparison.
func roseAlone(l *telemetry.Logged, m telemetry.Meter, roles map[roleMetric]*sums) (out []rise) {
	for _, metric := range forTokens {
		x := l.Scrapes(m, metric)
		if len(x.List) == 0 {
			continue
		}
		role, own := roles[roleMetricOf(l, m.Server, x.Place, metric)], sumsOf(x.List)
		others := func(from, to trace.Time) (mean float64) {
			n, took := role.within(from, to)
			ownN, ownTook := own.within(from, to)
			const some = 0.5 // of an observation; less is rounding
			if n-ownN < some {
				return 0
			}
			return (took - ownTook) / (n - ownN)
		}
		usual, beside := others(role.from[0], role.from[len(role.from)-1]+1), slices.Clone(x.List)
		if !(usual > 0) {
			continue
		}
		for i := range beside {
			one := &beside[i]
			length := one.To - one.From // other servers are scraped at other times
			if near := others(one.From-length, one.To+length); near > 0 {
				one.Took *= usual / near
			}
		}
		for _, r := range rose(beside, judge.MuchLonger) {
			r.list, r.metric, r.about = x.List, metric, x.About
			r.Before, r.After = telemetry.MeanOf(x.List[r.C.From:r.C.At]), telemetry.MeanOf(x.List[r.C.At:r.C.To])
			if telemetry.MeanOf(x.List[r.C.To:]) >= judge.MuchLonger*r.Before { // it only ends because the comparison with the others changes
				r.C.To = len(x.List)
				r.After = telemetry.MeanOf(x.List[r.C.At:])
			}
			if r.After >= judge.MuchLonger*r.Before && r.C.To == len(x.List) && r.C.To-r.C.At >= judge.FewBuckets { // shorter ones are bursts
				out = append(out, r)
			}
		}
	}
	return out
}
