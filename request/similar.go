package request

import (
	"fmt"

	"github.com/sgtrace/sgtrace/internal/similar"
)

// Similar asks about the id that is nearest to one that no request has, or to the
// beginning of one: "; did you mean 7ca07386?". It is empty if none is so near that a slip
// explains it: ids are random, and of thousands some are alike by chance.
func (s *Set) Similar(id string) string {
	const lettersPerSlip = 6
	best, least := "", max(1, len(id)/lettersPerSlip)+1
	for i := range s.Requests {
		for _, have := range s.IDs(&s.Requests[i]) {
			have = have[:min(len(have), len(id))]
			if d := similar.Distance(id, have); d < least {
				best, least = have, d
			}
		}
	}
	if best == "" || len(id) < lettersPerSlip {
		return ""
	}
	return fmt.Sprintf("; did you mean %s?", best)
}
