package lifecycle

import (
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/request"
)

// deathsOf returns the deaths of a server, in order.
func (l *Lives) deathsOf(x *server) (list []*end) {
	for i := range l.deaths {
		if l.deaths[i].life.server == x {
			list = append(list, &l.deaths[i])
		}
	}
	return list
}

// died returns a finding about all deaths of a server, with when it was back.
func (l *Lives) died(deaths []*end) finding.Finding {
	first, last := deaths[0], deaths[len(deaths)-1]
	var lost []int
	for _, e := range deaths {
		lost = append(lost, e.requests()...)
	}
	lost = order.Distinct(lost)
	f := l.finding(first, Death, lost)
	f.Metric.Name = "requests lost"
	if next := l.next(last.life); next != nil {
		f.Until = next.first
	}
	const silence = "none of its processes shows any activity after that, and"
	switch {
	case len(deaths) > 1:
		from, to := words.Tenths(first.since, last.since)
		f.Text = fmt.Sprintf("%s died %d times between %s and %s; %s", name(&f.At), len(deaths), from, to, l.became(lost))
	case f.Until != 0:
		f.Text = fmt.Sprintf("%s died at %s: %s %s; it was back at %s", name(&f.At), first.when(), silence, l.became(lost), words.At(f.Until, words.TenthLayout))
	case first.refused:
		f.Text = fmt.Sprintf("%s died at %s: %s %s", name(&f.At), first.when(), silence, l.became(lost))
	default:
		f.Text = fmt.Sprintf("%s died or has hung since %s: %s %s", name(&f.At), first.when(), silence, l.became(lost))
	}
	for _, r := range l.restarts {
		if r.old.server == first.life.server {
			f.Evidence = append(f.Evidence, finding.Sentence("it served nothing from %s%s", r.period(), pids(r.old, r.new)))
		}
	}
	return f
}

// became says what happened to lost requests: "2 requests on it failed (HTTP 502) and 1 request in
// flight never ended".
func (l *Lives) became(lost []int) string {
	var reasons []string
	n := 0
	for _, i := range lost {
		if q := &l.set.Requests[i]; q.Status == request.Failed {
			reasons = append(reasons, l.set.Syms.Name(q.Reason))
			n++
		}
	}
	var parts []string
	if n > 0 {
		text := words.Counted(n, "request") + " on it failed"
		if slices.Sort(reasons); reasons[0] == reasons[n-1] && reasons[0] != "" {
			text += " (" + reasons[0] + ")"
		}
		parts = append(parts, text)
	}
	if rest := len(lost) - n; rest > 0 {
		parts = append(parts, words.Counted(rest, "request")+" in flight never ended")
	}
	return strings.Join(parts, " and ")
}

// usually is how often the next sign of a server, or the first one of a request there, comes within the
// time estimated for it.
const usually = 0.95

// pausesOf returns the times, in ns, between successive signs of the team. Only time counts in which it
// had jobs in flight that ended later.
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

// longestPause returns the longest of pausesOf.
func (t *team) longestPause() int64 {
	longest := int64(0)
	for pause := range t.pausesOf() {
		longest = max(longest, pause)
	}
	return longest
}

// nextSign returns for how long, in ns, a busy server of a role may have worked on after its last sign:
// if it stops at a random time, its last sign is usually no older than that.
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
	// Time within d of the last sign is all of each shorter pause, and d of each longer one.
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

// nextJob returns within how long a life usually gets its next request, in ns, if they arrive at
// random.
func (l *life) nextJob() int64 {
	return int64(-math.Log(1-usually) * float64(l.last-l.first) / float64(max(1, len(l.jobs))))
}

// intake returns within how long a server of a role usually shows the first sign of a request that it
// was sent, in ns.
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

// discountIntake moves the last sign of a team back to its last work, if since then it took in
// requests, at least this many of which wait for no other server, and did no work for any of them. It
// reports whether it did.
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

// refusals returns the requests that failed at each server, ascending: a gateway says that it sent them
// there and that they failed with an HTTP status of 500 or more. The gateway names servers by URL;
// requests that were answered show which server has which URL.
func (o *observer) refusals() map[*server][]int {
	servers := o.byURL()
	list := map[*server][]int{}
	for i := range o.set.AllRequests() {
		q := &o.set.Requests[i]
		if q.Status != request.Failed || !strings.HasPrefix(o.set.Syms.Name(q.Reason), "HTTP 5") {
			continue
		}
		o.set.EachURL(q, func(_ request.Role, url string) {
			if x := servers[url]; x != nil && (len(list[x]) == 0 || list[x][len(list[x])-1] != i) {
				list[x] = append(list[x], i)
			}
		})
	}
	return list
}

// byURL returns the servers by URL. A URL that stands for several servers has nil.
func (o *observer) byURL() map[string]*server {
	servers := map[string]*server{}
	o.set.EachServedURL(func(url string, proc int) {
		if o.lifeOf[proc] == nil {
			return
		}
		x := o.lifeOf[proc].server
		if other, known := servers[url]; known && other != x {
			x = nil
		}
		servers[url] = x
	})
	return servers
}
