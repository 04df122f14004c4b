package telemetry

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
)

// An Event is what a server says that happened: the same of several ranks, or several times,
// is one.
type Event struct {
	Kind        series.InstantKind
	Server      int32
	First, Last trace.Time
	N           int // how often
	Requests    int // that it says it is about; N where it says nothing
	Places      []int32
	Text        string
	Stack       string // of the first one; "" is none
	File        string
	Line        int64
}

// Apart is how far apart repetitions of an event are, for them to be several.
const Apart = 5 * 60 * 1e9

// readyApart is that for servers that are ready: one that is so later was started again.
const readyApart = 60e9

// group makes events of instants.
func (l *Logged) group(opt Options) {
	type key struct {
		kind   series.InstantKind
		server int32
		text   trace.Sym
	}
	last := map[key]int{}
	for i := range l.Set.Instants {
		x := &l.Set.Instants[i]
		if x.Time != 0 && !opt.Inside(x.Time) {
			continue
		}
		k := key{x.Kind, l.Set.Places[x.Place].Server, x.Text}
		at, ok := last[k]
		ends := x.Kind == series.Exception || x.Kind == series.OutOfMemory // once in each process
		if !ok || x.Time-l.Events[at].Last > Apart && !ends || x.Kind == series.Ready && x.Time-l.Events[at].Last > readyApart {
			at = len(l.Events)
			last[k] = at
			pos := l.Set.Pos(x)
			l.Events = append(l.Events, Event{Kind: x.Kind, Server: k.server, First: x.Time, Text: l.Set.Syms.Name(x.Text), Stack: l.Set.Syms.Name(x.Stack),
				File: pos.File, Line: pos.Line})
		}
		e := &l.Events[at]
		n := 1
		if x.Kind == series.Complaint { // the first one stands for all
			n = int(x.Count)
		}
		e.Last, e.N, e.Requests = x.Time, e.N+n, e.Requests+int(x.Count)
		if !slices.Contains(e.Places, x.Place) {
			e.Places = append(e.Places, x.Place)
		}
	}
	slices.SortStableFunc(l.Events, func(a, b Event) int { return cmp.Compare(a.First, b.First) })
}

// Name is whose event it is: a rank, several of a server, or a server.
func (l *Logged) Name(e *Event) string {
	s := &l.Set.Servers[e.Server]
	if len(e.Places) == 1 && l.Set.Places[e.Places[0]].Rank != trace.NoRank {
		at := l.Where(e.Places[0])
		if at.Rank.Known() == 0 {
			return fmt.Sprintf("%s rank %d", Host(s), at.Rank.Global)
		}
		return at.String()
	}
	if len(e.Places) > 1 {
		const few = 4
		var ranks []string
		for _, p := range e.Places {
			if r := l.Set.Places[p].Rank; r != trace.NoRank {
				ranks = append(ranks, l.Names.Short(r))
			}
		}
		slices.SortFunc(ranks, func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b)) })
		if n := len(ranks); n > few {
			return fmt.Sprintf("%d ranks of %s (%s to %s)", n, Host(s), ranks[0], ranks[n-1])
		}
		if len(ranks) > 0 {
			return strings.Join(ranks, ", ") + " of " + Host(s)
		}
	}
	return cmp.Or(Host(s), filepath.Base(e.File)) // the log of a kernel may not name its host
}

// At is where an event is.
func (l *Logged) At(e *Event) place.Location {
	if len(e.Places) == 1 {
		return l.Where(e.Places[0])
	}
	s := &l.Set.Servers[e.Server]
	return place.At(Role(s), Host(s), trace.NoRank, l.Names)
}

// when says when an event was.
func (e *Event) when() string {
	if e.First == 0 {
		return "at a time that is not told"
	}
	if e.N > 1 && words.TimeOfDay(e.Last) != words.TimeOfDay(e.First) {
		return fmt.Sprintf("between %s and %s", words.TimeOfDay(e.First), words.TimeOfDay(e.Last))
	}
	return "at " + words.TimeOfDay(e.First)
}

// Sentence says what happened.
func (l *Logged) Sentence(e *Event) string {
	if e.Kind == series.Cluster {
		return l.clusterSentence(e)
	}
	text := l.Name(e) + ": " + e.Text + " " + e.when()
	if e.N > 1 {
		text += fmt.Sprintf(" (%d times)", e.N)
	}
	return text
}

// clusterSentence says what Kubernetes says, and how often: of what it repeats, it keeps one event.
func (l *Logged) clusterSentence(e *Event) string {
	text, until, _ := strings.Cut(e.Text, " (until ")
	if kind, rest, ok := strings.Cut(text, ": "); ok && kind == strings.ToLower(kind) {
		text = rest
	}
	text = l.Name(e) + ": " + text + " " + e.when()
	if e.Requests > 1 && until != "" && e.N == 1 {
		text += fmt.Sprintf(", %d times until %s", e.Requests, strings.TrimSuffix(until, ")"))
	} else if e.Requests > 1 {
		text += fmt.Sprintf(" (%d times)", e.Requests)
	}
	return text
}
