package finders

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/analyze/straggler"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// Hosts stop together if most of them are in no call for most of the time in which the others wait for one of them, and begin and end that at about
// one time. Then the one that is waited for is late by no fault of its own: it was the one that had not launched the collective yet.
const (
	mostHosts = 3.0 / 4 // of the ranks of a group
	mostOfIt  = 0.5     // of the moment
	atOneTime = 0.1     // of how long it lasts
)

// A standstill is when hosts of a group are in no call at once: so many of all.
type standstill struct {
	from, to   trace.Time
	hosts, all int
}

// A silence is the time in which the host of a rank is in no call, the longest around a moment.
type silence struct {
	around, longest straggler.Moment
	calls           []straggler.Moment
}

// findStandstills finds out where a rank is late in a few collectives because most hosts stop at once.
func (w *waits) findStandstills(m *Measured) {
	set, byRank, judge := m.Of.Profiles, map[int32][]*silence{}, []func(){}
	for i := range w.late {
		l := &w.late[i]
		if !l.byHost() || !isFew(l.spell.Moments) {
			continue
		}
		group := w.waited.Groups[l.group].Set
		for _, at := range l.spell.Moments {
			of, half := map[int32]*silence{}, (at.To-at.From)/2
			for _, rank := range group {
				of[rank] = &silence{around: straggler.Moment{From: at.From - half, To: at.To + half}}
				byRank[rank] = append(byRank[rank], of[rank])
			}
			judge = append(judge, func() {
				if stop, ok := together(of, group[l.spell.Rank], at); ok {
					l.stood = append(l.stood, stop)
				}
			})
		}
	}
	if len(judge) == 0 {
		return
	}
	for _, stream := range set.Streams {
		stream.Calls(func(c *profile.Call) bool {
			for _, s := range byRank[c.Rank] {
				offset := trace.Time(set.ClockOffsetOf(c.Rank))
				if from, to := c.Start-offset, c.End-offset; from < s.around.To && to > s.around.From {
					s.calls = append(s.calls, straggler.Moment{From: from, To: to})
				}
			}
			return true
		})
	}
	for _, of := range judge {
		of()
	}
}

// together returns when most hosts are in no call at once with that of a rank that is late at a moment.
func together(of map[int32]*silence, late int32, at straggler.Moment) (standstill, bool) {
	for _, s := range of {
		s.find()
	}
	own := of[late].longest
	stop, lasts := standstill{from: own.From, to: own.To, all: len(of)}, float64(own.To-own.From)
	for _, s := range of {
		if x := s.longest; float64(max(x.From-own.From, own.From-x.From, x.To-own.To, own.To-x.To)) <= atOneTime*lasts {
			stop.hosts++
		}
	}
	return stop, lasts >= mostOfIt*float64(at.To-at.From) && stop.hosts > 1 && float64(stop.hosts) >= mostHosts*float64(len(of))
}

// find finds the longest time between two calls.
func (s *silence) find() {
	slices.SortFunc(s.calls, func(a, b straggler.Moment) int { return cmp.Compare(a.From, b.From) })
	until := trace.Time(0)
	for i, c := range s.calls {
		if x := &s.longest; i > 0 && c.From-until > x.To-x.From {
			*x = straggler.Moment{From: until, To: c.From}
		}
		until = max(until, c.To)
	}
}

// standstills tells of the longest time in which most hosts stop at once while the others wait for a rank.
func (l *lateRank) standstills() string {
	if len(l.stood) == 0 {
		return ""
	}
	longest := slices.MaxFunc(l.stood, func(a, b standstill) int { return cmp.Compare(a.to-a.from, b.to-b.from) })
	who := fmt.Sprintf("all %d ranks", longest.all)
	if longest.hosts < longest.all {
		who = fmt.Sprintf("%d of %d ranks", longest.hosts, longest.all)
	}
	return fmt.Sprintf("; for %s of that, from %s on, the hosts of %s are in no call at once: %s is only the one that had not launched yet",
		words.Nearly(order.Sum(l.stood, func(s standstill) int64 { return int64(s.to - s.from) })), words.At(longest.from, words.ClockLayout), who, l.name)
}

// joinHost makes one finding of late ranks if they are all ranks of one host, and no others:
// then the host is slow, or something that its ranks share. The text is that of the first one.
func (m *Measured) joinHost(found []finding.Finding) []finding.Finding {
	set := m.Of.Profiles
	if len(found) < 2 || set == nil || len(set.Placements) != len(set.Ranks) {
		return found
	}
	late := order.Set(order.EachRow(found, func(f *finding.Finding) string { return f.Rank }))
	host, elsewhere := "", false
	for i, name := range set.Ranks {
		switch at := set.Placements[i].Host; {
		case !late[name]:
			elsewhere = elsewhere || at != ""
		case at == "" || host != "" && at != host:
			return found
		default:
			host = at
		}
	}
	for i, name := range set.Ranks {
		if set.Placements[i].Host == host && !late[name] {
			return found
		}
	}
	if !elsewhere || len(late) != len(found) || slices.ContainsFunc(found, func(f finding.Finding) bool { return f.Since != found[0].Since || f.Until != found[0].Until }) {
		return found
	}
	f := found[0]
	f.Text, f.At = fmt.Sprintf("all %d ranks of %s keep those of other hosts waiting: %s", len(found), host, f.Text), place.Device(host)
	for i := range found[1:] {
		f.Cost += found[1+i].Cost
		f.Lost += found[1+i].Lost
		f.Evidence = append(f.Evidence, finding.Sentence("%s", found[1+i].Text))
	}
	return []finding.Finding{f}
}
