package tail

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/cause"
	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/request"
)

// Delays are the requests that one cause alone has delayed by as much as a median
// request takes altogether, whether or not they are among the slowest: a short
// answer that is late hides there behind long ones.
type Delays struct {
	N     int   // finished requests
	Limit int64 // ns: the median of E2E, of all of them
	// Kinds is how many populations they are of, each of which has a limit of its own.
	Kinds int
	Rows  []Delay
	Waits []Wait // what requests in general wait for, which delays are beyond
}

// A Delay is one cause, and the requests that it has delayed, each more than any
// other cause did.
type Delay struct {
	Cause      cause.Cause
	Requests   []int // indexes into Set.Requests, by start
	Usual      int64 // ns that half of all requests have at least; 0 for what grows with every token
	Limit      int64 // ns: the median E2E of those like most of them
	Total, Max int64 // ns beyond what is usual, of all and of the worst
	Where      Place
	StandsOut  bool // there are more than a few
}

// delays compares every cause of every request with what is usual.
func (t *Tail) delays() *Delays {
	d := &Delays{N: len(t.List)}
	if d.N < finding.FewCompared {
		return nil
	}
	limits := t.medianE2Es()
	d.Limit, d.Kinds = t.medianE2E(-1), len(limits)
	d.Waits = t.waits(d.Limit)
	usual := cause.UsualOf(t.List)
	rows := make([]Delay, cause.Count)
	groups := make([]tailGroup, cause.Count)
	for i := range t.List {
		a := &t.List[i]
		main, most := cause.Router, int64(0)
		for c := range cause.Count {
			if c.BySize() || c.PerToken() && a.Gaps == 0 { // without steps nobody knows what held it up
				continue
			}
			if more := a.E2E[c] - usual.Of(c, a); more > most {
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

// medianE2Es returns the median of every population, in ns: what delays an embedding by as much
// as it takes is no matter to an answer of a thousand tokens.
func (t *Tail) medianE2Es() []int64 {
	limits := make([]int64, max(1, t.Peers.Populations()))
	for population := range limits {
		limits[population] = t.medianE2E(population)
	}
	return limits
}

// medianE2E is over all finished requests of a population, in ns; below 0, of all populations.
// Requests of which spans are missing have an E2E, too; without them it would be that of
// short ones, which lose fewer spans.
func (t *Tail) medianE2E(population int) int64 {
	var e2e []int64
	for i := range t.List {
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

// usualLimit is the limit of the population that most requests of a group are of.
func (t *Tail) usualLimit(g *tailGroup, limits []int64) int64 {
	counts, most := make([]int, len(limits)), 0
	for i := range g.units {
		p := int(t.List[g.units[i].owner].Population)
		if counts[p]++; counts[p] > counts[most] {
			most = p
		}
	}
	return limits[most]
}

// Verdict says in a sentence what requests in general wait for, and in one what delays some
// of them.
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
	ns := func(name, doc string, of func(*Delay) int64) table.Field[Delay] {
		return table.Field[Delay]{Column: table.Column{Name: name, Unit: table.Duration, Scale: "duration", Doc: doc}, Cell: func(x *Delay) table.Cell { return table.Cell{N: of(x)} }}
	}
	start := func(name, doc string, of func(*Delay) int) table.Field[Delay] {
		return table.Field[Delay]{Column: table.Column{Name: name, Unit: table.Instant, Doc: doc}, Cell: func(x *Delay) table.Cell { return table.InstantCell(t.set.Requests[of(x)].Start) }}
	}
	r := table.New("sgtrace.report.delays/v1", d.Verdict(), d.Rows, []table.Field[Delay]{
		{Column: table.Column{Name: "cause", Doc: "what delayed them; docs/METRICS.md defines it"}, Cell: func(x *Delay) table.Cell { return table.Cell{Text: x.Cause.String()} }},
		{Column: table.Column{Name: "requests", Unit: table.Count, Doc: "that it delayed more than any other cause did"}, Cell: func(x *Delay) table.Cell { return table.Cell{N: int64(len(x.Requests))} }},
		{Column: table.Column{Name: "of all", Unit: table.Share, Doc: "part of the finished requests"}, Cell: func(x *Delay) table.Cell { return table.Cell{Share: float64(len(x.Requests)) / float64(d.N)} }},
		ns("mean", "beyond what is usual", func(x *Delay) int64 { return x.Total / int64(len(x.Requests)) }),
		ns("max", "beyond what is usual", func(x *Delay) int64 { return x.Max }),
		{Column: table.Column{Name: "where", Doc: "the rank that has most of it"}, Cell: func(x *Delay) table.Cell { return table.TextCell(x.Where.Name) }},
		{Column: table.Column{Name: "there", Unit: table.Share, Doc: "how much of it that rank has"}, Cell: func(x *Delay) table.Cell { return x.Where.cell() }},
		start("first", "start of the first of them, Unix time", func(x *Delay) int { return x.Requests[0] }),
		start("last", "start of the last of them, Unix time", func(x *Delay) int { return x.Requests[len(x.Requests)-1] }),
		{Column: table.Column{Name: "stands out", Doc: "yes if it is a finding", Detail: true}, Cell: func(x *Delay) table.Cell { return table.YesCell(x.StandsOut) }},
	})
	r.Stay("mean", "where").Leave("max", "first", "last")
	r.Note("usual: the median over all finished requests; for decode, interference, and slow ranks, the mean per token")
	return r
}

// cell is how much is at p.
func (p Place) cell() table.Cell { return table.Cell{Share: p.Share, Unknown: p.Proc == request.None} }
