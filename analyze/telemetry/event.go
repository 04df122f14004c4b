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

// An Event is something that a server reported. The same event on several ranks, or repeated, is one Event.
type Event struct {
	Kind        series.InstantKind
	Server      int32
	First, Last trace.Time
	N           int // number of occurrences
	Requests    int // number of requests affected; N if the log does not say
	Places      []int32
	Text        string
	Stack       string // of the first occurrence; "" is none
	File        string
	Line        int64
}

// Apart is the time between occurrences from which they are separate events.
const Apart = 5 * 60 * 1e9

// readyApart is the same for servers that become ready: a later one was started again.
const readyApart = 60e9

// group merges instants into events.
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
		if x.Kind == series.Complaint { // one line stands for several
			n = int(x.Count)
		}
		e.Last, e.N, e.Requests = x.Time, e.N+n, e.Requests+int(x.Count)
		if !slices.Contains(e.Places, x.Place) {
			e.Places = append(e.Places, x.Place)
		}
	}
	slices.SortStableFunc(l.Events, func(a, b Event) int { return cmp.Compare(a.First, b.First) })
}

// Name says where an event happened: on a rank, on several ranks of a server, or on a server.
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

// At returns where an event happened.
func (l *Logged) At(e *Event) place.Location {
	if len(e.Places) == 1 {
		return l.Where(e.Places[0])
	}
	s := &l.Set.Servers[e.Server]
	return place.At(Role(s), Host(s), trace.NoRank, l.Names)
}

// when says when an event happened.
func (e *Event) when() string {
	if e.First == 0 {
		return "at an unknown time"
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

// clusterSentence says what Kubernetes reported, and how often. Kubernetes keeps a single event for repetitions.
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
