// Package annotate adds the results of reports to a timeline: findings, critical paths of the slowest
// requests, events of servers, and the operators of CUDA graphs.
//
// Drawing knows no report, so everything is passed as plain records in [drawing.Options].
package annotate

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/sgtrace/sgtrace/analyze/critical"
	"github.com/sgtrace/sgtrace/analyze/finders"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/gpuloss"
	"github.com/sgtrace/sgtrace/analyze/graphs"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/analyze/replay"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/convert/drawing"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
	"github.com/sgtrace/sgtrace/trace/naming"
)

// Findings analyzes the inputs of a timeline and adds the findings to opt, with the paths of the slowest
// requests and the events of servers. It returns how many findings were muted.
func Findings(opt *drawing.Options, in finders.Inputs, mutes []finders.Mute) (muted int) {
	in.Paths = true
	m := finders.Measure(in)
	result := m.Look(finders.All)
	result.Mute(mutes)
	opt.Findings = []drawing.Finding{} // not nil even without findings: the inputs were analyzed
	for i := range result.Findings {
		opt.Findings = append(opt.Findings, drawnFinding(&result.Findings[i], &m))
	}
	if in.Requests != nil {
		addPaths(opt, in.Requests, m.Run())
	}
	if m.Lives != nil {
		for i := range m.Lives.Events {
			e := &m.Lives.Events[i]
			opt.Events = append(opt.Events, drawing.Event{Time: e.At, Name: e.What, Title: e.Sentence()})
		}
	}
	return len(result.Muted)
}

// addPaths adds the critical paths of the slowest requests.
func addPaths(opt *drawing.Options, set *request.Set, run *replay.Run) {
	for _, c := range critical.Slowest(run, nil) {
		q := &set.Requests[c.Index]
		path := drawing.Path{Name: fmt.Sprintf("%.8s%s%s", set.Text(q.RID), naming.Separator, words.Nearly(q.Metrics.E2E))}
		for i := range c.Pieces {
			x := &c.Pieces[i]
			name := x.Why.String()
			if x.Rank != "" {
				name += naming.Separator + x.Rank
			}
			record := []drawing.Field{text("for", x.What)}
			if x.Other != "" {
				record = append(record, text("behind", x.Other), number("tokens", float64(x.Tokens)))
			}
			path.Pieces = append(path.Pieces, drawing.Piece{From: x.First, Until: x.Until, Name: name, Record: record, Stage: x.Stage})
		}
		opt.Paths = append(opt.Paths, path)
	}
}

func text(key, value string) drawing.Field {
	return drawing.Field{Key: key, Text: value, Number: math.NaN()}
}

func number(key string, value float64) drawing.Field { return drawing.Field{Key: key, Number: value} }

// drawnFinding returns how a timeline shows a finding. A finding about many devices is shown on the rows of
// the device where it is worst.
func drawnFinding(f *finding.Finding, m *finders.Measured) drawing.Finding {
	d := drawing.Finding{Name: string(f.Kind), Title: f.Text, Severity: string(f.Severity), Since: f.Since, Until: f.Until,
		OfProfiles: f.CostBasis == finding.GPUTime || f.CostBasis == finding.Calls, Requests: f.Affected.Named(), Record: recordOf(f)}
	switch f.At.Scope {
	case place.OneRank:
		d.Rank = rankName(f.At, m.Of.Profiles)
		d.Name += naming.Separator + d.Rank
	case place.WholeRole:
		d.Name += naming.Separator + f.At.String()
	case place.Everywhere:
		if f.Kind == finding.GPU && m.GPUs != nil {
			d.Rank, d.Shows = gpuloss.WorstRank(m.GPUs, f.Subkind)
		}
	}
	return d
}

// rankName returns the name of a finding's rank in the rows of a timeline. It is the name in the profiles,
// if they have the rank: a place without a role may have another name.
func rankName(at place.Location, of *profile.Set) string {
	if of != nil {
		if i := slices.IndexFunc(of.Ranks, func(name string) bool { return place.Named(name) == at }); i >= 0 {
			return of.Ranks[i]
		}
	}
	return at.String()
}

// recordOf returns the facts of a finding, under their names in JSON. Its command does not name the inputs, so
// that the same inputs give the same timeline however they were named.
func recordOf(f *finding.Finding) []drawing.Field {
	known := func(key string, at trace.Time) drawing.Field {
		if at == 0 {
			return text(key, "")
		}
		return text(key, words.Clock(at).Format(time.RFC3339Nano))
	}
	p := math.NaN()
	if f.P.Known {
		p = f.P.P
	}
	record := []drawing.Field{
		text("id", f.ID()), text("kind", string(f.Kind)), text("severity", string(f.Severity)), text("confidence", string(f.Confidence)),
		text("place", f.At.String()), known("since", f.Since), known("until", f.Until),
	}
	if f.Metric.Name != "" {
		record = append(record, text("metric", f.Metric.Name), text("unit", f.Metric.UnitName()), number("before", f.Metric.Before), number("after", f.Metric.After))
	}
	record = append(record, number("p", p), number("cost", f.Cost), text("cost_of", string(f.CostBasis)))
	if f.Affected.N > 0 {
		record = append(record, number("requests", float64(f.Affected.N)), text("rids", strings.Join(f.Affected.RIDs, " ")))
	}
	return append(record, text("evidence", strings.Join(finding.Sentences(f.Evidence), "\n")), text("command", f.Command([]string{"INPUT..."})))
}

// Graphs adds the modules and operators that launched the kernels of CUDA graphs during capture.
func Graphs(opt *drawing.Options, set *profile.Set) {
	g := graphs.Collect(set)
	if g == nil {
		return
	}
	opt.Nested = make([][]drawing.Nested, len(set.Streams))
	for i := range set.Streams {
		for _, s := range g.Spans(i) {
			opt.Nested[i] = append(opt.Nested[i], drawing.Nested{First: s.First, From: s.From, To: s.To, Name: s.Name, Shapes: s.Shapes, Operator: s.Operator})
		}
	}
}
