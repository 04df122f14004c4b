package finders

import (
	"cmp"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/cause"
	"github.com/sgtrace/sgtrace/analyze/change"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/gpuloss"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/internal/parallel"
	"github.com/sgtrace/sgtrace/trace"
)

// A Finder looks for one thing.
type Finder struct {
	// Kind is that of all that it finds. Several finders may find one kind, each by
	// other evidence.
	Kind finding.Kind
	// Doc says in one sentence what it finds, for docs and help.
	Doc   string
	Needs Needs
	// Severity is that of findings that cost something; others are good to know at most.
	Severity finding.Severity
	// Confidence is that of findings that have no probability.
	Confidence finding.Confidence
	// CostOf says of what its findings cost a part, unless they say it themselves.
	CostOf finding.CostBasis
	Scope  finding.Scope
	// Show are the arguments of 'sgtrace report' that show more.
	Show []string
	// Find looks, and says what it looked at.
	Find func(*Measured) ([]finding.Finding, finding.Check)
}

// Needs is what inputs must have for a finder.
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

// String names what is needed.
func (n Needs) String() string {
	return [...]string{Requests: "requests", Profiles: "profiles", Both: "requests and profiles", Weeks: "runs to compare", Flights: "dumps of what processes have in flight", Logs: "logs or metrics", Experts: "counts of tokens by expert", Snapshots: "snapshots of memory"}[n]
}

// has tells what the inputs have.
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

// A Result is what came of looking.
type Result struct {
	Findings []finding.Finding // the one that costs most first
	Muted    []finding.Finding // those that Mute took out, in the same order
	Checks   []FinderCheck     // one for each finder, in the order of the list
	// All are the findings before those that say the same were merged, in the order of the list.
	All []finding.Finding
	// Sum is how what the findings cost adds up to the extra time of requests.
	Sum cause.Sum
}

// A FinderCheck says what one finder looked at, and how much it found.
type FinderCheck struct {
	Finder *Finder
	Check  finding.Check
	N      int // findings
}

// Look asks all finders of a list.
func (m *Measured) Look(list []Finder) Result {
	r := Result{Checks: make([]FinderCheck, len(list))}
	by := make([][]finding.Finding, len(list))
	parallel.Each(len(list), func(i int) {
		of, check := list[i].find(m)
		by[i], r.Checks[i] = of, FinderCheck{&list[i], check, len(of)}
	})
	found := slices.Concat(by...)
	r.Findings = finding.Merge(slices.Clone(found), slices.Concat(kept, tookOver(found), seenTwice, remade, m.recorded(), consequences, m.overloaded(), m.onHosts(), m.longer(), deployed, m.lateByIdling()))
	if m.Costs != nil {
		r.Findings, r.Sum = m.settle(r.Findings)
	}
	finding.Sort(r.Findings)
	r.All = found
	m.callThem(&r)
	for _, list := range [...][]finding.Finding{r.All, r.Findings} {
		for i := range list {
			list[i].Claim = nil // it holds all requests
		}
	}
	return r
}

// settle says what findings cost together, causes before symptoms, which are evidence of causes
// that explain them.
func (m *Measured) settle(found []finding.Finding) ([]finding.Finding, cause.Sum) {
	slices.SortStableFunc(found, func(x, y finding.Finding) int { return cmp.Compare(claimsAt(&x), claimsAt(&y)) })
	found = finding.Fold(found, m.Costs.Taken(found), isSymptom)
	return found, m.Costs.Settle(found)
}

// find asks the finder, if the inputs have what it needs.
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

// tellHidden adds what would show which part of a slow server is slow.
func (m *Measured) tellHidden(f *finding.Finding) {
	if m.RankLoads == nil || f.Kind != finding.Slower && (f.Subkind != change.Pace || f.Metric.After <= f.Metric.Before) {
		return
	}
	if stages := m.RankLoads.HiddenStages(&f.At); stages > 0 {
		f.Evidence = slices.Insert(f.Evidence, min(1, len(f.Evidence)), // where the summary shows it
			finding.Sentence("the dump does not show which of its %d pipeline stages is slow: that takes trace level 4 (SGLANG_TRACE_LEVEL=4)", stages))
	}
}

// doubt lowers the confidence of a finding about GPU time where the profiler or the file lost
// rows: what is not recorded looks like idle time.
func (m *Measured) doubt(f *finding.Finding) {
	if f.CostBasis != finding.GPUTime {
		return
	}
	if gpuloss.AboutIdle(f) {
		if lost := m.lostWork(); len(lost) > 0 {
			f.Confidence = finding.Likely
			f.Evidence = slices.Insert(f.Evidence, min(1, len(f.Evidence)), finding.Sentence("work of %s is missing, which looks like idle time", strings.Join(lost, ", ")))
		}
	}
	if m.Of.Diags == nil {
		return
	}
	all := m.Of.Diags.All()
	i := slices.IndexFunc(all, func(d trace.Diag) bool { return d.Message == trace.NsysError || d.Message == trace.NsysTableDamaged })
	if i < 0 {
		return
	}
	if f.Confidence == finding.Certain {
		f.Confidence = finding.Likely
	}
	f.Evidence = slices.Insert(f.Evidence, min(1, len(f.Evidence)), // where the summary shows it
		finding.Sentence("events may be missing, and missing work looks like idle time [%s]", all[i].Code))
}

// lostWork returns the ranks of which much of what devices did is not in the files, where the whole capture is looked at.
func (m *Measured) lostWork() (ranks []string) {
	if m.GPUs == nil || m.Of.Devices.From != 0 || m.Of.Devices.To != 0 {
		return nil
	}
	for _, c := range m.GPUs.Cuts {
		ranks = append(ranks, c.Rank)
	}
	if m.Collectives != nil {
		for _, l := range m.Collectives.Lacking(m.GPUs) {
			ranks = append(ranks, l.Rank)
		}
	}
	return order.Distinct(ranks)
}

// complete fills in what the row says of all that it finds.
func (f *Finder) complete(x *finding.Finding) {
	x.Kind, x.Scope = f.Kind, f.Scope
	x.CostBasis = cmp.Or(x.CostBasis, f.CostOf)
	x.Severity = cmp.Or(x.Severity, f.Severity)
	if x.Cost <= 0 || comesAndGoes(x) && free(x) || hardlyCosts(x) {
		x.Severity = finding.Info
	}
	if x.Confidence == "" {
		x.Confidence = x.P.Confidence(f.Confidence)
	}
	if x.Show == nil {
		x.Show = [][]string{f.Show}
	}
}

// In returns what the finders looked at that came to a state, in words. What was looked
// at in the same data is one sentence.
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
