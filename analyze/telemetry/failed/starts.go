package failed

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/telemetry"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
)

// SlowStart is the subkind of findings about servers that took long to start.
const SlowStart = "slow start"

// A load is the loading of a server's weights: since when, how long it took in s, and their size on a device in GB; 0
// is unknown.
type load struct {
	server     int32
	since      trace.Time
	took, size float64
}

// alike reports whether the weights of two servers may be of the same model: they have the same size, if it is known.
func (x *load) alike(o *load) bool {
	return x.size == 0 || o.size == 0 || max(x.size, o.size) <= 1.1*min(x.size, o.size)
}

// loads returns the longest load of each server that logs how long it took.
func loads(l *telemetry.Logged) (list []load) {
	at := map[int32]int{}
	for i := range l.Events {
		e := &l.Events[i]
		x := load{server: e.Server}
		if e.Kind != series.Starting || !strings.HasPrefix(e.Text, "has its weights, after ") {
			continue
		}
		if n, _ := fmt.Sscanf(e.Text, "has its weights, after %f s (%f GB)", &x.took, &x.size); n == 0 {
			continue
		}
		x.since = e.First - trace.Time(x.took*1e9)
		k, ok := at[e.Server]
		switch {
		case !ok:
			at[e.Server] = len(list)
			list = append(list, x)
		case x.took > list[k].took:
			list[k] = x
		}
	}
	return list
}

// slowStarts finds servers that took far longer to load their weights than most others of their role with weights of
// the same size.
func slowStarts(l *telemetry.Logged) (out []finding.Finding) {
	const few, muchMore = 3, 60 // servers; s
	all := loads(l)
	for _, x := range all {
		s := &l.Set.Servers[x.server]
		var others []float64
		for _, o := range all {
			if o.server != x.server && x.alike(&o) && telemetry.Role(&l.Set.Servers[o.server]) == telemetry.Role(s) {
				others = append(others, o.took)
			}
		}
		if len(others) < few-1 {
			continue
		}
		usual := order.Median(others)
		if x.took < manyTimes*usual || x.took-usual < muchMore {
			continue
		}
		from, to, _ := l.Set.Bounds()
		f := finding.Finding{Subkind: SlowStart, At: place.At(telemetry.Role(s), telemetry.Host(s), trace.NoRank, l.Names), Since: x.since, Until: x.since + trace.Time(x.took*1e9), Severity: finding.Warning, Confidence: finding.Certain,
			Cost:   share(trace.Time((x.took-usual)*1e9), to-from, len(all)),
			Metric: finding.Metric{Name: "time for weights", Unit: table.Duration, Before: usual * 1e9, After: x.took * 1e9}}
		f.Text = fmt.Sprintf("%s took %s to load its weights, until %s, and the others %s", telemetry.Host(s), words.Nearly(int64(x.took*1e9)), words.TimeOfDay(f.Until), words.Nearly(int64(math.Round(usual)*1e9)))
		f.Evidence = append(f.Evidence, finding.Sentence("that is the median of %s", words.Counted(len(others), "other server")))
		out = append(out, f)
	}
	return out
}

// LongStart is the subkind of findings about starts that took long, whatever others took.
const LongStart = "long start"

// stages maps the steps of a start to what the time after a step that begins something is for, or else the time before
// a step that ends it.
var stages = map[string]struct{ after, before string }{
	"starts its engine":                 {"", ""},
	"sets up communication":             {"communication", "what comes before communication"},
	"tries which GPUs reach each other": {"communication", "communication"},
	"loads weights":                     {"its weights", "what comes before its weights"},
	"has its weights":                   {"", "its weights"},
	"compiles its model":                {"compiling", "compiling"},
	"has compiled its model":            {"", "compiling"},
	"has warmed up":                     {"", "warming up"},
	"has its KV cache":                  {"", "its KV cache"},
	"captures graphs":                   {"its graphs", "what comes before its graphs"},
	"has its graphs":                    {"", "its graphs"},
	"has its engine":                    {"", "other work of its engine"},
	"is ready":                          {"", "its HTTP server"},
}

// stageOf returns the step of a start that an event tells about.
func stageOf(e *telemetry.Event) string {
	step, _, _ := strings.Cut(e.Text, ",")
	if strings.HasPrefix(step, "has a KV cache") {
		return "has its KV cache"
	}
	return step
}

// longStarts finds servers whose start took longer than vLLM's front end waits for an engine, 10 minutes, and tells what
// took how long: the time of each step is since the one before it, so that they add up.
func longStarts(l *telemetry.Logged) (out []finding.Finding) {
	const long, least = trace.Time(600e9), trace.Time(1e9)
	for server := range l.Set.Servers {
		var first, last *telemetry.Event
		took := map[string]trace.Time{}
		for i := range l.Events {
			e := &l.Events[i]
			to, known := stages[stageOf(e)]
			if e.Server != int32(server) || e.First == 0 || !known || e.Kind != series.Starting && e.Kind != series.Ready {
				continue
			}
			if first == nil {
				first = e
			} else if what := cmp.Or(stages[stageOf(last)].after, to.before); what != "" {
				took[what] += e.First - last.First
			}
			if last = e; e.Kind == series.Ready {
				break
			}
		}
		if first == nil || last.First-first.First < long || last.Kind != series.Ready && !servesLater(l, last) {
			continue
		}
		f := failure(l, first, LongStart)
		f.Severity, f.Until = finding.Info, last.First
		f.Metric = finding.Metric{Name: "time to start", Unit: table.Duration, Before: math.NaN(), After: float64(last.First - first.First)}
		f.Text = fmt.Sprintf("%s took %s to start, until %s", telemetry.Host(&l.Set.Servers[server]), words.Nearly(int64(last.First-first.First)), words.TimeOfDay(last.First))
		most := slices.SortedFunc(maps.Keys(took), func(x, y string) int { return cmp.Or(cmp.Compare(took[y], took[x]), cmp.Compare(x, y)) })
		var parts []string
		for i, what := range most {
			if i == 0 {
				f.Text += fmt.Sprintf(": %s of it for %s", words.Nearly(int64(took[what])), what)
			} else if took[what] >= least {
				parts = append(parts, fmt.Sprintf("%s for %s", words.Nearly(int64(took[what])), what))
			}
		}
		f.Evidence = []finding.Evidence{finding.Sentence("%s:%d to %s:%d", first.File, first.Line, last.File, last.Line)}
		if len(parts) > 0 {
			f.Evidence = slices.Insert(f.Evidence, 0, finding.Sentence("besides: %s", strings.Join(parts, ", ")))
		}
		out = append(out, f)
	}
	return out
}

// NotReady is the subkind of findings about servers whose logs end before they are ready.
const NotReady = "not ready"

// amidStart maps the steps of a start that are not the last to the words for where the server is after each.
var amidStart = map[string]string{
	"starts its engine":                 "while it starts its engine",
	"sets up communication":             "while it sets up communication",
	"tries which GPUs reach each other": "while it tries which of its GPUs reach each other",
	"loads weights":                     "while it loads its weights",
	"has its weights":                   "after it loaded its weights",
	"compiles its model":                "while it compiles its model",
	"has compiled its model":            "after it compiled its model",
	"captures graphs":                   "while it captures graphs",
}

// notReady finds servers whose logs end during their start without a reason.
func notReady(l *telemetry.Logged) (out []finding.Finding) {
	last := map[int32]*telemetry.Event{} // last event of each server about itself
	for i := range l.Events {
		e := &l.Events[i]
		if o := last[e.Server]; e.Kind != series.Complaint && e.Kind != series.Note && (o == nil || e.Last >= o.Last) {
			last[e.Server] = e
		}
	}
	killed := killedServers(l)
	for i := range l.Set.Sources {
		src := &l.Set.Sources[i]
		e := last[onlyServer(l, src)]
		if e == nil || l.Opt.To != 0 || src.Encoding != "server log" || e.Kind != series.Starting || src.Last-e.Last > together || batchAfter(l, e) {
			continue
		}
		step, _, _ := strings.Cut(e.Text, ",")
		amid := amidStart[step]
		failed := slices.ContainsFunc(l.Events, func(o telemetry.Event) bool { return ends(&o) && o.Server == e.Server && o.First >= e.First-exact })
		if amid == "" || killed[e.Server] || failed {
			continue
		}
		f := failure(l, e, NotReady)
		f.Text = fmt.Sprintf("the log of %s ends at %s %s, before it was ready", telemetry.Host(&l.Set.Servers[e.Server]), words.TimeOfDay(src.Last), amid)
		why := finding.Sentence("the log does not say why: its processes were killed, or somebody copied it while the server started")
		if src.Other > 0 {
			why = finding.Sentence("see %s:%d, the first of %s of warnings or errors that sgtrace does not recognize, for why", src.Name, src.FirstOther, words.Counted(src.Other, "line"))
		}
		f.Evidence = append(f.Evidence, why)
		out = append(out, f)
	}
	return out
}
