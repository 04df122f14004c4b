package graphs

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/testkit/testset"
	"github.com/sgtrace/sgtrace/trace"
)

// nodeRows are rows with graph nodes, as exports of Nsight Systems have them.
type nodeRows struct {
	testset.RowStream
	nodes []profile.GraphNode
}

func (r *nodeRows) GraphNodes(yield func(*profile.GraphNode) bool) {
	for _, n := range r.nodes {
		if !yield(&n) {
			return
		}
	}
}

// Each kernel gets the frames around the call that created its node, whatever the
// order in which the graph runs and whatever else was captured, according to the
// planted truth. Nodes that were captured before the recording began stay open.
func TestNodesLeadToTheirCalls(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 3))
		syms, rows := trace.NewSymbols(), &nodeRows{}
		event := func(name string, from, to trace.Time) profile.Event {
			return profile.Event{Start: from, End: to, Name: syms.Intern(name), PID: 7}
		}
		span := func(name string, from, to trace.Time) {
			rows.RangeRows = append(rows.RangeRows, profile.Range{Event: event(name, from, to), TID: 1})
		}
		type want struct{ operator, shapes, module, layer string }
		var truth [][]want // by graph and node
		now, lost := trace.Time(1000), rng.IntN(5)
		sizes := []int64{1, 8, 32}
		for graph, size := range sizes {
			var of []want
			for layer := range 4 {
				from := now
				for i, op := range []string{"aten::rms_norm", "aten::mm", "sgl::attention"} {
					module := fmt.Sprintf("model.layers.%d.part%d", layer, i)
					shapes := fmt.Sprintf("[[%d,64]]", size)
					span(fmt.Sprintf("{'Module': '%s', 'In': []}", module), now, now+9)
					span(fmt.Sprintf("%s, op_id = %d, sizes = [[%d, 64]]", op, now, size), now+1, now+8)
					captured, executable := int64(graph+1)<<32|int64(len(of)+1), int64(graph+51)<<32|int64(len(of)+1)
					w := want{op, shapes, module, fmt.Sprintf("model.layers.%d", layer)}
					if graph == 1 && len(of) == lost {
						w = want{} // its origin is unknown
					} else {
						rows.nodes = append(rows.nodes, profile.GraphNode{Event: event("", now+4, now+4), TID: 1, Node: captured})
					}
					rows.nodes = append(rows.nodes, profile.GraphNode{Event: event("", 900000, 900000), TID: 1, Node: executable, Original: captured})
					of, now = append(of, w), now+10
				}
				span(fmt.Sprintf("{'Module': 'model.layers.%d'}", layer), from, now)
			}
			truth, now = append(truth, of), now+50
		}
		rng.Shuffle(len(rows.nodes), func(i, k int) { rows.nodes[i], rows.nodes[k] = rows.nodes[k], rows.nodes[i] })
		now = 1000000
		for replay := range 6 {
			call := profile.Call{Event: event("cudaGraphLaunch", now, now+5), TID: 1}
			call.Correlation = int64(replay + 1)
			rows.CallRows = append(rows.CallRows, call)
			graph := replay % len(sizes)
			for _, i := range rng.Perm(len(truth[graph])) { // as if on many streams
				k := profile.Kernel{Event: event("nvjet", now+10, now+12), Stream: uint32(i), Node: int64(graph+51)<<32 | int64(i+1)}
				k.Correlation = call.Correlation
				rows.KernelRows = append(rows.KernelRows, k)
				now += 3
			}
			now += 100
		}
		g := Collect(testset.SetOf(syms, []string{"rank 0"}, rows))
		if g == nil {
			t.Fatal("nothing is known")
		}
		for replay := range 6 {
			l := &g.Streams[0].Launches[replay]
			for i := range l.Nodes {
				w := truth[replay%len(sizes)][l.Nodes[i].number&0xffffffff-1]
				place, known := l.Place(i)
				got := want{g.name(place.Operator), g.name(place.Shapes), g.name(place.Module), g.name(place.Layer)}
				if got != w || known != (w != want{}) {
					t.Errorf("seed %d, replay %d, node %d: %v, %v, want %v", seed, replay, l.Nodes[i].number, got, known, w)
				}
			}
		}
	}
}
