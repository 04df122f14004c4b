package graphs

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/host"
	"github.com/sgtrace/sgtrace/analyze/profilewalk"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/testkit/testset"
)

// pass adds a pass through a model without a graph, in a step of batch requests, and
// the work after it in the same step.
func (p *plant) pass(model []planted, batch, tokens int) {
	from := p.now
	for i, l := range model {
		start := p.now
		p.now += 3
		corr := p.call("cudaLaunchKernel").Correlation
		p.frame(profile.OperatorFrame, l.operator, l.shapes, start+1, p.now-1)
		p.frame(profile.PythonFrame, profile.ModulePrefix+l.module, "", start, p.now)
		k := profile.Kernel{Event: p.event(l.kernel, p.now, p.now+5), Stream: 7}
		k.Correlation = corr
		p.rows.KernelRows = append(p.rows.KernelRows, k)
		if i == len(model)-2 { // the last GEMM is in another module: it computes logits
			p.frame(profile.PythonFrame, profile.ModulePrefix+"Model_0", "", from, p.now)
		}
	}
	p.rows.RangeRows = append(p.rows.RangeRows, profile.Range{Event: p.event(fmt.Sprintf("step[EXTEND bs=%d toks=%d]", batch, tokens), from-1, p.now), TID: 1})
	p.now += 100
}

// decoder returns the model of layers with logits, for a number of tokens.
func decoder(n, tokens int) []planted {
	return append(layers(n, tokens), planted{"nvjet_logits", "aten::mm", fmt.Sprintf("[[%d,64],[64,1000]]", tokens), "Logits_0", false})
}

// A graph without a capture gets the operators, sizes, and modules of a prefill of the
// same model, whatever the names of its kernels, according to the planted truth. Attention
// by another kernel only gets its module. Kernels that only the graph has get neither.
func TestPassWithoutGraph(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 40))
		n, batch := 2+rng.IntN(30), 1+rng.IntN(64)
		p := newPlant(false)
		const tokens = 5003 // not a size in the model
		p.pass(decoder(n, tokens), 3, tokens)
		want := decoder(n, batch)
		var graph []planted
		var truth []int // index into want, or none
		for i, l := range want {
			l.kernel = map[string]string{"nvjet_qkv": "nvjet_small", "nvjet_o": "nvjet_small", "nvjet_down": "splitk_gemm", "flash_fwd_kernel": "paged_attention_decode"}[l.kernel]
			if l.kernel == "" {
				l.kernel = want[i].kernel
			}
			graph, truth = append(graph, l), append(truth, i)
			switch l.kernel {
			case "splitk_gemm":
				graph, truth = append(graph, planted{kernel: "splitk_gemm_reduce_kernel"}), append(truth, i)
			case "paged_attention_decode":
				graph, truth = append(graph, planted{kernel: "paged_attention_reduce_kernel"}), append(truth, i)
			}
			if rng.IntN(10) == 0 {
				graph, truth = append(graph, planted{kernel: "something_else"}), append(truth, none)
			}
		}
		p.replay(graph, batch)
		set := sets(newPlant(false), p)
		g := Collect(set)
		if g == nil {
			t.Fatalf("seed %d: no pass fits", seed)
		}
		l := &g.Streams[0].Launches[0]
		for i := range l.Nodes {
			place, known := l.Place(i)
			if truth[i] == none {
				if known {
					t.Errorf("seed %d: %s is said to be of %s", seed, graph[i].kernel, g.name(place.Operator))
				}
				continue
			}
			w := want[truth[i]]
			operator, shapes := w.operator, w.shapes
			if w.kernel == "flash_fwd_kernel" {
				operator, shapes = "", ""
			}
			if got := [...]string{g.name(place.Operator), g.name(place.Shapes), g.name(place.Module)}; got != [...]string{operator, shapes, w.module} {
				t.Errorf("seed %d: %s: got %q, want %q, %q, %q", seed, graph[i].kernel, got, operator, shapes, w.module)
			}
		}
	}
}

// A pass of another model does not match, nor one that launches graphs itself.
func TestPassOfAnotherModel(t *testing.T) {
	p := newPlant(false)
	p.pass(decoder(4, 5003), 3, 5003)
	p.replay(decoder(5, 8), 8)
	if g := Collect(sets(newPlant(false), p)); g != nil {
		t.Error("a model of 4 layers explains one of 5")
	}
	p = newPlant(false)
	p.pass(decoder(4, 5003), 3, 5003)
	p.rows.CallRows = slices.Insert(p.rows.CallRows, 3, profile.Call{Event: p.event("cudaGraphLaunch", p.rows.CallRows[2].End+1, p.rows.CallRows[2].End+2), TID: 1})
	p.replay(decoder(4, 8), 8)
	if g := Collect(sets(newPlant(false), p)); g != nil {
		t.Error("a pass that launches graphs explains one")
	}
}

// Sizes that are not the number of tokens stay unchanged. If the number of tokens may be a size of the model, nothing is resized.
func TestResize(t *testing.T) {
	for _, test := range [...]struct{ in, want string }{
		{"[[15360,4096],[4096,6144]]", "[[32,4096],[4096,6144]]"},
		{"[[491520, 128], [], [128]]", "[[1024, 128], [], [128]]"},
		{"[[15,4096],[16]]", "[[8,4096],[16]]"},
		{"", ""},
	} {
		if got := resize(test.in, 15360, 15, 32, 8); got != test.want {
			t.Errorf("%s: got %s, want %s", test.in, got, test.want)
		}
	}
	p := newPlant(false)
	p.pass(decoder(3, 64), 1, 64)
	p.replay(decoder(3, 8), 8)
	g := Collect(sets(newPlant(false), p))
	if g == nil {
		t.Fatal("no pass fits")
	}
	if place, ok := g.Streams[0].Launches[0].Place(2); !ok || g.name(place.Operator) != "aten::mm" || place.Shapes != 0 {
		t.Errorf("got %q of shapes %q, %v", g.name(place.Operator), g.name(place.Shapes), ok)
	}
}

// Stacks of GPU time continue through the launch of a graph into the frames that launched its kernels at capture.
func TestStacksThroughGraphs(t *testing.T) {
	p := newPlant(false)
	p.pass(decoder(2, 5003), 3, 5003)
	p.replay(decoder(2, 8), 8)
	set := sets(newPlant(false), p)
	for _, known := range [...]bool{false, true} {
		captures := (*Graphs)(nil)
		want := "cudaGraphLaunch;nvjet_o"
		if known {
			captures = Collect(set)
			want = "cudaGraphLaunch;nn.Module: Model;nn.Module: Attention;aten::mm;nvjet_o"
		}
		if text := testset.CSV(t, host.Sum(set, profilewalk.Options{}, captures).Reports()[1]); !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}
