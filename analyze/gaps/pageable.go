package gaps

import (
	"fmt"
	"math"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/host"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/words"
)

// Pageable tells of copies of pageable memory in which the host was while devices ran nothing,
// wherever the code makes them. length is the time of all devices, in ns.
func (g *Gaps) Pageable(length int64) ([]finding.Finding, finding.Judged) {
	s := suspect{rank: thing, table: "gaps"}
	for i := range g.Causes {
		if c := &g.Causes[i]; c.Did == host.CopyingPageable {
			s.time = distribution.AddTimes(s.time, c.Time)
			s.rows = append(s.rows, c)
		}
	}
	judged := g.judge("copies of pageable memory")
	if s.rows == nil && judged.Reason == "" {
		judged.Reason = "no GPU waits while the host copies pageable memory"
	}
	if judged.State() != finding.LookedAt {
		return nil, judged
	}
	share := distribution.Fraction(s.time, length)
	wait, _ := g.wait()
	if worst := g.worst(); share < ofThing || worst.stands(length, wait) && worst.rows[0].Did == host.CopyingPageable {
		return nil, judged // the worst is told anyway
	}
	f := finding.Finding{Topic: "pageable copies", Cost: share,
		Text:   fmt.Sprintf("%s idle for %.0f %% of the time, %s, while the host copies pageable memory", g.areIdle(), 100*share, words.Nearly(s.time)),
		Metric: finding.Metric{Name: "idle in pageable copies", Unit: table.Share, Before: math.NaN(), After: share}}
	f.Evidence = append(s.evidence(g.export), finding.Sentence("the driver copies pageable memory once more, in the calling thread, and pinned memory only once"))
	return []finding.Finding{f}, judged
}

// areIdle begins a sentence about the devices.
func (g *Gaps) areIdle() string {
	if g.several {
		return "the GPUs are"
	}
	return "the GPU is"
}
