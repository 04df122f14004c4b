package finding

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"math"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// A Finding is something that an engineer should know about, and what shows it. Text,
// JSON, Markdown and the page are made from it. A package below analyze fills in what
// it measured. The row in the list of finders adds what all its findings have in common: Kind and
// Scope, and Severity, Confidence, CostBasis, and Show if they are empty.
type Finding struct {
	Kind Kind
	// Subkind tells findings of one kind apart that are about different things.
	Subkind    string
	Severity   Severity
	Confidence Confidence
	// At is where it is. The zero value is everywhere, or nobody knows; a part of a
	// rank that is not known is -1, a host "".
	At place.Location
	// Rank is the rank of a profile.Set that is late where it meets others, by its name there; "" is
	// none.
	Rank string
	// Scope is how far around At it is felt. Findings of one kind whose scopes overlap
	// are merged.
	Scope Scope
	// Since is when it began, and Until when it was over; 0 is from the beginning on,
	// and to the end.
	Since, Until trace.Time
	// Within is by how much Since may be off, either way.
	Within trace.Time
	// Full is until when it becomes ever more, of what does so bit by bit; 0 is at once.
	Full trace.Time
	// Text is one sentence: what, where, since when, by how much.
	Text string
	// Metric is the number that the sentence is about.
	Metric Metric
	// P is the probability of such a finding if nothing is wrong.
	P Probability
	// Cost is the part that it costs, 0 to 1, of what Whose says. Findings are listed
	// by it.
	Cost      float64
	CostBasis CostBasis
	// BasisText is what sentences call the basis, where devices have a word of their own; else "".
	BasisText string
	// Brief stands in the sentence of its cause, where it has one; "" is nothing.
	Brief string
	// Without says what latencies would have been without it, with Assumed, what that takes for
	// granted; NoWithout says why nobody knows. All are empty unless somebody asked.
	Without   []Without
	Assumed   []string
	NoWithout string
	// Lost is the part of the time of its peers that these wait for a rank; 0 is nothing, or nobody knows.
	Lost float64
	// Mostly is the cause that most of what it costs is of; "" is none, or nobody knows.
	Mostly string
	// Claim is the time of requests that it costs, until that is settled; nil is none. MoreWork tells that it is for more work, each
	// piece of which takes as long as it does.
	Claim    Claim
	MoreWork bool
	Affected Affected
	Evidence []Evidence
	// Show are commands that show more, each as the arguments of 'sgtrace report' if they
	// begin with a flag, else of 'sgtrace'. Text shows the first one.
	Show [][]string
	took []Finding // what is evidence of it: what those bring about is of it, too
}

// Begins reports whether f began at about some time, or was becoming more then.
func (f *Finding) Begins(at, about trace.Time) bool {
	return at >= f.Since-about-f.Within && at <= max(f.Since, f.Full)+about+f.Within
}

// A Claim lowers the time that is left of the i-th finished request, in ns by cause (package
// cause), to what a request takes without what the finding is why of: how much that is does not
// depend on other claims, and is never less than nothing. What is lower stays as it is.
type Claim func(i int, left []int64)

// Taken is how much of the time that a finding claims others before it have.
type Taken struct {
	By   int     // which one of them has most of it
	Part float64 // what all of them have, 0 to 1
}

// And claims what either of two does: what both claim, once.
func (c Claim) And(d Claim) Claim {
	switch {
	case c == nil:
		return d
	case d == nil:
		return c
	}
	return func(i int, left []int64) {
		c(i, left)
		d(i, left)
	}
}

// ID returns the same in every run on the same data, and differs between the findings of one
// run: it depends on what the finding is about and where, and on no measured number.
func (f *Finding) ID() string {
	h := fnv.New32a()
	role, host, rank := f.At.Parts()
	fmt.Fprintf(h, "%s\x00%s\x00%s\x00%s\x00%s\x00%s\x00%s\x00%s", f.Kind, f.Subkind, f.At.Scope, role, host, f.At.Label, rank, f.Metric.Name)
	return fmt.Sprintf("%s-%08x", f.Kind, h.Sum32())
}

// A Metric is a number that is not what it was, or not what it is elsewhere. The zero
// value is none.
type Metric struct {
	Name string
	Unit table.Unit // Duration is in ns; Number is any number
	// Before is what it was, or what is usual elsewhere, and After what it is; NaN is
	// unknown.
	Before, After float64
}

// UnitName returns the unit as programs read it; "" without a metric.
func (m *Metric) UnitName() string {
	if m.Name == "" {
		return ""
	}
	return m.Unit.String()
}

// A Probability may be unknown, which is its zero value.
type Probability struct {
	P     float64
	Known bool
}

// Chance returns a probability; NaN is unknown.
func Chance(p float64) Probability {
	if math.IsNaN(p) {
		return Probability{}
	}
	return Probability{p, true}
}

// Affected are the requests that suffer from something. The zero value is unknown.
type Affected struct {
	N    int
	RIDs []string // of the first ones, MaxRIDs at most

	requests []int // indexes into Set.Requests
}

// AffectedOf names requests of s, given their indexes.
func AffectedOf(s *request.Set, list []int) Affected {
	a := Affected{N: len(list), requests: list}
	for _, i := range list[:min(MaxRIDs, len(list))] {
		a.RIDs = append(a.RIDs, s.Text(s.Requests[i].RID))
	}
	return a
}

// Requests returns all of them, as indexes into Set.Requests.
func (a *Affected) Requests() []int { return a.requests }

// Named returns the requests that RIDs names, as indexes into Set.Requests.
func (a *Affected) Named() []int { return a.requests[:min(MaxRIDs, len(a.requests))] }

// mostly reports whether most of some requests are among others.
func (a *Affected) mostly(of *Affected) bool {
	const most = 0.8
	others := order.Set(of.requests)
	n := order.Count(a.requests, func(i int) bool { return others[i] })
	return n > 0 && float64(n) >= most*float64(len(a.requests))
}

// MaxRIDs is how many requests a finding names.
const MaxRIDs = 10

// Evidence is a sentence, and where a report has the number that it is about.
type Evidence struct {
	Text string
	// Table is the name of the report's table ("stragglers"), Row what names the row,
	// Column the key of the column, and Value what it holds, in the unit of the column.
	// Table is "" where no table has the number.
	Table  string
	Row    []Key
	Column string
	Value  float64
}

// A Key is a text that names a row, with its column.
type Key struct{ Column, Text string }

// Row names a row by pairs of a column and its text.
func Row(pairs ...string) []Key {
	var row []Key
	for i := 0; i+1 < len(pairs); i += 2 {
		row = append(row, Key{pairs[i], pairs[i+1]})
	}
	return row
}

// Sentence is evidence in words alone.
func Sentence(format string, args ...any) Evidence {
	return Evidence{Text: fmt.Sprintf(format, args...)}
}

// In says where a report has the number that e is about.
func (e Evidence) In(table string, row []Key, column string, value float64) Evidence {
	e.Table, e.Row, e.Column, e.Value = table, row, column, value
	return e
}

// Sentences returns the texts of some evidence.
func Sentences(list []Evidence) []string {
	return order.EachRow(list, func(e *Evidence) string { return e.Text })
}

// Waits is the subkind of findings of load that tell how long requests wait, and not why.
const Waits = "waits"

// LonePrompts is the subkind of findings of load about a few prompts that are far longer than the others: where requests queue for another
// reason, each of them makes that longer for all behind it.
const LonePrompts = "lone prompts"

// Subkinds of findings of change that tell what no longer spares servers work.
const (
	CachedTokens = "share of cached tokens"
	StepYield    = "tokens per decode step"
)

// Stalls is the subkind of findings of change that tell who stood still, and for how long.
const Stalls = "stalls"

// SlowLink is the subkind of findings of KV transfers from one server, or from one to another, that are slow since some time.
const SlowLink = "link"

// FewCompared is how many requests it takes to compare some of them with others.
const FewCompared = 20

// A cause stands out if it delays at least FewDelayed requests and one in
// DelayedOneIn.
const (
	FewDelayed   = 3
	DelayedOneIn = 100
)

// CostText says in words what f costs: "accounts for 42 % of total request time".
func (f *Finding) CostText() string {
	counts := f.CostBasis == Requests || f.CostBasis == Calls || f.CostBasis == Ranks
	part, basis := fmt.Sprintf("%.0f %%", 100*f.Cost), cmp.Or(f.BasisText, string(f.CostBasis))
	switch {
	case f.Cost == 0 && counts:
		return fmt.Sprintf("affects no %s", basis)
	case f.Cost == 0:
		return "no known cost" // many things that are good to know are not measured in time
	case f.Cost < 0.005:
		part = "less than 1 %"
	}
	if counts {
		return fmt.Sprintf("affects %s of %s", part, basis)
	}
	return fmt.Sprintf("accounts for %s of total %s", part, basis)
}

// Remark says behind the sentence how sure f is, and what it costs.
func (f *Finding) Remark() string { return fmt.Sprintf("%s; %s", f.Confidence, f.CostText()) }

// CommandLine returns the arguments of a command that shows more, as Show has it.
func CommandLine(show []string) []string {
	if strings.HasPrefix(show[0], "-") {
		return slices.Concat([]string{"sgtrace", "report"}, show)
	}
	return slices.Concat([]string{"sgtrace"}, show)
}

// commands returns the command lines that show more of f, as arguments. The arguments again
// select and read the same inputs once more: "--from", "+10s", "dumps/".
func (f *Finding) commands(again []string) [][]string {
	return order.Each(f.Show, func(show []string) []string { return slices.Concat(CommandLine(show), again) })
}

// Command returns the first of the commands, ready to paste into a shell.
func (f *Finding) Command(again []string) string { return words.QuoteShell(f.commands(again)[0]) }
