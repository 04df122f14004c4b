package missing

import (
	"fmt"
	"math"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// How long ranks have to be silent before that is more than a pause: longer than exporters
// hold spans back, and several times longer than ever before with requests in flight.
const (
	leastSilence = 5_000_000_000 // ns; the delay of OpenTelemetry's exporters
	usualPauses  = 3
)

// A Silence is a DP rank of a server, all its ranks together, from which nothing comes any
// more although there is something to do, while others go on: requests are in flight on it,
// or it was idle and later ones are stranded. One that has drained has neither; at the end
// of the dump nobody goes on.
type Silence struct {
	Where    place.Where // the lowest of its ranks
	Name     string      // "decode c94b1e02 DP1"
	Since    trace.Time  // the end of its last stage
	End      trace.Time  // of the dump
	Pause    int64       // ns: the longest before, with requests in flight
	InFlight []int       // indexes into Set.Requests
	Stranded []int       // without anything in flight, those that no rank has; see stranded.go
	Stage    string      // that ended last
}

// A group is the ranks that work side by side: those of a DP rank of a server.
type group struct {
	where  place.Where // the lowest
	ranks  map[int32]bool
	ends   []trace.Time // of all stages
	last   trace.Time
	stage  int // row that ended last
	closed []request.Interval
	open   []openPart
}

// An openPart has not ended on the group.
type openPart struct {
	request int
	last    trace.Time // of its stages
}

// FindSilences finds the groups that fell silent.
func FindSilences(s *request.Set) []Silence {
	w := &listener{RankSet: place.NewRankSet(s), ids: map[place.Where]int{}}
	w.listen()
	var out []Silence
	for _, g := range w.groups {
		if silence, ok := w.judge(g); ok {
			out = append(out, silence)
		}
	}
	return out
}

// A listener hears when each group did something.
type listener struct {
	*place.RankSet
	groups []*group
	ids    map[place.Where]int
	end    trace.Time
	// nobodys are the ends of finished parts that no rank tells of.
	nobodys  [request.Other + 1][]trace.Time
	arrivals []arrival
}

// groupOf returns the group of a rank.
func (w *listener) groupOf(rank int32) *group {
	key := w.Places[rank]
	key.Rank.TP, key.Rank.PP, key.Rank.EP, key.Label = -1, -1, -1, ""
	id, ok := w.ids[key]
	if !ok {
		id = len(w.groups)
		w.ids[key] = id
		w.groups = append(w.groups, &group{where: w.Places[rank], ranks: map[int32]bool{}, stage: request.None})
	}
	return w.groups[id]
}

// listen notes what the parts of all requests did on the groups.
func (w *listener) listen() {
	s := w.Set
	for i := range s.All() {
		if s.Kind(i) != request.Duplicate && !s.Implausible(i) {
			w.end = max(w.end, s.Row(i).End)
		}
	}
	w.EachPart(func(p *request.Part) {
		lead := s.Lead(p)
		if lead == request.None && p.Root != request.None {
			w.nobodys[p.Role] = append(w.nobodys[p.Role], p.End)
		}
		if lead == request.None {
			w.arrive(p, nil)
		} else if rank := w.Of[s.Threads[lead].Proc]; rank != request.None {
			g := w.groupOf(rank)
			w.hear(g, p)
			w.arrive(p, g)
		}
	})
}

// hear notes what a part did on the group that its lead rank is of.
func (w *listener) hear(g *group, p *request.Part) {
	s := w.Set
	last, ended := trace.Time(0), p.Root != request.None
	for _, t := range p.Threads {
		th := &s.Threads[t]
		rank := w.Of[th.Proc]
		if rank == request.None {
			continue
		}
		g.ranks[rank] = true
		ended = ended || th.Row != request.None
		s.EachStage(s.StagesOf(t), func(i int) {
			row := s.Row(i)
			if s.Implausible(i) {
				return
			}
			g.ends = append(g.ends, row.End)
			last = max(last, row.End)
			if row.End >= g.last {
				g.last, g.stage = row.End, i
			}
		})
	}
	if ended {
		g.closed = append(g.closed, request.Interval{From: p.Start, To: p.End})
	} else if s.Requests[p.Request].Status == request.Unfinished {
		g.open = append(g.open, openPart{p.Request, last})
	}
}

// judge tells whether a group fell silent.
func (w *listener) judge(g *group) (Silence, bool) {
	x := Silence{Where: g.where, Name: w.name(&g.where), Since: g.last, End: w.end, Stage: w.stageName(g)}
	silent := int64(w.end - g.last)
	if silent < leastSilence || w.goesOn(g) {
		return x, false
	}
	x.Pause = g.longestPause()
	if silent >= usualPauses*x.Pause {
		recent := g.last - trace.Time(max(usualPauses*x.Pause, leastSilence/10))
		for _, p := range g.open {
			if p.last >= recent {
				x.InFlight = append(x.InFlight, p.request)
			}
		}
		slices.Sort(x.InFlight)
	}
	if len(x.InFlight) == 0 {
		x.Stranded = w.stranded(g)
	}
	return x, len(x.InFlight) > 0 || len(x.Stranded) > 0
}

// goesOn reports whether parts ended after the last stage of a group on it, or on nobody
// knows which rank of its role: its spans are lost then.
func (w *listener) goesOn(g *group) bool {
	later := func(end trace.Time) bool { return end > g.last+trace.Time(request.SameBatch) }
	return slices.ContainsFunc(g.closed, func(iv request.Interval) bool { return later(iv.To - leastSilence/10) }) ||
		slices.ContainsFunc(w.nobodys[g.where.Role], later)
}

// stageName is the stage of a group that ended last.
func (w *listener) stageName(g *group) string {
	if g.stage == request.None {
		return ""
	}
	return w.Set.Name(g.stage)
}

// longestPause is for how long nothing ended on the group at most while parts that ended
// later were in flight on it, in ns.
func (g *group) longestPause() int64 {
	busy := request.NewCoverage(g.closed)
	slices.Sort(g.ends)
	longest := int64(0)
	for i := 1; i < len(g.ends); i++ {
		longest = max(longest, busy.Overlap(g.ends[i-1], g.ends[i]))
	}
	return longest
}

// name names a group in a sentence: by its DP rank where there are others.
func (w *listener) name(p *place.Where) string {
	name := words.JoinNonEmpty(" ", p.Role.String(), p.ServerName())
	if p.Rank.DP >= 0 {
		name += fmt.Sprintf(" DP%d", p.Rank.DP)
	}
	return name
}

// Text says who is silent, since when, and what it keeps waiting.
func (x *Silence) Text() string {
	what := words.Counted(len(x.InFlight), "request") + " in flight"
	if len(x.InFlight) == 0 {
		what = "nothing in flight; " + words.Counted(len(x.Stranded), "later request") + " reached no rank"
	}
	return fmt.Sprintf("%s silent since %s, %s, last stage %s", x.Name, words.At(x.Since, words.TenthLayout), what, x.Stage)
}

// SilenceFindings tells of silent ranks. Requests that nobody has worked for since then and
// that have no end may wait for them, too.
func SilenceFindings(s *request.Set, silences []Silence) ([]finding.Finding, finding.Judged) {
	judged := finding.Judged{What: "ranks that fell silent", Of: "request", N: len(s.Requests), Needed: 1}
	var out []finding.Finding
	for i := range silences {
		out = append(out, silences[i].finding(s))
	}
	return out, judged
}

func (x *Silence) finding(s *request.Set) finding.Finding {
	waiting := 0
	for r := range s.AllRequests() {
		if q := &s.Requests[r]; q.Status == request.Unfinished && q.Start >= x.Since {
			waiting++
		}
	}
	f := finding.Finding{At: x.Where, Since: x.Since, Text: x.Text(), Affected: finding.AffectedOf(s, append(x.InFlight, x.Stranded...)),
		Cost:   min(1, float64(len(x.InFlight)+waiting)/float64(len(s.Requests))),
		Metric: finding.Metric{Name: "requests in flight", Unit: table.Number, Before: math.NaN(), After: float64(len(x.InFlight))}}
	went := fmt.Sprintf("others went on for %s", words.Nearly(int64(x.End-x.Since)))
	if x.Pause > 0 {
		went += fmt.Sprintf("; before, its longest pause with requests in flight was %s", words.Nearly(x.Pause))
	}
	f.Evidence = append(f.Evidence, finding.Sentence("%s", went))
	if waiting > 0 {
		f.Evidence = append(f.Evidence, finding.Sentence("%s that came later have no end either", words.Counted(waiting, "request")))
	}
	return f
}
