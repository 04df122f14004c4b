package telemetry

import (
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/load"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
)

// Reports returns the tables of what servers log, by rank and by input.
func (l *Logged) Reports() []*table.Table {
	return []*table.Table{l.RankReport(), l.EventReport(), l.inputReport()}
}

// RankReport has a row for each rank that logs batches.
func (l *Logged) RankReport() *table.Table {
	ptrs := make([]*Rank, len(l.Ranks))
	for i := range l.Ranks {
		ptrs[i] = &l.Ranks[i]
	}
	number := func(name, doc string, of func(*Rank) float64) table.Field[*Rank] {
		return table.NumberColumn(name, doc, func(r **Rank) float64 { return of(*r) })
	}
	percent := func(name, doc string, of func(*Rank) float64) table.Field[*Rank] {
		return table.ShareColumn(name, doc, func(r **Rank) float64 { return of(*r) / 100 })
	}
	fields := []table.Field[*Rank]{
		table.TextColumn("rank", "rank, as its log names it; it stands for all ranks of its DP rank", func(r **Rank) string { return (*r).Where.String() }),
		table.TextColumn("server", "server, by its log or pod", func(r **Rank) string { return Host(&l.Set.Servers[(*r).Server]) }),
		table.CountColumn("batches", "log lines about batches; a decode server logs every 40th batch", func(r **Rank) int64 { return (*r).Lines }),
		number("running", "running requests: mean of the log lines", func(r *Rank) float64 { return r.Mean(series.Running) }),
		number("most_running", "most running requests", func(r *Rank) float64 { return r.Most(series.Running) }),
		number("queued", "queued requests: mean of the log lines", func(r *Rank) float64 { return r.Mean(series.Queued) }),
		number("most_queued", "most queued requests", func(r *Rank) float64 { return r.Most(series.Queued) }),
		percent("kv_usage", "usage of the fullest KV cache pool: mean of the log lines", func(r *Rank) float64 { return r.Mean(series.KVUsage) }),
		percent("most_kv", "highest usage of the fullest KV cache pool", func(r *Rank) float64 { return r.Most(series.KVUsage) }),
		number("new_tokens", "prompt tokens computed", func(r *Rank) float64 { return r.Total(series.NewTokens) }),
		percent("cached", "share of prompt tokens found in the cache", (*Rank).cached),
		number("generation", "generation throughput in tokens per second: mean of the log lines", func(r *Rank) float64 { return r.Mean(series.Generation) }),
		number("accept_length", "mean tokens accepted per verification (speculative decoding)", func(r *Rank) float64 { return r.Mean(series.AcceptLength) }),
		number("bootstrap", "prefill server: mean number of requests waiting to connect to their decode server", func(r *Rank) float64 { return r.Mean(series.Bootstrapping) }),
		number("sending", "prefill server: mean number of requests whose KV cache is being sent", func(r *Rank) float64 { return r.Mean(series.Sending) }),
		number("preallocating", "decode server: mean number of requests waiting for KV cache space", func(r *Rank) float64 { return r.Mean(series.Preallocated) }),
		number("receiving", "decode server: mean number of requests whose KV cache is being received", func(r *Rank) float64 { return r.Mean(series.Receiving) }),
		number("most_receiving", "most requests that were receiving their KV cache", func(r *Rank) float64 { return r.Most(series.Receiving) }),
		percent("graphs", "share of batches that ran as a CUDA graph", func(r *Rank) float64 { return 100 * float64(r.Graphs) / float64(r.Graphs+r.Plain) }),
	}
	t := table.New("sgtrace.report.logs.ranks/v1", "What ranks log", ptrs, fields).Stay("rank", "running", "queued", "most_queued", "kv_usage").Leave("most_running", "accept_length", "graphs", "batches")
	if len(ptrs) == 0 {
		t.Note("no input has lines of batches, which SGLang, vLLM, and TensorRT-LLM log of each DP rank; 'sgtrace report --timeline' shows what there is")
	}
	return t
}

// cached returns the share of prompt tokens that were in the cache, in %.
func (r *Rank) cached() float64 {
	if rate := r.Mean(series.HitRate); !math.IsNaN(rate) {
		return rate
	}
	found, computed := r.Total(series.CachedTokens), r.Total(series.NewTokens)
	return 100 * found / (found + computed)
}

// EventReport has a row for each event.
func (l *Logged) EventReport() *table.Table {
	fields := []table.Field[Event]{
		table.TimeField("time", "first time, Unix time", func(e *Event) (trace.Time, bool) { return e.First, e.First != 0 }),
		table.TimeField("last", "last time, Unix time; empty if it happened once", func(e *Event) (trace.Time, bool) { return e.Last, e.Last != e.First && e.Last != 0 }),
		table.TextColumn("kind", "kind of event", func(e *Event) string { return e.Kind.String() }),
		table.TextColumn("where", "rank, ranks of a server, or server", l.Name),
		table.CountColumn("times", "number of occurrences", func(e *Event) int64 { return int64(e.N) }),
		table.CountColumn("requests", "number of requests affected, if logged", func(e *Event) int64 { return int64(e.Requests) }),
		table.TextColumn("text", "the event, in words", func(e *Event) string { return e.Text }),
		table.TextColumn("stack", "stack, innermost frame first", func(e *Event) string { return strings.ReplaceAll(e.Stack, "\n", " < ") }),
		table.TextColumn("place", "file and line of the first occurrence", func(e *Event) string { return trace.Pos{File: e.File, Line: e.Line, Offset: -1}.String() }),
	}
	return table.New("sgtrace.report.logs.events/v1", "What logs say that happened", l.Events, fields).Stay("time", "where", "text").Leave("stack", "place", "requests")
}

// inputReport has a row for each log.
func (l *Logged) inputReport() *table.Table {
	fields := []table.Field[series.Source]{
		table.TextColumn("input", "name of the input", func(s *series.Source) string { return s.Name }),
		table.TextColumn("format", "format", func(s *series.Source) string { return s.Encoding }),
		table.TimeField("first", "first timestamp, Unix time", func(s *series.Source) (trace.Time, bool) { return s.First, s.First != 0 }),
		table.TimeField("last", "last timestamp, Unix time", func(s *series.Source) (trace.Time, bool) { return s.Last, s.Last != 0 }),
		table.TextColumn("zone", "time zone of the timestamps, if they have none of their own", func(s *series.Source) string {
			if s.Zone.By == "" {
				return ""
			}
			return s.Zone.Name()
		}),
		table.TextColumn("zone_by", "how the time zone was determined", func(s *series.Source) string { return s.Zone.By }),
		table.CountColumn("lines", "number of lines", func(s *series.Source) int64 { return int64(s.Lines) }),
		table.CountColumn("read", "lines that sgtrace used", func(s *series.Source) int64 { return int64(s.Read) }),
		table.CountColumn("unknown", "warnings and errors that sgtrace does not recognize; it ignores all other lines", func(s *series.Source) int64 { return int64(s.Other) }),
	}
	return table.New("sgtrace.report.logs.inputs/v1", "Logs and metrics", l.Set.Sources, fields).Leave("last")
}

// A timeRow is a rank in a bucket.
type timeRow struct {
	rank *Rank
	b    int
}

// timed are the metrics of the timeline, with the names of their columns.
var timed = []struct {
	name   string
	metric series.MetricID
	most   bool
}{
	{"running", series.Running, false}, {"queued", series.Queued, false}, {"most_queued", series.Queued, true}, {"kv_usage", series.KVUsage, false},
	{"new_tokens", series.NewTokens, false}, {"new_requests", series.NewSeqs, false}, {"generation", series.Generation, false}, {"bootstrap", series.Bootstrapping, false},
	{"sending", series.Sending, false}, {"preallocating", series.Preallocated, false}, {"receiving", series.Receiving, false}, {"accept_length", series.AcceptLength, false},
}

// isTimed reports whether the timeline has a metric.
func isTimed(m series.MetricID) bool {
	for i := range timed {
		if timed[i].metric == m {
			return true
		}
	}
	return false
}

// TimeReport has a row for each interval and rank that logged anything in it.
func (l *Logged) TimeReport() *table.Table {
	var rows []timeRow
	for b := range l.Grid.N() {
		for i := range l.Ranks {
			r := &l.Ranks[i]
			for _, m := range series.Ranked {
				if p := r.Points[m]; p != nil && p[b].N > 0 {
					rows = append(rows, timeRow{r, b})
					break
				}
			}
		}
	}
	fields := []table.Field[timeRow]{
		table.TimeColumn("time", "start of the interval", func(r *timeRow) trace.Time { return l.Grid.Start(r.b) }),
		table.TextColumn("rank", "rank, as its log names it", func(r *timeRow) string { return r.rank.Where.String() }),
	}
	for _, m := range timed {
		doc := l.Set.Metric(m.metric).Doc
		if m.most {
			doc += ", maximum"
		}
		value := func(r *timeRow) float64 {
			points := r.rank.Points[m.metric]
			switch {
			case points == nil || points[r.b].N == 0:
				return math.NaN()
			case m.most:
				return points[r.b].Most
			case l.Set.Metric(m.metric).Kind == series.Amount:
				return points[r.b].Sum
			}
			return points[r.b].Mean()
		}
		if l.Set.Metric(m.metric).Unit == "%" {
			fields = append(fields, table.ShareColumn(m.name, doc, func(r *timeRow) float64 { return value(r) / 100 }))
		} else {
			fields = append(fields, table.NumberColumn(m.name, doc, value))
		}
	}
	return table.New("sgtrace.report.logs.timeline/v1", "What ranks log over time", rows, fields)
}

// Write draws what ranks log over time as text.
func (l *Logged) Write(w io.Writer, style table.Style) error { return l.Drawing().Write(w, style) }

// Drawing has a block for each of Ranks, with what it logs over time.
func (l *Logged) Drawing() *load.Drawing {
	d := &load.Drawing{Buckets: l.Grid.N(), Time: func(b int) string { return words.TimeOfDay(l.Grid.Start(b)) }}
	for i := range l.Ranks {
		r := &l.Ranks[i]
		var list []load.Curve
		for _, m := range timed {
			if m.most || !r.Has(m.metric) {
				continue
			}
			of := l.Set.Metric(m.metric)
			values := l.Curve(r, m.metric)
			if of.Kind == series.Amount {
				for b := range values {
					values[b] /= float64(l.Grid.Bucket) / 1e9
				}
				of = &series.Metric{Name: of.Name, Unit: "/s"}
			}
			list = append(list, load.Curve{Name: of.Name, Unit: of.Unit, Size: 1, Values: values})
		}
		d.Add(r.Where.String(), list)
	}
	return d
}

// Words says in one line what was logged.
func (l *Logged) Words() string {
	files, lines, other, first := 0, 0, 0, ""
	for i := range l.Set.Sources {
		if s := &l.Set.Sources[i]; s.IsLog() && s.Lines > 0 {
			files, lines, other = files+1, lines+s.Lines, other+s.Other
			if first == "" && s.FirstOther > 0 {
				first = fmt.Sprintf("%s:%d", s.Name, s.FirstOther)
			}
		}
	}
	if files == 0 {
		return ""
	}
	text := words.Counted(files, "log")
	if lines > 0 {
		text += ", " + words.Counted(lines, "line")
		if other > 0 {
			text += fmt.Sprintf(" (%s of warnings or errors that sgtrace does not recognize", words.Counted(other, "line"))
			switch {
			case first != "" && other > 1:
				text += ", such as " + first
			case first != "":
				text += ", " + first
			}
			text += ")"
		}
	}
	return text + l.zoneWords()
}

// UnknownWords says that there may be failures in lines that sgtrace does not recognize.
func (l *Logged) UnknownWords() string {
	n := 0
	for i := range l.Set.Sources {
		if s := &l.Set.Sources[i]; s.IsLog() && s.FirstOther > 0 {
			n += s.Other
		}
	}
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(" (but for %s of warnings or errors that sgtrace does not recognize)", words.Counted(n, "line"))
}

// MetricWords says in one line how many metrics were read.
func (l *Logged) MetricWords() string {
	files, values := 0, 0
	for i := range l.Set.Sources {
		if s := &l.Set.Sources[i]; !s.IsLog() && s.Samples > 0 {
			files, values = files+1, values+s.Samples
		}
	}
	if files == 0 {
		return ""
	}
	return fmt.Sprintf("%s, %s", words.Counted(files, "file"), words.Counted(values, "value"))
}

// zoneWords says in which zone local timestamps are read, and why.
func (l *Logged) zoneWords() string {
	var parts []string
	seen := map[string]bool{}
	for i := range l.Set.Sources {
		z := &l.Set.Sources[i].Zone
		text := fmt.Sprintf("timestamps are %s (from %s)", z.Name(), z.By)
		if z.By == series.Assumed {
			text = "timestamps without a zone are read as UTC (--tz sets another)"
		}
		if z.By == "" || seen[text] {
			continue
		}
		seen[text] = true
		parts = append(parts, text)
	}
	if len(parts) == 0 {
		return ""
	}
	const few = 3
	if len(parts) > few {
		parts = append(parts[:few], fmt.Sprintf("and %d more", len(parts)-few))
	}
	return "; " + strings.Join(parts, ", ")
}

// LoadWords says in one line how loaded the servers were.
func (l *Logged) LoadWords() string {
	switch {
	case len(l.Ranks) == 0:
		return ""
	case l.Seconds() <= 0:
		return l.momentWords()
	}
	tokens := 0.0
	var running, queued, usage known
	for i := range l.Ranks {
		r := &l.Ranks[i]
		tokens += Zero(r.Total(series.NewTokens))
		running.most(r.Most(series.Running))
		queued.most(r.MostQueued())
		usage.usageOf(r)
	}
	var parts []string
	if tokens > 0 {
		parts = append(parts, fmt.Sprintf("%s prompt tokens computed (%s/s)", words.Thousands(int64(tokens)), words.Rate(tokens/l.Seconds())))
	}
	if most := loadWords(running, queued, usage, ""); most != "" {
		parts = append(parts, "at most "+most+" on a rank")
	}
	return strings.Join(parts, "; ")
}

// A known is a number, if anything reported it, and what it is of.
type known struct {
	v  float64
	is bool
	of string
}

// usageOf replaces k by the usage of a rank's fullest pool if that is higher.
func (k *known) usageOf(r *Rank) {
	if u := r.Most(series.KVUsage); !math.IsNaN(u) && (!k.is || u > k.v) {
		*k = known{u, true, r.Pool()}
	}
}

// most replaces k by v if v is higher; NaN is unknown.
func (k *known) most(v float64) {
	if !math.IsNaN(v) {
		k.v, k.is = max(k.v, v), true
	}
}

// add adds v; NaN is unknown.
func (k *known) add(v float64) {
	if !math.IsNaN(v) {
		k.v, k.is = k.v+v, true
	}
}

// loadWords says how loaded something is, as far as known: "3 running, 2 waiting, KV cache 50 % full". where follows
// the number that wait.
func loadWords(running, queued, usage known, where string) string {
	var parts []string
	if running.is {
		parts = append(parts, fmt.Sprintf("%.0f running", running.v))
	}
	if queued.is {
		parts = append(parts, fmt.Sprintf("%.0f waiting", queued.v)+where)
	}
	if usage.is {
		parts = append(parts, fmt.Sprintf("%s %s %% full", usage.of, words.InPercent(usage.v/100)))
	}
	return strings.Join(parts, ", ")
}

// momentWords says in one line how loaded the servers were if there is a single moment, such as one scrape.
func (l *Logged) momentWords() string {
	var running, queued, usage known
	top := &l.Ranks[0]
	for i := range l.Ranks {
		r := &l.Ranks[i]
		running.add(r.Most(series.Running))
		queued.add(r.MostQueued())
		usage.usageOf(r)
		if Zero(r.MostQueued()) > Zero(top.MostQueued()) {
			top = r
		}
	}
	where := ""
	if len(l.Ranks) > 1 && queued.v > 0 {
		where = fmt.Sprintf(" (%.0f of them on %s)", top.MostQueued(), top.Where.String())
	}
	load := loadWords(running, queued, usage, where)
	if load == "" {
		return ""
	}
	text := "at that moment, " + load
	if len(l.Ranks) > 1 {
		text += ", of " + words.Counted(len(l.Ranks), "rank")
	}
	return text
}
