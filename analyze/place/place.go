package place

import (
	"fmt"

	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/request"
)

// LocationColumns returns the columns of a location.
func LocationColumns[T any](of func(*T) *Location) []table.Field[T] {
	rank := func(name, doc string, text func(*Location) string) table.Field[T] {
		return table.TextColumn(name, doc, func(row *T) string {
			if p := of(row); p.Scope == OneRank {
				return text(p)
			}
			return ""
		})
	}
	return []table.Field[T]{
		table.TextColumn("scope", "what the row covers: all, a role, or a rank", func(row *T) string { return of(row).Scope.String() }),
		table.TextColumn("role", "role of the server", func(row *T) string {
			if p := of(row); p.Scope != Everywhere {
				return p.Role.String()
			}
			return ""
		}),
		rank("host", "host name, or the start of its ID", (*Location).ServerName),
		rank("label", "label of the thread, such as Tokenizer", func(p *Location) string { return p.Label }),
		rank("rank", "parallel ranks, such as DP1 TP0", (*Location).RankName),
	}
}

// BetweenTimes says when the first and the last of some requests started.
func BetweenTimes(s *request.Set, list []int) string {
	first, last := words.Tenths(s.Requests[list[0]].Start, s.Requests[list[len(list)-1]].Start)
	switch {
	case len(list) == 1:
		return "it started at " + first
	case first == last:
		return "they started at " + first
	}
	return fmt.Sprintf("they started between %s and %s", first, last)
}

// Overlaps reports whether two locations may be the same: no part of the rank that both have differs.
func (p *Location) Overlaps(o *Location) bool {
	switch {
	case p.Scope == Everywhere || o.Scope == Everywhere:
		return true
	case p.Role != o.Role && p.Role != request.Other && o.Role != request.Other:
		return false
	case p.Scope == WholeRole || o.Scope == WholeRole:
		return true
	case p.onlyNamed() && o.onlyNamed():
		return p.Label == o.Label
	}
	return (p.Host == o.Host && p.Server == o.Server || p.Host == "" || o.Host == "") && !p.Rank.Contradicts(o.Rank)
}

// Parts returns the role, the host, and the rank of a location; "" for parts that it does not have.
func (p *Location) Parts() (role, host, rank string) {
	if p.Scope == Everywhere {
		return "", "", ""
	}
	if p.Role != request.Other {
		role = p.Role.String()
	}
	if p.Scope == OneRank {
		host, rank = p.ServerName(), p.RankName()
	}
	return role, host, rank
}

// KnownPlaces returns, for every place, its own index or, if its role is unknown because spans are missing, that of
// the same rank with a role, if there is one.
func (r *RankSet) KnownPlaces() []int32 {
	known := make([]int32, len(r.Places))
	withRole := map[Location]int32{} // the first place with a role, by the place without it
	for i, p := range r.Places {
		known[i] = int32(i)
		if p.Role != request.Other {
			p.Role = request.Other
			if _, ok := withRole[p]; !ok {
				withRole[p] = int32(i)
			}
		}
	}
	for i, p := range r.Places {
		if at, ok := withRole[p]; ok {
			known[i] = at
		}
	}
	return known
}

// SomeRequests names a few requests.
func SomeRequests(s *request.Set, list []int) string {
	const few = 3
	text := ""
	for i, r := range list[:min(few, len(list))] {
		if i > 0 {
			text += ", "
		}
		text += s.Text(s.Requests[r].RID)
	}
	if n := len(list) - few; n > 0 {
		text += fmt.Sprintf(" and %d more", n)
	}
	return text
}
