package analyze

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/trace"
)

// A StragglerVerdict says which ranks keep others waiting, by all that is known: the
// ends of steps that requests show, and collectives that profilers do.
type StragglerVerdict struct {
	Stragglers []Straggler
	// Sentences are one for each straggler; or for each kind of evidence that there is
	// none, and what was looked at.
	Sentences []string
}

// Suspects are the stragglers that one kind of evidence shows, the one that costs most
// first.
type Suspects struct {
	Stragglers []Straggler
	// Acquittal says, where there are none, that there are none and what was looked at.
	Acquittal []string
}

// FindStragglers gives the verdict on what several kinds of evidence show, the one to
// tell first before the others.
func FindStragglers(suspects ...Suspects) StragglerVerdict {
	var v StragglerVerdict
	var acquitted []string
	for _, s := range suspects {
		if v.Stragglers = append(v.Stragglers, s.Stragglers...); len(s.Stragglers) == 0 {
			acquitted = append(acquitted, s.Acquittal...)
			continue
		}
		for i := range s.Stragglers {
			v.Sentences = append(v.Sentences, s.Stragglers[i].Text())
		}
	}
	v.Sentences = append(v.Sentences, acquitted...)
	return v
}

// dataParallelAttention tells whether there is a server whose DP ranks are different TP
// ranks, one each: TP0-DP0, TP1-DP1 and so on.
func (r *Ranks) dataParallelAttention() bool {
	ranks := map[place.Where]int{} // of a server
	taken := map[place.Where]bool{}
	for i := range r.Loads {
		server, of := r.Loads[i].Where, r.Loads[i].Rank
		byTP, byDP := server, server
		server.Rank = trace.NoRank
		byTP.Rank = trace.Rank{TP: of.TP, PP: of.PP, DP: -1}
		byDP.Rank = trace.Rank{TP: -1, PP: of.PP, DP: of.DP}
		if of.TP < 0 || of.DP < 0 || taken[byTP] || taken[byDP] {
			return false
		}
		taken[byTP], taken[byDP] = true, true
		ranks[server]++
	}
	return len(ranks) > 0 && slices.Max(slices.Collect(maps.Values(ranks))) > 1
}

// Report makes a table of the stragglers. Its title is the verdict.
func (v StragglerVerdict) Report() *table.Report {
	title := "No straggler can be told: no ranks do the same things together"
	if len(v.Sentences) > 0 {
		title = strings.ToUpper(v.Sentences[0][:1]) + v.Sentences[0][1:]
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
		table.CountColumn("n", "how many of those it took part in while it was slow", func(s *S) int64 { return int64(s.Meetings) }),
		table.CountColumn("last", "in how many it came after all others", func(s *S) int64 { return int64(s.Last) }),
		table.NsColumn("late", "mean of its arrival minus the median of the others, where it was last", func(s *S) int64 { return s.LastMean }),
		table.NsColumn("late p50", "median of that over all of them, nearest rank", func(s *S) int64 { return s.P50 }),
		table.NsColumn("late p99", "99th percentile of that, nearest rank", func(s *S) int64 { return s.P99 }),
		table.NsColumn("lost", "what the others waited for it, together", func(s *S) int64 { return s.Lost }),
		{Column: table.Column{Name: "lost share", Unit: table.Share, Doc: "that, of their time"}, Cell: func(s *S) table.Cell { return table.Cell{Share: s.LostShare, Unknown: math.IsNaN(s.LostShare)} }},
		{Column: since, Cell: func(s *S) table.Cell { c := table.InstantCell(s.Since); c.Unknown = s.Since == 0; return c }},
	}
	fields = append(fields, table.Detail([]table.Field[S]{
		table.NsColumn("at least", "`at_least_share` of the mean time of one of them", func(s *S) int64 { return s.delayNs(s.DelayLow) }),
		table.NsColumn("at most", "`at_most_share` of it", func(s *S) int64 { return s.delayNs(s.DelayHigh) }),
		table.NumberColumn("p", "bounds the chance that any rank looks so slow if all are alike; empty where that cannot be told and it was late in all pieces of the time", func(s *S) float64 { return s.P }),
		table.TextColumn("cause", "why, as far as devices show it", func(s *S) string { return s.Cause }),
		table.ShareColumn("late share", "how late it is on average, as part of the time", func(s *S) float64 { return s.Delay }),
		table.ShareColumn("at least share", "lower end of the 95 % confidence interval of that; empty where p is", func(s *S) float64 { return s.DelayLow }),
		table.ShareColumn("at most share", "upper end of it", func(s *S) float64 { return s.DelayHigh }),
		table.CountColumn("pieces", "of the time in which it was slow, that were judged", func(s *S) int64 { return int64(s.Blocks) }),
		table.CountColumn("late pieces", "in how many of them it was late by what matters", func(s *S) int64 { return int64(s.LateBlocks) }),
	})...)
	r := table.New("sgtrace.report.stragglers/v1", title, v.Stragglers, fields)
	for _, sentence := range v.Sentences[min(1, len(v.Sentences)):] {
		r.Note("%s", sentence)
	}
	if len(v.Stragglers) == 0 {
		r.Note("'sgtrace help metrics straggler' tells when a rank is one")
	}
	for i := range v.Stragglers {
		s := &v.Stragglers[i]
		r.Note("%s: %s", s.Name, strings.Join(s.Evidence, "; "))
	}
	return r
}
