package analyze

import (
	"math"
	"strings"
)

// A StragglerVerdict says which ranks keep others waiting, by all that is known: the
// ends of steps that requests show, and collectives that profilers do.
type StragglerVerdict struct {
	Stragglers []Straggler
	// Sentences are one for each straggler; or for each kind of evidence that there is
	// none, and what was looked at.
	Sentences []string
}

// FindStragglers judges the ranks of requests and of profilers. Each of them may be nil.
func FindStragglers(r *Ranks, c *Collectives, g *GPUs) StragglerVerdict {
	var v StragglerVerdict
	var acquitted []string
	add := func(found []Straggler, sentences ...string) {
		if v.Stragglers = append(v.Stragglers, found...); len(found) == 0 {
			acquitted = append(acquitted, sentences...)
			return
		}
		for i := range found {
			v.Sentences = append(v.Sentences, found[i].Text())
		}
	}
	if c != nil {
		found := c.Stragglers(g)
		add(found, c.Verdict(found)...)
	}
	if r != nil {
		add(r.Stragglers(), r.Verdict())
	}
	v.Sentences = append(v.Sentences, acquitted...)
	return v
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
		textColumn("of", "those that wait for it", func(s *S) string { return s.Group }),
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
		nsColumn("at least", "lower end of the 95 % confidence interval of how late it is on average", func(s *S) int64 { return s.Low }),
		nsColumn("at most", "upper end of that", func(s *S) int64 { return s.High }),
		numberColumn("p", "bounds the chance that any rank looks so slow if all are alike", func(s *S) float64 { return s.P }),
		textColumn("cause", "why, as far as devices show it", func(s *S) string { return s.Cause }),
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
