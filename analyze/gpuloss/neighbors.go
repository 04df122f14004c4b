package gpuloss

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/profilewalk"
	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/profile/kernelname"
	"github.com/sgtrace/sgtrace/trace"
)

// A ran is a kernel that ran. Exports have millions of them.
type ran struct {
	start  trace.Time
	dur    int64
	name   trace.Sym
	stream uint32
	step   profile.StepKind
}

func (r *ran) end() trace.Time { return r.start + trace.Time(r.dur) }

// A kernelKind is what the name of a kernel says.
type kernelKind struct {
	kind  kernelname.Kind
	lower string
	bare  string // without parameters
	fits  places
}

func kernelKindOf(name string) *kernelKind {
	k := &kernelKind{kind: kernelname.KindOf(name), lower: strings.ToLower(name), bare: profile.BareName(name)}
	k.fits = placesOf(k)
	return k
}

// An occurrence is a pattern, or a run of small kernels, among the kernels of a stream in steps of one kind.
type occurrence struct {
	what, how, source string
	step              profile.StepKind
	kernels           string // names of the kernels in most occurrences
	n                 int64
	most              int64 // number of occurrences with these names
	total, saves      int64 // ns
}

// A seeker finds neighbors on streams that one kernel could replace.
type seeker struct {
	kinds  *trace.PerName[*kernelKind]
	of     server
	amd    bool
	all    map[string]*occurrence
	blocks [numSteps]int64 // how often attention is computed, by kind of step
	steps  int64           // of servers
	time   int64           // ns of all kernels

	overlaps map[profile.StepKind]*overlap
}

const numSteps = profile.StepDecode + 1

// seek finds neighbors on the streams of some processes that one kernel could replace, and what could run at the same time.
func seek(set *profile.Set, s profile.Stream, steps *profilewalk.KernelSteps, of server, opt *profilewalk.Options) *seeker {
	x := &seeker{steps: steps.CountServer(opt), kinds: trace.EachName(set.Syms, kernelKindOf), of: of, all: map[string]*occurrence{}, overlaps: map[profile.StepKind]*overlap{}}
	devices := map[device][]ran{}
	for k := range s.Kernels {
		if opt.Keeps(&k.Event) && !k.Graph {
			kind, _ := steps.Kind(&k.Event)
			x.time = distribution.AddTimes(x.time, k.Dur())
			at := device{k.Rank, k.Device}
			devices[at] = memory.Append(devices[at], ran{k.Start, k.Dur(), k.Name, k.Stream, kind})
		}
	}
	for at, all := range devices {
		x.amd = strings.Contains(set.GPU(at.rank), "AMD")
		slices.SortFunc(all, func(a, b ran) int { return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(a.stream, b.stream)) })
		x.findOverlaps(set, all)
		slices.SortFunc(all, func(a, b ran) int { return cmp.Or(cmp.Compare(a.stream, b.stream), cmp.Compare(a.start, b.start)) })
		for on := range order.Runs(all, func(a, b *ran) bool { return a.stream == b.stream }) {
			x.seekOn(on)
		}
		memory.Free(all)
	}
	// What occurs less often than in every other layer belongs to no layer: sampling, or the beginning of a step.
	often := map[string]int64{}
	for _, f := range x.all {
		often[f.whole()] += f.n
	}
	maps.DeleteFunc(x.all, func(_ string, f *occurrence) bool {
		return x.blocks[f.step] == 0 || 2*often[f.whole()] < x.blocks[f.step]
	})
	return x
}

// seekOn looks at the kernels of one stream.
func (x *seeker) seekOn(kernels []ran) {
	x.countAttention(kernels)
	for i := 0; i < len(kernels); {
		i += x.step(kernels[i:])
	}
}

// whole returns the key by which occurrences add up: kernels of one pattern have different names for different sizes.
func (f *occurrence) whole() string {
	name := f.what
	if f.source == "" {
		name = f.kernels
	}
	return profilewalk.StepKinds[f.step] + "\x00" + name
}

// countAttention counts how often attention is computed. Kernels of attention in a row count once, as some servers split it into several.
func (x *seeker) countAttention(kernels []ran) {
	within := false
	for i := range kernels {
		is := x.kinds.Of(kernels[i].name).kind == kernelname.KindAttention
		if is && !within {
			x.blocks[kernels[i].step]++
		}
		within = is
	}
}

// adjacent is how far apart neighbors may be, in ns: what is launched later does not belong to the same work of a layer.
const adjacent = 50_000

// step looks for what begins with the first kernel, and returns how many kernels are done.
func (x *seeker) step(kernels []ran) int {
	for i := range patterns {
		if p := &patterns[i]; fits(i, kernels, x.kinds) && together(kernels[:len(p.kinds)]) {
			if how, source := p.how(x.of, x.amd); how != "" {
				x.count(p.name, how, source, kernels[:len(p.kinds)])
			}
			return len(p.kinds)
		}
	}
	if n := x.attentionInPieces(kernels); n > 0 {
		x.blocks[kernels[0].step]++
		x.count(inPieces, "scaled_dot_product_attention of PyTorch, or FlashAttention: one kernel that writes no scores to memory", "", kernels[:n])
		return n
	}
	n := 0
	for n < len(kernels) && small[x.kinds.Of(kernels[n].name).kind] && together(kernels[max(0, n-1):n+1]) && (n == 0 || !x.begins(kernels[n:])) {
		n++
	}
	if n >= minRun && !compiled(kernels[:n], x.kinds) {
		x.count("run of small kernels", "torch.compile, or one fused kernel where each reads what the one before wrote", "", kernels[:n])
	}
	return max(1, n)
}

// inPieces names attention that several kernels compute.
const inPieces = "attention in pieces: product, softmax, product"

// maxBetween is the most kernels that scale, mask, and convert scores between a product and the softmax.
const maxBetween = 6

// attentionInPieces returns how many of the first kernels compute attention: its scores with one
// product, their softmax, and the result with another product. It returns 0 if they do not begin so.
func (x *seeker) attentionInPieces(kernels []ran) int {
	n := 0
	for _, kind := range [...]kernelname.Kind{kernelname.KindGEMM, kernelname.KindSoftmax, kernelname.KindGEMM} {
		for between := 0; n > 0 && n < len(kernels) && between < maxBetween && plain[x.kinds.Of(kernels[n].name).kind]; between++ {
			n++
		}
		if n >= len(kernels) || x.kinds.Of(kernels[n].name).kind != kind {
			return 0
		}
		n++
	}
	if !together(kernels[:n]) {
		return 0
	}
	return n
}

// plain are kinds of kernels that change each number by itself, or move it.
var plain = map[kernelname.Kind]bool{kernelname.KindElementwise: true, kernelname.KindCopy: true}

// begins reports whether a pattern begins with the first kernel.
func (x *seeker) begins(kernels []ran) bool {
	for i := range patterns {
		if fits(i, kernels, x.kinds) {
			return true
		}
	}
	return false
}

func together(kernels []ran) bool {
	for i := 1; i < len(kernels); i++ {
		if kernels[i].start-kernels[i-1].start-trace.Time(kernels[i-1].dur) > adjacent {
			return false
		}
	}
	return true
}

// count counts an occurrence. One kernel for all takes at least as long as the longest of them. Of attention
// in pieces, even the longest may be slow because of what it writes in between, so all of it may be saved.
func (x *seeker) count(what, how, source string, kernels []ran) {
	names := make([]string, len(kernels))
	total, longest := int64(0), int64(0)
	for i, k := range kernels {
		names[i] = x.kinds.Of(k.name).bare
		total = distribution.AddTimes(total, k.dur)
		longest = max(longest, k.dur)
	}
	step := kernels[0].step
	key := profilewalk.StepKinds[step] + "\x00" + what + "\x00" + strings.Join(names, "\x00")
	f := order.Memo(x.all, key, func() *occurrence {
		return &occurrence{what: what, how: how, source: source, step: step, kernels: strings.Join(names, ", ")}
	})
	f.n++
	f.total = distribution.AddTimes(f.total, total)
	if what == inPieces {
		longest = 0
	}
	f.saves = distribution.AddTimes(f.saves, total-longest)
}
