package lifecycle

import (
	"iter"
	"math"
	"slices"

	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/request"
)

// usually is how often the next sign of a server, or the first one of a request there, comes
// within the time that is told for it.
const usually = 0.95

// pausesOf are the times, in ns, between two signs of the team while jobs were in flight on
// it that ended later.
func (t *team) pausesOf() iter.Seq[int64] {
	busy := request.NewCoverage(t.closed)
	slices.Sort(t.ends)
	return func(yield func(int64) bool) {
		for i := 1; i < len(t.ends); i++ {
			if !yield(busy.Overlap(t.ends[i-1], t.ends[i])) {
				return
			}
		}
	}
}

// longestPause is the longest of them.
func (t *team) longestPause() int64 {
	longest := int64(0)
	for pause := range t.pausesOf() {
		longest = max(longest, pause)
	}
	return longest
}

// nextSign is for how long a server of a role that has something to do may have gone on after
// its last sign, in ns: when it ceases at any time, the last sign is usually not older.
func (o *observer) nextSign(role request.Role) int64 {
	var pauses []int64
	sum := 0.0
	for _, t := range o.teams() {
		if t.life.server.role == role {
			for pause := range t.pausesOf() {
				pauses = memory.Append(pauses, pause)
				sum += float64(pause)
			}
		}
	}
	slices.Sort(pauses)
	// The time within a span d of a sign is that of the shorter pauses, and d in each longer one.
	shorter := 0.0
	for i, pause := range pauses {
		longer := float64(len(pauses) - i)
		if shorter+longer*float64(pause) >= usually*sum {
			return int64((usually*sum - shorter) / longer)
		}
		shorter += float64(pause)
	}
	return 0
}

// nextJob is how long it takes usually until a life gets the next request, in ns, if they come
// at random.
func (l *life) nextJob() int64 {
	return int64(-math.Log(1-usually) * float64(l.last-l.first) / float64(max(1, len(l.jobs))))
}

// intake is how long it takes usually until a server of a role shows the first sign of a
// request that it was sent, in ns.
func (o *observer) intake(role request.Role) int64 {
	var times []int64
	for _, x := range o.servers {
		for _, l := range x.lives {
			for k := range l.jobs {
				j := &l.jobs[k]
				if x.role == role && j.first > j.start {
					times = memory.Append(times, int64(j.first-j.start))
				}
			}
		}
	}
	if len(times) == 0 {
		return 0
	}
	slices.Sort(times)
	return times[int(usually*float64(len(times)-1))]
}

// discountIntake makes the last work of a team its last sign, if it took in so many requests
// later and did nothing for any of them, though none waits for another server. It reports
// whether it did.
func (t *team) discountIntake(least int) bool {
	stuck := 0
	for k := range t.life.jobs {
		j := &t.life.jobs[k]
		if j.team != t.number || j.start <= t.worked {
			continue
		}
		if j.ended {
			return false
		}
		if !j.blocked {
			stuck++
		}
	}
	if t.worked == 0 || t.worked == t.last || stuck < least {
		return false
	}
	t.last, t.stage = t.worked, t.work
	return true
}
