package straggler

import (
	"cmp"
	"math"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/words"
)

// Report makes a table of the stragglers. Its title is the verdict.
func (v Verdict) Report() *table.Table {
	title := "No straggler can be told: no ranks do the same things together"
	if len(v.Sentences) > 0 {
		title = words.Capitalized(v.Sentences[0])
		if len(v.Stragglers) > 0 {
			title = "Straggler: " + v.Sentences[0]
		}
	}
	type S = Straggler
	since := table.Column{Name: "since", Unit: table.Instant, Doc: "when it became late; empty if it always was"}
	fields := []table.Field[S]{
		table.TextColumn("rank", "that others wait for", func(s *S) string { return s.Name }),
		table.TextColumn("of", "those that wait for it", func(s *S) string { return cmp.Or(s.Peers, s.Group) }),
		table.TextColumn("at", "what they do together", func(s *S) string { return s.What }),
		table.CountColumn("n", "how many of those it took part in while it was slow", func(s *S) int64 { return int64(s.SyncPoints) }),
		table.CountColumn("last", "in how many it came after all others", func(s *S) int64 { return int64(s.Last) }),
		table.NsColumn("late", "mean of its arrival minus the median of the others, where it was last", func(s *S) int64 { return s.LastMean }),
		table.NsColumn("late p50", "median of that over all of them, nearest rank", func(s *S) int64 { return s.P50 }),
		table.NsColumn("late p99", "99th percentile of that, nearest rank", func(s *S) int64 { return s.P99 }),
		table.NsColumn("lost", "what the others waited for it, together", func(s *S) int64 { return s.Lost }),
		{Column: table.Column{Name: "lost share", Unit: table.Share, Doc: "that, of the time of their steps, or between their collectives"}, Cell: func(s *S) table.Cell { return table.Cell{Share: s.LostShare, Unknown: math.IsNaN(s.LostShare)} }},
		{Column: since, Cell: func(s *S) table.Cell { c := table.InstantCell(s.Since); c.Unknown = s.Since == 0; return c }},
	}
	fields = append(fields, table.Detail([]table.Field[S]{
		table.NsColumn("at least", "`at_least_share` of the mean time of one of them", func(s *S) int64 { return s.delayNs(s.DelayLow) }),
		table.NsColumn("at most", "`at_most_share` of it", func(s *S) int64 { return s.delayNs(s.DelayHigh) }),
		table.NumberColumn("p", "bounds the probability that any rank looks this slow if all are equally fast; empty where that is unknown and it was late in all blocks of time", func(s *S) float64 { return s.P }),
		table.TextColumn("cause", "why, as far as devices show it", func(s *S) string { return s.Cause }),
		table.ShareColumn("late share", "how late it is on average, as part of the time", func(s *S) float64 { return s.Delay }),
		table.ShareColumn("at least share", "lower end of the 95 % confidence interval of that; empty where p is", func(s *S) float64 { return s.DelayLow }),
		table.ShareColumn("at most share", "upper end of it", func(s *S) float64 { return s.DelayHigh }),
		table.CountColumn("pieces", "of the time in which it was slow, that were judged", func(s *S) int64 { return int64(s.Blocks) }),
		table.CountColumn("late pieces", "in how many of them it was late by what matters", func(s *S) int64 { return int64(s.LateBlocks) }),
	})...)
	fields = append(fields, occasionColumns()...)
	r := table.New("sgtrace.report.stragglers/v1", title, v.Stragglers, fields)
	r.Stay("late", "lost share").Leave("n", "late p50", "late p99", "lost")
	for _, sentence := range v.Sentences[min(1, len(v.Sentences)):] {
		r.Note("%s", sentence)
	}
	if len(v.Stragglers) == 0 {
		r.Note("'sgtrace help metrics straggler' defines stragglers")
	}
	for i := range v.Stragglers {
		s := &v.Stragglers[i]
		r.Note("%s: %s", s.Name, strings.Join(finding.Sentences(s.Evidence), "; "))
	}
	return r
}

// occasionColumns tell when a rank is late that is not always; they are empty for others.
func occasionColumns() []table.Field[Straggler] {
	type S = Straggler
	fields := table.Detail([]table.Field[S]{
		table.CountColumn("late steps", "of a rank that is late in some steps only: in how many, without what the other ranks have on average; empty for others", func(s *S) int64 { return int64(s.Intermittent.Steps) }),
		table.ShareColumn("late steps share", "that, of the steps that it took part in", func(s *S) float64 { return s.Intermittent.Share }),
		table.NsColumn("late from", "10th percentile of its lateness in them, nearest rank", func(s *S) int64 { return s.Intermittent.Low }),
		table.NsColumn("late to", "90th percentile of that", func(s *S) int64 { return s.Intermittent.High }),
		table.TextColumn("late when", "what they have in common", func(s *S) string { return s.Intermittent.When.String() }),
	})
	for i := range fields {
		known := fields[i].Cell
		fields[i].Cell = func(s *S) table.Cell {
			if s.Intermittent == nil {
				return table.Cell{Unknown: true}
			}
			return known(s)
		}
	}
	return fields
}
