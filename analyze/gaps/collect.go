package gaps

import (
	"cmp"
	"slices"
	"sort"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/gpu"
	"github.com/sgtrace/sgtrace/analyze/host"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// A Collector collects the gaps of all devices while they are measured.
type Collector struct {
	set   *profile.Set
	ranks [][]*deviceGaps // of each rank, its devices
	kept  []keptRank      // by rank, for Late
}

// Collect returns a collector for the devices of a set. Pass its Add to package gpu as [gpu.Options].Gaps.
func Collect(set *profile.Set) *Collector {
	return &Collector{set: set, ranks: make([][]*deviceGaps, len(set.Ranks))}
}

// deviceGaps are the gaps of a device.
type deviceGaps struct {
	device int32
	// late are the gaps that ended with a late launch, in order; only for these it matters what the
	// host did. parts are their parts. Both are packed except while the rank is measured.
	late     []lateGap
	parts    []part
	packed   packedGaps
	lateTime int64           // ns
	by       []host.ThreadID // threads of the calls that are to blame for parts
	// rest is the time of all other gaps, by reason.
	rest    [gpu.NumReasons]tally
	longest []longGap // of all, the longest first
}

// A lateGap is a gap that a late launch ended.
type lateGap struct {
	Gap      gpu.Gap
	launch   trace.Time // when the call began
	launched int64      // how long it took, ns
	parts    int32      // index of its first part
	thread   int32      // thread that launched: index into the threads of the rank
}

// unknownThread stands for the thread of a launch whose call is not in the streams.
const unknownThread = -1

// A part is a part of a late gap. It begins where the part before it ends.
type part struct {
	to     trace.Time
	by     int32 // thread of the call that is to blame: index into deviceGaps.by, or noCall
	reason gpu.Reason
}

const noCall = -1

// A longGap is one of the longest gaps of a device.
type longGap struct {
	Gap    gpu.Gap
	late   int32      // index among the late gaps, or notLate
	reason gpu.Reason // of most of it
	cause  cause      // of most of it, once it is known
}

const notLate = -1

// A tally is how long something took in total, in how many gaps, and the most in one gap, in ns; and
// how many samples show it.
type tally struct{ time, gaps, longest, samples int64 }

func (t *tally) add(o *tally) {
	t.time = distribution.AddTimes(t.time, o.time)
	t.gaps += o.gaps
	t.longest = max(t.longest, o.longest)
	t.samples += o.samples
}

// maxLongest is how many of the longest gaps of a device are kept.
const maxLongest = 100

// Add takes a gap. Gaps of one rank come one after the other, in order for each device.
func (c *Collector) Add(g *gpu.IdleGap) {
	devices := c.ranks[g.Rank]
	if n := len(devices); n == 0 || devices[n-1].device != g.Device {
		devices = append(devices, &deviceGaps{device: g.Device})
		c.ranks[g.Rank] = devices
	}
	d := devices[len(devices)-1]
	long := longGap{Gap: g.Gap, late: notLate}
	most := int64(-1)
	for i := range g.Parts {
		if p := &g.Parts[i]; p.Length() > most {
			long.reason, most = p.Reason, p.Length()
		}
	}
	if g.Late {
		long.late = int32(d.packed.gaps)
		d.addLate(g)
	} else {
		for i := range g.Parts {
			p := &g.Parts[i]
			d.rest[p.Reason].add(&tally{time: p.Length(), gaps: 1, longest: p.Length()})
		}
	}
	if n := len(d.longest); n == maxLongest && d.longest[n-1].Gap.Length() >= g.Length() {
		return
	}
	at, _ := slices.BinarySearchFunc(d.longest, g.Length()-1, func(l longGap, length int64) int { return cmp.Compare(length, l.Gap.Length()) })
	d.longest = slices.Insert(d.longest, at, long)
	d.longest = d.longest[:min(len(d.longest), maxLongest)]
}

func (d *deviceGaps) addLate(g *gpu.IdleGap) {
	d.lateTime = distribution.AddTimes(d.lateTime, g.Length())
	d.parts = d.parts[:0]
	for i := range g.Parts {
		p := &g.Parts[i]
		by := int32(noCall)
		if p.Called {
			by = d.blamed(host.ThreadID{PID: p.By.PID, TID: p.By.TID})
		}
		d.parts = append(d.parts, part{p.To, by, p.Reason})
	}
	d.packed.add(&lateGap{Gap: g.Gap, launch: g.Launch, launched: g.Launched}, d.parts)
}

// lateAt returns the index of the late gap that contains t, including its end but not its beginning, or
// else of the next one. near is a guess.
func (d *deviceGaps) lateAt(t trace.Time, near int) int {
	for i := near; i < min(near+2, len(d.late)); i++ {
		if g := &d.late[i]; g.Gap.From < t && t <= g.Gap.To {
			return i
		}
	}
	return sort.Search(len(d.late), func(i int) bool { return d.late[i].Gap.To >= t })
}

// blamed returns the index of a thread in by. Successive calls are mostly of the same thread.
func (d *deviceGaps) blamed(id host.ThreadID) int32 {
	if n := len(d.by); n == 0 || d.by[n-1] != id {
		d.by = append(d.by, id)
	}
	return int32(len(d.by) - 1)
}

// partsOf returns the parts of a late gap.
func (d *deviceGaps) partsOf(i int) []part {
	to := len(d.parts)
	if i+1 < len(d.late) {
		to = int(d.late[i+1].parts)
	}
	return d.parts[d.late[i].parts:to]
}

// spans are intervals in order that do not overlap.
type spans []gpu.Gap

// lateSpans returns when some device of a rank was in a late gap.
func lateSpans(devices []*deviceGaps) spans {
	n := order.Sum(devices, func(d *deviceGaps) int { return d.packed.gaps })
	all := make(spans, 0, n)
	for _, d := range devices {
		all = d.packed.spans(all)
	}
	slices.SortFunc(all, func(a, b gpu.Gap) int { return cmp.Compare(a.From, b.From) })
	joined := all[:0]
	for _, g := range all {
		if n := len(joined); n > 0 && g.From <= joined[n-1].To {
			joined[n-1].To = max(joined[n-1].To, g.To)
		} else {
			joined = append(joined, g)
		}
	}
	return joined
}

// after returns the first span that ends after an instant, len(s) if there is none. near is a guess:
// instants come roughly in order.
func (s spans) after(t trace.Time, near int) int {
	const tries = 8
	if near < len(s) && (near == 0 || s[near-1].To <= t) {
		for i := near; i < min(near+tries, len(s)); i++ {
			if s[i].To > t {
				return i
			}
		}
	}
	i, _ := slices.BinarySearchFunc(s, t, func(g gpu.Gap, t trace.Time) int {
		if g.To > t {
			return 1
		}
		return -1
	})
	return i
}
