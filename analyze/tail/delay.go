package tail

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/cause"
	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// Delays are the requests that a single cause delayed by as much as a median request takes in all, whether or not
// they are among the slowest: a short answer that is late hides behind long answers.
type Delays struct {
	N     int   // finished requests
	Limit int64 // ns: median E2E of all finished requests
	// Kinds is the number of populations. Each has a limit of its own.
	Kinds int
	Rows  []Delay
	Waits []Wait // waits of requests in general; delays are beyond these
}

// A Delay is one cause, and the requests that it delayed more than any other cause did.
type Delay struct {
	Cause      cause.Cause
	Requests   []int // indexes into Set.Requests, sorted by start
	Limit      int64 // ns: median E2E of the population of most of the delayed requests
	Total, Max int64 // ns beyond what at least half of all requests have (0 for causes that grow with every token), of all requests and of the worst one
	Where      Place
	StandsOut  bool // more than a few requests are delayed
}

// delays compares every cause of every request with its usual value.
func (t *Tail) delays() *Delays {
	d := &Delays{N: len(t.List)}
	if d.N < finding.FewCompared {
		return nil
	}
	limits := t.medianE2Es()
	if d.Limit, d.Kinds = limits[0], len(limits); d.Kinds > 1 {
		d.Limit = t.medianE2E(-1)
	}
	d.Waits = t.waits(d.Limit)
	rows := make([]Delay, cause.Count)
	groups := make([]tailGroup, cause.Count)
	for i := range cause.Each(t.List) {
		a := &t.List[i]
		main, most := cause.Router, int64(0)
		for c := range cause.Count {
			if c.BySize() || c.PerToken() && a.Gaps == 0 { // without steps, the cause of a delay is unknown
				continue
			}
			if more := a.E2E[c] - t.Usual.Of(c, a); more > most {
				main, most = c, more
			}
		}
		if most == 0 || most < limits[a.Population] {
			continue
		}
		row := &rows[main]
		row.Requests = append(row.Requests, a.Request)
		row.Total, row.Max = row.Total+most, max(row.Max, most)
		groups[main].add(tailUnit{owner: int32(i), n: 1, sum: a.E2E})
	}
	for c := range cause.Count {
		row := &rows[c]
		if n := len(row.Requests); n > 0 {
			row.Cause, row.Where = c, t.where(c, &groups[c])
			row.Limit = t.usualLimit(&groups[c], limits)
			row.StandsOut = n >= finding.FewDelayed && n*finding.DelayedOneIn >= d.N
			d.Rows = append(d.Rows, *row)
		}
	}
	slices.SortStableFunc(d.Rows, func(x, y Delay) int { return cmp.Compare(y.Total, x.Total) })
	return d
}

// medianE2Es returns the median E2E of every population, in ns, because a delay as long as an embedding takes does
// not matter for an answer of a thousand tokens.
func (t *Tail) medianE2Es() []int64 {
	limits := make([]int64, max(1, t.Peers.Populations()))
	for population := range limits {
		limits[population] = t.medianE2E(population)
	}
	return limits
}

// medianE2E returns the median E2E of the finished requests of a population, in ns; below 0, of all populations. It
// includes requests with missing spans, because long requests lose more spans, and without them the median would be
// too short.
func (t *Tail) medianE2E(population int) int64 {
	var e2e []int64
	for i := range cause.Each(t.List) {
		if a := &t.List[i]; population < 0 || int(a.Population) == population {
			e2e = append(e2e, a.E2E.Total())
		}
	}
	for i := range t.set.AllRequests() {
		r := &t.set.Requests[i]
		if r.Status == request.Finished && !r.Complete() && r.Metrics.E2E >= 0 && (population < 0 || t.Peers.Population(r) == population) {
			e2e = append(e2e, r.Metrics.E2E)
		}
	}
	if len(e2e) == 0 {
		return 0
	}
	return distribution.LowerMedian(e2e)
}

// usualLimit returns the limit of the population that most requests of a group belong to.
func (t *Tail) usualLimit(g *tailGroup, limits []int64) int64 {
	counts, most := make([]int, len(limits)), 0
	for u := range g.eachUnit {
		p := int(t.List[u.owner].Population)
		if counts[p]++; counts[p] > counts[most] {
			most = p
		}
	}
	return limits[most]
}

// Verdict returns a sentence about the waits of all requests, if there are any, and one about delays of some of them.
func (d *Delays) Verdict() string {
	n := 0
	var causes, waits []string
	for i := range d.Waits {
		waits = append(waits, d.Waits[i].String())
	}
	for i := range d.Rows {
		row := &d.Rows[i]
		n += len(row.Requests)
		if len(causes) < 3 {
			causes = append(causes, fmt.Sprintf("%d %s", len(row.Requests), phraseAt(row.Cause, row.Where)))
		}
	}
	limit, beyond := words.Nearly(d.Limit)+" (the median E2E)", ""
	if d.Kinds > 1 {
		limit = "the median E2E of their kind"
	}
	if len(waits) > 0 {
		beyond = " beyond that"
	}
	told := fmt.Sprintf("no single cause delays any of %d requests by %s or more%s", d.N, limit, beyond)
	if n > 0 {
		told = fmt.Sprintf("a single cause delays %d of %d requests by %s or more%s: %s", n, d.N, limit, beyond, strings.Join(causes, ", "))
	}
	text := strings.Join(append(waits, told), "; ")
	return strings.ToUpper(text[:1]) + text[1:]
}

func (t *Tail) delaysReport() *table.Table {
	d := t.Delays
	start := func(name, doc string, of func(*Delay) int) table.Field[Delay] {
		return table.TimeColumn(name, doc, func(x *Delay) trace.Time { return t.set.Requests[of(x)].Start })
	}
	r := table.New("sgtrace.report.delays/v1", d.Verdict(), d.Rows, []table.Field[Delay]{
		table.TextColumn("cause", "cause of the delay; docs/METRICS.md defines it", func(x *Delay) string { return x.Cause.String() }),
		table.CountColumn("requests", "number of requests for which this is the largest delay", func(x *Delay) int64 { return int64(len(x.Requests)) }),
		table.ShareColumn("of all", "share of the finished requests", func(x *Delay) float64 { return float64(len(x.Requests)) / float64(d.N) }),
		table.TookColumn("mean", "mean delay beyond the usual time", func(x *Delay) int64 { return x.Total / int64(len(x.Requests)) }),
		table.TookColumn("max", "largest delay beyond the usual time", func(x *Delay) int64 { return x.Max }),
		table.TextColumn("where", "rank with the most of this delay", func(x *Delay) string { return x.Where.Name }),
		{Column: table.Column{Name: "there", Unit: table.Share, Doc: "that rank's share of the cause"}, Cell: func(x *Delay) table.Cell { return x.Where.cell() }},
		start("first", "start of the first of these requests, Unix time", func(x *Delay) int { return x.Requests[0] }),
		start("last", "start of the last of these requests, Unix time", func(x *Delay) int { return x.Requests[len(x.Requests)-1] }),
		table.YesColumn("stands out", "yes if this is a finding", func(x *Delay) bool { return x.StandsOut }).InDetail(),
	})
	r.Stay("mean", "where").Leave("max", "first", "last")
	r.Note("usual: the median over all finished requests; for decode, interference, and slow ranks, the mean per token")
	return r
}

// cell returns the share that p has.
func (p Place) cell() table.Cell { return table.Cell{Share: p.Share, Unknown: p.Proc == request.None} }

// A Wait is a cause that requests in general wait for, so that it does not distinguish slow requests from others.
type Wait struct {
	Cause    cause.Cause
	P50, P90 int64   // ns: median, and 90th percentile, over all requests
	Share    float64 // of the total time of all requests
}

// waitCauses are the causes in which a request only waits.
var waitCauses = []cause.Cause{
	cause.Intake, cause.DecodeBootstrap, cause.PrefillBootstrap, cause.Queue, cause.ChunkWait, cause.DecodeQueue,
}

// Requests in general wait for a cause if half of them wait for a quarter (1/waitPart) of the median E2E, or if it
// takes waitShare of the total time of all requests.
const (
	waitPart  = 4
	waitShare = 0.4
)

// waits returns what requests in general wait for, the largest share first. limit is the median E2E, in ns.
func (t *Tail) waits(limit int64) []Wait {
	var out []Wait
	total := 0.0
	for i := range cause.Each(t.List) {
		total += float64(t.List[i].E2E.Total())
	}
	for _, c := range waitCauses {
		list, sum := memory.Make[int64](len(t.List)), 0.0
		for i := range cause.Each(t.List) {
			list[i] = t.List[i].E2E[c]
			sum += float64(list[i])
		}
		w := Wait{c, distribution.Percentile(list, 50), distribution.Percentile(list, 90), distribution.Ratio(sum, total)}
		if w.P50 > 0 && w.P50 >= limit/waitPart || w.Share >= waitShare {
			out = append(out, w)
		}
	}
	slices.SortStableFunc(out, func(x, y Wait) int { return cmp.Compare(y.Share, x.Share) })
	return out
}

// String says how long requests in general wait.
func (w *Wait) String() string {
	return fmt.Sprintf("half of all requests spend %s or more %s (%s %% of the time of all requests)",
		words.Nearly(w.P50), w.Cause.Phrase(), words.InPercent(w.Share))
}

// wait returns the wait of requests in general for a cause, or nil if there is none.
func (d *Delays) wait(c cause.Cause) *Wait {
	if d != nil {
		for i := range d.Waits {
			if d.Waits[i].Cause == c {
				return &d.Waits[i]
			}
		}
	}
	return nil
}

// WaitFindings returns what requests in general wait for, and whether there are enough requests to say so. Other
// findings miss it: if all requests wait, slow ones don't differ from usual ones, and if they wait from the
// beginning, nothing changes over time.
func (t *Tail) WaitFindings(b *cause.Costs) ([]finding.Finding, finding.Check) {
	check := finding.Check{What: "waits of all requests", Of: "finished request", N: len(t.List), Needed: finding.FewCompared}
	if t.Delays == nil {
		return nil, check
	}
	var out []finding.Finding
	for i := range t.Delays.Waits {
		w := &t.Delays.Waits[i]
		f := finding.Finding{
			Subkind: finding.Waits, Text: fmt.Sprintf("%s; median E2E: %s", w, words.Nearly(t.Delays.Limit)), Cost: w.Share, Claim: b.AllOf(t.requests(), w.Cause), Show: showTable("delays"),
			Metric: finding.Metric{Name: "time " + w.Cause.Phrase(), Unit: table.Duration, Before: math.NaN(), After: float64(w.P50)},
		}
		f.Evidence = []finding.Evidence{finding.Sentence("one in ten requests spends %s or more %s", words.Nearly(w.P90), w.Cause.Phrase())}
		out = append(out, f)
	}
	return out, check
}
