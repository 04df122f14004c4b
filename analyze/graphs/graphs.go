package graphs

import (
	"cmp"
	"math"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/sgtrace/sgtrace/analyze/host"
	"github.com/sgtrace/sgtrace/analyze/profilewalk"
	"github.com/sgtrace/sgtrace/internal/lazyregexp"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// Graphs are the replays of some streams, with the captures that they replay.
type Graphs struct {
	Captures []*Capture
	Streams  []*Replays // by stream of the set
	set      *profile.Set
	exact    bool // some recording tells what made the nodes of its graphs
	captured bool // a capture is known, or what stands for one
}

// Collect reads the captures of a set, those in its own streams and those that were recorded apart,
// and the replays, and says which are of which. Replays without a capture are compared with passes that
// ran without a graph. It is nil if there is neither.
func Collect(set *profile.Set) *Graphs { return Read(set).Captured() }

// Captured returns the graphs if any capture is known, or what stands for one; else nil.
func (g *Graphs) Captured() *Graphs {
	if !g.captured {
		return nil
	}
	return g
}

// Read is [Collect] for those who want the replays also if no capture is known. There are no streams if nothing
// launches graphs.
func Read(set *profile.Set) *Graphs {
	g := &Graphs{set: set, Captures: capturesOf(set)}
	for _, c := range g.Captures {
		c.size(nil)
	}
	if apart := set.Captures; apart != nil {
		list := capturesOf(&apart.Set)
		for _, c := range list {
			c.size(apart.Sizes)
			c.translate(apart.Syms, set.Syms)
		}
		g.Captures = append(g.Captures, list...)
	}
	if len(g.Captures) == 0 && !LaunchesGraphs(set) {
		return g
	}
	slices.SortStableFunc(g.Captures, func(a, b *Capture) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Rank, b.Rank), cmp.Compare(a.Tokens, b.Tokens), cmp.Compare(a.Number, b.Number))
	})
	g.Streams = make([]*Replays, len(set.Streams))
	profilewalk.EachStream(set, func(i int, s profile.Stream) { g.Streams[i] = readReplays(set, s) })
	for i, s := range set.Streams {
		g.chooseRecorded(i, s)
	}
	g.describeAll(g.Captures)
	c := &chooser{Graphs: g, matcher: newMatcher(g.set.Syms), known: map[tried]*Pairs{}, aligned: map[tried]*Pairs{}, seqs: sequences{index: map[string]int32{}}}
	c.choose()
	g.annotate()
	g.captured = c.choosePasses() || len(g.Captures) > 0 || g.exact
	return g
}

// LaunchesGraphs reports whether a set may have launches of graphs: what calls of exports are called is known once
// they are walked.
func LaunchesGraphs(set *profile.Set) bool {
	return set.Exports || hasAny(set, "cudaGraphLaunch", "hipGraphLaunch", "cuGraphLaunch")
}

// hasAny reports whether a set has any of some names.
func hasAny(set *profile.Set, names ...string) bool {
	return slices.ContainsFunc(names, func(name string) bool {
		_, any := set.Syms.Lookup(name)
		return any
	})
}

// captureCalls are the calls that begin captures, as recorders name them.
var captureCalls = []string{"cudaStreamBeginCapture", "hipStreamBeginCapture", "cuStreamBeginCapture",
	"cudaStreamBeginCapture_v10000", "cudaStreamBeginCapture_ptsz_v10000", "cuStreamBeginCapture_v2", "cuStreamBeginCapture_v2_ptsz"}

// capturesOf returns the captures in the streams of a set.
func capturesOf(set *profile.Set) []*Capture {
	if !hasAny(set, captureCalls...) {
		return nil
	}
	streams := make([][]*Capture, len(set.Streams))
	profilewalk.EachStream(set, func(i int, s profile.Stream) {
		streams[i] = readCaptures(set.Syms, set.Ranks, s)
		for _, c := range streams[i] {
			if i < len(set.Files) {
				c.File = set.Files[i]
			}
		}
	})
	return slices.Concat(streams...)
}

// captureFile matches SGLang's name for the file of one capture: "bs_32_rank0.json.gz".
var captureFile = lazyregexp.New(`^bs_(\d+)_rank\d+`)

// size finds out for how many tokens a capture is, if its annotations do not tell: from its file, or
// from what is written beside it. As a last resort it is what most inputs of operators begin with.
func (c *Capture) size(beside map[string]int64) {
	if c.Tokens != Unknown {
		return
	}
	if m := captureFile.FindStringSubmatch(filepath.Base(c.File)); m != nil {
		c.Tokens, _ = strconv.ParseInt(m[1], 10, 64)
		return
	}
	if tokens, ok := beside[c.File]; ok {
		c.Tokens = tokens
	}
}

// A tried is what came of pairing a sequence with a capture.
type tried struct {
	sequence int32
	capture  *Capture
}

// A chooser finds the capture of each replay.
type chooser struct {
	*Graphs
	*matcher
	known map[tried]*Pairs // nil is unfit
	// aligned are those that were refined.
	aligned map[tried]*Pairs
	seqs    sequences
}

// choose finds the captures of all replays.
func (c *chooser) choose() {
	for _, x := range c.Captures {
		for i := range x.Launches {
			c.operators[x.operatorName(i)] = true
		}
	}
	for _, s := range c.Streams {
		var before *Launch
		for i := range s.Launches {
			l := &s.Launches[i]
			c.seqs.number(l)
			if before != nil && before.Rank != l.Rank {
				before = nil
			}
			if l.Capture == nil {
				c.chooseFor(l, before)
			}
			before = l
		}
	}
	for range 2 { // what was wrong and is not any more leaves others room
		c.agree()
	}
}

// agree pairs all replays again that were aligned, with what most of these pairs say of each kernel, if any lacks a
// launch: the graphs of a model run the same kernels, and what one of them lacks others have.
func (c *chooser) agree() {
	lacks := false
	for _, p := range c.aligned {
		lacks = lacks || p.Missed+p.Extra+p.clashes > 0
	}
	if !lacks {
		return
	}
	votes := map[trace.Sym]map[kernelOperator]int{}
	for key, p := range c.aligned {
		for i, at := range p.Launch {
			n := &c.seqs.first[key.sequence].Nodes[i]
			if at == none || n.Work != KernelWork {
				continue
			}
			said := kernelOperator{}
			if frame := key.capture.operator(at); frame != none {
				f := &key.capture.Frames[frame]
				said = kernelOperator{f.Name, f.Shapes}
			}
			order.Memo(votes, n.Name, func() map[kernelOperator]int { return map[kernelOperator]int{} })[said]++
		}
	}
	c.repeats, c.contested = map[trace.Sym]kernelOperator{}, map[trace.Sym]bool{}
	for name, of := range votes {
		if winner := winner(of); winner.operator != 0 {
			c.repeats[name] = winner
		} else {
			c.contested[name] = len(of) > 1
		}
	}
	again := map[*Pairs]*Pairs{}
	for key, p := range c.aligned {
		if slices.ContainsFunc(p.By, func(by MatchBasis) bool { return by != ByKind && by != ByRepeat }) {
			again[p] = c.pair(key.capture, c.seqs.first[key.sequence].Nodes)
			c.aligned[key] = again[p]
		}
	}
	for _, s := range c.Streams {
		for i := range s.Launches {
			if p := again[s.Launches[i].Pairs]; p != nil {
				s.Launches[i].Pairs = p
			}
		}
	}
	c.repeats, c.contested = nil, nil
}

// winner returns what most votes say, with shapes or without; 0 is that they differ.
func winner(votes map[kernelOperator]int) kernelOperator {
	const least = 3
	all, operators := 0, map[kernelOperator]int{}
	for s, n := range votes {
		all += n
		operators[kernelOperator{operator: s.operator}] += n
	}
	for _, by := range []map[kernelOperator]int{votes, operators} {
		for s, n := range by {
			if s.operator != 0 && n >= least && 4*n >= 3*all {
				return s
			}
		}
	}
	return kernelOperator{}
}

// chooseFor finds the capture of a replay. before is the one before it, nil is none.
func (c *chooser) chooseFor(l, before *Launch) {
	list := ofRank(c.Captures, c.set.Ranks[l.Rank])
	want := wanted(list, l.Tokens)
	var best *Capture
	var most fit
	look := func(some []*Capture) {
		for _, x := range some {
			p := c.pairs(l, x, len(some) <= maxAligned)
			if p == nil {
				continue
			}
			f := c.fitOf(l, x, p, want, before)
			if best == nil || f.compare(most) > 0 {
				best, most, l.Pairs = x, f, p
			}
		}
	}
	look(c.shortlist(l, list, want))
	if x := ofPlace(l, list, want); x != nil && best != x {
		// Layers are alike, and that of another place may fit better by chance.
		if p := c.pairs(l, x, true); p != nil && p.proven >= most.proven {
			best, most, l.Pairs = x, c.fitOf(l, x, p, want, before), p
		}
	}
	if best == nil {
		return
	}
	l.Capture = best
	if most.proven == 0 {
		l.Pairs = c.refined(l, best)
	}
}

// ofPlace returns the capture of the same place among those of a size as a replay has in its step, if there are as many
// of both: a model that is captured in parts replays these in order. nil is that this does not tell.
func ofPlace(l *Launch, list []*Capture, want int64) (at *Capture) {
	if want == Unknown || l.InStep < 2 {
		return nil
	}
	n := 0
	for _, x := range list {
		if x.Tokens != want {
			continue
		}
		if n++; x.Number == l.Ordinal {
			at = x
		}
	}
	if n != l.InStep {
		return nil
	}
	return at
}

// refined pairs a replay by alignment where no name or grid proves that the place of each kernel is
// its own: as many may be missing on one side as on the other.
func (c *chooser) refined(l *Launch, x *Capture) *Pairs {
	return order.Memo(c.aligned, tried{l.Sequence, x}, func() *Pairs { return c.pair(x, c.seqs.first[l.Sequence].Nodes) })
}

// ofRank returns the captures of a rank, or all if there is none of it: all ranks capture the same.
func ofRank(all []*Capture, rank string) []*Capture {
	list := order.Only(all, func(x *Capture) bool { return x.Rank == rank })
	if list == nil {
		return all
	}
	return list
}

// wanted returns the number of tokens that a graph was captured for which computes so many: the next
// one that was captured; Unknown if that is not known.
func wanted(list []*Capture, tokens int64) int64 {
	want := int64(math.MaxInt64)
	for _, x := range list {
		if tokens != Unknown && x.Tokens >= tokens {
			want = min(want, x.Tokens)
		}
	}
	if want == math.MaxInt64 {
		return Unknown
	}
	return want
}

// maxAligned is how many captures are aligned with a sequence, which takes longer than to compare
// place by place.
const maxAligned = 8

// shortlist returns the captures that may be of a replay: those of its size and length if there are
// any, else those that come nearest.
func (c *chooser) shortlist(l *Launch, list []*Capture, want int64) []*Capture {
	exact := order.Only(list, func(x *Capture) bool { return len(x.Launches) == len(l.Nodes) && c.pairs(l, x, false) != nil })
	ofSize := func(x *Capture) bool { return want != Unknown && x.Tokens == want }
	if slices.ContainsFunc(exact, ofSize) || exact != nil && (want == Unknown || c.pairs(l, exact[0], false).proven > 0) {
		return exact
	}
	near := slices.Clone(list)
	apart := func(x *Capture) int {
		n := len(x.Launches) - len(l.Nodes)
		if n < 0 {
			n = -n
		}
		if !ofSize(x) {
			n += len(l.Nodes)
		}
		return n
	}
	slices.SortStableFunc(near, func(a, b *Capture) int { return cmp.Compare(apart(a), apart(b)) })
	return near[:min(maxAligned, len(near))]
}

// pairs pairs a replay with a capture; nil if they do not fit. Sequences are aligned on demand only.
func (c *chooser) pairs(l *Launch, x *Capture, align bool) *Pairs {
	key := tried{l.Sequence, x}
	p, ok := c.known[key]
	if ok {
		return p
	}
	first := c.seqs.first[l.Sequence]
	if len(x.Launches) == len(first.Nodes) {
		p = &Pairs{Launch: make([]int32, len(first.Nodes)), By: make([]MatchBasis, len(first.Nodes))}
		if c.byPlace(p, x, first.Nodes) {
			p.count(x)
			c.known[key] = p
			return p
		}
	}
	if !align {
		return nil
	}
	p = nil
	if n, m := len(x.Launches), len(first.Nodes); 2*n >= m && 2*m >= n {
		if p = c.pair(x, first.Nodes); 2*p.Missed > len(first.Nodes) {
			p = nil
		}
	}
	c.known[key] = p
	return p
}

// A fit is how well a capture fits a replay, that which counts most first.
type fit struct {
	lacks  int // nodes and launches without a partner, or with a wrong one, as far as proof or the size does not outweigh them
	proven int
	size   bool // it is of the size that the step asks for
	next   bool // it follows the one before
	place  bool // it is the same of its file as the replay is of its step
}

func (c *chooser) fitOf(l *Launch, x *Capture, p *Pairs, want int64, before *Launch) fit {
	f := fit{lacks: p.Missed + p.Extra + p.clashes, proven: p.proven, size: want != Unknown && x.Tokens == want, place: x.Number == l.Ordinal}
	const few = 20 // of so many nodes, one may lack a partner
	if f.size && p.proven == 0 && few*f.lacks <= len(l.Nodes) {
		f.lacks = 0
	}
	if before != nil && before.Capture != nil && l.Ordinal > 0 {
		b := before.Capture
		f.next = b.File == x.File && b.Rank == x.Rank && b.Tokens == x.Tokens && b.Number+1 == x.Number
	}
	return f
}

func (f fit) compare(o fit) int {
	return cmp.Or(cmp.Compare(o.lacks, f.lacks), cmp.Compare(f.proven, o.proven), order.Bool(f.size, o.size), order.Bool(f.next, o.next), order.Bool(f.place, o.place))
}

// of returns what a node was launched as at capture; nil is not known.
func (l *Launch) of(node int) *Captured {
	if l.Capture == nil || l.Pairs.Launch[node] == none {
		return nil
	}
	return &l.Capture.Launches[l.Pairs.Launch[node]]
}

// Around yields the frames that a node's launch was in at capture, the innermost one first, as indices
// of the frames of the capture.
func (l *Launch) Around(node int) func(yield func(at int32, f *Frame) bool) {
	return func(yield func(at int32, f *Frame) bool) {
		c := l.of(node)
		if c == nil {
			return
		}
		at := c.Frame
		if l.Pairs.ModuleOnly(node) {
			at = l.Capture.modules[l.Pairs.Launch[node]]
		}
		for ; at != none; at = l.Capture.Frames[at].Around {
			if !yield(at, &l.Capture.Frames[at]) {
				return
			}
		}
	}
}

// AppendAround appends what was around the launch of some work of a stream at capture, the innermost
// first, as [host.Captures] wants it. g may be nil.
func (g *Graphs) AppendAround(list []host.Around, stream int, e *profile.Event) []host.Around {
	if g == nil {
		return list
	}
	l, node := g.Streams[stream].Find(e)
	if l == nil {
		return list
	}
	for _, f := range l.Around(node) {
		list = append(list, host.Around{Kind: host.KindOf(f.Kind), Name: f.Name})
	}
	return list
}

// name returns what a symbol stands for, "" if it is none.
func (g *Graphs) name(sym trace.Sym) string {
	if sym == 0 {
		return ""
	}
	return g.set.Syms.Name(sym)
}
