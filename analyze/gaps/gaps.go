package gaps

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/gpu"
	"github.com/sgtrace/sgtrace/analyze/host"
	"github.com/sgtrace/sgtrace/analyze/profilewalk"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/internal/parallel"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// Options say how causes are listed.
type Options struct {
	ByRank   bool       // one list for each rank
	From, To trace.Time // the window that gaps were collected in; 0 is open
	Longest  int        // how many of the longest gaps to list; 0 is [maxLongest]
	// Each takes every part of a late gap: its cause, and when the gap began. It is called for several
	// ranks at once; equal causes of a rank are the same pointer. nil is nobody.
	Each func(rank int32, c *Cause, gap trace.Time, ns int64)
	// Brief measures only what findings need. It does not read the stacks of calls, which are the
	// largest tables of an export. Where host wait is too small a part of Length, the time of all
	// devices in ns, it does not read samples of threads, or when these had cores, either.
	Brief  bool
	Length int64
	// Around names what a device ran in a CUDA graph before and after one of the longest gaps; "" if
	// that is in no graph. It may be nil.
	Around func(rank string, device int32, from, to trace.Time) (before, after string)
	// Keep keeps the parts of late gaps for [Collector.Late].
	Keep bool
	// Runs are the devices of each run, for [Gaps.Of], if there are several.
	Runs []*gpu.GPUs
}

// Gaps are the gaps of some devices by what the host did. Times are ns, sums over devices.
type Gaps struct {
	Causes []Cause // the longest time first
	// Drained is the time that followed calls that let a device run dry, by call: the [gpu.AfterSync]
	// time of Causes, seen from its other end.
	Drained []Cause
	Longest []Gap // the longest first
	Idle    int64 // all gaps
	Late    int64 // gaps that a late launch ended: host wait
	// Recorded says which kinds of frames were recorded, in gaps or elsewhere.
	Recorded host.RecordedFrames

	saw    host.RecordedThreads
	turns  turns
	pauses []pause                  // by rank, device and time
	stills []pause                  // likewise; see rankWork
	ranks  []string                 // names
	ranges map[rangeOf][]trace.Time // when ranges began, in order
	export bool                     // some inputs are exports of Nsight Systems
	used   int                      // number of ranks that used devices

	byRank, several, none bool // several, none: there are several devices, or no device

	runs map[int32]*Gaps // by rank, the gaps of its run
}

// Of returns the gaps of the run that a rank belongs to, or all gaps if there is only one run.
func (g *Gaps) Of(rank int32) *Gaps {
	if run := g.runs[rank]; run != nil {
		return run
	}
	return g
}

// A Cause is why devices were idle, and what the thread did that kept them waiting. Names are "" where
// the stack has no such frame.
type Cause struct {
	Rank     string // "" where ranks are pooled
	Reason   gpu.Reason
	Activity host.Activity
	// Call is a call into CUDA or the operating system. Operator is the one that the code asked for,
	// Function the Python function of a library that Frame calls, Frame the innermost function of the
	// code itself, and Range the innermost range.
	Call, Operator, Function, Frame, Range string
	Other                                  string // what another thread did meanwhile
	Pause                                  bool   // the thread began and ended nothing for far longer than it takes to launch
	Samples                                int64  // that show this
	Time                                   int64
	Gaps                                   int64 // that have a part of it
	LongestPart                            int64 // in one gap
	all                                    int64 // Gaps.Idle
}

// A Gap is one of the longest gaps, with the cause of most of it.
type Gap struct {
	Gap    gpu.Gap
	Device int32
	Cause
	Before, After string // what the same CUDA graph ran before and after it; "" if it is in no graph
}

// Measure finds the causes of the collected gaps. It reads every stream once.
func (c *Collector) Measure(opt Options) *Gaps {
	late := make([]spans, len(c.ranks))
	parallel.Each(len(late), func(i int) { late[i] = lateSpans(c.ranks[i]) })
	streams := make([]*rankHosts, len(c.set.Streams))
	seen := !opt.Brief || distribution.Fraction(c.late(), opt.Length) >= ofThing
	profilewalk.EachStream(c.set, func(i int, s profile.Stream) {
		streams[i] = readHosts(s, late, &opt)
		if seen {
			c.readObserved(s, streams[i])
		}
		if !opt.Brief {
			c.readBacktraces(s, streams[i])
		}
	})
	hosts := joinHosts(streams, len(c.ranks))
	ranks := make([]rankWork, len(hosts))
	if c.kept = nil; opt.Keep {
		c.kept = make([]keptRank, len(hosts))
	}
	parallel.Each(len(ranks), func(i int) {
		ranks[i] = rankWork{host: &hosts[i], names: host.NewNames(c.set.Syms)}
		if opt.Each != nil {
			var rows []*Cause // by number
			ranks[i].each = func(number int32, gap trace.Time, ns int64) {
				for n := len(rows); n <= int(number); n++ {
					row := c.row(&ranks[i].causes.keys[n])
					rows = append(rows, &row)
				}
				opt.Each(int32(i), rows[number], gap, ns)
			}
		}
		if opt.Keep {
			ranks[i].kept = &c.kept[i]
		}
		ranks[i].measure(c.ranks[i])
		ranks[i].host.threads, ranks[i].names = nil, nil
	})
	g := c.sumUp(ranks, &opt)
	for _, of := range streams {
		g.Recorded.Join(&of.has)
	}
	if len(opt.Runs) > 1 {
		g.runs = map[int32]*Gaps{}
		for _, of := range opt.Runs {
			var run []int32
			for i := range of.GPUs {
				run = order.With(run, of.GPUs[i].RankIndex)
			}
			part := c.sumUpRun(ranks, run, &opt)
			part.Recorded = g.Recorded
			for _, rank := range run {
				g.runs[rank] = part
			}
		}
	}
	return g
}

// sumUpRun lists the results of the ranks of a run.
func (c *Collector) sumUpRun(all []rankWork, run []int32, opt *Options) *Gaps {
	of, ranks, nobody := &Collector{set: c.set, ranks: make([][]*deviceGaps, len(c.ranks))}, make([]rankWork, len(all)), new(rankHost)
	for i := range ranks {
		ranks[i].host = nobody
		if slices.Contains(run, int32(i)) {
			ranks[i], of.ranks[i] = all[i], c.ranks[i]
		}
	}
	return of.sumUp(ranks, opt)
}

// late is the time of all gaps that late launches ended, in ns.
func (c *Collector) late() (ns int64) {
	for _, devices := range c.ranks {
		for _, d := range devices {
			ns = distribution.AddTimes(ns, d.lateTime)
		}
	}
	return ns
}

// devices returns the number of devices. Processes that used none are ranks, too.
func (c *Collector) devices() (n int) {
	return order.Sum(c.ranks, func(devices []*deviceGaps) int { return len(devices) })
}

// sumUp lists the results of all ranks.
func (c *Collector) sumUp(ranks []rankWork, opt *Options) *Gaps {
	g := &Gaps{Late: c.late(), byRank: opt.ByRank, none: c.devices() == 0, several: c.devices() > 1, export: c.set.Exports}
	for i := range ranks {
		if len(c.ranks[i]) > 0 {
			g.used++
		}
		h := ranks[i].host
		g.saw.Join(&h.saw)
		g.turns.join(&ranks[i].turns)
	}
	g.pauses, g.ranks = c.joinPauses(ranks, func(w *rankWork) []pause { return w.pauses }), c.set.Ranks
	g.stills = c.joinPauses(ranks, func(w *rankWork) []pause { return w.stills })
	if len(g.pauses) > 0 {
		g.ranges = c.rangesOf(ranks)
	}
	g.Causes = c.list(ranks, opt.ByRank, func(w *rankWork) *totals { return &w.causes })
	g.Drained = c.list(ranks, opt.ByRank, func(w *rankWork) *totals { return &w.drained })
	for i := range g.Causes {
		g.Idle = distribution.AddTimes(g.Idle, g.Causes[i].Time)
	}
	for _, list := range [][]Cause{g.Causes, g.Drained} {
		for i := range list {
			list[i].all = g.Idle
		}
	}
	g.Longest = c.longest(cmp.Or(opt.Longest, maxLongest))
	for i := range g.Longest {
		if l := &g.Longest[i]; opt.Around != nil {
			l.Before, l.After = opt.Around(l.Rank, l.Device, l.Gap.From, l.Gap.To)
		}
	}
	return g
}

// list makes rows of sums, of each rank or of all together.
func (c *Collector) list(ranks []rankWork, byRank bool, of func(*rankWork) *totals) []Cause {
	var rows []Cause
	add := func(rank string, all *totals) {
		for n := range all.sums {
			row, sum := c.row(&all.keys[n]), &all.sums[n]
			row.Rank, row.Time, row.Gaps, row.LongestPart, row.Samples = rank, sum.time, sum.gaps, sum.longest, sum.samples
			rows = append(rows, row)
		}
	}
	var pool totals
	for i := range ranks {
		if byRank {
			add(c.set.Ranks[i], of(&ranks[i]))
			continue
		}
		for n, all := 0, of(&ranks[i]); n < len(all.sums); n++ {
			pool.join(&all.keys[n], &all.sums[n].tally)
		}
	}
	add("", &pool)
	slices.SortFunc(rows, func(a, b Cause) int {
		return cmp.Or(cmp.Compare(b.Time, a.Time), strings.Compare(a.Rank, b.Rank), cmp.Compare(a.Reason, b.Reason), cmp.Compare(a.Activity, b.Activity),
			strings.Compare(a.Call, b.Call), strings.Compare(a.Operator, b.Operator), strings.Compare(a.Function, b.Function),
			strings.Compare(a.Frame, b.Frame), strings.Compare(a.Range, b.Range), strings.Compare(a.Other, b.Other), strings.Compare(a.pauses(), b.pauses()))
	})
	return rows
}

// row names a cause.
func (c *Collector) row(key *cause) Cause {
	name := func(s trace.Sym) string {
		if s == 0 {
			return ""
		}
		return c.set.Syms.Name(s)
	}
	at := &key.at
	return Cause{Reason: key.reason, Activity: at.did, Call: name(at.call), Operator: name(at.operator), Function: name(at.function),
		Frame: name(at.frame), Range: name(at.span), Other: name(key.other), Pause: key.pause}
}

// longest lists the longest gaps of all devices.
func (c *Collector) longest(most int) []Gap {
	var list []Gap
	for rank, devices := range c.ranks {
		for _, d := range devices {
			for i := range d.longest {
				l := &d.longest[i]
				if l.late == notLate {
					l.cause = cause{reason: l.reason, at: site{did: host.OnDevice}}
				}
				g := Gap{Gap: l.Gap, Device: d.device, Cause: c.row(&l.cause)}
				g.Rank = c.set.Ranks[rank]
				list = append(list, g)
			}
		}
	}
	slices.SortStableFunc(list, func(a, b Gap) int {
		return cmp.Or(cmp.Compare(b.Gap.Length(), a.Gap.Length()), cmp.Compare(a.Gap.From, b.Gap.From))
	})
	return list[:min(len(list), most)]
}

// mostRanks is the share of ranks whose hosts must stand still at once. One that does may be at work,
// but that most do is no coincidence, unless all of them are in the same Python function.
const mostRanks = 3.0 / 4

// nobody is the rank, and the device, of a pause that several ranks share.
const nobody = -1

// stops returns when the hosts of most ranks stand still at once, in order, each time as its longest pause; the
// smallest number of ranks in any of them; and the total time, ns. It returns nil if there are none, or only one rank.
func (g *Gaps) stops() (list []pause, fewest int, ns int64) {
	if g.used < 2 {
		return nil, 0, 0
	}
	all := slices.Clone(g.stills)
	slices.SortStableFunc(all, func(a, b pause) int { return cmp.Compare(a.at, b.at) })
	fewest = g.used
	for from, to := 0, 0; from < len(all); from = to {
		// Those from..to all overlap, by more than half.
		until, ranks, time, longest, working := all[from].at+trace.Time(all[from].ns), map[int32]bool{}, int64(0), &all[from], all[from].in != 0
		for to = from; to < len(all) && 2*int64(until-all[to].at) > max(longest.ns, all[to].ns); to++ {
			p := &all[to]
			until, ranks[p.rank], time = min(until, p.at+trace.Time(p.ns)), true, distribution.AddTimes(time, p.ns)
			working = working && p.in == all[from].in
			if p.ns > longest.ns {
				longest = p
			}
		}
		if n := len(ranks); !working && n >= 2 && float64(n) >= mostRanks*float64(g.used) {
			stop := *longest
			stop.rank, stop.device = nobody, nobody
			list, fewest, ns = append(list, stop), min(fewest, n), distribution.AddTimes(ns, time)
		}
	}
	return list, fewest, ns
}

// standing is the suspect that the hosts of most ranks stand still at once. Its time is 0 if they do not.
func (g *Gaps) standing() suspect {
	stops, fewest, ns := g.stops()
	s := suspect{rank: standstill, table: "gaps", time: ns}
	for i := range g.Causes {
		if c := &g.Causes[i]; c.counts() && ownWork(c.Reason) && silent(c.Activity) {
			s.rows = append(s.rows, c)
		}
	}
	if len(stops) == 0 || s.rows == nil {
		return suspect{}
	}
	slices.SortStableFunc(s.rows, func(a, b *Cause) int { return cmp.Compare(b.LongestPart, a.LongestPart) })
	who := fmt.Sprintf("all %d ranks", g.used)
	if g.used == 2 {
		who = "both ranks"
	}
	if fewest < g.used {
		who = fmt.Sprintf("at least %d of %d ranks", fewest, g.used)
	}
	s.text = fmt.Sprintf("is %s of %s at once, in which no launching thread recorded anything: %s", words.Counted(len(stops), "pause"), who, g.pauseWords(stops))
	return s
}
