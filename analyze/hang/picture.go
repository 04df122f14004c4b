package hang

import (
	"cmp"
	"slices"

	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/profile/recorder"
)

// pytorch returns a dump of each rank of which PyTorch tells, in the order of ranks: the last one of its flight
// recorder, and without one, what its watchdog printed. Both count collectives alike. Of several jobs with equal ranks,
// it is about the last one; the others are returned beside it. mixed tells that nothing tells them apart.
func pytorch(set *recorder.InFlight) (dumps []*recorder.FlightDump, others []*job, mixed bool) {
	all := order.Only(set.Dumps, func(d *recorder.FlightDump) bool { return d.By == recorder.FlightRecorder && d.Rank >= 0 })
	jobs, apart := jobsOf(all)
	recorded, watched := last(jobs[0].dumps, recorder.FlightRecorder), last(set.Dumps, recorder.Watchdog)
	for rank, d := range watched {
		if recorded[rank] == nil {
			recorded[rank] = d
		}
	}
	dumps = inOrder(recorded)
	nameRanks(dumps)
	return dumps, jobs[1:], !apart
}

// last returns the last dump of each rank by a recorder.
func last(dumps []*recorder.FlightDump, by recorder.Source) map[int32]*recorder.FlightDump {
	of := map[int32]*recorder.FlightDump{}
	for _, d := range dumps {
		if d.By == by && d.Rank >= 0 && (of[d.Rank] == nil || d.Time >= of[d.Rank].Time) {
			of[d.Rank] = d
		}
	}
	return of
}

func inOrder(of map[int32]*recorder.FlightDump) []*recorder.FlightDump {
	var list []*recorder.FlightDump
	for _, d := range of {
		list = append(list, d)
	}
	slices.SortFunc(list, func(a, b *recorder.FlightDump) int { return cmp.Compare(a.Rank, b.Rank) })
	return list
}

// nameRanks gives groups of which a log has the name alone the ranks that others tell: a dump of
// the flight recorder, or that the group is of all ranks, of which there are as many as the last one's number says.
func nameRanks(dumps []*recorder.FlightDump) {
	type name struct{ name, desc string }
	ranks := map[name][]int32{}
	for _, d := range dumps {
		for i := range d.Groups {
			if g := &d.Groups[i]; d.By == recorder.FlightRecorder && g.Ranks != nil {
				ranks[name{g.Name, g.Desc}] = g.Ranks
			}
		}
	}
	for _, d := range dumps {
		for i := range d.Groups {
			g := &d.Groups[i]
			if g.Ranks != nil || d.By != recorder.Watchdog {
				continue
			}
			switch known := ranks[name{g.Name, g.Desc}]; {
			case slices.Contains(known, d.Rank):
				g.Ranks = known
			case isWorld(g):
				g.Ranks = worldOf(dumps)
			}
		}
	}
}

// worldOf returns the ranks from 0 to the last one that anybody names.
func worldOf(dumps []*recorder.FlightDump) []int32 {
	most := int32(-1)
	for _, d := range dumps {
		most = max(most, d.Rank)
	}
	world := make([]int32, most+1)
	for i := range world {
		world[i] = int32(i)
	}
	return world
}

// isWorld reports whether a group is that of all ranks, as PyTorch calls it.
func isWorld(g *recorder.Group) bool { return g.Desc == "default_pg" || g.Desc == "" && g.Name == "0" }
