package requests

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// A Loss is what others show to be lost of a dump.
type Loss struct {
	Lost, Shown int        // spans that others show to be lost, and to have been written
	From, To    trace.Time // of the lost ones; 0 without
	// Incomplete requests miss spans; what the end or the beginning of the dump cuts off
	// is missing, too. They are left out where their times would not add up.
	Incomplete, Requests int
	Procs                []ProcLoss // that lost some, the one with most first
}

// A ProcLoss is what one process lost.
type ProcLoss struct {
	Proc        int // index into Set.Procs
	Name        string
	Lost, Shown int
}

// FindLoss sums up what is lost of s.
func FindLoss(s *request.Set) *Loss {
	l := &Loss{Lost: len(s.Missing), Requests: len(s.Requests)}
	for _, n := range s.Shown {
		l.Shown += n
	}
	lost := make([]int, len(s.Procs))
	for i, m := range s.Missing {
		if i == 0 || m.Time < l.From {
			l.From = m.Time
		}
		l.To = max(l.To, m.Time)
		lost[m.Proc]++
	}
	for i := range s.AllRequests() {
		if !s.Requests[i].Complete() {
			l.Incomplete++
		}
	}
	for p, n := range lost {
		if n > 0 {
			where := place.NewLocation(s, p)
			l.Procs = append(l.Procs, ProcLoss{p, where.String(), n, s.Shown[p]})
		}
	}
	slices.SortStableFunc(l.Procs, func(x, y ProcLoss) int { return cmp.Compare(y.Lost, x.Lost) })
	return l
}

// share returns the part of the spans that is lost, as far as others show it.
func (l *Loss) share() float64 { return distribution.Ratio(float64(l.Lost), float64(l.Shown)) }

// Text says how much is lost, and when. It is the least: where all is lost that shows a
// span, nobody knows of it.
func (l *Loss) Text() string {
	about := "less than 0.1"
	if share := l.share(); share >= 0.001 {
		about = "at least " + words.InPercent(share)
	}
	incomplete := "no request is incomplete"
	if l.Incomplete > 0 {
		incomplete = fmt.Sprintf("%s of %s are incomplete", words.Thousands(int64(l.Incomplete)), words.Counted(l.Requests, "request"))
	}
	from, to := words.Tenths(l.From, l.To)
	return fmt.Sprintf("%s %% of the spans were lost on their way to the dump, between %s and %s; %s", about, from, to, incomplete)
}

// Findings tells of the loss, and where it was.
func (l *Loss) Findings() ([]finding.Finding, finding.Check) {
	check := finding.Check{What: "lost spans", Of: "span", N: l.Shown, Needed: 1}
	if l.Lost == 0 {
		return nil, check
	}
	f := finding.Finding{Since: l.From, Until: l.To, Text: l.Text(), Affected: finding.Affected{N: l.Incomplete},
		Metric: finding.Metric{Name: "share of lost spans", Unit: table.Share, Before: math.NaN(), After: l.share()}}
	const few = 3
	for _, p := range l.Procs[:min(few, len(l.Procs))] {
		f.Evidence = append(f.Evidence, finding.Sentence("%s lost %s %% of the spans that other processes imply: %s of %s",
			p.Name, words.InPercent(float64(p.Lost)/float64(p.Shown)), words.Thousands(int64(p.Lost)), words.Counted(p.Shown, "span")))
	}
	return []finding.Finding{f}, check
}
