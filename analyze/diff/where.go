package diff

import (
	"fmt"
	"math"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/internal/significance"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// at is where a row changed: on the one rank on which it did, or that has it; else in the role
// of all ranks that it is of; else everywhere.
func (r *diffRows) at(of *Row) place.Where {
	names := []string{of.Rank}
	if of.Rank == "" {
		if names = r.only(of); names == nil {
			for _, row := range r.ranks(of) {
				names = append(names, row.Rank)
			}
		}
	}
	var at place.Where
	for i, name := range names {
		switch rank := place.Named(name); {
		case rank.Rank == trace.NoRank && rank.Role == request.Other: // no name of a rank
			return place.Where{}
		case i == 0:
			at = rank
		case rank.Role != at.Role || rank.Role == request.Other:
			return place.Where{}
		default:
			at = place.Where{Scope: place.WholeRole, Role: at.Role}
		}
	}
	return at
}

// where tells on which ranks a row changed, if it did not on the others: " on TP1 only".
func (r *diffRows) where(of *Row) string {
	names := r.only(of)
	if names == nil {
		return ""
	}
	const told = 3 // names in a sentence
	if n := len(names) - told; n > 0 {
		names = append(names[:told], fmt.Sprintf("%d more", n))
	}
	return " on " + strings.Join(names, ", ") + " only"
}

// only names the ranks on which a row changed, if it did not on the others; nil if it did on
// all, or nobody knows. It is asked of rows that changed, so that only the ranks of each are
// paid for.
func (r *diffRows) only(of *Row) []string {
	ranks := r.ranks(of)
	p := make([]float64, len(ranks))
	for i := range ranks {
		p[i] = ranks[i].Mean.Change.P
	}
	var names []string
	least, most := math.Inf(1), 0.0
	for i, p := range significance.Holm(p) {
		row := &ranks[i]
		if row.Mean.Change.P = p; p <= diffAlpha {
			row.Mean.Sure = finding.Certain
		}
		switch {
		case !row.Mean.tested():
			return nil
		case row.Mean.matters():
			names = append(names, row.Rank)
			least = min(least, row.Mean.size())
		default:
			most = max(most, row.Mean.size())
		}
	}
	// A rank that nobody can tell anything about may have changed as much.
	if len(names) == 0 || len(names) == len(ranks) || 2*most > least {
		return nil
	}
	return names
}
