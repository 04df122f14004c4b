package routing

import (
	"slices"

	"github.com/sgtrace/sgtrace/series"
)

// logs adds what logs say of the balancedness of passes.
func (r *Routing) logs(set *series.Set) {
	if set == nil {
		return
	}
	for i, x := range set.List {
		if x.Metric != series.Balancedness || set.N(i) == 0 {
			continue
		}
		server := &set.Servers[set.Places[x.Place].Server]
		s := &Source{Name: server.Name, Hot: -1, P: 1, Passes: set.N(i), Lowest: 1, EP: int(server.EP)}
		if s.EP > 0 {
			s.By = "log"
		}
		for v := range set.Each(i) {
			b := v.Value / 100
			s.balance, s.times = append(s.balance, b), append(s.times, v.Time)
			s.Logged += b / float64(s.Passes)
			s.Lowest = min(s.Lowest, b)
		}
		s.First = s.times[0]
		if k := slices.IndexFunc(set.List, func(o series.Series) bool { return o.Metric == series.ExpertTokens && o.Place == x.Place }); k >= 0 {
			for v := range set.Each(k) {
				s.Tokens += int64(v.Value)
			}
		}
		r.Sources = append(r.Sources, s)
	}
}
