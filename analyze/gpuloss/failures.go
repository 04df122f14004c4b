package gpuloss

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/gpu"
	"github.com/sgtrace/sgtrace/analyze/profilewalk"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/words"
)

// namedFailures is how many names of failed calls are told.
const namedFailures = 4

// FailedCalls tells which calls failed that ask devices for work. What they cost is a part of
// such calls.
func FailedCalls(g *gpu.GPUs) ([]finding.Finding, finding.Check) {
	var failed []*gpu.CallTime // the most failures first
	known, failures := int64(0), int64(0)
	for i := range g.Calls {
		c := &g.Calls[i]
		known += c.Results.Known
		if n := c.Results.Failed(); n > 0 {
			failed, failures = append(failed, c), failures+n
		}
	}
	check := finding.Check{What: "failed calls", Of: "call", N: int(known), Needed: 1}
	if known == 0 {
		check.Reason = "the profiles do not hold what calls returned"
	}
	if failures == 0 {
		return nil, check
	}
	slices.SortStableFunc(failed, func(a, b *gpu.CallTime) int { return cmp.Compare(b.Results.Failed(), a.Results.Failed()) })
	part := distribution.Fraction(failures, known)
	f := finding.Finding{Subkind: "calls", Text: failureText(failed[0]), Cost: part,
		Metric: finding.Metric{Name: "failed calls", Unit: table.Share, Before: math.NaN(), After: part}}
	for _, c := range failed[1:min(len(failed), namedFailures)] {
		f.Evidence = append(f.Evidence, finding.Sentence("%s", failureText(c)))
	}
	f.Evidence = append(f.Evidence, finding.Sentence("what these calls asked for never ran, so the capture shows less work than it should, and results may be wrong"))
	return []finding.Finding{f}, check
}

// failureText says how many calls of a name failed, and how: "558 of 13,457
// cudaLaunchKernel calls failed: cudaErrorLaunchOutOfResources (701)".
func failureText(c *gpu.CallTime) string {
	how := c.Results.String()
	if errors := c.Results.Errors(); len(errors) == 1 {
		how = profilewalk.ErrorName(errors[0])
	}
	return fmt.Sprintf("%s of %s %s calls failed: %s", words.Thousands(c.Results.Failed()), words.Thousands(c.Results.Known), c.Name, how)
}
