package lifecycle

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// An idling is a time in which a server had nothing to do, and then went on with the same processes.
type idling struct {
	server   *server
	from, to trace.Time // from the end of its last request to the start of the next one
	missed   int        // requests that came to others of its role meanwhile
	chance   float64    // that none of them comes to it, by its share
}

// leftOut tells of servers that were not sent any requests for a while, again and again, though they had nothing to do: routers do not count on
// them then. Those of a role are one finding.
func (l *Lives) leftOut() (out []finding.Finding) {
	const several = 2
	for _, role := range request.ServingRoles {
		var of []idling
		for _, x := range l.observed.servers {
			if x.role == role && !l.observed.isRemnant(x) {
				of = append(of, l.observed.idlings(x)...)
			}
		}
		if list := farFrom(of); len(list) >= several {
			out = append(out, l.leftOutOf(role, list))
		}
	}
	return out
}

// idlings returns the times in which a server had nothing to do.
func (o *observer) idlings(x *server) (list []idling) {
	all := o.starts[x.role]
	for _, life := range x.lives {
		jobs := slices.Clone(life.jobs)
		slices.SortStableFunc(jobs, func(a, b job) int { return cmp.Compare(a.start, b.start) })
		if len(jobs) == 0 {
			continue
		}
		during := func(from, to trace.Time) int {
			lower, _ := slices.BinarySearch(all, from)
			upper, _ := slices.BinarySearch(all, to)
			return upper - lower
		}
		elsewhere := 1 - min(1, float64(len(jobs))/float64(max(1, during(life.first, life.last+1)))) // chance that a request comes to another one
		end := jobs[0].last
		for k := range jobs[1:] {
			j := &jobs[1+k]
			if !jobs[k].ended && jobs[k].last == 0 {
				end = max(end, j.start) // nobody knows what it does with that
			}
			if missed := during(end, j.start); missed > 0 {
				list = append(list, idling{x, end, j.start, missed, math.Pow(elsewhere, float64(missed))})
			}
			end = max(end, j.start, j.last)
		}
	}
	return list
}

// farFrom returns the times that are far longer than all others, counted in requests, and that no chance explains: none lies between.
func farFrom(list []idling) []idling {
	const far = 4
	slices.SortStableFunc(list, func(a, b idling) int { return cmp.Compare(b.missed, a.missed) })
	n := 0
	for i := range list {
		if list[i].chance*float64(len(list)) > byChance {
			break
		}
		if next := append(list, idling{missed: 1})[i+1].missed; list[i].missed >= far*max(1, next) {
			n = i + 1
		}
	}
	list = slices.Clone(list[:n])
	slices.SortStableFunc(list, func(a, b idling) int { return cmp.Compare(a.from, b.from) })
	return list
}

// leftOutOf tells of the servers of a role.
func (l *Lives) leftOutOf(role request.Role, list []idling) finding.Finding {
	first, last := list[0], list[len(list)-1]
	f := finding.Finding{At: first.server.at, Subkind: LeftOut, Confidence: finding.Likely, Since: first.from, Until: last.to}
	servers := order.Distinct(order.EachRow(list, func(e *idling) string { return name(&e.server.at) }))
	who := servers[0]
	if len(servers) > 1 {
		f.At = place.Location{Scope: place.WholeRole, Role: role}
		who = fmt.Sprintf("%d of %s", len(servers), l.serversOf(role))
	}
	missed := order.SumRows(list, func(e *idling) int64 { return int64(e.missed) })
	lengths := order.EachRow(list, func(e *idling) int64 { return int64(e.to - e.from) })
	from, to := words.Tenths(f.Since, f.Until)
	f.Text = fmt.Sprintf("%s got no requests for %s %d times between %s and %s, and had nothing to do: %s %s that came meanwhile (does a router consider %s unhealthy?)",
		who, words.Nearly(distribution.LowerMedian(lengths)), len(list), from, to, [...]string{"others had the", "the others had the"}[min(1, len(servers)-1)], words.Counted(int(missed), "request"),
		[...]string{"it", "them"}[min(1, len(servers)-1)])
	for _, e := range list {
		from, to := words.Tenths(e.from, e.to)
		f.Evidence = append(f.Evidence, finding.Sentence("%s did nothing from %s to %s, and went on with the same processes", name(&e.server.at), from, to))
	}
	return f
}
