package change

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/change/work"
	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/internal/changepoint"
	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

const (
	// minPaceFactor is the smallest slowdown worth reporting.
	minPaceFactor = 1.02
	// minFasterFactor is the smallest speedup worth reporting.
	minFasterFactor = 1.1
	// explained is how far off the modeled effect of work size may be, as a fraction of itself:
	// the cost of larger batches is measured, and is not exactly linear.
	explained = 1
	// paceLevel is the fraction of the error probability that paces get: effects outside their
	// model make them look more certain than they are.
	paceLevel = 0.02
	// alsoLevel is the error probability of a course that another rank has at the same time.
	alsoLevel = 0.001
	// fullUnits is the number of tokens at which a request has half of the largest possible weight.
	fullUnits = 10
)

// paceSearches returns the searches for servers that became slower or faster at their work, whatever the amount of it:
// at once, one server after the other, gradually, or for a while.
func (w *observer) paceSearches(level float64) (searches []func() []Shift) {
	for _, kind := range []struct {
		stage string
		means request.Meaning
		list  []work.Pace
	}{{decodePace, request.Answering, w.paces.Decode}, {prefillPace, request.Prefilling, w.paces.Prefill}} {
		for _, role := range request.ServingRoles {
			var of []*work.Pace
			for i := range kind.list {
				if w.ranks.Places[kind.list[i].Rank].Role == role {
					of = append(of, &kind.list[i])
				}
			}
			searches = append(searches, func() []Shift {
				found := w.coursesOf(of, role, level)
				for i := range found {
					found[i].Stage, found[i].Means = kind.stage, kind.means
				}
				return found
			})
		}
	}
	return searches
}

// A paceCourse is how the paces of some ranks changed over time: their speeds, or, if ofTimes, their times per piece. A
// time that grows linearly is not a speed that falls linearly.
type paceCourse struct {
	changepoint.Course
	ofTimes bool
}

// speed returns the average speed between two times, relative to the usual one.
func (c *paceCourse) speed(from, to float64) float64 {
	const slowest = 0.05 // a floor: a lower speed is implausible
	level := c.Level + c.Of(from, to)
	if c.ofTimes {
		return 1 / max(level, slowest)
	}
	return max(level, slowest*c.Level)
}

// before returns the speed before the course departs from it.
func (c *paceCourse) before() float64 {
	if c.ofTimes {
		return 1 / c.Level
	}
	return c.Level
}

// by returns the fraction by which a piece is faster than before the change; negative if slower.
func (c *paceCourse) by(x *work.Piece, w *observer) float64 {
	if c.Of(w.seconds(x.From), w.seconds(x.To)) == 0 {
		return 0
	}
	return c.speed(w.seconds(x.From), w.seconds(x.To))/c.before() - 1
}

// slowFirst returns a course that steps to a higher speed as one that is slow until then.
func (c *paceCourse) slowFirst() *paceCourse {
	return &paceCourse{changepoint.Course{Shape: changepoint.Spell, Level: c.Level + c.Size, Size: -c.Size, End: c.At}, c.ofTimes}
}

// faster reports whether the course departs toward a higher speed.
func (c *paceCourse) faster() bool { return c.Size > 0 != c.ofTimes }

// coursesOf finds how the paces of a role's lead ranks changed: first in their speeds, and if
// nothing is found there, in their times, which may grow linearly.
func (w *observer) coursesOf(of []*work.Pace, role request.Role, level float64) []Shift {
	level *= paceLevel / 2 // two searches
	for _, ofTimes := range [...]bool{false, true} {
		if found := w.searchCourses(of, ofTimes, level); len(found) > 0 {
			return w.paceShifts(found, role, len(of))
		}
	}
	return nil
}

// A foundCourse is a course that all given paces have jointly, or that one pace has alone.
type foundCourse struct {
	paceCourse
	of    []*work.Pace
	joint bool
}

// begin returns when the course departs from its first level, in seconds.
func (f *foundCourse) begin() float64 {
	switch f.Shape {
	case changepoint.Ramped, changepoint.Settling:
		return 0
	}
	return f.At
}

// paceShifts turns the courses found for a role into shifts, in order of their beginning. Each
// costs only what it adds to those before it.
func (w *observer) paceShifts(found []foundCourse, role request.Role, all int) (joint []Shift) {
	slices.SortStableFunc(found, func(a, b foundCourse) int { return cmp.Compare(a.begin(), b.begin()) })
	var alone []Shift
	for i := range found {
		f := &found[i]
		shift := w.paceShift(f.of, &f.paceCourse, role, all)
		if f.joint {
			joint = append(joint, shift)
		} else {
			alone = append(alone, shift)
		}
		if len(found) > 1 {
			f.take(w)
		}
	}
	return append(joint, oneAfterAnother(alone, role)...)
}

// take removes a course from the pieces of work that have it.
func (f *foundCourse) take(w *observer) {
	for _, p := range f.of {
		for i := range p.Pieces {
			x := &p.Pieces[i]
			left := 1 + f.by(x, w)
			x.NS, x.Ratio = x.NS*left, x.Ratio*left
		}
	}
}

// searchCourses finds the course that all paces share, or else the courses of single paces.
func (w *observer) searchCourses(of []*work.Pace, ofTimes bool, level float64) (found []foundCourse) {
	series := order.Each(of, func(p *work.Pace) []changepoint.Observation { return w.speeds(p, ofTimes) })
	together, each := changepoint.Courses(series)
	for _, speeds := range series {
		memory.Free(speeds)
	}
	is := func(c changepoint.Course, of []*work.Pace, joint bool, level float64) bool {
		x := foundCourse{paceCourse{c, ofTimes}, of, joint}
		if c.P > level || ofTimes && !isGradual(c.Shape) || !w.isPace(of, &x.paceCourse) {
			return false
		}
		found = append(found, x)
		return true
	}
	if is(together, of, true, level) {
		return found
	}
	for i := range each {
		for _, c := range each[i] {
			is(c, of[i:i+1], false, level)
		}
	}
	sure := len(found)
	for i := range each {
		for _, c := range each[i] {
			if c.P > level && slices.ContainsFunc(found[:sure], func(f foundCourse) bool { return f.of[0] != of[i] && f.meets(&c) }) {
				is(c, of[i:i+1], false, max(level, alsoLevel))
			}
		}
	}
	return found
}

// meets reports whether another rank has the same course at the same time. Then nobody has to look for it there.
func (c *paceCourse) meets(o *changepoint.Course) bool {
	return c.Shape == o.Shape && (c.Size > 0) == (o.Size > 0) && c.First <= o.Last && o.First <= c.Last
}

// seconds converts t to seconds since the beginning of the search.
func (w *observer) seconds(t trace.Time) float64 { return float64(t-w.from) / 1e9 }

// time is the inverse of seconds, within the searched time.
func (w *observer) time(s float64) trace.Time {
	return min(max(w.from+trace.Time(s*1e9), w.from), w.to)
}

// isPace reports whether a course is large enough, and explained neither by load nor by errors in the modeled cost of larger work.
func (w *observer) isPace(of []*work.Pace, c *paceCourse) bool {
	switch c.Shape {
	case changepoint.Steady, changepoint.Waving: // load has waves, servers don't
		return false
	case changepoint.Ramped, changepoint.Bent, changepoint.Sloped, changepoint.Settling:
		if c.faster() || w.hidesLoad(of, c) {
			return false // servers don't become faster gradually, nor settle at a lower speed
		}
	}
	least := minPaceFactor
	if c.faster() {
		least = minFasterFactor
	}
	by := func(x *work.Piece) float64 { return c.by(x, w) }
	if c.faster() && !alike(of, by) {
		return false
	}
	if !c.faster() && followsContext(of, by) {
		return false
	}
	return w.outweighs(of, by, least) && (c.faster() || c.Shape == changepoint.Settling || !w.courseFollowsLoad(of, c, by))
}

// alike reports whether work was about equally large while it was faster as otherwise, if pieces have sizes: the median
// of one side is within the middle nine tenths of the other. Pieces of other sizes don't show how fast the server would
// be at the same load: while prompts are cached, prefills compute a few tokens, otherwise thousands.
func alike(of []*work.Pace, by func(*work.Piece) float64) bool {
	var sizes [2][]float64 // while it was faster, and otherwise
	for _, p := range of {
		for i := range p.Pieces {
			k := 0
			if by(&p.Pieces[i]) <= 0 {
				k = 1
			}
			if p.Sized {
				sizes[k] = memory.Append(sizes[k], p.Pieces[i].Burden[0])
			}
		}
	}
	if len(sizes[0]) == 0 || len(sizes[1]) == 0 {
		return true
	}
	among := func(x, y []float64) bool {
		middle := x[len(x)/2]
		return middle >= y[len(y)/20] && middle <= y[len(y)-1-len(y)/20]
	}
	slices.Sort(sizes[0])
	slices.Sort(sizes[1])
	return among(sizes[0], sizes[1]) || among(sizes[1], sizes[0])
}

// followsContext reports whether longer contexts describe the time per token about as well as a course that makes pieces faster by a
// fraction, and whose shape and times were chosen to fit.
// A slow server has more requests at a time, and so more context, but no more context per request: only what exceeds that counts. Costs
// that are measured among pieces of about the same time miss this, as contexts grow for longer than that.
func followsContext(of []*work.Pace, by func(*work.Piece) float64) bool {
	const about = 0.5
	const request, context = 0, 1 // burdens
	course, contexts := 0.0, 0.0  // variance that each explains
	for _, p := range of {
		if p.Sized {
			return false
		}
		requests := p.Mean(func(x *work.Piece) float64 { return x.Burden[request] })
		each := distribution.Ratio(p.Mean(func(x *work.Piece) float64 { return x.Burden[context] }), requests)
		course += p.Explains(func(x *work.Piece) float64 { return 1 / (1 + by(x)) })
		contexts += p.Explains(func(x *work.Piece) float64 { return x.Burden[context] - each*x.Burden[request] })
	}
	return contexts > about*course
}

// outweighs reports whether work changed its speed by the factor least or more, given the fraction by which each piece
// is faster, and by more than the expected time changed along with it, because of the size of the work.
func (w *observer) outweighs(of []*work.Pace, by func(*work.Piece) float64, least float64) bool {
	speeds, burdens := 0.0, 0.0 // summed over paces: range of the speed, and of the expected time that goes with it
	for _, p := range of {
		ns, course := memory.Make[float64](len(p.Pieces)), memory.Make[float64](len(p.Pieces))
		sum, mean := 0.0, 0.0
		for i := range p.Pieces {
			x := &p.Pieces[i]
			ns[i], course[i] = x.NS/x.Ratio, by(x)
			sum, mean = sum+ns[i], mean+course[i]
		}
		sum, mean = sum/float64(len(ns)), mean/float64(len(ns))
		covariance, variance, least, most := 0.0, 0.0, math.Inf(1), math.Inf(-1)
		for i := range ns {
			covariance += (ns[i]/sum - 1) * (course[i] - mean)
			variance += (course[i] - mean) * (course[i] - mean)
			least, most = min(least, course[i]), max(most, course[i])
		}
		if variance == 0 {
			continue
		}
		speeds += most - least
		burdens += math.Abs(covariance/variance) * (most - least)
	}
	return speeds >= (1-1/least)*float64(len(of)) && speeds >= explained*burdens
}

// hidesLoad reports whether requests that never end occupy servers for longer than the others,
// while a pace changes slowly. Behind a hang, or at the end of the files, they pile up: their
// part in the steps is unknown, and the requests that do end are those with short answers.
func (w *observer) hidesLoad(of []*work.Pace, c *paceCourse) bool {
	from, known, hidden := w.from, trace.Time(0), trace.Time(0)
	if c.Shape == changepoint.Bent || c.Shape == changepoint.Sloped {
		from = w.time(c.At)
	}
	for _, p := range of {
		for i := range p.Pieces {
			known += max(0, min(p.Pieces[i].To, w.to)-max(p.Pieces[i].From, from))
		}
		for _, since := range w.paces.Endless[p.Rank] {
			hidden += max(0, w.to-max(since, from))
		}
	}
	return hidden > known
}

// paceShift returns the shift that a course means for the ranks that have it.
func (w *observer) paceShift(of []*work.Pace, c *paceCourse, role request.Role, all int) Shift {
	f := Shift{Metric: PaceChanged, Location: place.Location{Scope: place.WholeRole, Role: role}, Searched: true, Shape: c.Shape, P: c.P, Peers: all,
		Time: w.from, First: w.from, Last: w.from, Before: newLevel(0), After: newLevel(0)}
	usual := 0.0
	for _, p := range of {
		usual += p.Usual / float64(len(of))
		f.Ranks = append(f.Ranks, p.Rank)
		f.whole = f.whole || p.Whole
	}
	if len(of) == 1 && all > 1 {
		f.Location = w.ranks.EngineAt(of[0].Rank)
	}
	if len(of) == 1 {
		f.together = w.ranks.EngineRanks(of[0].Rank)
	}
	end := w.seconds(w.to)
	before, after := c.before(), c.Level+c.Size
	switch c.Shape {
	case changepoint.Ramped:
		after, f.Full = c.speed(end, end), w.to
		f.PerMinute = perMinute(before, after, end)
	case changepoint.Bent:
		f.Time, f.First, f.Last, f.Full = w.time(c.At), w.time(c.First), w.time(c.Last), w.to
		after = c.speed(end, end)
		f.PerMinute = perMinute(before, after, end-c.At)
	case changepoint.Sloped:
		f.Time, f.First, f.Last, f.Full = w.time(c.At), w.time(c.First), w.time(c.Last), w.time(c.End)
		after = c.speed(end, end)
	case changepoint.Settling:
		before, after = c.Level+c.Size, c.Level
		f.Until = w.time(3 * c.At) // when a twentieth of the difference remains
	case changepoint.Spell:
		f.Until = w.time(c.End)
		fallthrough
	default:
		f.Time, f.First, f.Last = w.time(c.At), w.time(c.First), w.time(c.Last)
	}
	least := 0.05 * c.before() // a floor: a lower speed is implausible
	f.Before.P50, f.After.P50 = int64(usual/max(before, least)), int64(usual/max(after, least))
	for _, p := range of {
		k, _ := slices.BinarySearchFunc(p.Pieces, f.Time, func(x work.Piece, t trace.Time) int { return cmp.Compare(x.From, t) })
		f.Before.N, f.After.N = f.Before.N+k, f.After.N+len(p.Pieces)-k
	}
	if c.Shape == changepoint.Stepped && c.faster() && 2*c.At < end {
		f.slowFrom = w.from
		c = c.slowFirst()
	}
	f.Extra = w.extra(of, c)
	if len(of) == 1 && (c.Shape == changepoint.Stepped || c.Shape == changepoint.Spell) {
		f.off = w.offBy(of[0], f.Time, f.Until)
	}
	return f
}

// perMinute returns the fraction by which a pace lengthens per minute.
func perMinute(before, after, seconds float64) float64 {
	return distribution.Ratio(before/max(after, 0.05*before)-1, seconds/60)
}

// oneAfterAnother merges the shifts of several servers that went the same way by the same amount: a rolling deployment,
// or something that made all of them slow for the same time.
func oneAfterAnother(found []Shift, role request.Role) []Shift {
	var out []Shift
	for _, f := range found {
		k := slices.IndexFunc(out, func(g Shift) bool {
			return (f.Shape == changepoint.Stepped || f.sameSpell(&g)) && g.Shape == f.Shape && g.rises() == f.rises() && f.byAsMuch(&g) && !slices.Contains(g.Ranks, f.Ranks[0])
		})
		if k < 0 {
			f.Steps = []PaceStep{{f.Location, f.Time, f.First, f.Last}}
			out = append(out, f)
			continue
		}
		g := &out[k]
		n := float64(len(g.Ranks))
		mean := func(x, y int64) int64 { return int64((float64(x)*n + float64(y)) / (n + 1)) }
		g.Before.P50, g.After.P50 = mean(g.Before.P50, f.Before.P50), mean(g.After.P50, f.After.P50)
		g.Before.N, g.After.N = g.Before.N+f.Before.N, g.After.N+f.After.N
		g.Ranks = append(g.Ranks, f.Ranks...)
		g.Steps = append(g.Steps, PaceStep{f.Location, f.Time, f.First, f.Last})
		g.Location = place.Location{Scope: place.WholeRole, Role: role}
		g.P = min(g.P, f.P)
		for r, ns := range f.Extra {
			g.Extra[r] += ns
		}
		slices.SortStableFunc(g.Steps, func(a, b PaceStep) int { return cmp.Compare(a.Time, b.Time) })
		g.Time, g.First, g.Last = g.Steps[0].Time, g.Steps[0].First, g.Steps[0].Last
	}
	return out
}

// sameSpell reports whether two spells may have begun at the same time, and ended at about the same time.
func (f *Shift) sameSpell(g *Shift) bool {
	const about = 10 // ends may differ by 1/about of the spell
	off := max(f.Until-g.Until, g.Until-f.Until)
	return f.Shape == changepoint.Spell && g.Shape == f.Shape && f.First <= g.Last && g.First <= f.Last && off*about <= f.Until-f.Time
}

// byAsMuch reports whether two paces may have changed by the same amount: a deployment does the same to all servers of one kind, and the
// model of their work is off by no more than a fraction of that.
func (f *Shift) byAsMuch(g *Shift) bool {
	const about, most, deviations = 1.25, 2, 3
	x, y := math.Abs(f.relative()), math.Abs(g.relative())
	return factor(x, y) <= about || factor(x, y) <= most && math.Abs(x-y) <= deviations*math.Hypot(f.off, g.off)
}

// offBy returns the standard error of the relative change of a pace that lasts from at to until (0: to the end); infinity if fewer than
// two pieces began on one side of it.
func (w *observer) offBy(p *work.Pace, at, until trace.Time) float64 {
	var sides [2][]float64
	for i := range p.Pieces {
		x, k := &p.Pieces[i], 0
		if x.From >= at && (until == 0 || x.From < until) {
			k = 1
		}
		sides[k] = memory.Append(sides[k], x.Ratio)
	}
	relative := func(x []float64) float64 {
		if len(x) < 2 {
			return math.Inf(1)
		}
		value, variance, _ := changepoint.Mean(x)
		return math.Sqrt(variance) / value
	}
	return math.Hypot(relative(sides[0]), relative(sides[1]))
}

// relative returns the fraction by which a pace lengthened.
func (f *Shift) relative() float64 {
	return distribution.Ratio(float64(f.After.P50-f.Before.P50), float64(f.Before.P50))
}

// extra returns how much longer the work for each request took because of the change, in ns, by request.
func (w *observer) extra(of []*work.Pace, c *paceCourse) map[int]float64 {
	extra := map[int]float64{}
	for _, p := range of {
		for i := range p.Pieces {
			x := &p.Pieces[i]
			if by := c.by(x, w); by != 0 {
				extra[x.Request] += (1 - x.Otherwise(1+by)) * x.NS * x.Units
			}
		}
	}
	return extra
}

// extraTimes returns how much time a longer pace cost each request, in ns.
func (f *Shift) extraTimes() map[int]int64 {
	times := make(map[int]int64, len(f.Extra))
	for r, ns := range f.Extra {
		times[r] = int64(max(0, ns))
	}
	return times
}

// extraTime returns how much longer all requests together took because of a change of pace, in ns.
func (f *Shift) extraTime() float64 {
	sorted := slices.Sorted(maps.Keys(f.Extra)) // float sums depend on the order
	return order.Sum(sorted, func(r int) float64 { return f.Extra[r] })
}
