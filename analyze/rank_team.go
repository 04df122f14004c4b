package analyze

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/request"
)

// teams are the tensor parallel ranks that take the same steps: of one server and
// DP rank, one stage of its pipeline, and one host.
type teams struct {
	*rankSet
	team    []int32   // of every place; request.None without a TP rank
	slot    []int32   // of every place, in its team
	ranksOf [][]int32 // places of every team, by TP
	scratch []teamRank
}

// A teamRank is a rank of a team that works on some part.
type teamRank struct {
	team, slot int32
	thread     int
}

func newTeams(of *rankSet) *teams {
	t := &teams{rankSet: of, team: make([]int32, len(of.places)), slot: make([]int32, len(of.places))}
	knownOf := of.knownPlaces()
	ids := map[Where]int32{}
	for i, p := range of.places {
		t.team[i] = request.None
		if p.Rank.TP < 0 || knownOf[i] != int32(i) {
			continue
		}
		p.Rank.TP = -1
		id, ok := ids[p]
		if !ok {
			id = int32(len(t.ranksOf))
			ids[p] = id
			t.ranksOf = append(t.ranksOf, nil)
		}
		t.team[i] = id
		t.ranksOf[id] = append(t.ranksOf[id], int32(i))
	}
	for _, list := range t.ranksOf {
		slices.SortFunc(list, func(x, y int32) int { return cmp.Compare(of.places[x].Rank.TP, of.places[y].Rank.TP) })
		for slot, place := range list {
			t.slot[place] = int32(slot)
		}
	}
	for i, known := range knownOf {
		t.team[i], t.slot[i] = t.team[known], t.slot[known]
	}
	return t
}

// knownPlaces returns the index of every place; of one whose role is unknown, as spans
// are missing, that of the same rank with a role, if there is one.
func (r *rankSet) knownPlaces() []int32 {
	known := make([]int32, len(r.places))
	withRole := map[Where]int32{} // the first, by the place without it
	for i, p := range r.places {
		known[i] = int32(i)
		if p.Role != request.Other {
			p.Role = request.Other
			if _, ok := withRole[p]; !ok {
				withRole[p] = int32(i)
			}
		}
	}
	for i, p := range r.places {
		if at, ok := withRole[p]; ok {
			known[i] = at
		}
	}
	return known
}

// members returns the ranks that work on a part, team by team, each once. They
// are valid until the next call.
func (t *teams) members(p *request.Part) []teamRank {
	t.scratch = t.scratch[:0]
	for _, th := range p.Threads {
		place := t.of[t.set.Threads[th].Proc]
		if place == request.None || t.team[place] == request.None {
			continue
		}
		t.scratch = append(t.scratch, teamRank{t.team[place], t.slot[place], th})
	}
	slices.SortStableFunc(t.scratch, func(x, y teamRank) int {
		return cmp.Or(cmp.Compare(x.team, y.team), cmp.Compare(x.slot, y.slot))
	})
	t.scratch = slices.CompactFunc(t.scratch, func(x, y teamRank) bool { return x.team == y.team && x.slot == y.slot })
	return t.scratch
}

// isApart tells whether two teams are the same but for their hosts.
func (t *teams) isApart(x, y int32) bool {
	a, b := t.places[t.ranksOf[x][0]], t.places[t.ranksOf[y][0]]
	return a.Host != b.Host && a.Role == b.Role && a.Label == b.Label && a.Rank.PP == b.Rank.PP && a.Rank.DP == b.Rank.DP
}

// instance names a team: "decode c94b1e02 DP1". A pipeline stage or DP rank is
// named where there are others.
func (t *teams) instance(team int32) string {
	p := t.places[t.ranksOf[team][0]]
	others := func(of func(*Where) int16) bool {
		return slices.ContainsFunc(t.places, func(o Where) bool {
			return o.Role == p.Role && o.Host == p.Host && o.Server == p.Server && of(&o) != of(&p)
		})
	}
	name := words.JoinNonEmpty(" ", p.Role.String(), p.serverName())
	if others(func(w *Where) int16 { return w.Rank.PP }) {
		name += " PP" + strconv.Itoa(int(p.Rank.PP))
	}
	if others(func(w *Where) int16 { return w.Rank.DP }) {
		name += " DP" + strconv.Itoa(int(p.Rank.DP))
	}
	return name
}
