package limit

import (
	"fmt"
	"math"

	"github.com/sgtrace/sgtrace/analyze/cause"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/request"
)

// Findings tells which limits keep requests waiting.
func (l *Limits) Findings(b *cause.Costs) ([]finding.Finding, finding.Judged) {
	judged := finding.Judged{What: "limits of servers", Of: "request", N: l.Requests, Needed: finding.FewCompared}
	if l.Requests < finding.FewCompared {
		return nil, judged
	}
	var out []finding.Finding
	for i := range l.List {
		limit := &l.List[i]
		f := finding.Finding{
			Topic: limit.Kind.String(), At: limit.Where, Text: limit.Sentence(), Cost: min(1, b.Part(float64(limit.Waited))),
			Affected: finding.AffectedOf(l.set, limit.Requests), Metric: limit.metric(),
			Evidence: []finding.Evidence{finding.Sentence("%s waited, for %s on average; that is %s %% of the time of the requests of %s",
				words.Counted(len(limit.Requests), "request"), words.Nearly(limit.mean()), words.InPercent(limit.Share), limit.DP()).
				In("limits", limit.row(), "waited_ns", float64(limit.Waited))},
		}
		if !limit.Always {
			f.Since = limit.From
		}
		if !limit.Open {
			f.Until = limit.To
		}
		out = append(out, f)
	}
	return out, judged
}

// mean is how long each of the requests waited, in ns.
func (l *Limit) mean() int64 { return l.Waited / int64(max(1, len(l.Requests))) }

// metric is the number that is stuck, or was reached.
func (l *Limit) metric() finding.Metric {
	m := finding.Metric{Before: math.NaN()}
	switch l.Kind {
	case Places:
		m.Name, m.Unit, m.After = "running requests", table.Number, float64(l.StuckAt)
	case Prefills:
		m.Name, m.Unit, m.After = "share of time spent on prompts", table.Share, l.Prefilling
	case Transfers:
		m.Name, m.Unit, m.Before, m.After = "slowdown of KV transfers", table.Number, 1, l.Slowdown
	default:
		m.Name, m.Unit, m.After = "requests waiting for KV cache", table.Number, float64(l.Most)
	}
	return m
}

// Sentence says which limit it is, and since when.
func (l *Limit) Sentence() string {
	name := l.DP()
	switch l.Kind {
	case Places:
		return fmt.Sprintf("%s is decode-bound: running is stuck at %d (max running requests?) while up to %d wait, %s", name, l.StuckAt, l.Most, l.when())
	case Prefills:
		return fmt.Sprintf("%s is prefill-bound: it computes prompts %s %% of the time while up to %d requests wait, %s",
			name, words.InPercent(l.Prefilling), l.Most, l.when())
	case Transfers:
		return fmt.Sprintf("%s is transfer-bound: up to %d KV transfers share a link, which makes each %s times as long on average, %s",
			name, l.Most, words.ThreeDigits(l.Slowdown), l.when())
	}
	if l.Role == request.Unified && l.Retracted == 0 {
		return fmt.Sprintf("%s is decode-bound: up to %d requests wait while %s run (KV cache full?), %s", name, l.Most, l.runs(), l.when())
	}
	text := fmt.Sprintf("%s is decode-bound: its KV cache is full: up to %d requests wait for room while %s run, %s", name, l.Most, l.runs(), l.when())
	if l.Retracted > 0 {
		text += "; " + words.Counted(l.Retracted, "retraction") + " meanwhile"
	}
	return text
}

// runs is how many requests run, in words.
func (l *Limit) runs() string {
	if l.Fewest == l.Greatest {
		return fmt.Sprint(l.Fewest)
	}
	return fmt.Sprintf("%d to %d", l.Fewest, l.Greatest)
}

// when says when requests waited.
func (l *Limit) when() string {
	layout := words.TenthLayout
	from, to := words.Clock(l.From).Format(layout), words.Clock(l.To).Format(layout)
	var text string
	switch {
	case l.Always && l.Open:
		text = "from the beginning to the end"
	case l.Open:
		text = "since " + from
	default:
		text = fmt.Sprintf("from %s to %s", from, to)
	}
	if l.Spells > 1 {
		text += fmt.Sprintf(" (for %s, in %d stretches of time)", words.Nearly(l.Length), l.Spells)
	}
	return text
}
