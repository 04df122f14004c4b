package lifecycle

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/request"
)

// deathsOf are the deaths of a server, in order.
func (l *Lives) deathsOf(x *server) (list []*end) {
	for i := range l.deaths {
		if l.deaths[i].life.server == x {
			list = append(list, &l.deaths[i])
		}
	}
	return list
}

// died tells of all deaths of a server, and when it was back.
func (l *Lives) died(deaths []*end) finding.Finding {
	first, last := deaths[0], deaths[len(deaths)-1]
	var lost []int
	for _, e := range deaths {
		lost = append(lost, e.requests()...)
	}
	slices.Sort(lost)
	lost = slices.Compact(lost)
	f := l.finding(first, Death, lost)
	f.Metric.Name = "requests lost"
	if next := l.next(last.life); next != nil {
		f.Until = next.first
	}
	const silence = "none of its processes shows a sign after that, and"
	switch {
	case len(deaths) > 1:
		from, to := words.Tenths(first.since, last.since)
		f.Text = fmt.Sprintf("%s died %d times between %s and %s; %s", name(&f.At), len(deaths), from, to, l.became(lost))
	case f.Until != 0:
		f.Text = fmt.Sprintf("%s died at %s: %s %s; it was back at %s", name(&f.At), first.when(), silence, l.became(lost), words.At(f.Until, words.TenthLayout))
	case first.refused:
		f.Text = fmt.Sprintf("%s died at %s: %s %s", name(&f.At), first.when(), silence, l.became(lost))
	default:
		f.Text = fmt.Sprintf("%s died or hangs since %s: %s %s", name(&f.At), first.when(), silence, l.became(lost))
	}
	for _, r := range l.restarts {
		if r.old.server == first.life.server {
			f.Evidence = append(f.Evidence, finding.Sentence("it served nothing from %s%s", r.period(), pids(r.old, r.new)))
		}
	}
	return f
}

// became says what became of lost requests: "2 requests on it failed (HTTP 502) and 1
// request in flight never ended".
func (l *Lives) became(lost []int) string {
	var reasons []string
	n := 0
	for _, i := range lost {
		if q := &l.set.Requests[i]; q.Status == request.Failed {
			reasons = append(reasons, l.set.Syms.Name(q.Reason))
			n++
		}
	}
	var parts []string
	if n > 0 {
		text := words.Counted(n, "request") + " on it failed"
		if slices.Sort(reasons); reasons[0] == reasons[n-1] && reasons[0] != "" {
			text += " (" + reasons[0] + ")"
		}
		parts = append(parts, text)
	}
	if rest := len(lost) - n; rest > 0 {
		parts = append(parts, words.Counted(rest, "request")+" in flight never ended")
	}
	return strings.Join(parts, " and ")
}
