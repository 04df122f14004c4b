package change

import (
	"fmt"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/internal/changepoint"
	"github.com/sgtrace/sgtrace/trace"
)

// Pace is the topic of findings about servers that became slower or faster.
const Pace = "pace"

// What the pieces of work of a pace are, as people call them.
const (
	decodePace  = "decode time per token"
	prefillPace = "prefill time"
)

// toSecond writes a time that is known to a second or so.
const toSecond = "15:04:05"

// isSlow reports whether a pace changes slowly, and not at a moment.
func (f *Shift) isSlow() bool {
	return f.Shape == changepoint.Ramped || f.Shape == changepoint.Bent
}

// paceSubject says which servers a pace is of.
func (f *Shift) paceSubject() string {
	switch n := len(f.Ranks); {
	case f.Scope == place.OneRank:
		return f.Name + "'s " + f.Stage
	case n == f.Peers && n == 2:
		return fmt.Sprintf("%s on both %s", f.Stage, f.servers())
	case n == f.Peers && n > 1:
		return fmt.Sprintf("%s on all %d %s", f.Stage, n, f.servers())
	case f.Peers > 1:
		return fmt.Sprintf("%s on %d of %d %s (%s)", f.Stage, n, f.Peers, f.servers(), f.hosts())
	}
	return f.Name + "'s " + f.Stage
}

// servers is what people call several of the role.
func (f *Shift) servers() string {
	for i := range f.Steps {
		if f.Steps[i].Rank.DP >= 0 {
			return f.Role.String() + " DP ranks"
		}
	}
	return f.Role.String() + " servers"
}

// hosts names the first servers of several.
func (f *Shift) hosts() string {
	const few = 3
	var names []string
	for i := range f.Steps {
		if i == few {
			names = append(names, fmt.Sprintf("and %d more", len(f.Steps)-few))
			break
		}
		names = append(names, f.Steps[i].ServerName())
	}
	return strings.Join(names, ", ")
}

// paceChange says how a pace goes on, and since when.
func (f *Shift) paceChange() string {
	before, after := f.values()
	percent := words.InPercent(max(f.relative(), -f.relative()))
	verb := "fell"
	if f.rises() {
		verb = "rose"
	}
	switch f.Shape {
	case changepoint.Ramped, changepoint.Bent:
		since := "from the beginning on"
		if f.Shape == changepoint.Bent {
			since = "since " + words.When(f.Time, f.First, f.Last)
		}
		return fmt.Sprintf("%s by %s %% a minute %s, from %s to %s at the same load", verb, words.InPercent(max(f.PerMinute, -f.PerMinute)), since, before, after)
	case changepoint.Settling:
		return fmt.Sprintf("began at %s and came to %s at %s: a warm-up", before, after, words.At(f.Until, toSecond))
	}
	text := fmt.Sprintf("%s by %s %% at the same load, from %s to %s, ", verb, percent, before, after)
	switch {
	case f.rolls():
		return text + fmt.Sprintf("one after the other between %s and %s", words.At(f.Steps[0].Time, toSecond), words.At(f.Steps[len(f.Steps)-1].Time, toSecond))
	case f.Shape == changepoint.Spell:
		return text + fmt.Sprintf("at %s, until %s", words.When(f.Time, f.First, f.Last), words.At(f.Until, toSecond))
	}
	return text + "at " + words.When(f.Time, f.First, f.Last)
}

// rolls reports whether servers changed one after the other, and not at one moment.
func (f *Shift) rolls() bool {
	latest, earliest := trace.Time(0), trace.Time(0)
	for i, s := range f.Steps {
		if i == 0 || s.First > latest {
			latest = s.First
		}
		if i == 0 || s.Last < earliest {
			earliest = s.Last
		}
	}
	return latest > earliest
}
