package graphs

import (
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/profilewalk"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// A Launch is one replay of a graph.
type Launch struct {
	Rank    int32
	At      trace.Time       // of the call
	Tokens  int64            // that its step computes; Unknown
	Batch   int64            // sequences of that step; Unknown
	Lengths *profile.Lengths // of the sequences of its step; nil is unknown
	Ordinal int              // among the launches of its step
	InStep  int              // number of launches of its step
	Nodes   []Node           // in the order of the graph, as far as it is known
	// Sequence numbers what it runs: replays that run the same have the same number.
	Sequence int32
	// Capture is the graph that it replays, and Pairs says which of its launches each node is; nil is unknown.
	Capture *Capture
	Pairs   *Pairs

	correlation int64
	pid         int32
	tid         int64
	byTime      bool // Nodes are in the order of time
}

// A Node is a kernel, copy, or fill of a replay.
type Node struct {
	Start  trace.Time
	Dur    int64 // ns
	Name   trace.Sym
	Work   Work
	Device int32
	Stream uint32
	Shape  profile.LaunchShape
	number int64 // in the graph; 0 is unknown
	at     int32 // [profile.Event.At]
}

// Replays are the replays in one stream.
type Replays struct {
	Launches []Launch             // in the order of their calls, rank by rank
	index    []order.Paged[int32] // by rank and correlation: index into Launches, plus one
}

// readReplays reads the replays of a stream.
func readReplays(set *profile.Set, s profile.Stream) *Replays {
	r := &Replays{index: make([]order.Paged[int32], len(set.Ranks))}
	isLaunch := profilewalk.GraphLaunches(set.Syms)
	for c := range s.Calls {
		if !isLaunch.Of(c.Name) || c.Correlation == 0 {
			continue
		}
		if at := r.index[c.Rank].At(c.Correlation); *at == 0 {
			r.Launches = append(r.Launches, Launch{Rank: c.Rank, At: c.Start, Tokens: Unknown, Batch: Unknown, correlation: c.Correlation, pid: c.PID, tid: c.TID})
			*at = int32(len(r.Launches))
		}
	}
	if len(r.Launches) == 0 {
		return r
	}
	add := func(e *profile.Event, n Node) {
		if l := r.Of(e); l != nil {
			n.Start, n.Dur, n.Name, n.at = e.Start, e.Dur(), e.Name, e.At
			l.Nodes = append(l.Nodes, n)
		}
	}
	for k := range s.Kernels {
		if !k.Graph {
			add(&k.Event, Node{Work: KernelWork, Device: k.Device, Stream: k.Stream, Shape: k.Shape, number: k.Node})
		}
	}
	for c := range s.Copies {
		what := CopyWork
		if c.Kind == (profile.CopyKind{}) || workOf(set.Syms.Name(c.Name)).work == FillWork {
			what = FillWork
		}
		add(&c.Event, Node{Work: what, Device: c.Device, Stream: c.Stream})
	}
	r.order()
	r.readSteps(set, s)
	return r
}

// Of returns the replay that launched some work; nil if there is none.
func (r *Replays) Of(e *profile.Event) *Launch {
	if e.Correlation == 0 {
		return nil
	}
	if at := r.index[e.Rank].Find(e.Correlation); at != nil && *at != 0 {
		return &r.Launches[*at-1]
	}
	return nil
}

// Find returns the replay and the node of some work; nil if there is none.
func (r *Replays) Find(e *profile.Event) (*Launch, int) {
	l := r.Of(e)
	if l == nil {
		return nil, 0
	}
	i := 0
	if l.byTime {
		i, _ = slices.BinarySearchFunc(l.Nodes, e.Start, func(n Node, t trace.Time) int { return cmp.Compare(n.Start, t) })
	}
	for ; i < len(l.Nodes); i++ {
		if n := &l.Nodes[i]; n.Start == e.Start && n.Name == e.Name && n.Dur == e.Dur() {
			return l, i
		}
	}
	return nil, 0
}

// Event returns a node as an event.
func (l *Launch) Event(node int) profile.Event {
	n := &l.Nodes[node]
	return profile.Event{Start: n.Start, End: n.Start + trace.Time(n.Dur), Correlation: l.correlation, Name: n.Name, Rank: l.Rank, PID: l.pid}
}

// order drops launches without nodes, and sorts the others by time, and the nodes of each in the order of the graph.
func (r *Replays) order() {
	kept := r.Launches[:0]
	for _, l := range r.Launches {
		if len(l.Nodes) > 0 {
			kept = append(kept, l)
		}
	}
	r.Launches = kept
	slices.SortStableFunc(r.Launches, func(a, b Launch) int { return cmp.Or(cmp.Compare(a.Rank, b.Rank), cmp.Compare(a.At, b.At)) })
	for rank := range r.index {
		r.index[rank] = order.Paged[int32]{}
	}
	for i := range r.Launches {
		l := &r.Launches[i]
		*r.index[l.Rank].At(l.correlation) = int32(i) + 1
		slices.SortStableFunc(l.Nodes, func(a, b Node) int { return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.Stream, b.Stream)) })
		l.byTime = !l.byNumber()
	}
}

// byNumber sorts nodes by their numbers if these grow along every stream, and reports whether they do:
// then they have the order of capture, which streams that run at the same time cannot change.
func (l *Launch) byNumber() bool {
	last := map[uint32]int64{}
	for i := range l.Nodes {
		n := &l.Nodes[i]
		if n.number <= last[n.Stream] {
			return false
		}
		last[n.Stream] = n.number
	}
	slices.SortStableFunc(l.Nodes, func(a, b Node) int { return cmp.Compare(a.number, b.number) })
	return true
}

// readSteps finds the steps that replays were launched in.
func (r *Replays) readSteps(set *profile.Set, s profile.Stream) {
	threads := profilewalk.ReadSteps(set, s, &profilewalk.Options{})
	steps := order.EachRow(threads, (*profilewalk.StepThreads).Settle)
	type place struct{ rank, step int32 }
	count, in := map[place]int{}, make([]place, len(r.Launches))
	for i := range r.Launches {
		l := &r.Launches[i]
		at := threads[l.Rank].At(&profile.Call{Event: profile.Event{Start: l.At, End: l.At, PID: l.pid}, TID: l.tid})
		outer := at
		for ; at != profilewalk.NoStep; at = steps[l.Rank][at].Around {
			if tokens, ok := steps[l.Rank][at].StepName.Tokens(); ok && l.Tokens == Unknown {
				l.Tokens, l.Batch = tokens, int64(steps[l.Rank][at].StepName.Batch)
			}
			if l.Lengths == nil {
				l.Lengths = steps[l.Rank][at].StepName.Lengths
			}
			outer = at
		}
		in[i] = place{l.Rank, outer}
		if outer != profilewalk.NoStep {
			l.Ordinal = count[in[i]]
			count[in[i]]++
		}
	}
	for i := range r.Launches {
		r.Launches[i].InStep = count[in[i]]
	}
}

// sequences numbers the different sequences that replays of all streams run.
type sequences struct {
	index map[string]int32
	first []*Launch // of each sequence
	key   []byte
}

func (s *sequences) number(l *Launch) {
	s.key = s.key[:0]
	streams := map[uint32]uint64{} // numbered as they appear: their own numbers differ from graph to graph
	for i := range l.Nodes {
		n := &l.Nodes[i]
		if _, ok := streams[n.Stream]; !ok {
			streams[n.Stream] = uint64(len(streams))
		}
		s.key = binary.AppendUvarint(s.key, uint64(n.Name))
		s.key = binary.AppendUvarint(s.key, streams[n.Stream]<<2|uint64(n.Work))
		s.key = binary.AppendVarint(s.key, n.Shape.Blocks)
		s.key = binary.AppendVarint(s.key, int64(n.Shape.Threads))
	}
	at, ok := s.index[string(s.key)]
	if !ok {
		at = int32(len(s.first))
		s.index[string(s.key)] = at
		s.first = append(s.first, l)
	}
	l.Sequence = at
}
