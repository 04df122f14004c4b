package failed

import (
	"fmt"
	"iter"
	"math"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/analyze/telemetry"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
)

// silence finds since when a server has no scrapes while others have some.
func (x *life) silence(l *telemetry.Logged, all []life) (f finding.Finding, ok bool) {
	server := func(x *life) *series.Server { return &l.Set.Servers[x.server] }
	engine := server(x).Engine != ""
	if !engine && slices.ContainsFunc(all, func(o life) bool { return server(&o).Engine != "" && server(&o).On(server(x).Host) }) {
		return f, false // what the engine on that host reports is enough
	}
	others := order.Only(all, func(o life) bool { return o.server != x.server && (server(&o).Engine != "" || !engine) })
	last := x.scrapes[len(x.scrapes)-1].at
	if n := withScrapes(others, last, math.MaxInt64); n > 0 {
		return x.silentSince(l, last, n), true
	}
	return x.silentBetween(l, others)
}

// severalScrapes is the fewest scrapes of others that make the silence of a server significant.
const severalScrapes = 3

// withScrapes counts the servers with several scrapes between two times.
func withScrapes(servers []life, from, to trace.Time) int {
	return order.Count(servers, func(o life) bool { return o.between(from, to) >= severalScrapes })
}

// silent starts the finding of a server without scrapes.
func (x *life) silent(l *telemetry.Logged) finding.Finding {
	return finding.Finding{Subkind: Silent, At: x.place(l), Confidence: finding.Certain, Severity: finding.Info, Within: x.usual, Metric: finding.Metric{Name: "scrapes", Before: math.NaN(), After: 0}}
}

// silentSince makes the finding of a server without scrapes after its last one, while others have some.
func (x *life) silentSince(l *telemetry.Logged, last trace.Time, others int) finding.Finding {
	f := x.silent(l)
	f.Severity, f.Since = finding.Warning, last
	f.Brief = fmt.Sprintf("%s has no scrapes since %s", x.name(l), words.TimeOfDay(last))
	f.Text = fmt.Sprintf("%s, while %s: ", f.Brief, othersHave(others))
	shown, gone := x.moved(l, last)
	switch down := x.isDown(l, last); {
	case gone:
		begin, end, _ := l.Set.Bounds()
		f.Subkind, f.Severity, f.Confidence, f.Cost = Ended, finding.Critical, finding.Likely, share(end-last, end-begin, serversOf(l))
		f.Metric = finding.Metric{Name: "servers that are gone", Before: math.NaN(), After: 1}
		f.Text += "they have taken over its work since then: it ended, or is unreachable"
		f.Evidence = append(f.Evidence, shown)
	case down:
		f.Text += "it does not answer (up is 0)"
	default:
		f.Text += "it may have ended, or only the scrapes stopped"
	}
	if running, queued := x.level(l, series.Running, last), x.level(l, series.Queued, last); !x.levels || running+queued > 0 {
		f.Evidence = append(f.Evidence, finding.Sentence("%.0f requests ran and %.0f waited on it at its last scrape", running, queued))
	}
	return f
}

// silentBetween finds the longest time between two scrapes of a server in which others have several.
func (x *life) silentBetween(l *telemetry.Logged, others []life) (f finding.Finding, ok bool) {
	var gap scrape // the scrape after the longest gap
	n := 0
	for _, s := range x.scrapes {
		if s.began() || s.at-s.before <= severalScrapes*x.usual || n > 0 && s.at-s.before <= gap.at-gap.before {
			continue
		}
		if k := withScrapes(others, s.before, s.at); k > 0 {
			gap, n = s, k
		}
	}
	if n == 0 {
		return f, false
	}
	f = x.silent(l)
	f.Since, f.Until = gap.before, gap.at
	f.Text = fmt.Sprintf("%s has no scrapes between %s and %s, while %s", x.name(l), words.TimeOfDay(gap.before), words.TimeOfDay(gap.at), othersHave(n))
	if slices.ContainsFunc(x.scrapes, func(s scrape) bool { return s.before == gap.before && s.held }) {
		f.Text += ": its counters went on, so it was not restarted"
	} else {
		f.Text += ": nothing tells whether it was restarted"
	}
	return f, true
}

// moved reports whether the work of a server moved to others of its role at a time.
func (x *life) moved(l *telemetry.Logged, since trace.Time) (finding.Evidence, bool) {
	var own, others []*telemetry.Rank
	for i := range l.Ranks {
		r := &l.Ranks[i]
		switch {
		case !r.Scraped:
		case r.Server == x.server:
			own = append(own, r)
		case r.Where.Role == telemetry.Role(&l.Set.Servers[x.server]) && r.To > since:
			others = append(others, r)
		}
	}
	if len(own) == 0 || len(others) == 0 {
		return finding.Evidence{}, false
	}
	return moved(l, own, others, l.Grid.Of(since))
}

// isDown reports whether, according to Prometheus, all scrapes of a server after a time failed.
func (x *life) isDown(l *telemetry.Logged, after trace.Time) bool {
	n := 0
	for p := range x.each(l, "up", "") {
		if p.Time > after && p.Value != 0 {
			return false
		} else if p.Time > after {
			n++
		}
	}
	return n > 0
}

// each yields the samples of a server's metric with this name and label; "" is any label.
func (x *life) each(l *telemetry.Logged, name, label string) iter.Seq[series.Sample] {
	return func(yield func(series.Sample) bool) {
		for i := range l.Set.List {
			s := &l.Set.List[i]
			if l.Set.Places[s.Place].Server != x.server || l.Set.Metric(s.Metric).Name != name || label != "" && !l.Set.HasLabel(s.Label, label) {
				continue
			}
			for p := range l.Set.Each(i) {
				if !yield(p) {
					return
				}
			}
		}
	}
}

// stood returns the range [from, to) of the longest run of scrapes in which no counter of a server grew.
func (x *life) stood() (from, to int) {
	long := trace.Time(0)
	for k := 1; k < len(x.scrapes); k++ {
		n := k
		for x.scrapes[k-1].grew && n < len(x.scrapes) && !x.scrapes[n].grew {
			n++
		}
		if n > k && x.scrapes[n-1].at-x.scrapes[k-1].at > long {
			from, to, long = k, n, x.scrapes[n-1].at-x.scrapes[k-1].at
		}
		k = max(k, n)
	}
	return from, to
}

// hang finds a server that answers scrapes and has requests in its batch, while no counter grows and no gauge
// changes.
func (x *life) hang(l *telemetry.Logged) (f finding.Finding, ok bool) {
	const least = 4 // scrapes
	k, n := x.stood()
	if k == 0 || k+least > n {
		return f, false // it may just have paused
	}
	from, to := x.scrapes[k-1].at, x.scrapes[n-1].at
	if to-from <= together {
		return f, false // an idle SGLang logs that every half minute
	}
	steps, current, still := x.still(l, from, to)
	if !still {
		return f, false
	}
	running := x.level(l, series.Running, to)
	if running < 1 || !steps {
		return f, false // it has no requests, or no metric would show progress
	}
	begin, end, _ := l.Set.Bounds()
	f = finding.Finding{Subkind: Hang, At: x.place(l), Since: from, Within: x.usual, Severity: finding.Critical, Confidence: finding.Certain, Cost: min(1, float64(to-from)/max(1, float64(end-begin))/float64(serversOf(l))),
		Metric: finding.Metric{Name: "requests that run", Before: math.NaN(), After: running}}
	what := "nothing that it counts grew"
	if x.levels {
		what = "neither its batch nor its KV cache changed"
	}
	verb := "has stood still since"
	if n < len(x.scrapes) {
		verb, f.Until = "stood still from", to
	}
	f.Text = fmt.Sprintf("%s %s %s, with %s in its batch: in %d scrapes until %s, %s", x.name(l), verb, words.TimeOfDay(from), words.Counted(int(running), "request"), n-k, words.TimeOfDay(to), what)
	if asleep := x.asleep(l, from, to); asleep != "" {
		f.Text += "; " + asleep
	}
	f.Evidence = append(f.Evidence, finding.Sentence("every decode step changes its counter of tokens, or how many its KV cache holds"))
	if !current { // SGLang before it had ranks in labels
		f.Confidence = finding.Likely
		f.Evidence = append(f.Evidence, finding.Sentence("or it has had nothing to do since: SGLang until 0.4.4, and vLLM when all clients go away at once, may keep their last numbers"))
	}
	return f, true
}

// still reports whether no gauge of a server changes between two times. steps reports whether one of its metrics
// changes with every decode step, as other engines count tokens only when a request ends. current reports whether it
// is a version of SGLang whose labels name ranks.
func (x *life) still(l *telemetry.Logged, from, to trace.Time) (steps, current, still bool) {
	engine := l.Set.Servers[x.server].Engine
	current = engine == "SGLang"
	for i := range l.Set.List {
		s := &l.Set.List[i]
		p := &l.Set.Places[s.Place]
		if p.Server != x.server {
			continue
		}
		steps = steps || s.Metric == series.KVTokens || l.Set.Metric(s.Metric).Name == "vllm:generation_tokens_total" || s.Metric == series.KVUsage && engine == "vLLM"
		if !isLevel(s.Metric) {
			continue
		}
		current = current && p.Rank.TP >= 0
		first := math.NaN()
		for v := range l.Set.Each(i) {
			switch {
			case v.Time < from, v.Time > to:
			case math.IsNaN(first):
				first = v.Value
			case v.Value != first:
				return steps, current, false
			}
		}
	}
	return steps, current, true
}

// asleep says that vLLM was put to sleep in a period, according to its own metric.
func (x *life) asleep(l *telemetry.Logged, from, to trace.Time) string {
	for p := range x.each(l, "vllm:engine_sleep_state", "sleep_state=awake") {
		if p.Time >= from && p.Time <= to && p.Value == 0 {
			return "it was put to sleep then"
		}
	}
	return ""
}

func othersHave(n int) string {
	if n == 1 {
		return "1 other server has"
	}
	return fmt.Sprintf("%d other servers have", n)
}

// inOne merges findings about servers that are gone since about the same scrape.
func inOne(list []finding.Finding) (out []finding.Finding) {
	for i := range list {
		x := &list[i]
		k := slices.IndexFunc(out, func(f finding.Finding) bool {
			return f.Subkind == Ended && x.Subkind == Ended && f.At.Role == x.At.Role && max(f.Since-x.Since, x.Since-f.Since) <= f.Within
		})
		if k < 0 {
			out = append(out, *x)
			continue
		}
		f := &out[k]
		first := finding.Sentence("%s", f.Text)
		if f.At.Scope != place.WholeRole {
			f.Evidence = append([]finding.Evidence{first}, f.Evidence...)
		}
		f.At.Scope, f.Cost, f.Metric.After = place.WholeRole, min(1, f.Cost+x.Cost), f.Metric.After+1
		f.Evidence = append(f.Evidence, finding.Sentence("%s", x.Text))
		f.Brief = fmt.Sprintf("%.0f servers have no scrapes since %s", f.Metric.After, words.TimeOfDay(f.Since))
		f.Text = fmt.Sprintf("%s, %s among them: others have taken over their work since then, so they ended or are unreachable", f.Brief, f.At.Host)
	}
	return out
}
