package finders

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/cause"
	"github.com/sgtrace/sgtrace/analyze/change"
	"github.com/sgtrace/sgtrace/analyze/change/work"
	"github.com/sgtrace/sgtrace/analyze/consequence"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/gpuloss"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/internal/parallel"
)

// A Finder looks for one kind of problem.
type Finder struct {
	// Kind is the kind of all its findings. Several finders may have the same kind, with different evidence.
	Kind finding.Kind
	// Doc says what it finds, in one phrase, for docs and help.
	Doc   string
	Needs Needs
	// Severity is that of findings with a cost; others are Info, unless they say themselves that they matter.
	Severity finding.Severity
	// Confidence is that of findings without a probability.
	Confidence finding.Confidence
	// CostOf is the CostBasis of findings that don't set it.
	CostOf finding.CostBasis
	Scope  finding.Scope
	// Show has the arguments of 'sgtrace report' that show more.
	Show []string
	// Find looks for the problem, and returns how much data it looked at.
	Find func(*Measured) ([]finding.Finding, finding.Check)
}

// Needs is a set of inputs that a finder needs.
type Needs uint8

const (
	Requests Needs = 1 << iota
	Profiles
	Weeks // several runs
	Flights
	Logs
	Experts
	Snapshots
	Both = Requests | Profiles
)

// String names the needed inputs.
func (n Needs) String() string {
	return [...]string{Requests: "requests", Profiles: "profiles", Both: "requests and profiles", Weeks: "runs to compare", Flights: "dumps of what processes have in flight", Logs: "logs or metrics", Experts: "counts of tokens by expert", Snapshots: "snapshots of memory"}[n]
}

// has returns which inputs there are.
func (m *Measured) has() Needs {
	var n Needs
	if m.Tail != nil {
		n |= Requests
	}
	if m.GPUs != nil {
		n |= Profiles
	}
	if m.Of.Weeks != nil {
		n |= Weeks
	}
	if m.Of.Series != nil {
		n |= Logs
	}
	if m.Hang != nil {
		n |= Flights
	}
	if m.Routing != nil && len(m.Routing.Sources) > 0 {
		n |= Experts
	}
	if m.Memory != nil {
		n |= Snapshots
	}
	return n
}

// A Result is the outcome of all finders.
type Result struct {
	Findings []finding.Finding // sorted by decreasing cost
	Muted    []finding.Finding // removed by Mute, in the same order
	Checks   []FinderCheck     // one for each finder, in the order of the list
	// All are the findings before merging, in the order of the list.
	All []finding.Finding
	// Sum compares the total cost of the findings with the extra time of requests.
	Sum cause.Sum
}

// A FinderCheck says how much data one finder looked at, and how many findings it has.
type FinderCheck struct {
	Finder *Finder
	Check  finding.Check
	N      int // number of findings
}

// Look runs all finders of a list.
func (m *Measured) Look(list []Finder) Result {
	r := Result{Checks: make([]FinderCheck, len(list))}
	by := make([][]finding.Finding, len(list))
	parallel.Each(len(list), func(i int) {
		of, check := list[i].find(m)
		by[i], r.Checks[i] = of, FinderCheck{&list[i], check, len(of)}
	})
	found := slices.Concat(by...)
	r.Findings = finding.Repeats(finding.Merge(slices.Clone(found), slices.Concat(consequence.First(found), m.recorded(), consequence.Known, m.overloaded(), m.onHosts(), m.longer(), consequence.Last, m.lateByIdling())))
	if m.Costs != nil {
		r.Findings, r.Sum = m.settle(r.Findings)
	}
	finding.Sort(r.Findings)
	finding.SortEvidence(r.Findings)
	r.All = found
	m.callThem(&r)
	for _, list := range [...][]finding.Finding{r.All, r.Findings} {
		for i := range list {
			list[i].Claim = nil // it keeps all requests alive
		}
	}
	return r
}

// settle prices findings together, causes before symptoms. A symptom that others explain becomes their evidence.
func (m *Measured) settle(found []finding.Finding) ([]finding.Finding, cause.Sum) {
	slices.SortStableFunc(found, func(x, y finding.Finding) int { return cmp.Compare(claimsAt(&x), claimsAt(&y)) })
	found = finding.Fold(found, m.Costs.Taken(found), isSymptom)
	return found, m.Costs.Settle(found)
}

// find runs the finder, if the inputs have what it needs.
func (f *Finder) find(m *Measured) ([]finding.Finding, finding.Check) {
	if missing := f.Needs &^ m.has(); missing != 0 {
		return nil, finding.Check{What: f.Doc, Reason: "the input has no " + missing.String()}
	}
	found, check := f.Find(m)
	for i := range found {
		f.complete(&found[i])
		m.doubt(&found[i])
		m.tellHidden(&found[i])
	}
	return found, check
}

// tellHidden says which trace level would show the slow pipeline stage of a slow server.
func (m *Measured) tellHidden(f *finding.Finding) {
	if m.RankLoads == nil || f.Kind != finding.Slower && (f.Subkind != change.Pace || f.Metric.After <= f.Metric.Before) {
		return
	}
	if stages := m.RankLoads.HiddenStages(&f.At); stages > 0 {
		f.Evidence = slices.Insert(f.Evidence, min(1, len(f.Evidence)), // at a place that the summary shows
			finding.Sentence("the dump does not show which of its %d pipeline stages is slow: that takes trace level 4 (SGLANG_TRACE_LEVEL=4)", stages))
	}
}

// doubt lowers the confidence of a finding that something else may look like: GPU time if the profiler or the file lost rows, since
// missing work looks like idle time; and slower prefills if nobody recorded how much of the prompts was cached.
func (m *Measured) doubt(f *finding.Finding) {
	if (f.Kind == finding.Slower || f.Subkind == change.Pace) && work.Of(&f.Metric) == "prefill" && f.Metric.After > f.Metric.Before && m.cacheUnknown() {
		f.Confidence = finding.Likely
		f.Evidence = slices.Insert(f.Evidence, min(1, len(f.Evidence)), finding.Sentence("how many tokens of prompts were cached was not recorded, and fewer of them look the same"))
	}
	if f.CostBasis != finding.GPUTime {
		return
	}
	looks := ""
	switch {
	case gpuloss.AboutIdle(f):
		looks = "which looks like idle time"
	case gpuloss.AboutExposed(f):
		looks = "and may have run at the same time"
	}
	if lost := m.lostWork(); looks != "" && len(lost) > 0 {
		f.Confidence = finding.Likely
		is := "is"
		if len(m.GPUs.Uncalled()) > 0 {
			is = "may be"
		}
		f.Evidence = slices.Insert(f.Evidence, min(1, len(f.Evidence)), finding.Sentence("work of %s %s missing, %s", strings.Join(lost, ", "), is, looks))
	}
	if m.Of.Diags == nil {
		return
	}
	gpuloss.DoubtDamaged(f, m.GPUs, m.Of.Diags.All())
}

// cacheUnknown reports whether no request tells how many of its tokens were cached.
func (m *Measured) cacheUnknown() bool {
	s := m.Of.Requests
	for i := range s.AllRequests() {
		if s.Requests[i].Metrics.CachedTokens >= 0 {
			return false
		}
	}
	return true
}

// lostWork returns the ranks much of whose device work is missing from the files; nil if only a window of the capture is analyzed.
func (m *Measured) lostWork() (ranks []string) {
	if m.GPUs == nil || m.Of.Devices.From != 0 || m.Of.Devices.To != 0 {
		return nil
	}
	for _, c := range m.GPUs.Cuts {
		ranks = append(ranks, c.Rank)
	}
	ranks = append(ranks, m.GPUs.Uncalled()...)
	if m.Collectives != nil {
		for _, l := range m.Collectives.Lacking(m.GPUs) {
			ranks = append(ranks, l.Rank)
		}
	}
	return order.Distinct(ranks)
}

// complete fills in what the finder's row says of all its findings.
func (f *Finder) complete(x *finding.Finding) {
	x.Kind, x.Scope = f.Kind, f.Scope
	x.CostBasis = cmp.Or(x.CostBasis, f.CostOf)
	own := x.Cost == 0 && (x.Severity == finding.Critical || x.Severity == finding.Warning) // at a cost that nothing tells
	x.Severity = cmp.Or(x.Severity, f.Severity)
	if !own && (x.Cost <= 0 || comesAndGoes(x) && free(x) || hardlyCosts(x)) {
		x.Severity = finding.Info
	}
	if x.Confidence == "" {
		x.Confidence = x.P.Confidence(f.Confidence)
	}
	if x.Show == nil {
		x.Show = [][]string{f.Show}
	}
}

// In returns, in words, what finders looked at with a given outcome. Checks on the same data make one sentence.
func (r *Result) In(state finding.State) []string {
	var list []finding.Check
	for i := range r.Checks {
		c := r.Checks[i].Check
		if c.State() != state {
			continue
		}
		k := slices.IndexFunc(list, func(o finding.Check) bool {
			return o.Of == c.Of && o.N == c.N && o.Needed == c.Needed && o.Covered == c.Covered && o.Reason == c.Reason
		})
		if k < 0 {
			list = append(list, c)
		} else if !slices.Contains(strings.Split(list[k].What, ", "), c.What) {
			list[k].What += ", " + c.What
		}
	}
	return order.EachRow(list, (*finding.Check).String)
}

// Markdown returns a table of finders, one row each, for docs and help.
func Markdown(list []Finder) string {
	var b strings.Builder
	b.WriteString("| kind | what sgtrace looks for | in | severity | cost of |\n|---|---|---|---|---|\n")
	for i := range list {
		f := &list[i]
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", f.Kind, f.Doc, f.Needs, f.Severity, f.CostOf)
	}
	return b.String()
}
