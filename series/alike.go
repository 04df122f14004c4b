package series

import (
	"cmp"
	"math"
	"slices"

	"github.com/sgtrace/sgtrace/trace"
)

const (
	// fewLevels is the minimum number of scrapes for comparing a log with metrics.
	fewLevels = 12
	// near is the largest distance between the log and the metrics of one server; distances to other servers, and
	// between the same two at other times, must be at least others times as large. See [apart].
	near, others = 0.8, 1.5
)

// levels are the load of a server according to an input: the metrics that nearly every step changes.
type levels struct {
	server int32
	of     [3][]Sample
}

var loads = [...]MetricID{Running, Queued, KVUsage}

// alike adds to same the servers of metrics that only their values identify with a server of logs: both
// report the same at the same times, as no other server does.
func (s *Set) alike(same map[int32]int32) {
	var logs, scraped []levels
	joined := map[int32]bool{}
	for of, to := range same {
		joined[of], joined[to] = true, true
	}
	for server, kind := range s.kinds() {
		if joined[server] || kind != 0 && kind != 2 {
			continue
		}
		switch x := s.levelsOf(server); {
		case len(x.of[0]) < fewLevels:
		case kind == 0:
			logs = append(logs, x)
		default:
			scraped = append(scraped, x)
		}
	}
	distance := make([][]float64, len(logs))
	for i := range logs {
		for k := range scraped {
			distance[i] = append(distance[i], apart(&logs[i], &scraped[k], 0))
		}
	}
	for i := range logs {
		for k := range scraped {
			d, alone := distance[i][k], true
			if len(logs) == 1 && len(scraped) == 1 {
				alone = alignedOnly(&logs[i], &scraped[k], d)
			}
			for o := range scraped {
				alone = alone && (o == k || !(distance[i][o] < others*d))
			}
			for o := range logs {
				alone = alone && (o == i || !(distance[o][k] < others*d))
			}
			if d < near && alone {
				same[scraped[k].server] = logs[i].server
			}
		}
	}
}

// alignedOnly reports whether a log and metrics without any others to compare with agree only at the same times: two
// servers that share a load rise and fall together, but what the batches of one do between two scrapes is independent
// of the other.
func alignedOnly(log, scrapes *levels, d float64) bool {
	const few = 3 // scrapes, earlier and later
	list := scrapes.of[0]
	step := (list[len(list)-1].Time - list[0].Time) / trace.Time(len(list)-1)
	for k := -few; k <= few; k++ {
		if k != 0 && apart(log, scrapes, trace.Time(k)*step) < others*d {
			return false
		}
	}
	return true
}

// levelsOf returns the levels of the first rank of a server that has any.
func (s *Set) levelsOf(server int32) (x levels) {
	x.server = server
	place := int32(-1)
	for i := range s.List {
		l := &s.List[i]
		k := slices.Index(loads[:], l.Metric)
		if k < 0 || s.Places[l.Place].Server != server || l.Label != 0 || place >= 0 && l.Place != place {
			continue
		}
		place = l.Place
		x.of[k] = slices.SortedStableFunc(s.Each(i), func(a, b Sample) int { return cmp.Compare(a.Time, b.Time) })
	}
	return x
}

// apart returns the distance between a log's values and those of scrapes at the same times, relative to how much the
// values change from one scrape to the next, apart from their trend: much less than 1 for one server, and about 1 or
// more for two, however similar their load. It is NaN if there are too few scrapes. later is added to the times of the
// scrapes.
func apart(log, scrapes *levels, later trace.Time) float64 {
	const soon = trace.Time(2e9)
	sum, all := 0.0, 0.0
	for k := range loads {
		lines := log.of[k]
		var n, far, turns float64
		var last [2]float64 // the previous two scrapes
		for _, y := range scrapes.of[k] {
			y.Time += later
			i, _ := slices.BinarySearchFunc(lines, y.Time+1, func(l Sample, t trace.Time) int { return cmp.Compare(l.Time, t) })
			if i == 0 || y.Time-lines[i-1].Time > soon+trace.Time(lines[i-1].Within()) {
				continue
			}
			if n++; n > 2 {
				turns += math.Abs(y.Value-2*last[1]+last[0]) / 2
			}
			far, last = far+math.Abs(lines[i-1].Value-y.Value), [2]float64{last[1], y.Value}
		}
		if n >= fewLevels && turns > 0 {
			sum, all = sum+far/n/(turns/(n-2)), all+1
		}
	}
	return sum / all
}
