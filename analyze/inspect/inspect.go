package inspect

import (
	"cmp"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// inspectRequests returns tables of what dumps of requests hold.
func inspectRequests(s *request.Set) []*table.Table {
	v := survey(s)
	return []*table.Table{reportFiles(s.Files), reportServices(v.services), reportRanks(v.ranks), reportGaps(v.ranks), reportCounts(v.counts)}
}

// withRows leaves out tables without rows.
func withRows(reports []*table.Table) []*table.Table {
	return slices.DeleteFunc(reports, func(r *table.Table) bool { return r.Len() == 0 })
}

// An extent is how many spans something has, and from when to when.
type extent struct {
	spans       int
	first, last trace.Time
}

func (e *extent) add(span *request.Row) { e.cover(span.Start, span.End) }

// cover adds a span from one time to another.
func (e *extent) cover(from, to trace.Time) {
	if e.spans == 0 || from < e.first {
		e.first = from
	}
	if e.spans == 0 || to > e.last {
		e.last = to
	}
	e.spans++
}

func (e *extent) merge(o extent) {
	switch {
	case o.spans == 0:
		return
	case e.spans == 0:
		*e = o
		return
	}
	e.first, e.last = min(e.first, o.first), max(e.last, o.last)
	e.spans += o.spans
}

// A serviceRow is all processes with the same service name and SDK.
type serviceRow struct {
	service, language, sdk, version string
	instances                       int // request.Unknown if they have no ids
	layouts                         request.Layouts
	extent
}

// A rankRow is one proc.
type rankRow struct {
	Proc    request.Proc
	host    string
	rank    string
	threads int
	tracing request.Tracing
	extent
}

// A countRow is one number of the overview.
type countRow struct {
	of, what string
	n        int
}

type surveyed struct {
	services []serviceRow
	ranks    []rankRow
	counts   []countRow
}

// survey looks at every span once.
func survey(s *request.Set) *surveyed {
	v := &surveyed{ranks: make([]rankRow, len(s.Procs))}
	tracing := s.Tracing()
	for i := range s.Procs {
		v.ranks[i] = rankRow{Proc: s.Procs[i], host: s.HostOf(i), rank: s.Names.Short(s.Procs[i].Rank), tracing: tracing[i]}
	}
	for t := range s.AllThreads() {
		v.ranks[s.Threads[t].Proc].threads++
	}
	resources := make([]serviceRow, len(s.Writers))
	for i := range resources {
		resources[i].layouts = s.Writers[i].Layouts
	}
	quality := qualityCounter{set: s}
	for i := range s.All() {
		quality.add(i)
		if s.Kind(i) == request.Duplicate {
			continue
		}
		span := s.Row(i)
		resources[s.Sources[span.Source].Writer].add(span)
		if proc := s.ProcOf(i); proc != request.None {
			v.ranks[proc].add(span)
		}
	}
	v.services = mergeServices(s, resources)
	v.counts = append(quality.rows(), requestCounts(s)...)
	return v
}

// mergeServices makes one row of resources that differ only in their instance.
func mergeServices(s *request.Set, resources []serviceRow) []serviceRow {
	type key struct{ service, language, sdk, version string }
	rows := map[key]*serviceRow{}
	instances := map[key]map[string]bool{}
	for i := range resources {
		if resources[i].spans == 0 {
			continue
		}
		r := &s.Writers[i]
		k := key{s.Syms.Name(r.Service), r.Language, r.SDK, r.Version}
		row := rows[k]
		if row == nil {
			row = &serviceRow{service: k.service, language: k.language, sdk: k.sdk, version: k.version}
			rows[k], instances[k] = row, map[string]bool{}
		}
		row.extent.merge(resources[i].extent)
		row.layouts |= resources[i].layouts
		if id := s.Syms.Name(r.Instance); id != "" {
			instances[k][id] = true
		}
	}
	var out []serviceRow
	for k, row := range rows {
		if row.instances = len(instances[k]); row.instances == 0 {
			row.instances = request.Unknown
		}
		out = append(out, *row)
	}
	slices.SortFunc(out, func(x, y serviceRow) int {
		return cmp.Or(strings.Compare(x.service, y.service), strings.Compare(x.language, y.language),
			strings.Compare(x.sdk, y.sdk), strings.Compare(x.version, y.version))
	})
	return out
}

// requestCounts counts requests by the servers they met and how they ended, and
// what is doubtful about them.
func requestCounts(s *request.Set) []countRow {
	type key struct{ of, what string }
	counts := map[key]int{}
	for i := range s.AllRequests() {
		r := &s.Requests[i]
		counts[key{"requests", s.RolesOf(r) + " " + r.Status.String()}]++
		for _, word := range r.Flags.Words() {
			counts[key{"requests, doubtful", word}]++
		}
	}
	var out []countRow
	for k, n := range counts {
		out = append(out, countRow{k.of, k.what, n})
	}
	slices.SortFunc(out, func(x, y countRow) int {
		return cmp.Or(strings.Compare(x.of, y.of), strings.Compare(x.what, y.what))
	})
	return out
}

// A qualityCounter counts spans by kind and by what is wrong with them.
type qualityCounter struct {
	set            *request.Set
	kinds          [request.Unselected + 1]int
	negative, zero int
}

var kindWords = [...]string{
	request.Generic: "of services without stages", request.Duplicate: "exported twice",
	request.Root: "request", request.Envelope: "envelope", request.ThreadRow: "thread",
	request.Stage: "stage", request.Gateway: "gateway",
	request.Unselected: "not selected",
}

func (q *qualityCounter) add(i int) {
	q.kinds[q.set.Kind(i)]++
	if q.set.Kind(i) == request.Duplicate {
		return
	}
	span := q.set.Row(i)
	switch {
	case span.Dur() < 0:
		q.negative++
	case span.Dur() == 0:
		q.zero++
	}
}

func (q *qualityCounter) rows() []countRow {
	var out []countRow
	add := func(of, what string, n int) {
		if n > 0 {
			out = append(out, countRow{of, what, n})
		}
	}
	for kind, n := range q.kinds {
		add("spans", kindWords[kind], n)
	}
	add("spans, doubtful", "parent is not in the files", q.set.Orphans)
	add("spans, doubtful", "end before they start", q.negative)
	add("spans, doubtful", "take no time", q.zero)
	add("spans, doubtful", "have no id", q.set.NoID)
	add("events", "of all spans", len(q.set.Instants))
	return out
}
