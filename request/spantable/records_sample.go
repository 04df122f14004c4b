package spantable

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/trace"
)

// fewRequests is the minimum number of requests for calling a sample biased.
const fewRequests = 20

// judgeSamples reports the inputs that record only slow requests, as SGLang does if
// SGLANG_LOG_REQUEST_EXCEEDED_MS is set, or only failed ones. Rows are in Unix time.
func (t *RequestRecords) judgeSamples() {
	type ended struct {
		e2e    []int64
		starts []trace.Time
		last   trace.Time
		failed int
	}
	of := make([]ended, len(t.sources))
	for i := range memory.Each(len(t.rows), 256) {
		if r := &t.rows[i]; r.Who == Server && r.E2E >= 0 {
			e := &of[r.source]
			e.e2e, e.starts = append(e.e2e, r.E2E), append(e.starts, r.Start)
			e.last = max(e.last, r.End)
			if r.Reason != 0 {
				e.failed++
			}
		}
	}
	var all []int64 // the servers may share a limit
	whys := make([]string, len(of))
	for i := range of {
		e, s := &of[i], &t.sources[i]
		n := len(e.e2e)
		if n == 0 {
			continue
		}
		if e.failed == n && n >= fewRequests {
			t.Series.Diags.Add(trace.RecordsFailedOnly.Of(s.name, n, n))
			continue
		}
		slices.Sort(e.e2e)
		all = append(all, e.e2e...)
		zone := &t.Series.Sources[s.series].Zone
		for k := range s.received {
			if zone.Local {
				shift(&s.received[k], trace.Time(zone.East))
			}
			e.last = max(e.last, s.received[k])
		}
		whys[i] = cmp.Or(lacking(s.received, e.starts, e.last-trace.Time(e.e2e[n-1]), e.e2e[0]), cutOff(e.e2e))
	}
	slices.Sort(all)
	together := cutOff(all)
	for i := range of {
		if why := cmp.Or(whys[i], together); why != "" && len(of[i].e2e) > 0 && of[i].failed < len(of[i].e2e) {
			t.Series.Diags.Add(trace.RecordsSlowOnly.Of(t.sources[i].name, why))
		}
	}
}

// lacking describes a lack of recorded ends: for requests that arrived before until, and so must have
// ended, fewer than half have one.
func lacking(received, starts []trace.Time, until trace.Time, fastest int64) string {
	early := func(list []trace.Time) (n int) {
		return order.Count(list, func(at trace.Time) bool { return at < until })
	}
	came, recorded := early(received), early(starts)
	if came < fewRequests || 2*recorded > came {
		return ""
	}
	return fmt.Sprintf("%d requests came, and the end of %d of them is recorded; the fastest took %s", came, recorded, milliseconds(fastest))
}

// cutOff recognizes sorted latencies with a cutoff: they begin at a round number, as people choose limits,
// closer than by chance, and are as dense there as anywhere above. Natural latencies begin anywhere, with
// only a few lucky ones near the minimum.
func cutOff(e2e []int64) string {
	if len(e2e) < fewRequests {
		return ""
	}
	const byChance = 0.02 // probability that a number of any size is this close above a round one
	first, middle := e2e[0], e2e[len(e2e)/2]
	limit := int64(0)
	for decade := int64(100 * time.Millisecond); decade <= first; decade *= 10 {
		for _, digit := range roundDigits {
			if digit*decade <= first {
				limit = digit * decade
			}
		}
	}
	if limit == 0 || float64(len(roundDigits))*math.Log10(float64(first)/float64(limit)) > byChance || middle <= limit {
		return ""
	}
	// A quarter of the range up to the median must hold a quarter of its latencies or more, allowing for chance.
	edge, _ := slices.BinarySearch(e2e, limit+(middle-limit)/4)
	if even := float64(len(e2e)) / 8; float64(edge) < even-2*math.Sqrt(even) {
		return ""
	}
	return fmt.Sprintf("none of %d took less than %s, and the fastest took %s", len(e2e), milliseconds(limit), milliseconds(first))
}

// roundDigits are the leading digits of round numbers.
var roundDigits = [...]int64{1, 2, 3, 5}

func milliseconds(ns int64) string { return fmt.Sprintf("%.0f ms", float64(ns)/1e6) }
