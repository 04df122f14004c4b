package analyze

import (
	"fmt"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/words"
)

// waiting tells how much of the time in collectives ranks wait for the last one of them.
func (c *Collectives) waiting() []string {
	took, wait := int64(0), int64(0)
	for i := range c.Ranks {
		took, wait = distribution.AddTimes(took, c.Ranks[i].Took), distribution.AddTimes(wait, c.Ranks[i].Wait)
	}
	if took == 0 {
		return nil
	}
	return []string{fmt.Sprintf("%.0f %% of the time in %s is waiting for the last rank, the rest moves data", 100*distribution.Fraction(wait, took), words.Counted(c.counts.sync, "collective"))}
}
