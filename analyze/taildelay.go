package analyze

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/request"
)

// Delays are the requests that one cause alone has delayed by as much as a median
// request takes altogether, whether or not they are among the slowest: a short
// answer that is late hides there behind long ones.
type Delays struct {
	N     int   // finished requests
	Limit int64 // ns: the median of E2E
	Rows  []Delay
}

// A Delay is one cause, and the requests that it has delayed, each more than any
// other cause did.
type Delay struct {
	Cause      Cause
	Requests   []int // indexes into Set.Requests, by start
	Total, Max int64 // ns beyond what is usual, of all and of the worst
	Where      Place
	StandsOut  bool // there are more than a few
}

// A cause stands out if it delays at least fewDelayed requests and one in
// delayedOneIn.
const (
	fewDelayed   = 3
	delayedOneIn = 100
)

// delays compares every cause of every request with what is usual.
func (t *Tail) delays() *Delays {
	d := &Delays{N: len(t.list)}
	if d.N < fewCompared {
		return nil
	}
	d.Limit = medianOver(t.list, func(a *Attribution) int64 { return a.E2E.Total() })
	usual := usualOf(t.list)
	rows := make([]Delay, causeCount)
	groups := make([]tailGroup, causeCount)
	for i := range t.list {
		a := &t.list[i]
		main, most := CauseRouter, int64(0)
		for c := range causeCount {
			if c.bySize() || c.perToken() && a.Gaps == 0 { // without steps nobody knows what held it up
				continue
			}
			if more := a.E2E[c] - usual.of(c, a); more > most {
				main, most = c, more
			}
		}
		if most == 0 || most < d.Limit {
			continue
		}
		row := &rows[main]
		row.Requests = append(row.Requests, a.Request)
		row.Total, row.Max = row.Total+most, max(row.Max, most)
		groups[main].add(tailUnit{owner: int32(i), n: 1, sum: a.E2E})
	}
	for c := range causeCount {
		row := &rows[c]
		if n := len(row.Requests); n > 0 {
			row.Cause, row.Where = c, t.where(c, &groups[c])
			row.StandsOut = n >= fewDelayed && n*delayedOneIn >= d.N
			d.Rows = append(d.Rows, *row)
		}
	}
	slices.SortStableFunc(d.Rows, func(x, y Delay) int { return cmp.Compare(y.Total, x.Total) })
	return d
}

// medianOver returns the lower median of a value over attributed requests.
func medianOver(list []Attribution, of func(a *Attribution) int64) int64 {
	values := make([]int64, len(list))
	for i := range list {
		values[i] = of(&list[i])
	}
	return distribution.LowerMedian(values)
}

// usualCauses are what is usual of the causes, in ns: the median over all
// attributed requests; of those that grow with the output, the mean per gap between tokens.
type usualCauses Causes

// usualOf returns what is usual of at least one request.
func usualOf(list []Attribution) *usualCauses {
	var u usualCauses
	for c := range causeCount {
		if !c.perToken() {
			u[c] = medianOver(list, func(a *Attribution) int64 { return a.E2E[c] })
			continue
		}
		sum, gaps := int64(0), int64(0)
		for i := range list {
			sum, gaps = sum+list[i].E2E[c], gaps+int64(list[i].Gaps)
		}
		u[c] = distribution.FloorDiv(sum, max(1, gaps))
	}
	return &u
}

// of returns what is usual of cause c for a request like a.
func (u *usualCauses) of(c Cause, a *Attribution) int64 {
	if c.perToken() {
		return u[c] * int64(a.Gaps)
	}
	return u[c]
}

// Verdict says in one sentence what delays requests.
func (d *Delays) Verdict() string {
	n := 0
	var causes []string
	for i := range d.Rows {
		row := &d.Rows[i]
		n += len(row.Requests)
		if len(causes) < 3 {
			causes = append(causes, fmt.Sprintf("%d %s", len(row.Requests), phraseAt(row.Cause, row.Where)))
		}
	}
	limit := words.Nearly(d.Limit)
	if n == 0 {
		return fmt.Sprintf("None of %d requests is delayed by one cause by %s (the median E2E) or more", d.N, limit)
	}
	return fmt.Sprintf("%d of %d requests %s delayed by one cause by %s (the median E2E) or more: %s", n, d.N, words.IsOrAre(n), limit, strings.Join(causes, ", "))
}

func (t *Tail) delaysReport() *Report {
	d := t.Delays
	ns := func(name, doc string, of func(*Delay) int64) field[Delay] {
		return field[Delay]{Column{Name: name, Unit: Duration, Scale: "duration", Doc: doc}, func(x *Delay) Cell { return Cell{N: of(x)} }}
	}
	start := func(name, doc string, of func(*Delay) int) field[Delay] {
		return field[Delay]{Column{Name: name, Unit: Instant, Doc: doc}, func(x *Delay) Cell { return instantCell(t.set.Requests[of(x)].Start) }}
	}
	r := tabulate("sgtrace.report.delays/v1", d.Verdict(), d.Rows, []field[Delay]{
		{Column{Name: "cause", Doc: "what delayed them; docs/METRICS.md defines it"}, func(x *Delay) Cell { return Cell{Text: x.Cause.String()} }},
		{Column{Name: "requests", Unit: Count, Doc: "that it delayed more than any other cause did"}, func(x *Delay) Cell { return Cell{N: int64(len(x.Requests))} }},
		{Column{Name: "of all", Unit: Share, Doc: "part of the finished requests"}, func(x *Delay) Cell { return Cell{Share: float64(len(x.Requests)) / float64(d.N)} }},
		ns("mean", "beyond what is usual", func(x *Delay) int64 { return x.Total / int64(len(x.Requests)) }),
		ns("max", "beyond what is usual", func(x *Delay) int64 { return x.Max }),
		{Column{Name: "where", Doc: "the rank that has most of it"}, func(x *Delay) Cell { return textCell(x.Where.Name) }},
		{Column{Name: "there", Unit: Share, Doc: "how much of it that rank has"}, func(x *Delay) Cell { return x.Where.cell() }},
		start("first", "start of the first of them, Unix time", func(x *Delay) int { return x.Requests[0] }),
		start("last", "start of the last of them, Unix time", func(x *Delay) int { return x.Requests[len(x.Requests)-1] }),
		{Column{Name: "stands out", Doc: "yes if it is a finding", Detail: true}, func(x *Delay) Cell { return yesCell(x.StandsOut) }},
	})
	r.note("usual: the median over all finished requests; of decode, interference and slow ranks the mean per token")
	return r
}

// cell is how much is at p.
func (p Place) cell() Cell { return Cell{Share: p.Share, Unknown: p.Proc == request.None} }

// yesCell is unknown for no.
func yesCell(yes bool) Cell {
	if yes {
		return Cell{Text: "yes"}
	}
	return Cell{Unknown: true}
}
