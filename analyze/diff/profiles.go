package diff

import (
	"slices"

	"github.com/sgtrace/sgtrace/analyze/diff/compare"
	"github.com/sgtrace/sgtrace/analyze/diff/setup"
	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/gpu"
	"github.com/sgtrace/sgtrace/analyze/overtime"
	"github.com/sgtrace/sgtrace/analyze/profilewalk"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// perStep is what totals of kernels are divided by: the best kind of steps that both captures have.
type perStep uint8

const (
	perSecond       perStep = iota // no steps: equal numbers of launches, see sameWork
	perPart                        // parts of steps: forward.decode
	perProfilerStep                // ProfilerStep#7
	perServerStep                  // a step of a server
	numPer
)

func (p perStep) String() string { return [...]string{"capture", "forward pass", "step", "step"}[p] }

// levelOf returns the kind of step that a label is of.
func levelOf(k *profilewalk.StepLabel) perStep {
	switch {
	case k.Part:
		return perPart
	case k.OfServer():
		return perServerStep
	}
	return perProfilerStep
}

// A diffStep is an annotated step.
type diffStep struct {
	start trace.Time
	dur   int64
	rank  int32
	kind  profilewalk.StepLabel
}

// commonStep returns the best kind of steps that both captures have.
func commonStep(before, after *Collected) perStep {
	for per := perServerStep; per > perSecond; per-- {
		if before.work[per] != nil && after.work[per] != nil {
			return per
		}
	}
	return perSecond
}

// readSteps returns the steps of all ranks, each once.
func readSteps(set *profile.Set, window *profilewalk.Options) []diffStep {
	streams := make([][]diffStep, len(set.Streams))
	profilewalk.EachStream(set, func(i int, s profile.Stream) {
		ranks := profilewalk.ReadSteps(set, s, window)
		for rank := range ranks {
			for _, step := range ranks[rank].Settle() {
				if !step.Again {
					streams[i] = append(streams[i], diffStep{step.Start, distribution.Between(step.Start, step.End), int32(rank), step.StepLabel})
				}
			}
		}
	})
	return slices.Concat(streams...)
}

// Kinds of a ByName of work.
const (
	workKernel = iota
	workCopy
	workCall
	numWork
)

// workKinds are the kinds of rows for these.
var workKinds = [numWork]Kind{workKernel: Kernel, workCopy: Copy, workCall: HostWait}

// collectProfiles reads the steps, kernels, and copies of all ranks, and whatever else is
// asked for. It returns how many ranks have any.
func (d *Collected) collectProfiles(capture *Capture, window *profilewalk.Options) int {
	set := capture.Profiles
	steps := readSteps(set, window)
	own, cut := cutProfiles(set, window, steps)
	pieces := d.captures.Pieces(cut)
	var work *stepWork
	if len(steps) > 0 {
		if work = findWork(set, window, steps, own, cut); work != nil {
			d.hostAhead = d.hostAhead || work.ahead
		}
	}
	d.side.StepPieces = pieces.N()
	d.side.widen(own.First, own.Last)
	streams := make([]*profilewalk.ByName[diffGroup], len(set.Streams))
	launches := make([]launching, len(set.Streams))
	profilewalk.EachStream(set, func(i int, s profile.Stream) {
		streams[i] = d.readWork(set, i, s, window, pieces, work, &launches[i])
	})
	d.setup = setup.Join(d.setup, graphSetting(launches))
	names, seen := withoutHosts(set.Ranks), make([]bool, len(set.Ranks))
	for _, by := range streams {
		for i, key := range by.Keys {
			seen[key.Rank] = seen[key.Rank] || key.Kind != workCall
			d.put(diffKey{workKinds[key.Kind], set.Syms.Name(key.Name), names[key.Rank]}, &by.Groups[i])
		}
	}
	var ranks []string
	for rank, any := range seen {
		if any {
			ranks = append(ranks, names[rank])
		}
	}
	d.profileRanks = append(d.profileRanks, slices.DeleteFunc(slices.Clone(ranks), func(name string) bool { return slices.Contains(d.profileRanks, name) })...)
	d.side.Ranks = int64(len(d.profileRanks))
	d.addGPUs(capture, window, pieces, work, names)
	d.addCollectives(set, window, pieces, names)
	if capture.Operators {
		d.addOperators(set, window, pieces, names)
	}
	if capture.Gaps {
		d.addGaps(set, window, pieces, names)
	}
	d.addShares(own, cut, pieces, ranks)
	for i := range steps {
		d.addStep(&steps[i], names[steps[i].rank], pieces)
		if work != nil && work.periods[i] >= 0 {
			d.addPeriod(&steps[i], work.periods[i], names[steps[i].rank], pieces)
		}
	}
	return len(ranks)
}

// launching is whether a stream launched CUDA graphs, and whether it launched single kernels.
type launching struct{ graphs, kernels bool }

// graphSetting returns whether work was launched as CUDA graphs; nil if no launches were recorded.
func graphSetting(streams []launching) []setup.Setting {
	switch {
	case slices.ContainsFunc(streams, func(l launching) bool { return l.graphs }):
		return []setup.Setting{{Name: "CUDA graphs", Before: "launched"}}
	case slices.ContainsFunc(streams, func(l launching) bool { return l.kernels }):
		return []setup.Setting{{Name: "CUDA graphs", Before: "none"}}
	}
	return nil
}

// readWork reads the kernels and copies of one stream, and the host calls that wait for devices.
func (d *Collected) readWork(set *profile.Set, number int, s profile.Stream, window *profilewalk.Options, pieces *compare.Pieces, work *stepWork, launches *launching) *profilewalk.ByName[diffGroup] {
	by := profilewalk.NewByName[diffGroup](set)
	put := func(e *profile.Event, kind uint8, piece int) *diffGroup {
		g := by.Of(e.Rank, e.Name, kind)
		g.add(piece, pieces.N(), e.Dur(), d.in)
		return g
	}
	add := func(e *profile.Event, kind uint8) *diffGroup { // nil if it is left out
		switch {
		case !window.Keeps(e):
		case work == nil:
			return put(e, kind, pieces.At(e.Start))
		default:
			if piece, ok := work.pieceOf(number, e, pieces); ok {
				return put(e, kind, piece)
			}
		}
		return nil
	}
	for k := range s.Kernels {
		if g := add(&k.Event, workKernel); g != nil {
			g.blocks.Add(k.Grid)
		}
	}
	for c := range s.Copies {
		add(&c.Event, workCopy)
	}
	waits := map[trace.Sym]bool{}
	whole, single := profilewalk.GraphLaunches(set.Syms), profilewalk.NamesWith(set.Syms, "LaunchKernel")
	for c := range s.Calls {
		if window.Keeps(&c.Event) {
			launches.graphs = launches.graphs || whole.Of(c.Name)
			launches.kernels = launches.kernels || single.Of(c.Name)
		}
		holds := order.Memo(waits, c.Name, func() bool { return gpu.Holds(set.Syms.Name(c.Name)) })
		if holds && window.Keeps(&c.Event) && (work == nil || c.Start >= work.first && c.Start <= work.last) {
			put(&c.Event, workCall, pieces.At(c.Start))
		}
	}
	return by
}

// cutProfiles cuts a capture into pieces with about the same number of steps of the best kind, or of the same length if
// there are none. A kernel whose launch is unknown belongs to the piece in which it begins.
func cutProfiles(set *profile.Set, window *profilewalk.Options, steps []diffStep) (own Side, cut *compare.Pieces) {
	if len(steps) == 0 {
		own.First, own.Last = boundsOfKernels(set, window)
		return own, compare.CutTime(own.First, own.Last, compare.MaxPieces)
	}
	best := perSecond
	for i := range steps {
		best = max(best, levelOf(&steps[i].kind))
	}
	var starts []trace.Time
	ofRank := make([]int, len(set.Ranks))
	for i := range steps {
		if s := &steps[i]; levelOf(&s.kind) == best {
			starts = append(starts, s.start)
			ofRank[s.rank]++
			own.widen(s.start, s.start+trace.Time(s.dur))
		}
	}
	return own, compare.CutEvenly(starts, min(compare.MaxPieces, slices.Max(ofRank)))
}

// boundsOfKernels returns when the first kernel and the last kernel began.
func boundsOfKernels(set *profile.Set, window *profilewalk.Options) (first, last trace.Time) {
	spans := make([]Side, len(set.Streams))
	profilewalk.EachStream(set, func(i int, s profile.Stream) {
		for k := range s.Kernels {
			if window.Keeps(&k.Event) {
				spans[i].widen(k.Start, k.Start)
			}
		}
	})
	var all Side
	for _, s := range spans {
		if s.Last != 0 {
			all.widen(s.First, s.Last)
		}
	}
	return all.First, all.Last
}

// addShares adds the length of every piece, as a share of the capture, for all ranks together and for each.
func (d *Collected) addShares(own Side, cut, pieces *compare.Pieces, ranks []string) {
	if d.work[perSecond] == nil {
		d.work[perSecond] = diffUnits{}
	}
	bounds := slices.Concat([]trace.Time{own.First}, cut.Starts, []trace.Time{own.Last})
	for i := range cut.Own() {
		piece, length := pieces.At(bounds[i]), distribution.Fraction(int64(bounds[i+1]-bounds[i]), max(1, int64(own.Last-own.First)))
		for _, rank := range ranks {
			d.work[perSecond].add(rank, piece, pieces.N(), length)
			d.work[perSecond].add("", piece, pieces.N(), length)
		}
	}
}

// addPeriod adds how long a step takes on the device.
func (d *Collected) addPeriod(s *diffStep, period int64, rank string, pieces *compare.Pieces) {
	per := levelOf(&s.kind)
	if d.periods[per] == nil {
		d.periods[per] = map[diffKey]*diffGroup{}
	}
	d.paces.AddAnnotated(&s.kind.StepName, uint8(per), rank, period, true, pieces.At(s.start), pieces.N())
	addTo(d.periods[per], diffKey{Step, s.kind.Words(), rank}).add(pieces.At(s.start), pieces.N(), period, d.in)
}

// addStep adds a step, both as a duration and as a unit that totals are divided by.
func (d *Collected) addStep(s *diffStep, rank string, pieces *compare.Pieces) {
	per, piece := levelOf(&s.kind), pieces.At(s.start)
	if d.work[per] == nil {
		d.work[per], d.steps[per] = diffUnits{}, map[diffKey]*diffGroup{}
	}
	d.work[per].add("", piece, pieces.N(), 1)
	d.work[per].add(rank, piece, pieces.N(), 1)
	d.paces.AddAnnotated(&s.kind.StepName, uint8(per), rank, s.dur, false, piece, pieces.N())
	addTo(d.steps[per], diffKey{Step, s.kind.Words(), rank}).add(piece, pieces.N(), s.dur, d.in)
}

// addGPUs adds where the time of every device went, one value for each piece, and the tokens
// that it computed. In a single capture, it also looks for changes within.
func (d *Collected) addGPUs(capture *Capture, window *profilewalk.Options, pieces *compare.Pieces, work *stepWork, names []string) {
	set := capture.Profiles
	cuts, before := work.cuts(pieces)
	opt := gpu.Options{From: window.From, To: window.To, Cuts: cuts}
	if d.captures.Whole() || window.From != 0 || window.To != 0 {
		d.addMeasured(gpu.Measure(set, opt), before, pieces, names)
		return
	}
	watch := overtime.Collect(set, overtime.Options{Requests: capture.Requests})
	opt.Watch = watch
	measured := gpu.Measure(set, opt)
	d.addMeasured(measured, before, pieces, names)
	d.side.Within = append(d.side.Within, changesOfDevices(watch.Timeline(measured))...)
}

// addMeasured adds the time of devices; before is how many of the measured pieces come before the capture's first.
func (d *Collected) addMeasured(measured *gpu.GPUs, before int, pieces *compare.Pieces, names []string) {
	if from, to := measured.Bounds(); to > from {
		d.side.widen(from, to)
	}
	groups := map[diffKey]*diffGroup{}
	for i := range measured.GPUs {
		g := &measured.GPUs[i]
		for piece := range g.Pieces[min(before, len(g.Pieces)):] {
			for _, amount := range g.Pieces[before+piece].Times() {
				if amount.Time > 0 {
					addTo(groups, diffKey{GPU, amount.Name, names[g.RankIndex]}).add(pieces.First+piece, pieces.N(), amount.Time, d.in)
				}
			}
		}
	}
	d.putAll(groups)
	d.addTokens(measured.Served, pieces)
}

// lateness is the name of how much later than the median rank a rank comes to collectives.
const lateness = "lateness"

// addCollectives adds how long each rank waited for the last one in collectives, and how much later than the median rank it came.
func (d *Collected) addCollectives(set *profile.Set, window *profilewalk.Options, pieces *compare.Pieces, names []string) {
	groups := map[diffKey]*diffGroup{}
	var starts []trace.Time
	for x := range set.Matches(false) {
		if !x.Sync {
			continue
		}
		starts = starts[:0]
		for _, a := range x.Arrivals {
			starts = append(starts, a.Start)
		}
		slices.Sort(starts)
		first, last, median := starts[0], starts[len(starts)-1], starts[(len(starts)-1)/2]
		if window.From != 0 && last < window.From || window.To != 0 && first > window.To {
			continue
		}
		piece := pieces.At(first)
		for _, a := range x.Arrivals {
			addTo(groups, diffKey{Collective, "wait for the last rank", names[a.Rank]}).add(piece, pieces.N(), distribution.Between(a.Start, last), d.in)
			addTo(groups, diffKey{Collective, lateness, names[a.Rank]}).add(piece, pieces.N(), distribution.Between(median, max(median, a.Start)), d.in)
		}
	}
	d.putAll(groups)
}

// addTo returns the group of a key, adding one if there is none.
func addTo(groups map[diffKey]*diffGroup, key diffKey) *diffGroup {
	return order.Memo(groups, key, func() *diffGroup { return &diffGroup{} })
}

func (d *Collected) putAll(groups map[diffKey]*diffGroup) {
	for key, g := range groups {
		d.put(key, g)
	}
}
