package slow

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/telemetry"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/series"
)

// moments finds KV caches that are full while requests wait, at the last of the few moments that there are, often one scrape: what is so then,
// and not what it costs.
func moments(l *telemetry.Logged) (out []finding.Finding) {
	for i := range l.Ranks {
		r := &l.Ranks[i]
		usage, n, all, since := r.Points[series.KVUsage], 0, 0, r.From
		for b := range l.Grid.N() {
			if !speaks(r, b) {
				continue
			}
			if all++; usage == nil || usage[b].N == 0 || usage[b].Most < telemetry.Full || queued(r, b) < 1 {
				n = 0
				continue
			}
			if n++; n == 1 {
				since = max(r.From, l.Grid.Start(b))
			}
		}
		if n == 0 {
			continue
		}
		f := finding.Finding{Subkind: KVCache, At: r.Where, Since: since, Confidence: finding.Likely, Metric: finding.Metric{Name: "KV cache in use", Unit: table.Share, Before: math.NaN(), After: r.Most(series.KVUsage) / 100}}
		f.Text = fmt.Sprintf("the KV cache of %s is full (%s %%) while %.0f requests wait, at %s", r.Where.String(), words.InPercent(r.Most(series.KVUsage)/100), r.MostQueued(), words.TimeOfDay(since))
		if n > 1 {
			f.Text += fmt.Sprintf(" and until %s, in the last %d of %d intervals", words.TimeOfDay(r.To), n, all)
		}
		for k := range l.Set.List {
			s := &l.Set.List[k]
			if l.Set.Places[s.Place].Server != r.Server || !slices.ContainsFunc(thrownOut, func(name string) bool { return strings.HasSuffix(l.Set.Metric(s.Metric).Name, name) }) {
				continue
			}
			for x := range l.Set.Each(k) {
				if x.Value > 0 {
					f.Evidence = append(f.Evidence, finding.Sentence("it has thrown requests out of it %.0f times since it was started", x.Value))
				}
				break
			}
		}
		f.Evidence = append(f.Evidence, finding.Sentence("there are too few moments to say what it costs"))
		out = append(out, f)
	}
	return out
}
