package gpu

import "github.com/sgtrace/sgtrace/profile"

// Worst returns, for what a finding of this package says of all devices, the rank whose device
// spent the largest part of its time on that, and the kind of work that shows it. "" is no rank.
func (g *GPUs) Worst(topic string) (rank string, shows profile.Class) {
	shows = profile.ClassCompute
	of := func(d *GPU) int64 { return d.Activity.Idle.Total() }
	switch topic {
	case "communication":
		shows = profile.ClassCommunication
	case "copies", "pageable copies":
		shows = profile.ClassMemory
	}
	if shows != profile.ClassCompute {
		of = func(d *GPU) int64 { return d.Exposed(shows) }
	}
	most := 0.0
	for i := range g.GPUs {
		d := &g.GPUs[i]
		if share := float64(of(d)) / float64(max(1, d.Length())); share > most {
			most, rank = share, d.Rank
		}
	}
	return rank, shows
}
