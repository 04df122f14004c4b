package matching

import (
	"iter"

	"github.com/sgtrace/sgtrace/internal/memory"
)

// A Match is one collective, seen on two ranks or more.
type Match struct {
	Members []Member // at most one for each rank
	Level   Level
	Kind    Kind // KindSend for the two sides of a transfer
}

// A Member is Ranks[Rank].Calls.At(Index).
type Member struct{ Rank, Index int32 }

// Matches is a table of matches. A job has millions of them: it holds no pointers, so that the
// garbage collector does not look into it. The zero value is an empty table.
type Matches struct {
	places  []matchPlace
	members []Member
}

// A matchPlace is a match, and where its members are.
type matchPlace struct {
	first int64 // in members
	n     int32
	level Level
	kind  Kind
}

// Len returns how many matches there are.
func (m *Matches) Len() int { return len(m.places) }

// At returns a match, whose members are not to be changed.
func (m *Matches) At(i int) Match {
	p := &m.places[i]
	return Match{m.membersOf(p), p.level, p.kind}
}

func (m *Matches) membersOf(p *matchPlace) []Member {
	end := p.first + int64(p.n)
	return m.members[p.first:end:end]
}

// All passes the matches in their order, with their numbers.
func (m *Matches) All() iter.Seq2[int, Match] {
	return func(yield func(int, Match) bool) {
		for i := range m.places {
			if !yield(i, m.At(i)) {
				return
			}
		}
	}
}

// Add adds a match. What At has returned before is not valid anymore, as after Join.
func (m *Matches) Add(x Match) {
	m.places = memory.Append(m.places, matchPlace{int64(len(m.members)), int32(len(x.Members)), x.Level, x.Kind})
	m.members = memory.Append(m.members, x.Members...)
}

// Join adds a member to a match.
func (m *Matches) Join(i int, x Member) {
	p := &m.places[i]
	if end := p.first + int64(p.n); end < int64(len(m.members)) { // others follow
		first := int64(len(m.members))
		for k := range int64(p.n) {
			m.members = memory.Append(m.members, m.members[p.first+k])
		}
		p.first = first
	}
	m.members = memory.Append(m.members, x)
	p.n++
}
