package failed

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/analyze/telemetry"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
)

const (
	// Restarted is the subkind of findings about servers that were started again. Package lifecycle uses the same
	// word, so that both have the same consequences.
	Restarted = "restart"
	// Silent is the subkind of findings about servers that answer no scrapes while others do.
	Silent = "silent"
	// Ended is the subkind of findings about servers whose work went to others when their logs or scrapes ended.
	// Package lifecycle uses the same word.
	Ended = "death"
)

// A scrape is how the counters of a server changed since the previous scrape.
type scrape struct {
	before, at trace.Time
	fell       map[string]bool // metric families whose counters fell
	held       bool            // at least one counter did not fall
	grew       bool            // at least one counter grew
	value      float64         // of the largest counter that fell, before and after
	now        float64
	name       string // its name
}

// A life is the sequence of scrapes of a server.
type life struct {
	server  int32
	scrapes []scrape // sorted by time
	usual   trace.Time
	levels  bool // it has no counters; its scrapes compare gauges
}

// Restarts finds servers whose restart only their counters show, and servers that answer no scrapes while others do.
func Restarts(l *telemetry.Logged) ([]finding.Finding, finding.Check) {
	check := finding.Check{What: "servers that began anew in metrics", Of: "scrape", Needed: 2}
	var lives []life
	for server := range l.Set.Servers {
		if x := lived(l, int32(server)); len(x.scrapes) > 0 {
			lives = append(lives, x)
			check.N = max(check.N, len(x.scrapes)+1)
		}
	}
	if len(lives) == 0 {
		check.Reason = "no metrics have counters of several scrapes"
		return nil, check
	}
	var again, silent []finding.Finding
	for i := range lives {
		if f, ok := lives[i].restarts(l); ok {
			again = append(again, f)
		}
		if f, ok := lives[i].silence(l, lives); ok {
			silent = append(silent, f)
		}
		if f, ok := lives[i].hang(l); ok {
			silent = append(silent, f)
		}
	}
	return append(asOne(again), inOne(silent)...), check
}

// fewCounted is the largest count that a server may reach again soon after a restart.
const fewCounted = 10

// lived compares the counters of a server from scrape to scrape. Two processes that are scraped in turn are not
// restarts: a counter that soon has its old value again did not fall.
func lived(l *telemetry.Logged, server int32) life {
	x := life{server: server}
	of := map[trace.Time]*scrape{}
	x.compare(l, of, func(m *series.Metric, s *series.Series) bool {
		// After a restart, a sum of seconds may soon exceed its old value, because what waited for the start waited
		// long.
		return (m.Kind == series.Counter || m.Kind == series.Bucket && math.IsInf(s.Most, 1)) && !strings.HasSuffix(m.Name, "_sum")
	})
	if len(of) == 0 {
		x.levels = true
		x.compare(l, of, func(_ *series.Metric, s *series.Series) bool { return isLevel(s.Metric) })
	}
	if len(of) == 0 { // a single panel of a dashboard
		x.compare(l, of, func(_ *series.Metric, s *series.Series) bool {
			return s.Metric == series.Queued || s.Metric == series.Generation
		})
	}
	var gaps []float64
	for _, e := range of {
		x.scrapes = append(x.scrapes, *e)
		gaps = append(gaps, float64(e.at-e.before))
	}
	slices.SortFunc(x.scrapes, func(a, b scrape) int { return cmp.Compare(a.at, b.at) })
	x.usual = trace.Time(telemetry.Middle(gaps))
	return x
}

// isLevel reports whether a metric is a gauge that changes with decoding, or as requests come and go.
func isLevel(m series.MetricID) bool {
	return m == series.Running || m == series.KVUsage || m == series.KVTokens
}

// compare adds the changes of some series of a server from scrape to scrape.
func (x *life) compare(l *telemetry.Logged, of map[trace.Time]*scrape, is func(*series.Metric, *series.Series) bool) {
	for i := range l.Set.List {
		s := &l.Set.List[i]
		m := l.Set.Metric(s.Metric)
		all := m.Kind == series.Bucket
		if l.Set.Places[s.Place].Server != x.server || !is(m, s) {
			continue
		}
		var samples [3]series.Sample // the last three samples
		n := 0
		compare := func(old, s, next series.Sample) {
			if s.Time <= old.Time {
				return
			}
			e := order.Memo(of, s.Time, func() *scrape { return &scrape{before: old.Time, at: s.Time, fell: map[string]bool{}} })
			e.before = max(e.before, old.Time)
			e.grew = e.grew || s.Value != old.Value
			switch {
			case old.Value <= 0, x.levels:
			case s.Value < old.Value/2 && (next.Time == 0 || next.Value < old.Value):
				e.fell[family(m.Name)] = true
				if old.Value > e.value && !all {
					e.value, e.now, e.name = old.Value, s.Value, m.Name
				}
			case old.Value > fewCounted:
				e.held = true
			}
		}
		for s := range l.Set.Each(i) {
			if s.Line() != 0 {
				continue // from a log
			}
			samples[0], samples[1], samples[2] = samples[1], samples[2], s
			if n++; n >= 3 {
				compare(samples[0], samples[1], s)
			}
		}
		if n >= 2 {
			compare(samples[1], samples[2], series.Sample{})
		}
	}
}

// family returns the common part of the names of a metric's counters.
func family(name string) string {
	for _, end := range [...]string{"_total", "_bucket", "_count"} {
		name = strings.TrimSuffix(name, end)
	}
	return name
}

// began reports whether all counters of a server restarted. A single counter may have been reset on its own.
func (s *scrape) began() bool { return len(s.fell) >= 2 && !s.held }

// restarts makes the finding of the restarts of a server.
func (x *life) restarts(l *telemetry.Logged) (f finding.Finding, ok bool) {
	var list []*scrape
	away := trace.Time(0)
	for i := range x.scrapes {
		if s := &x.scrapes[i]; s.began() {
			list, away = append(list, s), away+max(0, s.at-s.before-x.usual)
		}
	}
	if len(list) == 0 {
		return f, false
	}
	first, last := list[0], list[len(list)-1]
	from, to, _ := l.Set.Bounds()
	f = finding.Finding{Subkind: Restarted, At: x.place(l), Since: first.before, Until: last.at, Within: x.usual, Severity: finding.Warning, Confidence: finding.Certain,
		Cost: share(away, to-from, serversOf(l)), Metric: finding.Metric{Name: "restarts", Before: math.NaN(), After: float64(len(list))}}
	f.Brief = fmt.Sprintf("%s was started again", x.name(l))
	f.Text = fmt.Sprintf("%s between %s and %s: all of its counters were reset", f.Brief, words.TimeOfDay(first.before), words.TimeOfDay(first.at))
	if len(list) > 1 {
		f.Text = fmt.Sprintf("%s %d times between %s and %s: all of its counters were reset", f.Brief, len(list), words.TimeOfDay(first.before), words.TimeOfDay(last.at))
	}
	for _, s := range list[:min(3, len(list))] {
		if s.name != "" {
			f.Evidence = append(f.Evidence, finding.Sentence("%s was %s at %s, and %s at %s", s.name, words.Thousands(int64(s.value)), words.TimeOfDay(s.before), words.Thousands(int64(s.now)), words.TimeOfDay(s.at)))
		}
		if 2*(s.at-s.before) > 3*x.usual {
			f.Evidence = append(f.Evidence, finding.Sentence("it has no scrape between %s and %s; its scrapes are usually %s apart", words.TimeOfDay(s.before), words.TimeOfDay(s.at), words.Nearly(int64(x.usual))))
		}
		running, queued := x.level(l, series.Running, s.before), x.level(l, series.Queued, s.before)
		if running+queued > 0 {
			f.Evidence = append(f.Evidence, finding.Sentence("%s ran and %.0f waited on it at %s: those that had not ended by then were lost", words.Counted(int(running), "request"), queued, words.TimeOfDay(s.before)))
		}
	}
	return f, true
}

// between returns the number of scrapes between two times.
func (x *life) between(from, to trace.Time) int {
	of := func(s scrape, t trace.Time) int { return cmp.Compare(s.at, t) }
	first, _ := slices.BinarySearchFunc(x.scrapes, from+1, of)
	behind, _ := slices.BinarySearchFunc(x.scrapes, to, of)
	return max(0, behind-first)
}

// asOne merges findings about restarts of several servers.
func asOne(list []finding.Finding) []finding.Finding {
	if len(list) < 2 {
		return list
	}
	f := list[0]
	f.At.Scope, f.Cost, f.Evidence = place.WholeRole, 0, nil
	for i := range list {
		x := &list[i]
		f.Since, f.Until, f.Cost = min(f.Since, x.Since), max(f.Until, x.Until), min(1, f.Cost+x.Cost)
		f.Evidence = append(append(f.Evidence, finding.Sentence("%s", x.Text)), x.Evidence...)
	}
	f.Metric.After = float64(len(list))
	f.Brief = fmt.Sprintf("%d servers were started again", len(list))
	f.Text = fmt.Sprintf("%s between %s and %s: all of their counters were reset", f.Brief, words.TimeOfDay(f.Since), words.TimeOfDay(f.Until))
	return []finding.Finding{f}
}

// level returns the value of a gauge at a time, summed over the ranks of a server.
func (x *life) level(l *telemetry.Logged, m series.MetricID, at trace.Time) (sum float64) {
	for i := range l.Set.List {
		s := &l.Set.List[i]
		if s.Metric != m || l.Set.Places[s.Place].Server != x.server {
			continue
		}
		value := 0.0
		for p := range l.Set.Each(i) {
			if p.Time <= at {
				value = p.Value
			}
		}
		sum += value
	}
	return sum
}

func (x *life) name(l *telemetry.Logged) string { return telemetry.Host(&l.Set.Servers[x.server]) }

func (x *life) place(l *telemetry.Logged) place.Location {
	s := &l.Set.Servers[x.server]
	return place.At(telemetry.Role(s), telemetry.Host(s), trace.NoRank, l.Names)
}
