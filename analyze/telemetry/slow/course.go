package slow

import (
	"math"

	"github.com/sgtrace/sgtrace/analyze/telemetry"
	"github.com/sgtrace/sgtrace/internal/changepoint"
	"github.com/sgtrace/sgtrace/internal/order"
)

// A course is a number in those buckets that have one.
type course struct {
	values  []float64
	buckets []int
	n, of   []float64 // by any bucket, the sums whose quotients the values are; nil of others
	end     int       // the bucket behind all
}

// quotients is the course of sums by what they are a mean over, by bucket.
func quotients(l *telemetry.Logged, n, of []float64) *course {
	x := &course{n: n, of: of, end: l.Grid.N()}
	for b := range of {
		if of[b] > 0 {
			x.add(b, n[b]/of[b])
		}
	}
	return x
}

func (x *course) add(b int, v float64) {
	x.values, x.buckets = append(x.values, v), append(x.buckets, b)
}

// bucket is that of a value; behind the last one, it is the end.
func (x *course) bucket(k int) int {
	if k == len(x.buckets) {
		return x.end
	}
	return x.buckets[k]
}

// level is the mean of quotients [from, to), of all that they are a mean over together.
func (x *course) level(from, to int) float64 { return share(x.n, x.of, x.bucket(from), x.bucket(to)) }

// levels is the mean of some ranges of quotients together.
func (x *course) levels(times [][2]int) float64 {
	sum, all := 0.0, 0.0
	for _, t := range times {
		for _, b := range x.buckets[t[0]:t[1]] {
			sum, all = sum+x.n[b], all+x.of[b]
		}
	}
	return sum / all
}

// levels finds when the level of some values changes, of changes that are worth keeping. Ranks tell that it does; where, the values themselves
// do, by as many times as they change: in ranks, what grows from some place on grows as much everywhere behind it.
func levels(values []float64, keep func(from, k, to int) bool) []changepoint.Change {
	changes := changepoint.Levels(values, changepoint.Options{Alpha: surely, Keep: keep})
	for i := range changes {
		sharpen(values, &changes[i])
		if i > 0 {
			changes[i-1].To = changes[i].At
		}
		if i+1 < len(changes) {
			changes[i+1].From = changes[i].At
		}
	}
	return changes
}

// sharpen moves a change to where values before and behind it differ by the most times.
func sharpen(values []float64, c *changepoint.Change) {
	best, at := 0.0, c.At
	logs := logsOf(values[c.From:c.To])
	all, n, sum := order.Total(logs), len(logs), 0.0
	for k, before := c.From+1, 0; k < c.To; k++ {
		if values[k-1] > 0 {
			sum, before = sum+logs[before], before+1
		}
		after := n - before
		between := sum/float64(before) - (all-sum)/float64(after)
		if gain := between * between * float64(before*after); gain > best {
			best, at = gain, k
		}
	}
	for at > c.From+fewLimited && values[at-1] >= muchMore*highest(values[c.From:at-1]) { // one that is higher than any before is no longer usual
		at--
	}
	c.At = at
}

// highest is the largest of some values, of those that are numbers.
func highest(values []float64) float64 {
	most := math.Inf(-1)
	for _, v := range values {
		if v > most {
			most = v
		}
	}
	return most
}

// logsOf are the logarithms of those of some values that have one.
func logsOf(values []float64) (logs []float64) {
	for _, v := range values {
		if v > 0 {
			logs = append(logs, math.Log(v))
		}
	}
	return logs
}

// peaks finds when values are many times the usual one for some intervals, where others nearly never are: those of one peak resemble each other, so
// that no test tells how many they are worth.
func peaks(values []float64, times float64) (out []changepoint.Change) {
	const seldom = 20 // one of so many
	limit, high := times*telemetry.Middle(values), 0
	for from := 0; from < len(values); from++ {
		to := from
		for to < len(values) && (values[to] >= limit || to > from && to+1 < len(values) && values[to-1] >= limit && values[to+1] >= limit) {
			to++
		}
		if to-from >= fewLimited {
			out = append(out, changepoint.Change{At: from, To: to, P: math.NaN()})
		} else {
			high += to - from
		}
		from = max(from, to-1)
	}
	if seldom*high > len(values) {
		return nil
	}
	return out
}

// A spell is a time, from c.At to c.To, in which a mean is much higher than it was before, outside of such times.
type spell struct {
	c             changepoint.Change
	before, after float64
}

// higher returns the spells of a mean that is so many times what it was, given when it changes, and what it is over some times together.
// Where it goes on, on another level, it is one spell.
func higher(changes []changepoint.Change, many float64, mean func(times [][2]int) float64, enough func(from, to int) bool) (out []spell) {
	if len(changes) == 0 {
		return nil
	}
	usual := [][2]int{{0, changes[0].At}}
	for _, c := range changes {
		during := [][2]int{{c.At, c.To}}
		after := mean(during)
		if n := len(out) - 1; n >= 0 && out[n].c.To == c.At && after >= many*out[n].before {
			out[n].c.To, out[n].after = c.To, mean([][2]int{{out[n].c.At, c.To}})
			continue
		}
		before := mean(usual)
		if before > 0 && after >= many*before && after > mean([][2]int{{c.From, c.At}}) && enough(c.From, c.At) && enough(c.At, c.To) {
			out = append(out, spell{c, before, after})
		} else {
			usual = append(usual, during...)
		}
	}
	return out
}

// share is what some buckets have of a sum of theirs together; n is 0 where that is.
func share(n, of []float64, from, to int) float64 {
	sum, all := 0.0, 0.0
	for b := from; b < to; b++ {
		if of[b] > 0 {
			sum, all = sum+n[b], all+of[b]
		}
	}
	return sum / all
}
