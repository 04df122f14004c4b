package graphs

import (
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// A numbered identifies a node of a graph in a process.
type numbered struct {
	process
	node int64
}

// A made is the call that made a node.
type made struct {
	at       trace.Time
	tid      int64
	original int64 // the node that it was copied from; 0 if it was not
}

// An executable is a graph that a process ran. Numbers of nodes have its number in their upper half.
type executable struct {
	process
	graph int64
}

func (n numbered) executableOf() executable { return executable{n.process, n.node >> 32} }

// A recorded is an executable graph as it was captured.
type recorded struct {
	*window // nil is unknown
	capture *Capture
	launch  map[int64]int32 // by number of the node; absent is unknown
	by      MatchBasis
}

// chooseRecorded finds what made the nodes of the replays of a stream, if the recording shows it: the
// capture is in the same file, and the number of each node leads to the call that made it.
func (g *Graphs) chooseRecorded(stream int, s profile.Stream) {
	wanted := map[numbered]*Node{}
	for i := range g.Streams[stream].Launches {
		l := &g.Streams[stream].Launches[i]
		for k := range l.Nodes {
			if n := &l.Nodes[k]; n.number != 0 {
				wanted[numbered{process{l.Rank, l.pid}, n.number}] = n
			}
		}
	}
	if len(wanted) == 0 {
		return
	}
	calls := map[numbered]made{}
	for n := range profile.GraphNodes(s) {
		calls[numbered{process{n.Rank, n.PID}, n.Node}] = made{n.Start, n.TID, n.Original}
	}
	graphs := map[executable]*recorded{}
	for id, n := range wanted {
		call, ok := calls[id]
		const generations = 4 // a copy may be of a copy
		for range generations {
			if call.original == 0 || call.original == id.node {
				break
			}
			original, known := calls[numbered{id.process, call.original}]
			if ok = known; !known {
				break // it was captured before the recording began
			}
			call = original
		}
		if !ok {
			continue
		}
		r := order.Memo(graphs, id.executableOf(), func() *recorded {
			return &recorded{window: newWindow(id.process, call.at, call.at+1), by: ByNode}
		})
		r.from, r.to = min(r.from, call.at), max(r.to, call.at+1)
		r.launches = append(r.launches, launchCall{Captured{Work: n.Work, Shape: n.Shape, Frame: none}, call.at, call.tid, id.node})
	}
	g.recorded(stream, s, graphs)
}

// recorded makes the captures of graphs, and pairs the replays with them.
func (g *Graphs) recorded(stream int, s profile.Stream, graphs map[executable]*recorded) {
	r := &captureReader{syms: g.set.Syms}
	for _, x := range graphs {
		r.windows = append(r.windows, x.window)
	}
	r.sortWindows()
	r.readFrames(s)
	r.readRanges(s)
	var captures []*Capture
	for _, x := range graphs {
		x.capture = x.window.capture(g.set.Syms)
		x.capture.Rank = g.set.Ranks[x.rank]
		if stream < len(g.set.Files) {
			x.capture.File = g.set.Files[stream]
		}
		x.launch = make(map[int64]int32, len(x.launches))
		for i := range x.launches {
			x.launch[x.launches[i].correlation] = int32(i)
		}
		captures = append(captures, x.capture)
	}
	describe(g.set.Syms, captures)
	for i := range g.Streams[stream].Launches {
		l := &g.Streams[stream].Launches[i]
		for k := range l.Nodes {
			if x := graphs[numbered{process{l.Rank, l.pid}, l.Nodes[k].number}.executableOf()]; x != nil {
				l.Capture, l.Pairs = x.capture, x.pairs(l)
				g.exact = true
				break
			}
		}
	}
}

// pairs pairs the nodes of a replay by their numbers.
func (r *recorded) pairs(l *Launch) *Pairs {
	p := &Pairs{Launch: make([]int32, len(l.Nodes)), By: make([]MatchBasis, len(l.Nodes))}
	for i := range l.Nodes {
		at, ok := r.launch[l.Nodes[i].number]
		if !ok {
			p.Launch[i] = none
			continue
		}
		p.Launch[i], p.By[i] = at, r.by
	}
	p.count(r.capture)
	return p
}

// readRanges reads the ranges that threads were in during captures, which may stand for operators and
// modules.
func (r *captureReader) readRanges(s profile.Stream) {
	emitted := profile.NewOperatorRanges(r.syms)
	for a := range profile.NodeRanges(s) {
		f, ok := emitted.Of(a)
		if !ok {
			if a.Open || a.Style != profile.PushPop {
				continue
			}
			f = profile.Frame{Event: a.Event, TID: a.TID, Kind: profile.RangeFrame}
		}
		r.addFrame(&f)
	}
}
