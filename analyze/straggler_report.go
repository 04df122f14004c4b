package analyze

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"

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
	ranks := map[Where]int{} // of a server
	taken := map[Where]bool{}
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
func (v StragglerVerdict) Report() *Report {
	title := "No straggler can be told: no ranks do the same things together"
	if len(v.Sentences) > 0 {
		title = strings.ToUpper(v.Sentences[0][:1]) + v.Sentences[0][1:]
		if len(v.Stragglers) > 0 {
			title = "Straggler: " + v.Sentences[0]
		}
	}
	type S = Straggler
	since := Column{Name: "since", Unit: Instant, Doc: "when it became late; empty if it always was"}
	fields := []field[S]{
		textColumn("rank", "that others wait for", func(s *S) string { return s.Name }),
		textColumn("of", "those that wait for it", func(s *S) string { return cmp.Or(s.Peers, s.Group) }),
		textColumn("at", "what they do together", func(s *S) string { return s.What }),
		countColumn("n", "how many of those it took part in while it was slow", func(s *S) int64 { return int64(s.Meetings) }),
		countColumn("last", "in how many it came after all others", func(s *S) int64 { return int64(s.Last) }),
		nsColumn("late", "mean of its arrival minus the median of the others, where it was last", func(s *S) int64 { return s.LastMean }),
		nsColumn("late p50", "median of that over all of them, nearest rank", func(s *S) int64 { return s.P50 }),
		nsColumn("late p99", "99th percentile of that, nearest rank", func(s *S) int64 { return s.P99 }),
		nsColumn("lost", "what the others waited for it, together", func(s *S) int64 { return s.Lost }),
		{Column{Name: "lost share", Unit: Share, Doc: "that, of their time"}, func(s *S) Cell { return Cell{Share: s.LostShare, Unknown: math.IsNaN(s.LostShare)} }},
		{since, func(s *S) Cell { c := instantCell(s.Since); c.Unknown = s.Since == 0; return c }},
	}
	fields = append(fields, detail([]field[S]{
		nsColumn("at least", "`at_least_share` of the mean time of one of them", func(s *S) int64 { return s.delayNs(s.DelayLow) }),
		nsColumn("at most", "`at_most_share` of it", func(s *S) int64 { return s.delayNs(s.DelayHigh) }),
		numberColumn("p", "bounds the chance that any rank looks so slow if all are alike; empty where that cannot be told and it was late in all pieces of the time", func(s *S) float64 { return s.P }),
		textColumn("cause", "why, as far as devices show it", func(s *S) string { return s.Cause }),
		shareColumn("late share", "how late it is on average, as part of the time", func(s *S) float64 { return s.Delay }),
		shareColumn("at least share", "lower end of the 95 % confidence interval of that; empty where p is", func(s *S) float64 { return s.DelayLow }),
		shareColumn("at most share", "upper end of it", func(s *S) float64 { return s.DelayHigh }),
		countColumn("pieces", "of the time in which it was slow, that were judged", func(s *S) int64 { return int64(s.Blocks) }),
		countColumn("late pieces", "in how many of them it was late by what matters", func(s *S) int64 { return int64(s.LateBlocks) }),
	})...)
	r := tabulate("sgtrace.report.stragglers/v1", title, v.Stragglers, fields)
	for _, sentence := range v.Sentences[min(1, len(v.Sentences)):] {
		r.note("%s", sentence)
	}
	if len(v.Stragglers) == 0 {
		r.note("'sgtrace help metrics straggler' tells when a rank is one")
	}
	for i := range v.Stragglers {
		s := &v.Stragglers[i]
		r.note("%s: %s", s.Name, strings.Join(s.Evidence, "; "))
	}
	return r
}
