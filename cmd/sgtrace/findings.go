package main

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/sgtrace/sgtrace/analyze/finders"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/cmd/sgtrace/internal/reports"
	"github.com/sgtrace/sgtrace/convert/drawing"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
	"github.com/sgtrace/sgtrace/trace/naming"
)

// findingFlags are on every command that draws a timeline.
func findingFlags() []cli.Flag {
	return append([]cli.Flag{
		&cli.BoolFlag{Name: "no-findings", DisableDefaultText: true, Usage: "don't look for what stands out (default: draw what 'sgtrace report' finds)"},
	}, reports.MuteFlags("")...)
}

// addFindings looks for what stands out in the inputs of a timeline, but for what is muted.
func (c *command) addFindings(opt *drawing.Options, in finders.Inputs, mutes []finders.Mute) {
	c.screen.Doing("looking for findings")
	in.Diags = &c.diags
	m := finders.Measure(in)
	result := m.Look(finders.All)
	result.Mute(mutes)
	if n := len(result.Muted); n > 0 {
		fmt.Fprintf(c.screen.Notices, "%s muted\n", words.Counted(n, "finding"))
	}
	for i := range result.Findings {
		opt.Findings = append(opt.Findings, drawnFinding(&result.Findings[i], &m))
	}
	if m.Lives == nil {
		return
	}
	for i := range m.Lives.Events {
		e := &m.Lives.Events[i]
		opt.Events = append(opt.Events, drawing.Event{Time: e.At, Name: e.What, Title: e.Sentence()})
	}
}

// drawnFinding is how a timeline shows a finding: one about many devices by the rows of that on
// which it is worst.
func drawnFinding(f *finding.Finding, m *finders.Measured) drawing.Finding {
	d := drawing.Finding{Name: string(f.Kind), Title: f.Text, Severity: string(f.Severity), Since: f.Since, Until: f.Until,
		OfProfiles: f.Whose == finding.GPUTime || f.Whose == finding.Calls, Requests: f.Affected.Named(), Record: recordOf(f)}
	switch f.At.Scope {
	case place.OneRank:
		d.Rank = rankName(f.At, m.Of.Profiles)
		d.Name += naming.Separator + d.Rank
	case place.WholeRole:
		d.Name += naming.Separator + f.At.String()
	case place.Everywhere:
		if f.Kind == finding.GPU && m.GPUs != nil {
			d.Rank, d.Shows = m.GPUs.Worst(f.Topic)
		}
	}
	return d
}

// rankName is what rows call the rank of a finding: as the profiles do, of which a place may not
// know how they name those that have no role.
func rankName(at place.Where, of *profile.Set) string {
	if of != nil {
		if i := slices.IndexFunc(of.Ranks, func(name string) bool { return place.Named(name) == at }); i >= 0 {
			return of.Ranks[i]
		}
	}
	return at.String()
}

// recordOf are the facts of a finding, as JSON has them. Its command does not name the
// inputs: the same inputs give the same timeline, however they were named.
func recordOf(f *finding.Finding) []drawing.Field {
	text := func(key, value string) drawing.Field { return drawing.Field{Key: key, Text: value, Number: math.NaN()} }
	number := func(key string, value float64) drawing.Field { return drawing.Field{Key: key, Number: value} }
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
	record = append(record, number("p", p), number("cost", f.Cost), text("cost_of", string(f.Whose)))
	if f.Affected.N > 0 {
		record = append(record, number("requests", float64(f.Affected.N)), text("rids", strings.Join(f.Affected.RIDs, " ")))
	}
	return append(record, text("evidence", strings.Join(finding.Sentences(f.Evidence), "\n")), text("command", f.Command([]string{"INPUT..."})))
}
