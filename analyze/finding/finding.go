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

// A Finding is something that an engineer should know about, with its evidence. Text, JSON, Markdown, and the page
// are made from it. A package of analyze fills in what it measured. The finder's row in the list adds what all of
// its findings have in common: Kind and Scope, and Severity, Confidence, CostBasis, and Show where they are empty.
type Finding struct {
	Kind Kind
	// Subkind distinguishes findings of one kind that are about different things.
	Subkind    string
	Severity   Severity
	Confidence Confidence
	// At is where it is. The zero value means everywhere, or unknown; unknown parts of a rank are -1, an unknown host is "".
	At place.Location
	// Rank is the name, in a profile.Set, of the rank that is late where ranks meet; "" if none.
	Rank string
	// Scope is how far around At it is felt. Findings of one kind whose scopes overlap are merged.
	Scope Scope
	// Since is when it began, and Until when it was over; 0 means from the beginning, and to the end.
	Since, Until trace.Time
	// Within is how far off Since may be, either way.
	Within trace.Time
	// Full is when something that grows gradually stopped growing; 0 if it came at once.
	Full trace.Time
	// Text is one sentence: what, where, since when, by how much.
	Text string
	// Metric is the number that the sentence is about.
	Metric Metric
	// P is the probability of such a finding if nothing is wrong.
	P Probability
	// Cost is how much it costs, as a part of CostBasis, 0 to 1. Findings are sorted by it.
	Cost      float64
	CostBasis CostBasis
	// BasisText replaces CostBasis in sentences, for devices with words of their own; "" otherwise.
	BasisText string
	// Brief is what the sentence of its cause says of it, if it has a cause; "" is nothing.
	Brief string
	// Without says what latencies would have been without it, given what Assumed says; NoWithout
	// says why that is unknown. All are empty unless asked for.
	Without   []Without
	Assumed   []string
	NoWithout string
	// Lost is the part of their time that peers wait for a rank; 0 if none or unknown.
	Lost float64
	// Mostly is the cause that makes up most of its cost; "" if there is none, or if unknown.
	Mostly string
	// Claim is the request time that it costs, until findings are settled; nil if none. MoreWork reports
	// that it costs time because there is more work, each piece of which takes as long as before.
	Claim    Claim
	MoreWork bool
	Affected Affected
	Evidence []Evidence
	// Show are commands that show more. One that begins with a flag has arguments of 'sgtrace
	// report', others those of 'sgtrace'. Text shows the first one.
	Show [][]string
	took []Finding // findings that became its evidence; their consequences are its own, too
}

// Begins reports whether f began at about the time at, or was still growing then.
func (f *Finding) Begins(at, about trace.Time) bool {
	return at >= f.Since-about-f.Within && at <= max(f.Since, f.Full)+about+f.Within
}

// A Claim lowers the remaining time of the i-th request in a ledger, in ns by cause (package cause), to what the request takes without what
// the finding accounts for. That target, at least 0, does not depend on other claims; a time that is already lower stays as it is.
type Claim func(i int, left []int64)

// Taken is how much of the time that a finding claims earlier findings have claimed.
type Taken struct {
	By   int     // index of the one that has most of it
	Part float64 // what they have together, 0 to 1
}

// And returns a claim of what either claims; what both claim counts once.
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

// ID returns an identifier that is the same in every run on the same data, and unique among the findings
// of one run. It depends on the subject and the place of the finding, but not on any measured number.
func (f *Finding) ID() string {
	h := fnv.New32a()
	role, host, rank := f.At.Parts()
	fmt.Fprintf(h, "%s\x00%s\x00%s\x00%s\x00%s\x00%s\x00%s\x00%s", f.Kind, f.Subkind, f.At.Scope, role, host, f.At.Label, rank, f.Metric.Name)
	return fmt.Sprintf("%s-%08x", f.Kind, h.Sum32())
}

// A Metric is a number that differs from what it was, or from what it is elsewhere. The zero value is no metric.
type Metric struct {
	Name string
	Unit table.Unit // Duration is in ns; Number is any number
	// Before is what it was, or what is usual elsewhere, and After what it is; NaN if unknown.
	Before, After float64
}

// UnitName returns the unit for programs; "" without a metric.
func (m *Metric) UnitName() string {
	if m.Name == "" {
		return ""
	}
	return m.Unit.String()
}

// A Probability may be unknown, as the zero value is.
type Probability struct {
	P     float64
	Known bool
}

// Chance returns p as a Probability; NaN is unknown.
func Chance(p float64) Probability {
	if math.IsNaN(p) {
		return Probability{}
	}
	return Probability{p, true}
}

// Affected is the set of requests that suffer from something. The zero value means unknown.
type Affected struct {
	N    int
	RIDs []string // the first MaxRIDs

	requests []int // indexes into Set.Requests
}

// AffectedOf returns the affected requests of s, given their indexes.
func AffectedOf(s *request.Set, list []int) Affected {
	a := Affected{N: len(list), requests: list}
	for _, i := range list[:min(MaxRIDs, len(list))] {
		a.RIDs = append(a.RIDs, s.Text(s.Requests[i].RID))
	}
	return a
}

// Requests returns all affected requests, as indexes into Set.Requests.
func (a *Affected) Requests() []int { return a.requests }

// Named returns the requests in RIDs, as indexes into Set.Requests.
func (a *Affected) Named() []int { return a.requests[:min(MaxRIDs, len(a.requests))] }

// mostly reports whether most of a's requests are also in another set.
func (a *Affected) mostly(of *Affected) bool {
	const most = 0.8
	others := order.Set(of.requests)
	n := order.Count(a.requests, func(i int) bool { return others[i] })
	return n > 0 && float64(n) >= most*float64(len(a.requests))
}

// MaxRIDs limits how many requests a finding names.
const MaxRIDs = 10

// Evidence is a sentence, and where its number is in a report.
type Evidence struct {
	Text string
	// Table is the name of the report's table ("stragglers"), Row identifies the row, Column is the key of
	// the column, and Value what it holds, in the unit of the column. Table is "" if no table has the number.
	Table  string
	Row    []Key
	Column string
	Value  float64
	// Chance marks how likely the finding is by chance, which comes after all that explains it.
	Chance bool
	// cost is that of the finding that became this evidence, 0 if none did.
	cost float64
}

// A Key identifies a row by the text in one column.
type Key struct{ Column, Text string }

// Row returns the keys of a row, given pairs of a column and its text.
func Row(pairs ...string) []Key {
	var row []Key
	for i := 0; i+1 < len(pairs); i += 2 {
		row = append(row, Key{pairs[i], pairs[i+1]})
	}
	return row
}

// Sentence returns evidence in words alone.
func Sentence(format string, args ...any) Evidence {
	return Evidence{Text: fmt.Sprintf(format, args...)}
}

// ByChance returns how likely a change of this kind is by chance, p, as evidence.
func ByChance(p float64) Evidence {
	return Evidence{Text: words.Chance(p) + " if nothing had changed", Chance: true}
}

// In adds where in a report the number of e is.
func (e Evidence) In(table string, row []Key, column string, value float64) Evidence {
	e.Table, e.Row, e.Column, e.Value = table, row, column, value
	return e
}

// Sentences returns the texts of a list of evidence.
func Sentences(list []Evidence) []string {
	return order.EachRow(list, func(e *Evidence) string { return e.Text })
}

// Waits is the subkind of load findings that say how long requests wait, but not why.
const Waits = "waits"

// LonePrompts is the subkind of load findings about a few prompts that are far longer than the
// others. If requests queue for another reason, each such prompt lengthens the wait of all behind it.
const LonePrompts = "lone prompts"

// Subkinds of change findings about work that servers are spared less than before.
const (
	CachedTokens = "share of cached tokens"
	StepYield    = "tokens per decode step"
)

// Stalls is the subkind of change findings about servers that stood still, and for how long.
const Stalls = "stalls"

// SlowLink is the subkind of transfer findings about KV transfers from one server, or between two, that became slow at some time.
const SlowLink = "link"

// FewCompared is the least number of requests for comparing some of them with the others.
const FewCompared = 20

// Slight is the factor below which work that takes longer doesn't explain that requests queue.
const Slight = 1.1

// A cause stands out if it delays at least FewDelayed requests and one in DelayedOneIn.
const (
	FewDelayed   = 3
	DelayedOneIn = 100
)

// CostText returns the cost of f in words: "accounts for 42 % of total request time".
func (f *Finding) CostText() string {
	counts := f.CostBasis == Requests || f.CostBasis == Calls || f.CostBasis == Ranks
	part, basis := fmt.Sprintf("%.0f %%", 100*f.Cost), cmp.Or(f.BasisText, string(f.CostBasis))
	switch {
	case f.Cost == 0 && counts:
		return fmt.Sprintf("affects no %s", basis)
	case f.Cost == 0:
		return "no known cost" // many useful facts are not measured in time
	case f.Cost < 0.005:
		part = "less than 1 %"
	}
	if counts {
		return fmt.Sprintf("affects %s of %s", part, basis)
	}
	return fmt.Sprintf("accounts for %s of total %s", part, basis)
}

// Remark returns how sure f is and what it costs, to follow the sentence.
func (f *Finding) Remark() string { return fmt.Sprintf("%s; %s", f.Confidence, f.CostText()) }

// CommandLine returns the arguments of a command in Show, from the program's name on.
func CommandLine(show []string) []string {
	if strings.HasPrefix(show[0], "-") {
		return slices.Concat([]string{"sgtrace", "report"}, show)
	}
	return slices.Concat([]string{"sgtrace"}, show)
}

// commands returns the command lines that show more of f, as arguments. again are the
// arguments that select and read the same inputs once more: "--from", "+10s", "dumps/".
func (f *Finding) commands(again []string) [][]string {
	return order.Each(f.Show, func(show []string) []string { return slices.Concat(CommandLine(show), again) })
}

// Command returns the first of these commands, ready to paste into a shell.
func (f *Finding) Command(again []string) string { return words.QuoteShell(f.commands(again)[0]) }
