package telemetry

import (
	"slices"

	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
)

// A Meter is whose requests histograms and counters count: those of a server, or of one of its DP ranks. vLLM labels its own with the engine,
// while SGLang's tokenizer counts for all schedulers.
type Meter struct {
	Server int32 // index into Set.Servers
	Place  int32 // index into Set.Places; Whole is the server
}

// Whole is the place of a Meter of a whole server.
const Whole = -1

// WholeOf returns the meter of a server.
func WholeOf(server int32) Meter { return Meter{server, Whole} }

// metersOf returns the meters of each server: one for each of its DP ranks if the histograms of latencies name several, or else itself.
func (l *Logged) metersOf() [][]Meter {
	of := make([][]Meter, len(l.Set.Servers))
	for server := range of {
		var places []int32
		named := true
		for i := range l.counts()[server].histograms {
			if h := &l.counts()[server].histograms[i]; h.Metric != series.QueueTime && slices.Contains(latencies, h.Metric) { // schedulers measure queues
				named = named && l.Set.Places[h.Place].Rank.DP != trace.NoRank.DP
				if !slices.Contains(places, h.Place) {
					places = append(places, h.Place)
				}
			}
		}
		if !named || len(places) < 2 {
			places = []int32{Whole}
		}
		of[server] = order.Each(places, func(place int32) Meter { return Meter{int32(server), place} })
	}
	return of
}

// Meters returns the meters of all servers.
func (l *Logged) Meters() []Meter { return slices.Concat(l.meters()...) }

// Shared returns the meters that count the requests of several ranks, of which no lines tell.
func (l *Logged) Shared() []Meter {
	return order.Only(l.Meters(), func(m Meter) bool {
		ranks := l.RanksOf(m)
		return len(ranks) > 1 && !slices.ContainsFunc(ranks, func(r *Rank) bool { return !r.Scraped })
	})
}

// MeterOf returns the meter that counts the requests of a rank. own reports that it counts no others.
func (l *Logged) MeterOf(r *Rank) (m Meter, own bool) {
	if m = (Meter{r.Server, r.Place}); slices.Contains(l.meters()[r.Server], m) {
		return m, true
	}
	return WholeOf(r.Server), l.IsAlone(r)
}

// RanksOf returns the ranks whose requests a meter counts.
func (l *Logged) RanksOf(m Meter) (list []*Rank) {
	for i := range l.Ranks {
		if r := &l.Ranks[i]; r.Server == m.Server && (m.Place == Whole || m.Place == r.Place) {
			list = append(list, r)
		}
	}
	return list
}

// holds reports whether a meter includes what is counted at a place of its server.
func (m Meter) holds(place int32) bool { return m.Place == Whole || m.Place == place }
