package held

import (
	"fmt"
	"math"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/telemetry"
	"github.com/sgtrace/sgtrace/analyze/telemetry/judge"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/internal/changepoint"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
)

const (
	// fewLines is the number of lines averaged to know how many transfers are in progress.
	fewLines = 5
	// slowTransfer is the shortest time of slow transfers, in s: links send gigabytes in less.
	slowTransfer = 0.05
)

// A sent sums up the KV transfers of a prefill server over some lines.
type sent struct {
	at           trace.Time // of the first line
	level, batch float64    // mean number of transfers in progress when a batch began, and of requests in a batch
	came         float64
}

// SlowLink is the subkind of findings about KV transfers.
const SlowLink = finding.SlowLink

// PiledUp finds prefill servers whose KV transfers take longer from some time on. Their time follows from the number
// in progress and the rate at which they come: Little's law.
func PiledUp(l *telemetry.Logged) ([]finding.Finding, finding.Check) {
	check := finding.Check{What: "logged KV transfers", Of: "prefill line", Needed: judge.FewBuckets * fewLines}
	var out []finding.Finding
	for i := range l.Ranks {
		r := &l.Ranks[i]
		if !r.Has(series.Sending) {
			continue
		}
		list := sentBy(l, r)
		check.N += fewLines * len(list)
		if f, ok := slowLink(l, r, list); ok {
			out = append(out, f)
		}
	}
	if check.N == 0 {
		check.Reason = "no log is of a prefill server that sends KV caches"
	}
	return judge.Alike(out), check
}

// sentBy sums up the lines of a prefill server in groups of fewLines.
func sentBy(l *telemetry.Logged, r *telemetry.Rank) (list []sent) {
	var came []float64
	for i := range l.Set.List {
		if s := &l.Set.List[i]; s.Place == r.Place && s.Metric == series.NewSeqs {
			for x := range l.Set.Each(i) {
				came = append(came, x.Value)
			}
		}
	}
	k := 0
	for i := range l.Set.List {
		if s := &l.Set.List[i]; s.Place != r.Place || s.Metric != series.Sending {
			continue
		}
		for x := range l.Set.Each(i) {
			if k%fewLines == 0 {
				list = append(list, sent{at: x.Time})
			}
			last := &list[len(list)-1]
			last.level += x.Value / fewLines
			if k < len(came) {
				last.batch += came[k] / fewLines
				last.came += came[k]
			}
			k++
		}
	}
	if k%fewLines != 0 {
		list = list[:len(list)-1]
	}
	return list
}

// slowLink finds since when the transfers of a server take longer.
func slowLink(l *telemetry.Logged, r *telemetry.Rank, list []sent) (f finding.Finding, ok bool) {
	if len(list) < judge.FewBuckets {
		return f, false
	}
	levels := make([]float64, len(list))
	for i := range list {
		levels[i] = list[i].level
	}
	// each returns the mean time of a transfer, in s, and its terms, over elements from to to-1 of list.
	each := func(from, to int) (took, level, rate, batch float64) {
		end := r.To
		if to < len(list) {
			end = list[to].at
		}
		came := 0.0
		for _, x := range list[from:to] {
			level, batch, came = level+x.level, batch+x.batch, came+x.came
		}
		level, batch, rate = level/float64(to-from), batch/float64(to-from), came/(float64(end-list[from].at)/1e9)
		return level / rate, level, rate, batch
	}
	changes := changepoint.Levels(levels, changepoint.Options{Alpha: judge.Surely})
	if k, ok := judge.Parted(levels, 2); ok && len(changes) == 0 {
		changes = append(changes, changepoint.Change{At: k, First: k, Last: k, To: len(levels), P: math.NaN()})
	}
	for _, c := range changes {
		before, few, usual, _ := each(c.From, c.At)
		after, many, rate, batch := each(c.At, c.To)
		switch {
		case !(after > 2*before) || after < slowTransfer || many < 2*few+0.1:
			continue
		case rate > judge.MuchLonger*usual && many < 2*batch:
			continue // the transfers of a batch are still in progress when the next one is logged
		}
		f = finding.Finding{Subkind: SlowLink, At: r.Where, Since: list[c.At].at, P: finding.Chance(c.P), Cost: float64(c.To-c.At) / float64(len(list)) * judge.Part(l, r),
			Metric: finding.Metric{Name: "KV transfer", Unit: table.Duration, Before: before * 1e9, After: after * 1e9}, Confidence: finding.Likely}
		if c.To < len(list) {
			f.Until = list[c.To].at
		}
		// The number in progress shows the slowdown only when a line comes, and not before a transfer takes that
		// long.
		f.Within = max(list[min(c.Last, len(list)-1)].at-f.Since, f.Since-list[max(0, c.First-1)].at) + trace.Time(after*1e9)
		f.Text = fmt.Sprintf("since %s, a KV transfer from %s takes about %s, %s before", words.TimeOfDay(f.Since), r.Where.String(), words.Nearly(int64(after*1e9)), words.Nearly(int64(before*1e9)))
		f.Evidence = append(f.Evidence, finding.Sentence("when a prefill begins, %s requests have their KV cache sent, %s before; %s a second are taken in, %s before: the time is the first number divided by the second",
			words.ThreeDigits(many), words.ThreeDigits(few), words.ThreeDigits(rate), words.ThreeDigits(usual)))
		return f, true
	}
	return f, false
}
