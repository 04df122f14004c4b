package opportunity

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/walk"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// A ran is a kernel that ran.
type ran struct {
	start trace.Time
	dur   int64
	name  trace.Sym
}

// A lane is a stream of a device.
type lane struct {
	rank, device int32
	stream       uint32
}

// A kernelKind is what a name says.
type kernelKind struct {
	kind  profile.Kind
	lower string
}

// kernelKinds know names. Each is looked at once.
type kernelKinds struct {
	syms  *trace.Symbols
	known map[trace.Sym]kernelKind
}

func (k *kernelKinds) of(name trace.Sym) kernelKind {
	known, ok := k.known[name]
	if !ok {
		text := k.syms.Name(name)
		known = kernelKind{profile.KindOf(text), strings.ToLower(text)}
		k.known[name] = known
	}
	return known
}

// A found is a pattern in the kernels of a stream, or a run without one.
type found struct {
	what, how, source string
	kernels           string // names of most occurrences
	n                 int64
	most              int64 // that have the names of kernels
	total, saves      int64 // ns
}

// findNeighbors finds what neighbors on streams one kernel could do.
func findNeighbors(set *profile.Set, s profile.Stream, opt *walk.Options) map[string]*found {
	lanes := map[lane][]ran{}
	for k := range s.Kernels {
		if opt.Keeps(&k.Event) && !k.Graph {
			at := lane{k.Rank, k.Device, k.Stream}
			lanes[at] = append(lanes[at], ran{k.Start, k.Dur(), k.Name})
		}
	}
	kinds := &kernelKinds{set.Syms, map[trace.Sym]kernelKind{}}
	all := map[string]*found{}
	blocks := int64(0)
	for _, kernels := range lanes {
		slices.SortFunc(kernels, func(a, b ran) int { return cmp.Compare(a.start, b.start) })
		blocks += attentionBlocks(kernels, kinds)
		for i := 0; i < len(kernels); {
			i += step(kernels[i:], kinds, all)
		}
	}
	// What comes less often than in every second layer is of no layer: sampling, or the beginning of a step.
	often := map[string]int64{}
	for _, f := range all {
		often[f.whole()] += f.n
	}
	maps.DeleteFunc(all, func(_ string, f *found) bool { return blocks == 0 || 2*often[f.whole()] < blocks })
	return all
}

// whole is what counts together: kernels of one pattern have other names in prefill and in decode.
func (f *found) whole() string {
	if f.source == "" {
		return f.kernels
	}
	return f.what
}

// attentionBlocks counts how many times attention is computed: some splits it into several kernels.
func attentionBlocks(kernels []ran, kinds *kernelKinds) (n int64) {
	within := false
	for i := range kernels {
		is := kinds.of(kernels[i].name).kind == profile.KindAttention
		if is && !within {
			n++
		}
		within = is
	}
	return n
}

// adjacent is how far apart, in ns, neighbors may be: what is launched later is no part of a layer's work.
const adjacent = 50_000

// step looks at the first kernel of some, and returns how many kernels it is done with.
func step(kernels []ran, kinds *kernelKinds, all map[string]*found) int {
	for i := range patterns {
		if p := &patterns[i]; p.fits(kernels, kinds) && together(kernels[:len(p.kinds)]) {
			count(all, p.name, p.how, p.source, kernels[:len(p.kinds)], kinds)
			return len(p.kinds)
		}
	}
	n := 0
	for n < len(kernels) && small[kinds.of(kernels[n].name).kind] && together(kernels[:n+1]) && (n == 0 || !begins(kernels[n:], kinds)) {
		n++
	}
	if n >= leastRun {
		count(all, "run of small kernels", "torch.compile, or one kernel for all: each reads what the one before wrote", "", kernels[:n], kinds)
		return n
	}
	return 1
}

// begins reports whether a pattern begins with some kernels.
func begins(kernels []ran, kinds *kernelKinds) bool {
	return slices.ContainsFunc(patterns, func(p pattern) bool { return p.fits(kernels, kinds) })
}

func together(kernels []ran) bool {
	for i := 1; i < len(kernels); i++ {
		if kernels[i].start-kernels[i-1].start-trace.Time(kernels[i-1].dur) > adjacent {
			return false
		}
	}
	return true
}

// count counts an occurrence. Of one kernel for all, the longest of them is what it takes at least.
func count(all map[string]*found, what, how, source string, kernels []ran, kinds *kernelKinds) {
	names := make([]string, len(kernels))
	total, longest := int64(0), int64(0)
	for i, k := range kernels {
		names[i] = profile.BareName(kinds.syms.Name(k.name))
		total = distribution.AddTimes(total, k.dur)
		longest = max(longest, k.dur)
	}
	key := what + "\x00" + strings.Join(names, "\x00")
	f := all[key]
	if f == nil {
		f = &found{what: what, how: how, source: source, kernels: strings.Join(names, ", ")}
		all[key] = f
	}
	f.n++
	f.total = distribution.AddTimes(f.total, total)
	f.saves = distribution.AddTimes(f.saves, total-longest)
}
