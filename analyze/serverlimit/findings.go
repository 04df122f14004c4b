package serverlimit

import (
	"fmt"
	"math"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/cause"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// Findings returns which limits keep requests waiting.
func (l *Limits) Findings(b *cause.Costs) ([]finding.Finding, finding.Check) {
	if l.Requests < finding.FewCompared {
		return nil, l.check()
	}
	out := order.Each(l.groups(), func(same []*Limit) finding.Finding { return l.finding(same, b) })
	return b.Price(out), l.check()
}

// check says whether there are enough requests to judge limits.
func (l *Limits) check() finding.Check {
	return finding.Check{What: "limits of servers", Of: "request", N: l.Requests, Needed: finding.FewCompared}
}

// groups returns the limits of one kind on servers of one role together, because servers that share work reach a
// limit together. The costliest group comes first.
func (l *Limits) groups() [][]*Limit {
	var groups [][]*Limit
	for i := range l.List {
		x := &l.List[i]
		k := slices.IndexFunc(groups, func(g []*Limit) bool { return g[0].Location.Role == x.Location.Role && g[0].Kind == x.Kind })
		if k < 0 {
			k = len(groups)
			groups = append(groups, nil)
		}
		groups[k] = append(groups[k], x)
	}
	return groups
}

// finding makes a finding about a limit of one or several servers of a role.
func (l *Limits) finding(same []*Limit, b *cause.Costs) finding.Finding {
	worst := same[0]
	f := finding.Finding{Subkind: worst.Kind.String(), At: worst.Location, Text: worst.sentence() + l.longPrompts(worst) + l.held(worst), Metric: worst.metric()}
	if n := len(same) - 1; n > 0 {
		f.At = place.Location{Scope: place.WholeRole, Role: worst.Location.Role}
		f.Text += fmt.Sprintf("; the same is true of %s", words.Counted(n, "other "+worst.Location.Role.String()+" rank"))
	}
	if f.Brief = l.overtaken(same); f.Brief != "" {
		f.Text += "; " + f.Brief
	} else if worst.Kind == Preempted {
		f.Brief = "requests are preempted for others that run immediately (priorities?)"
	}
	first, last := worst, worst
	var requests []int
	for _, x := range same {
		requests = append(requests, x.Requests...)
		f.Claim = f.Claim.And(b.Amounts(x.waits, x.causes()...))
		if x.Kind == Prefills { // requests also wait for the batch in progress, and for other prompts in their own batch
			f.Claim = f.Claim.And(b.AllOf(x.Requests, cause.Intake)).And(b.Amounts(x.shared, cause.Prefill))
		}
		if x.From < first.From {
			first = x
		}
		if x.To > last.To {
			last = x
		}
		f.Evidence = append(f.Evidence, x.evidence())
		if together := x.together(); together > 0 {
			f.Evidence = append(f.Evidence, finding.Sentence("on top of that, other prompts in their batches were computed for %s on average", words.Nearly(together)))
		}
	}
	if !first.Always {
		f.Since = first.From
	}
	if !last.Open {
		f.Until = last.To
	}
	f.Affected = finding.AffectedOf(l.set, order.Distinct(requests))
	return f
}

// Holds reports whether requests wait for the limit in f most of the time from when they first did until the end.
// Then the limit is a permanent property of the server, not a busy spell.
func (l *Limits) Holds(f *finding.Finding) bool {
	const mostly, part = 0.5, 0.25
	return slices.ContainsFunc(l.List, func(x Limit) bool {
		all := x.To - l.set.Requests[0].Start
		return x.Kind.String() == f.Subkind && x.Location.Role == f.At.Role && x.Open &&
			float64(x.Length) >= mostly*float64(x.To-x.From) && float64(x.Length) >= part*float64(all)
	})
}

// longPrompts says which few prompts make up much of what a prefill-bound server computes while requests wait. It
// returns "" if they are not few.
func (l *Limits) longPrompts(x *Limit) string {
	const few, much = 0.05, 0.4
	of := slices.IndexFunc(l.servers, func(v *server) bool { return v != nil && v.location == x.Location })
	if x.Kind != Prefills || of < 0 {
		return ""
	}
	var tokens []int64
	all := 0.0
	for _, i := range l.servers[of].served {
		if r := &l.set.Requests[i]; r.Start < x.To && r.End > x.From && r.Metrics.PrefillTokens() > 0 {
			tokens = append(tokens, r.Metrics.PrefillTokens())
			all += float64(r.Metrics.PrefillTokens())
		}
	}
	slices.Sort(tokens)
	n, sum := 0, 0.0
	for n < len(tokens) && sum < much*all {
		n++
		sum += float64(tokens[len(tokens)-n])
	}
	if n == 0 || float64(n) > few*float64(len(tokens)) {
		return ""
	}
	return fmt.Sprintf("; %d of its %d prompts have %s tokens or more and are %s %% of what it computes meanwhile",
		n, len(tokens), words.Thousands(tokens[len(tokens)-n]), words.InPercent(sum/all))
}

// causes returns the causes that the time of waiting requests is charged to.
func (l *Limit) causes() []cause.Cause {
	if l.Kind == Transfers {
		return []cause.Cause{cause.Transfer}
	}
	return []cause.Cause{cause.Queue, cause.DecodeBootstrap, cause.DecodeQueue, cause.PrefillBootstrap}
}

// evidence says how long requests waited.
func (l *Limit) evidence() finding.Evidence {
	mean := l.Waited / int64(len(l.Requests))
	return finding.Sentence("%s waited for %s on average: %s %% of the time of all requests on %s",
		words.Counted(len(l.Requests), "request"), words.Nearly(mean), words.InPercent(l.Share), l.Location.DP()).
		In("limits", l.row(), "waited_ns", float64(l.Waited))
}

// together returns for how long, on average, other prompts were computed in the batch of a request, in ns.
func (l *Limit) together() int64 {
	sum := int64(0)
	for _, ns := range l.shared {
		sum += ns
	}
	return sum / int64(max(1, len(l.shared)))
}

// metric returns the number that is stuck or was reached.
func (l *Limit) metric() finding.Metric {
	m := finding.Metric{Before: math.NaN()}
	switch l.Kind {
	case Running, Slots:
		m.Name, m.Unit, m.After = l.Kind.String(), table.Number, float64(l.StuckAt)
	case Preempted:
		m.Name, m.Unit, m.After = "requests thrown out for others", table.Number, float64(l.Retracted)
	case Prefills:
		m.Name, m.Unit, m.After = "share of time spent on prompts", table.Share, l.Prefilling
	case Transfers:
		m.Name, m.Unit, m.Before, m.After = "slowdown of KV transfers", table.Number, 1, l.Slowdown
	default:
		m.Name, m.Unit, m.After = "requests waiting for KV cache", table.Number, float64(l.Most)
	}
	return m
}

// sentence says which limit it is, and since when it holds.
func (l *Limit) sentence() string {
	name := l.Location.DP()
	switch l.Kind {
	case Running:
		return fmt.Sprintf("%s is decode-bound: it is stuck at %d running requests (max running requests?) while up to %d wait, %s", name, l.StuckAt, l.Most, l.when())
	case Slots:
		return fmt.Sprintf("%s is decode-bound: it is stuck at %d requests that run or are about to (max running requests?) while up to %d wait, %s",
			name, l.StuckAt, l.Most, l.when())
	case Prefills:
		return fmt.Sprintf("%s is prefill-bound: it computes prompts %s %% of the time while up to %d requests wait, %s",
			name, words.InPercent(l.Prefilling), l.Most, l.when())
	case Transfers:
		return fmt.Sprintf("%s is transfer-bound: up to %d KV transfers share a link, which makes each %s times as long on average, %s",
			name, l.Most, words.ThreeDigits(l.Slowdown), l.when())
	}
	if l.Kind == Preempted {
		return fmt.Sprintf("%s is decode-bound: it preempts requests for others that it runs immediately (priorities?), %s, while up to %d wait, %s",
			name, words.Counted(l.Retracted, "time"), l.Most, l.when())
	}
	if l.Location.Role == request.Unified && l.Retracted == 0 {
		return fmt.Sprintf("%s is decode-bound: up to %d requests wait while %s run (KV cache full?), %s", name, l.Most, l.runs(), l.when())
	}
	text := fmt.Sprintf("%s is decode-bound: its KV cache is full, and up to %d requests wait for room while %s run, %s", name, l.Most, l.runs(), l.when())
	if l.Retracted > 0 {
		text += ", with " + words.Counted(l.Retracted, "retraction")
	}
	return text
}

// runs returns the number of running requests, in words.
func (l *Limit) runs() string {
	if l.Fewest == l.Greatest {
		return fmt.Sprint(l.Fewest)
	}
	return fmt.Sprintf("%d to %d", l.Fewest, l.Greatest)
}

// when says when requests waited.
func (l *Limit) when() string {
	from, to := words.Tenths(l.From, l.To)
	var text string
	switch {
	case l.Always && l.Open:
		text = "from start to end"
	case l.Open:
		text = "since " + from
	default:
		text = fmt.Sprintf("from %s to %s", from, to)
	}
	if l.Spells > 1 {
		text += fmt.Sprintf(" (for %s, in %d stretches)", words.Nearly(l.Length), l.Spells)
	}
	return text
}

// row returns the key of l's row in the table.
func (l *Limit) row() []finding.Key {
	role, host, rank := l.Location.Parts()
	return finding.Row("role", role, "host", host, "rank", rank, "limit", l.Kind.String())
}

// Report makes the table of the limits, a row per server and limit.
func (l *Limits) Report() *table.Table {
	running := func(x *Limit, of float64) table.Cell {
		return table.Cell{Share: of, Unknown: x.Kind == Transfers}
	}
	where := func(part int) func(x *Limit) string {
		return func(x *Limit) string {
			role, host, rank := x.Location.Parts()
			return [...]string{role, host, rank}[part]
		}
	}
	fields := table.Detail([]table.Field[Limit]{
		table.TextColumn("role", "role of the server", where(0)),
		table.TextColumn("host", "host name, or the start of its ID", where(1)),
		table.TextColumn("rank", "parallel ranks of its lead rank, such as DP1 TP0", where(2)),
	})
	fields = append(fields, []table.Field[Limit]{
		table.TextColumn("server", "server, with its DP rank if it has several", func(x *Limit) string { return x.Location.DP() }),
		table.TextColumn("limit", "resource that the server ran out of", func(x *Limit) string { return x.Kind.String() }),
		table.TimeColumn("from", "start of the first stretch in which requests waited", func(x *Limit) trace.Time { return x.From }),
		table.TimeColumn("to", "end of the last stretch", func(x *Limit) trace.Time { return x.To }),
		table.NsColumn("length", "total length of the stretches", func(x *Limit) int64 { return x.Length }),
		table.CountColumn("stretches", "number of stretches in which requests waited", func(x *Limit) int64 { return int64(x.Spells) }),
		table.CountColumn("requests", "number of requests that waited", func(x *Limit) int64 { return int64(len(x.Requests)) }),
		table.NsColumn("waited", "total time that they waited", func(x *Limit) int64 { return x.Waited }),
		table.ShareColumn("share", "waited, as a share of the E2E of all requests that the server worked on", func(x *Limit) float64 { return x.Share }),
		table.CountColumn("most", "most requests waiting at a time; for KV transfers, most in progress at a time", func(x *Limit) int64 { return int64(x.Most) }),
		table.TimeColumn("at", "when that maximum was first reached", func(x *Limit) trace.Time { return x.At }),
		table.Field[Limit]{Column: table.Column{Name: "running", Unit: table.Number, Doc: "average number of requests running while others waited"},
			Cell: func(x *Limit) table.Cell { return running(x, x.Running) }},
		table.CountColumn("stuck at", "number of slots in use, if it was the same nearly all the time", func(x *Limit) int64 {
			if takenBy[x.Kind] == nil {
				return request.Unknown
			}
			return int64(x.StuckAt)
		}),
		table.Field[Limit]{Column: table.Column{Name: "prefilling", Unit: table.Share, Doc: "share of the waiting time during which prompts were computed"},
			Cell: func(x *Limit) table.Cell { return running(x, x.Prefilling) }},
		table.Field[Limit]{Column: table.Column{Name: "slowdown", Unit: table.Number, Doc: "how many times as long a KV transfer takes as it does alone"},
			Cell: func(x *Limit) table.Cell { return table.Cell{Share: x.Slowdown, Unknown: x.Kind != Transfers} }},
		table.CountColumn("retractions", "retractions while requests waited", func(x *Limit) int64 { return int64(x.Retracted) }),
	}...)
	title := "No limit keeps requests waiting for long"
	if len(l.List) > 0 {
		title = "Limits: " + l.List[0].sentence()
	}
	return table.New("sgtrace.report.limits/v1", title, l.List, fields).Stay("share").Leave("stretches", "length", "most", "at", "retractions")
}
