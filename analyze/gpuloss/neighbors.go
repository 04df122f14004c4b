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

// A kernelKind is what a name says.
type kernelKind struct {
	kind  kernelname.Kind
	lower string
	bare  string // without what it was called with
	fits  places
}

func kernelKindOf(name string) *kernelKind {
	k := &kernelKind{kind: kernelname.KindOf(name), lower: strings.ToLower(name), bare: profile.BareName(name)}
	k.fits = placesOf(k)
	return k
}

// An occurrence is a pattern in the kernels of a stream, in steps of one kind, or a run without one.
type occurrence struct {
	what, how, source string
	step              profile.StepKind
	kernels           string // names of most occurrences
	n                 int64
	most              int64 // that have the names of kernels
	total, saves      int64 // ns
}

// A seeker finds what neighbors on streams one kernel could do.
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

// seek finds what neighbors on the streams of some processes one kernel could do, and what could run at once.
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
	// What comes less often than in every second layer is of no layer: sampling, or the beginning of a step.
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

// whole returns the key of what counts together: kernels of one pattern have other names for other sizes.
func (f *occurrence) whole() string {
	name := f.what
	if f.source == "" {
		name = f.kernels
	}
	return profilewalk.StepKinds[f.step] + "\x00" + name
}

// countAttention counts how many times attention is computed: some splits it into several kernels.
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

// adjacent is how far apart, in ns, neighbors may be: what is launched later is no part of a layer's work.
const adjacent = 50_000

// step looks at the first kernel of some, and returns how many kernels it is done with.
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
		x.count("run of small kernels", "torch.compile, or one kernel for all, where each reads what the one before wrote", "", kernels[:n])
	}
	return max(1, n)
}

// inPieces is attention of several kernels.
const inPieces = "attention in pieces: product, softmax, product"

// maxBetween is how many kernels that scale, mask, and convert scores are between the products and the softmax.
const maxBetween = 6

// attentionInPieces returns how many of some kernels compute the scores of attention with one product, their softmax, and
// the result with another product; 0 is that they do not begin so.
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

// plain are kinds of kernels that change each number, or move it.
var plain = map[kernelname.Kind]bool{kernelname.KindElementwise: true, kernelname.KindCopy: true}

// begins reports whether a pattern begins with some kernels.
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

// count counts an occurrence. Of one kernel for all, the longest of them is what it takes at least; of attention in
// pieces, each may be slow for what it writes between.
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
