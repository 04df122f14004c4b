package gpu

import (
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/internal/changepoint"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/trace"
)

// heldFrom is how long an idle device must delay a kernel that it could start, ns, to count as holding
// it back: usually it starts one within 10 us of the end of its launch.
const heldFrom = 100_000

// Held are the kernels that a device could have started, and did not for [heldFrom] or longer: their
// launch had ended, and nothing recorded ran on the device, so there was no work of it, and no event
// behind such work, to wait for.
type Held struct {
	N, Time int64 // Time is in ns
	Late    int64 // of N, those launched while nothing ran
	Median  int64 // ns per kernel
	// Starts is how many kernels found the device idle, and Else the median time that those not held
	// back took to start, ns.
	Starts, Else int64
	Since        trace.Time // when it began to hold kernels back; 0 is from the beginning, or only now and then
	SinceN       int64      // of N, since then
	SinceStarts  int64      // of Starts
}

// outsideCalls are parts of the names of calls that let kernels wait for something other than work of
// the device: for a value in memory, a function of the host, or another process or API, such as what was drawn on buffers before
// these are mapped for kernels.
var outsideCalls = []string{"WaitValue", "GraphicsMapResources", "BatchMemOp", "LaunchHostFunc", "StreamAddCallback", "ExternalSemaphore", "IpcOpenEventHandle"}

// waitsOutside reports whether a call of a name is one of outsideCalls.
func waitsOutside(name string) bool {
	return slices.ContainsFunc(outsideCalls, func(part string) bool { return strings.Contains(name, part) })
}

// A launchKind is what a call launches.
type launchKind uint8

const (
	launchesNothing launchKind = iota
	launchesKernel
	launchesGraph
	numLaunchKinds
)

// launchKindOf returns what a call of a name launches.
func launchKindOf(name string) launchKind {
	switch {
	case strings.Contains(name, "GraphLaunch"):
		return launchesGraph
	case strings.Contains(name, "LaunchKernel"), strings.Contains(name, "LaunchCooperativeKernel"):
		return launchesKernel
	}
	return launchesNothing
}

// launchCount is how many calls launch something, and how many recorded rows were launched, by kind.
type launchCount struct{ calls, rows [numLaunchKinds]int64 }

func (c *launchCount) add(o *launchCount) {
	for kind := range c.calls {
		c.calls[kind] += o.calls[kind]
		c.rows[kind] += o.rows[kind]
	}
}

// missing reports whether launched work is missing from the files: more than may have been under way
// when the recording ended.
func (c *launchCount) missing() bool {
	const most = 0.05
	lost := c.calls[launchesKernel] - c.rows[launchesKernel]
	return float64(lost) > most*float64(c.calls[launchesKernel]) || c.calls[launchesGraph] > 0 && c.rows[launchesGraph] == 0
}

// Unran is work that calls launched and the files lack: they were cut off, the profiler ran out of
// space, or it cannot record the device. Ranks that captured a graph do not count, as what they launch
// meanwhile does not run.
type Unran struct {
	Launches int64 // calls that each launch a kernel
	Lost     int64 // of Launches, those without a kernel
}

func (u *Unran) add(o Unran) { u.Launches, u.Lost = u.Launches+o.Launches, u.Lost+o.Lost }

// unran returns the work that calls of a rank launched and the files lack.
func (r *rankWork) unran() Unran {
	calls := r.launched.calls[launchesKernel]
	if len(r.marks) > 0 {
		return Unran{}
	}
	return Unran{calls, max(0, calls-r.launched.rows[launchesKernel])}
}

// A Cut is a rank for which the files lack a tenth of the launched kernels or more. Their time looks
// like idle time.
type Cut struct {
	Rank string
	Unran
}

// blind marks the devices of a rank if the files lack all of its kernels.
func (g *GPUs) blind(rank int32, of Unran) {
	own := func(d *GPU) bool { return d.RankIndex == rank }
	if g.any(func(d *GPU) bool { return own(d) && (d.Kernels > 0 || of.Lost == 0 && d.Called > 0) }) {
		return
	}
	for i := range g.GPUs {
		if d := &g.GPUs[i]; own(d) {
			d.Blind = d.Rows > d.Migrated
		}
	}
}

// Seen are the devices that are not blind; all of them if all are.
func (g *GPUs) Seen() *GPUs {
	isSeen := func(d *GPU) bool { return !d.Blind }
	if n := order.CountRows(g.GPUs, isSeen); n == 0 || n == len(g.GPUs) { // no copy of thousands of devices for nothing
		return g
	}
	rest := *g
	rest.GPUs = order.OnlyRows(g.GPUs, isSeen)
	return &rest
}

// Coverage is the time of devices whose kernels are known; zero, which is all, if none is blind.
func (g *GPUs) Coverage() (c finding.Coverage) {
	blind := g.Total(func(d *GPU) int64 {
		if d.Blind {
			return d.Length()
		}
		return 0
	})
	if blind > 0 {
		c = finding.Coverage{Of: "GPU time", Known: g.Length() - blind, All: g.Length()}
	}
	return c
}

// Uncalled are the blind ranks without calls: whether they launched kernels is not known.
func (g *GPUs) Uncalled() (ranks []string) {
	for i := range g.GPUs {
		if d := &g.GPUs[i]; d.Blind && !slices.ContainsFunc(g.Cuts, func(c Cut) bool { return c.Rank == d.Rank }) {
			ranks = append(ranks, d.Rank)
		}
	}
	return order.Distinct(ranks)
}

// cut adds a rank to Cuts if it lost that much, with the devices that ran its work.
func (g *GPUs) cut(rank string, of Unran, devices []*gpuPart) {
	for _, d := range devices {
		of.Lost -= d.gpu.Rows - d.gpu.Migrated - d.gpu.Called // rows without a known call: these may have launched them
	}
	if len(devices) > 0 && of.Lost > 0 && 10*of.Lost >= of.Launches {
		g.Cuts = append(g.Cuts, Cut{rank, of})
	}
}

// A heldSweep finds the kernels that a device holds back.
type heldSweep struct {
	// never is set if kernels may wait for something other than their device, or for work that was not
	// recorded.
	never bool
	// least is how far the clocks of host and device are apart, ns: no kernel starts earlier after the
	// end of its launch.
	least  int64
	starts int
	held   []heldStart
	others distribution.Sample // ns until the others started
}

// A heldStart is a kernel that was held back.
type heldStart struct {
	at    int        // index among the starts
	ready trace.Time // when the device could have started it
	ns    int64      // until it did
	late  bool       // it was launched while nothing ran
}

// newHeldSweep returns the sweep over a device of a rank.
func newHeldSweep(of *rankWork, part *gpuPart) heldSweep {
	return heldSweep{never: of.outside || of.launched.missing() || len(of.gpus) > 1, least: max(0, part.least)}
}

// readyAt returns when the device could have started r, which ended a gap that began at from.
func (s *heldSweep) readyAt(r *gpuRow, from trace.Time) trace.Time {
	return max(from, r.launch+trace.Time(r.launched+s.least))
}

// add takes a row that found the device idle, and reports whether it was held back. late means that it was launched
// while the device was idle, and first that no kernel of its name ran before, so that it may load its code.
func (s *heldSweep) add(r *gpuRow, ready trace.Time, late, first bool) bool {
	if s.never || first || r.flags&rowKernel == 0 || r.flags&rowGraph != 0 {
		return false
	}
	ns := int64(r.start - ready)
	if s.starts++; ns < heldFrom {
		s.others.Add(max(0, ns), distribution.NoLimit)
		return false
	}
	s.held = append(s.held, heldStart{s.starts - 1, ready, ns, late})
	return true
}

// settle sums up what was held back.
func (s *heldSweep) settle() Held {
	h := Held{N: int64(len(s.held)), Starts: int64(s.starts)}
	if h.N == 0 {
		return h
	}
	var times, others []int64
	for i := range s.held {
		times = append(times, s.held[i].ns)
		h.Time = distribution.AddTimes(h.Time, s.held[i].ns)
		if s.held[i].late {
			h.Late++
		}
	}
	h.Median = distribution.LowerMedian(times)
	if s.others.Each(func(v int64) { others = append(others, v) }); len(others) > 0 {
		h.Else = distribution.LowerMedian(others)
	}
	if first := s.since(); first >= 0 {
		h.Since, h.SinceN, h.SinceStarts = s.held[first].ready, int64(len(s.held)-first), int64(s.starts-s.held[first].at)
	}
	return h
}

// maxTrials is how many starts are tested one by one; if there are more, several are taken together.
const maxTrials = 1 << 16

// since returns the index in held from which the device often holds kernels back, and hardly ever
// before; -1 if there is none.
func (s *heldSweep) since() int {
	together := 1 + s.starts/maxTrials
	is := make([]bool, s.starts/together+1)
	for i := range s.held {
		is[s.held[i].at/together] = true
	}
	count := changepoint.Count(is)
	for _, c := range changepoint.Shares(is, changepoint.Options{Alpha: 0.01}) {
		const hardly, most = 0.1, 0.8
		first := slices.IndexFunc(s.held, func(h heldStart) bool { return h.at/together >= c.At })
		if first >= 0 && count.Share(0, c.At) <= hardly*count.Share(c.At, len(is)) && float64(len(s.held)-first) >= most*float64(len(s.held)) {
			return first
		}
	}
	return -1
}
