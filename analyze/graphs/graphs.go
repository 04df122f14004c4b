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
	exact    bool // some recording shows which call made the nodes of its graphs
	captured bool // a capture is known, or something that stands for one
}

// Collect reads the captures of a set, both those in its own streams and those recorded separately, and
// the replays, and matches them. It compares replays without a capture with passes that ran without a
// graph. It returns nil if there is neither.
func Collect(set *profile.Set) *Graphs { return Read(set).Captured() }

// Captured returns g if a capture is known, or something that stands for one, and nil otherwise.
func (g *Graphs) Captured() *Graphs {
	if !g.captured {
		return nil
	}
	return g
}

// Read is [Collect] for callers that want the replays even if no capture is known. Streams is nil if
// nothing launches graphs.
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

// LaunchesGraphs reports whether a set may have launches of graphs. It does for exports, as the names
// of their calls are known only after a walk.
func LaunchesGraphs(set *profile.Set) bool {
	return set.Exports || hasAny(set, "cudaGraphLaunch", "hipGraphLaunch", "cuGraphLaunch")
}

// hasAny reports whether any of some names occurs in a set.
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

// size finds out for how many tokens a capture is, if its annotations do not say: from its file name
// or, failing that, from beside, the sizes by file.
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

// A tried is a sequence and a capture that it was compared with.
type tried struct {
	sequence int32
	capture  *Capture
}

// A chooser finds the capture of each replay.
type chooser struct {
	*Graphs
	*matcher
	known map[tried]*Pairs // nil if they do not fit
	// aligned are the pairs that were refined.
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
	for range 2 { // a wrong pair that was corrected makes room for others
		c.agree()
	}
}

// agree pairs all aligned replays again if any lacks a launch, with what most of their pairs say about
// each kernel: the graphs of a model run the same kernels, and what one of them lacks others have.
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

// winner returns what three quarters of the votes or more say, with shapes or else without them. It is zero if they differ.
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

// chooseFor finds the capture of a replay. before is the previous replay; nil if there is none.
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
		// Layers are alike, so the capture of another place may fit better by chance.
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

// ofPlace returns the capture that is at the same place among those of its size as a replay is in its step, if there
// are equally many: a model that is captured in parts replays these in order. It returns nil if there are not.
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

// refined pairs a replay by alignment if no name or grid proves that each kernel is at its own place:
// as many may be missing on one side as on the other.
func (c *chooser) refined(l *Launch, x *Capture) *Pairs {
	return order.Memo(c.aligned, tried{l.Sequence, x}, func() *Pairs { return c.pair(x, c.seqs.first[l.Sequence].Nodes) })
}

// ofRank returns the captures of a rank, or all if the rank has none: all ranks capture the same.
func ofRank(all []*Capture, rank string) []*Capture {
	list := order.Only(all, func(x *Capture) bool { return x.Rank == rank })
	if list == nil {
		return all
	}
	return list
}

// wanted returns for how many tokens the graph was captured that computes this many: the next larger
// size that was captured; Unknown if there is none.
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

// maxAligned is the most captures that are aligned with a sequence, which takes longer than to compare
// them place by place.
const maxAligned = 8

// shortlist returns the captures that a replay may be of: those of its size and length if there are
// any, or else the nearest ones.
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

// pairs pairs a replay with a capture; nil if they do not fit. It aligns sequences only if asked to.
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

// A fit is how well a capture fits a replay, with the most important criterion first.
type fit struct {
	lacks  int // nodes and launches without a partner, or with a wrong one; a few do not count if the size is right and nothing is proven
	proven int
	size   bool // it has the size that the step needs
	next   bool // it follows the capture of the previous replay
	place  bool // its place in its file is that of the replay in its step
}

func (c *chooser) fitOf(l *Launch, x *Capture, p *Pairs, want int64, before *Launch) fit {
	f := fit{lacks: p.Missed + p.Extra + p.clashes, proven: p.proven, size: want != Unknown && x.Tokens == want, place: x.Number == l.Ordinal}
	const few = 20 // one in this many nodes may lack a partner
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

// of returns the launch of a node at capture; nil if it is unknown.
func (l *Launch) of(node int) *Captured {
	if l.Capture == nil || l.Pairs.Launch[node] == none {
		return nil
	}
	return &l.Capture.Launches[l.Pairs.Launch[node]]
}

// Around yields the frames around the launch of a node at capture, the innermost one first, with their
// indices in the capture.
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

// name returns the name of a symbol; "" if it is 0.
func (g *Graphs) name(sym trace.Sym) string {
	if sym == 0 {
		return ""
	}
	return g.set.Syms.Name(sym)
}
