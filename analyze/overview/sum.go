package overview

import (
	"fmt"
	"math"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/cause"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/table"
)

// A share is a part of the extra time of requests: what a finding costs, or the rest of a cause.
type share struct {
	what    string
	finding *finding.Finding // nil of the rest
	cause   string           // of the rest
	part    float64          // of the time of requests
}

// What a share is of.
const (
	ofFinding   = "finding"
	ofMuted     = "muted finding"
	unexplained = "unexplained"
)

// shares divide the extra time: findings in the order of the list, those that are muted, and the
// rest by cause.
func (l *List) shares() (list []share) {
	for _, of := range [...]struct {
		what  string
		found []finding.Finding
	}{{ofFinding, l.Result.Findings}, {ofMuted, l.Result.Muted}} {
		for i := range of.found {
			if f := &of.found[i]; f.Whose == finding.RequestTime && f.Cost > 0 {
				list = append(list, share{what: of.what, finding: f, part: f.Cost})
			}
		}
	}
	for c, part := range l.Result.Sum.Rest {
		if part > 0 {
			list = append(list, share{what: unexplained, cause: cause.Cause(c).String(), part: part})
		}
	}
	return list
}

// SumText says in a sentence how the extra time of requests adds up; "" if no finding has any of it.
// The numbers add up as they are printed.
func (l *List) SumText() string {
	sum := 0.0
	var parts []string
	add := func(part float64, who string) {
		if part = math.Round(1000*part) / 10; part > 0 {
			sum += part
			parts = append(parts, fmt.Sprintf("%.1f %% %s", part, who))
		}
	}
	others, muted := 0.0, 0.0
	for i := range l.Result.Findings {
		switch f := &l.Result.Findings[i]; {
		case f.Whose != finding.RequestTime:
		case i < l.shown():
			add(f.Cost, fmt.Sprintf("finding %d", i+1))
		default:
			others += f.Cost
		}
	}
	for i := range l.Result.Muted {
		if f := &l.Result.Muted[i]; f.Whose == finding.RequestTime {
			muted += f.Cost
		}
	}
	add(others, "other findings")
	add(muted, "muted findings")
	if len(parts) == 0 {
		return ""
	}
	rest := unexplained
	if c, part := l.Result.Sum.Largest(); part > 0 {
		rest += fmt.Sprintf(" (mostly %s)", c)
	}
	add(l.Result.Sum.Unexplained(), rest)
	if len(parts) == 1 {
		_, who, _ := strings.Cut(parts[0], "% ")
		return fmt.Sprintf("Extra: %.1f %% of request time, all of it %s", sum, who)
	}
	return fmt.Sprintf("Extra: %.1f %% of request time = %s", sum, strings.Join(parts, " + "))
}

// SumReport makes a table of it.
func (l *List) SumReport() *table.Table {
	t := table.New("sgtrace.report.summary.costs/v1", "Extra time of requests", l.shares(), []table.Field[share]{
		table.TextColumn("what", "finding, muted finding, or unexplained", func(s *share) string { return s.what }),
		table.TextColumn("id", "of the finding", func(s *share) string {
			if s.finding == nil {
				return ""
			}
			return s.finding.ID()
		}),
		table.TextColumn("cause", "of what is unexplained: where the time went; see Tail", func(s *share) string { return s.cause }),
		table.ShareColumn("share", "of the time of finished requests; all rows add up to what is extra", func(s *share) float64 { return s.part }),
		table.NsColumn("time", "the same, added up over the requests", func(s *share) int64 { return int64(math.Round(s.part * l.Result.Sum.Ns)) }),
	})
	return t
}
