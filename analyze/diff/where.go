package diff

import (
	"fmt"
	"math"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/internal/significance"
)

// where names the ranks on which a row changed, if the others did not: " on TP1 only". It
// is asked of rows that changed, so that only the ranks of each are paid for.
func (r *diffRows) where(of *Row) string {
	ranks := r.ranks(of)
	p := make([]float64, len(ranks))
	for i := range ranks {
		p[i] = ranks[i].Mean.P
	}
	var names []string
	least, most := math.Inf(1), 0.0
	for i, p := range significance.Holm(p) {
		row := &ranks[i]
		if row.Mean.P = p; p <= diffAlpha {
			row.Mean.Sure = finding.Certain
		}
		switch {
		case !row.Mean.tested():
			return ""
		case row.Mean.matters():
			names = append(names, row.Rank)
			least = min(least, row.Mean.size())
		default:
			most = max(most, row.Mean.size())
		}
	}
	// A rank that nobody can tell anything about may have changed as much.
	if len(names) == 0 || len(names) == len(ranks) || 2*most > least {
		return ""
	}
	const told = 3 // names in a sentence
	if n := len(names) - told; n > 0 {
		names = append(names[:told], fmt.Sprintf("%d more", n))
	}
	return " on " + strings.Join(names, ", ") + " only"
}
