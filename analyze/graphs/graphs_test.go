package graphs

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/profilewalk"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/testkit/testset"
	"github.com/sgtrace/sgtrace/trace"
)

// A planted is one kernel launch of a model, with its name and its operator.
type planted struct {
	kernel, operator, shapes, module string
	side                             bool // runs on a second stream
}

// layers returns a model of n layers with seven kernels each, for a number of tokens.
func layers(n, tokens int) (list []planted) {
	list = append(list, planted{"triton_poi_fused_embedding_0", "aten::embedding", fmt.Sprintf("[[%d]]", tokens), "Model_0", false})
	for i := range n {
		add := func(kernel, operator, shapes, module string) {
			list = append(list, planted{kernel, operator, fmt.Sprintf("[[%d,%s]]", tokens, shapes), fmt.Sprintf("%s_%d", module, i), false})
		}
		add("fused_add_rmsnorm_kernel", "sgl::fused_add_rmsnorm", "64", "RMSNorm")
		add("nvjet_qkv", "aten::mm", "64],[64,192", "Attention")
		add("rope_kernel", "sgl::rope", "192", "Attention")
		add("flash_fwd_kernel", "sgl::attention", "64", "Attention")
		add("nvjet_o", "aten::mm", "64],[64,64", "Attention")
		add("nvjet_gate_up", "aten::mm", "64],[64,256", "MLP")
		add("silu_and_mul_kernel", "sgl::silu_and_mul", "256", "MLP")
		add("nvjet_down", "aten::mm", "128],[128,64", "MLP")
	}
	return list
}

// A plant makes the rows of captures and replays.
type plant struct {
	syms  *trace.Symbols
	rows  testset.RowStream
	now   trace.Time
	corr  int64
	named bool // calls at capture name the kernel that they launch

	numbered bool // kernels have the numbers of their graph nodes
}

func (p *plant) event(name string, from, to trace.Time) profile.Event {
	return profile.Event{Start: from, End: to, Name: p.syms.Intern(name), PID: 7}
}

func (p *plant) call(name string) *profile.Call {
	p.corr++
	e := p.event(name, p.now, p.now+2)
	e.Correlation = p.corr
	p.rows.CallRows = append(p.rows.CallRows, profile.Call{Event: e, TID: 1})
	p.now += 10
	return &p.rows.CallRows[len(p.rows.CallRows)-1]
}

func (p *plant) frame(kind profile.FrameKind, name, shapes string, from, to trace.Time) {
	f := profile.Frame{Event: p.event(name, from, to), TID: 1, Kind: kind}
	if shapes != "" {
		f.Shapes = p.syms.Intern(shapes)
	}
	p.rows.FrameRows = append(p.rows.FrameRows, f)
}

// capture adds the capture of a model for a number of tokens.
func (p *plant) capture(model []planted, tokens int) {
	from := p.now
	p.call("cudaStreamBeginCapture")
	for _, l := range model {
		start := p.now
		p.now += 3
		c := p.call("cudaLaunchKernel")
		if p.named {
			c.Kernel = p.syms.Intern(l.kernel)
		}
		p.frame(profile.OperatorFrame, l.operator, l.shapes, start+1, p.now-1)
		p.frame(profile.PythonFrame, profile.ModulePrefix+l.module, "", start, p.now)
	}
	p.call("cudaStreamEndCapture")
	r := profile.Range{Event: p.event(fmt.Sprintf("capture_%d_FULL", tokens), from-1, p.now), TID: 1}
	p.rows.RangeRows = append(p.rows.RangeRows, r)
	p.now += 100
}

// replay adds a replay of a model in a step of batch requests. Kernels on the second
// stream run together with those before them.
func (p *plant) replay(model []planted, batch int) {
	from := p.now
	launch := p.call("cudaGraphLaunch").Correlation
	at := p.now
	for i, l := range model {
		e := p.event(l.kernel, at, at+5)
		k := profile.Kernel{Event: e, Stream: 7}
		if k.Correlation = launch; p.numbered {
			k.Node = 9<<32 + int64(i) + 1
		}
		if at += 6; l.side {
			k.Stream, k.Start, k.End = 9, k.Start-8, k.End-8
			at -= 6
		}
		p.rows.KernelRows = append(p.rows.KernelRows, k)
	}
	p.now = at + 10
	p.rows.RangeRows = append(p.rows.RangeRows, profile.Range{Event: p.event(fmt.Sprintf("step[DECODE bs=%d]", batch), from-1, p.now), TID: 1})
}

// sets returns the replays together with the captures.
func sets(captures, replays *plant) *profile.Set {
	set := testset.SetOf(replays.syms, []string{"rank 0"}, &replays.rows)
	set.Captures = &profile.GraphCaptures{Set: *testset.SetOf(captures.syms, []string{"rank 0"}, &captures.rows)}
	return set
}

func newPlant(named bool) *plant { return &plant{syms: trace.NewSymbols(), now: 1000, named: named} }

// without returns a model without some of its kernels.
func without(model []planted, drop ...int) (rest []planted) {
	for i, l := range model {
		if !slices.Contains(drop, i) {
			rest = append(rest, l)
		}
	}
	return rest
}

// tally counts the nodes of a replay that got the right launch, and those that stayed open.
func tally(t *testing.T, g *Graphs, l *Launch, model []planted) (right, open int) {
	t.Helper()
	right, open, wrong := count(t, g, l, model)
	for _, text := range wrong {
		t.Error(text)
	}
	return right, open
}

func count(t *testing.T, g *Graphs, l *Launch, model []planted) (right, open int, wrong []string) {
	t.Helper()
	if len(l.Nodes) != len(model) {
		t.Fatalf("%d nodes, want %d", len(l.Nodes), len(model))
	}
	kernels := map[string][]planted{} // by name, in order: streams may interleave the nodes
	for _, m := range model {
		kernels[m.kernel] = append(kernels[m.kernel], m)
	}
	for i := range l.Nodes {
		name := g.name(l.Nodes[i].Name)
		want := kernels[name][0]
		kernels[name] = kernels[name][1:]
		place, ok := l.Place(i)
		switch {
		case !ok:
			open++
		case g.name(place.Operator) == want.operator && g.name(place.Shapes) == want.shapes && g.name(place.Module) == want.module:
			right++
		default:
			wrong = append(wrong, fmt.Sprintf("node %d, %s, is of %s %s in %s, want %+v", i, name, g.name(place.Operator), g.name(place.Shapes), g.name(place.Module), want))
		}
	}
	return right, open, wrong
}

// Each kernel gets the operator, shapes, and module of its launch, from the graph
// that was captured for the step's batch size, with and without names at capture.
func TestEveryKernelHasItsLaunch(t *testing.T) {
	for _, named := range []bool{true, false} {
		captures, replays := newPlant(named), newPlant(false)
		for _, size := range []int{1, 8, 32} {
			captures.capture(layers(6, size), size)
		}
		replays.replay(layers(6, 8), 5)
		replays.replay(layers(6, 32), 32)
		replays.replay(layers(6, 1), 1)
		g := Collect(sets(captures, replays))
		for i, size := range []int{8, 32, 1} {
			l := &g.Streams[0].Launches[i]
			if l.Capture == nil || l.Capture.Tokens != int64(size) {
				t.Fatalf("named %v, replay %d: capture %v, want that of %d tokens", named, i, l.Capture, size)
			}
			if right, open := tally(t, g, l, layers(6, size)); open > 0 {
				t.Errorf("named %v, replay %d: %d right, %d without a launch", named, i, right, open)
			}
		}
	}
}

// A launch that is missing on one side only loses itself. If names are known, nothing
// else stays open. If they are not, only nodes nearby stay open, and none is wrong.
func TestMissingLaunchesCostThemselves(t *testing.T) {
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 4))
		model := layers(8, 16)
		drop := r.IntN(len(model))
		for _, named := range []bool{true, false} {
			for _, atCapture := range []bool{true, false} {
				captures, replays := newPlant(named), newPlant(false)
				left, lost := without(model, drop), 1
				if atCapture {
					captures.capture(left, 16)
					replays.replay(model, 16)
					left = model
				} else {
					captures.capture(model, 16)
					replays.replay(left, 16)
					lost = 0
				}
				g := Collect(sets(captures, replays))
				right, open := tally(t, g, &g.Streams[0].Launches[0], left)
				if most := lost; named && open > most || open > lost+8 || right == 0 {
					t.Errorf("seed %d, named %v, at capture %v, dropped %d (%s): %d right, %d open", seed, named, atCapture, drop, model[drop].kernel, right, open)
				}
			}
		}
	}
}

// An operator compiled by Inductor carries its kernel's name. It keeps its kernel even
// if its neighbors are of unknown kinds and one of them is missing.
func TestCompiledOperatorsHaveTheNameOfTheirKernel(t *testing.T) {
	model := layers(1, 16)
	for i := range 6 {
		name := fmt.Sprintf("triton_poi_fused_%d", i)
		model = append(model, planted{name, name, "[[16]]", "GraphModule_0", false})
	}
	captures, replays := newPlant(false), newPlant(false)
	captures.capture(model, 16)
	left := without(model, len(model)-3)
	replays.replay(left, 16)
	g := Collect(sets(captures, replays))
	if right, open := tally(t, g, &g.Streams[0].Launches[0], left); open > 0 {
		t.Errorf("%d right, %d open", right, open)
	}
}

// If equally many are missing on both sides, equal lengths prove nothing.
func TestEqualLengthsAreNoProof(t *testing.T) {
	model := layers(8, 16)
	captures, replays := newPlant(false), newPlant(false)
	captures.capture(without(model, 20), 16)
	replays.replay(without(model, 45), 16)
	g := Collect(sets(captures, replays))
	if right, open := tally(t, g, &g.Streams[0].Launches[0], without(model, 45)); right < len(model)-12 || open == 0 {
		t.Errorf("%d right, %d open", right, open)
	}
}

// Short graphs of one layer each lack one launch and have an extra one. The other graphs with
// the same kernels decide; doubtful ones stay open, and hardly any is wrong.
func TestShortGraphsAgree(t *testing.T) {
	all, right, wrong := 0, 0, 0
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 6))
		captures, replays := newPlant(false), newPlant(false)
		var models [][]planted
		model := layers(20, 16)[1:]
		for part := range slices.Chunk(model, 8) {
			lost, surplus := r.IntN(len(part)), r.IntN(len(part))
			captures.capture(without(part, lost), 16)
			models = append(models, without(part, surplus))
			replays.replay(models[len(models)-1], 16)
		}
		step := &replays.rows.RangeRows[0]
		step.End = replays.now
		replays.rows.RangeRows = replays.rows.RangeRows[:1]
		g := Collect(sets(captures, replays))
		for i, m := range models {
			n, _, bad := count(t, g, &g.Streams[0].Launches[i], m)
			all, right, wrong = all+len(m), right+n, wrong+len(bad)
		}
	}
	if 100*wrong > 2*all || 100*right < 75*all {
		t.Errorf("of %d, %d are right, %d wrong", all, right, wrong)
	}
}

// Kernels on a second stream may run before others that were launched earlier. Names
// resolve that, and so do the numbers of nodes, which are in the order of capture.
func TestStreamsThatRunAtOnce(t *testing.T) {
	model := layers(6, 16)
	for i := 3; i < len(model); i += 8 {
		model[i].side = true
	}
	for _, named := range []bool{true, false} {
		captures, replays := newPlant(named), newPlant(false)
		replays.numbered = !named
		captures.capture(model, 16)
		replays.replay(model, 16)
		g := Collect(sets(captures, replays))
		if right, open := tally(t, g, &g.Streams[0].Launches[0], model); open > 0 {
			t.Errorf("named %v: %d right, %d open", named, right, open)
		}
	}
}

// The captures of another model match no kernel.
func TestAnotherModelFitsNothing(t *testing.T) {
	captures, replays := newPlant(true), newPlant(false)
	other := layers(8, 16)
	for i := range other {
		other[i].kernel = fmt.Sprintf("another_%d", i%5)
	}
	captures.capture(other, 16)
	replays.replay(layers(8, 16), 16)
	g := Collect(sets(captures, replays))
	if c := g.Streams[0].Launches[0].Capture; c != nil {
		t.Errorf("capture %v", c)
	}
}

// Without captures, layers follow from the order: each begins with its norm, and
// kernels before the first norm have no layer.
func TestLayersByOrder(t *testing.T) {
	p := newPlant(false)
	p.replay(layers(6, 16), 16)
	set := testset.SetOf(p.syms, []string{"rank 0"}, &p.rows)
	if Collect(set) != nil {
		t.Fatal("there are captures")
	}
	got := Read(set).Layers(profilewalk.Options{})
	kernels := map[string]int64{}
	for _, r := range got.Rows {
		kernels[r.Layer] += r.Kernels
	}
	if len(kernels) != 6 || kernels["layer 0 by order"] != 8 || kernels["layer 5 by order"] != 8 {
		t.Errorf("%v", kernels)
	}
	if want := []string{"6 x 8 of 49 kernels"}; !slices.Equal(got.Blocks, want) {
		t.Errorf("%v, want %v", got.Blocks, want)
	}
	blocks := testset.CSV(t, got.BlockReport())
	for place, l := range layers(1, 16)[1:] {
		want := fmt.Sprintf("8,%d,", place+1)
		line := slices.IndexFunc(strings.Split(blocks, "\n"), func(s string) bool { return strings.HasPrefix(s, want) && strings.HasSuffix(s, ","+l.kernel) })
		if line < 0 {
			t.Errorf("place %d is not %s:\n%s", place+1, l.kernel, blocks)
		}
	}
}

// If one launch of a kernel in a layer is slow, it shows at its position in the layer, with its block.
func TestSlowPlaceOfABlock(t *testing.T) {
	p := newPlant(false)
	model := layers(6, 16)
	for range 3 {
		p.replay(model, 16)
	}
	const slow = 1 + 4*8 + 6 // silu in the fifth layer
	for i := range p.rows.KernelRows {
		if k := &p.rows.KernelRows[i]; i%len(model)%8 == 1 {
			k.End = k.Start // shorter than the clock resolution
		}
	}
	for i := slow; i < len(p.rows.KernelRows); i += len(model) {
		p.rows.KernelRows[i].End = p.rows.KernelRows[i].Start + 15
	}
	got := Read(testset.SetOf(p.syms, []string{"rank 0"}, &p.rows)).Layers(profilewalk.Options{})
	for _, place := range got.places {
		block, ratio := place.slowest()
		if is := place.place == 6; is != (block == 4) || is != (ratio == 3) || place.place == 0 && ratio != 1 {
			t.Errorf("place %d, %s: slowest in block %d, %g times", place.place, place.kernel, block, ratio)
		}
	}
}
