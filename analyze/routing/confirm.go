package routing

import (
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/profile/kernelname"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
	"github.com/sgtrace/sgtrace/trace/naming"
)

// expertKernels are parts of the names, in lower case, of kernels that multiply the matrices of experts, whose time
// depends on how many tokens the experts of the GPU get. The time to route, sort, and send tokens depends on the
// tokens of the rank itself.
var expertKernels = []string{
	"fused_moe",           // Triton's of SGLang and vLLM
	"moe_gemm", "moegemm", // TensorRT-LLM, CUTLASS of FlashInfer, CK of AMD (kernel_moe_gemm)
	"gemm_moe", "moe_wna16", // Marlin and the like
	"moe_marlin", "marlin_moe", // vLLM
	"grouped_gemm", "groupedgemm", "group_gemm", "gemm_grouped", "gemmgrouped",
	"gemmuniversalgrouped", "groupproblemshape", // CUTLASS, with the experts as groups
	"m_grouped", "gemmtype)1", "gemmtype)2", "gemmtype::m", // DeepGEMM: contiguous and masked layouts
	"moe::dev::", "fmoe", // trtllm-gen; aiter of AMD
}

// isOfExperts reports whether a kernel multiplies matrices of experts.
func isOfExperts(name string) bool {
	lower := strings.ToLower(name)
	return !kernelname.IsCommunication(name) &&
		slices.ContainsFunc(expertKernels, func(part string) bool { return strings.Contains(lower, part) })
}

// rankOf returns the EP rank in the name of a rank, out of ep ranks; -1 if it has none. If attention is divided over
// all GPUs, the TP rank is the EP rank.
func rankOf(name string, ep int) int {
	w, err := naming.Parse(name)
	switch {
	case err != nil:
	case w.Rank.EP >= 0:
		return int(w.Rank.EP)
	case w.Rank.TP >= 0 && int(w.Rank.TP) < ep:
		return int(w.Rank.TP)
	case w.Rank.Global >= 0 && int(w.Rank.Global) < ep:
		return int(w.Rank.Global)
	}
	return -1
}

// sizeInProfiles returns the number of EP ranks according to the names of ranks; 0 is unknown.
func sizeInProfiles(set *profile.Set) int {
	most := trace.NoRank.EP
	for _, name := range set.Ranks {
		if w, err := naming.Parse(name); err == nil {
			most = max(most, w.Rank.EP)
		}
	}
	return int(most) + 1
}

// confirm adds how long the kernels of experts took on each rank.
func (r *Routing) confirm(set *profile.Set) {
	took := make([]int64, len(set.Ranks))
	ofExperts := trace.EachName(set.Syms, isOfExperts)
	for _, st := range set.Streams {
		st.Kernels(func(k *profile.Kernel) bool {
			if ofExperts.Of(k.Name) && k.Rank >= 0 {
				took[k.Rank] += k.Dur()
			}
			return true
		})
	}
	for _, s := range r.Sources {
		n, all := 0, int64(0)
		for i, name := range set.Ranks {
			g := rankOf(name, s.EP)
			if g < 0 || g >= len(s.ByRank) || took[i] == 0 || s.ByRank[g].Kernels != 0 {
				continue
			}
			s.ByRank[g].Kernels = took[i]
			n++
			all += took[i]
		}
		for g := range s.ByRank {
			if x := &s.ByRank[g]; x.Kernels > 0 && n > 1 {
				x.Slower = float64(x.Kernels) * float64(n) / float64(all)
			}
		}
	}
}

// trials is the number of random placements of experts. If none has a rank with as many tokens, p is below 0.001.
const trials = 1000

// count finds the rank with the most tokens, and how long the others wait only for it. ahead is, by rank, the number
// of tokens by which it exceeded the second busiest rank, summed over the passes and layers in which it was the
// busiest.
func (s *Source) count(ahead []float64) {
	s.Hot = 0
	for g := range s.ByRank {
		if s.ByRank[g].Tokens > s.ByRank[s.Hot].Tokens {
			s.Hot = g
		}
	}
	if s.most > 0 {
		s.Single = ahead[s.Hot] / s.most
	}
	if hot := &s.ByRank[s.Hot]; s.EP > 1 && hot.Times >= hotTimes {
		s.P = s.misplaced(hot.Tokens)
	}
}

// misplaced returns the probability that some rank gets at least that many tokens if the experts of each layer, with
// their tokens, are placed at random. That covers two kinds of chance: which tokens came, and that some experts are
// popular wherever they are. If it is rare, those of one rank are popular for another reason.
func (s *Source) misplaced(tokens float64) float64 {
	type layer struct {
		loads []float64
		ranks []int
	}
	layers := make([]layer, len(s.ByLayer))
	for i := range s.ByLayer {
		x := &s.ByLayer[i]
		for e, at := range x.place.at {
			for _, g := range at {
				layers[i].loads, layers[i].ranks = append(layers[i].loads, x.total[e]/float64(len(at))), append(layers[i].ranks, g)
			}
		}
	}
	const rounded = 1 - 1e-9
	rng := rand.New(rand.NewPCG(1, 1)) // so that the same input gives the same p
	got, as := make([]float64, s.EP), 1
	for n := range trials {
		clear(got)
		for _, x := range layers {
			rng.Shuffle(len(x.loads), func(a, b int) { x.loads[a], x.loads[b] = x.loads[b], x.loads[a] })
			for i, g := range x.ranks {
				got[g] += x.loads[i]
			}
		}
		if slices.Max(got) >= tokens*rounded {
			as++
		}
		if float64(as) > 2*rarely*trials { // it cannot become rare any more
			return float64(as) / float64(n+2)
		}
	}
	return float64(as) / (trials + 1)
}

// logs adds the balancedness of passes from logs.
func (r *Routing) logs(set *series.Set) {
	if set == nil {
		return
	}
	for i, x := range set.List {
		if x.Metric != series.Balancedness || set.N(i) == 0 {
			continue
		}
		server := &set.Servers[set.Places[x.Place].Server]
		s := &Source{Name: server.Name, Hot: -1, P: 1, Passes: set.N(i), Lowest: 1, EP: int(server.EP)}
		if s.EP > 0 {
			s.By = "log"
		}
		for v := range set.Each(i) {
			b := v.Value / 100
			s.balance, s.times = append(s.balance, b), append(s.times, v.Time)
			s.Logged += b / float64(s.Passes)
			s.Lowest = min(s.Lowest, b)
		}
		s.First = s.times[0]
		if k := slices.IndexFunc(set.List, func(o series.Series) bool { return o.Metric == series.ExpertTokens && o.Place == x.Place }); k >= 0 {
			for v := range set.Each(k) {
				s.Tokens += int64(v.Value)
			}
		}
		r.Sources = append(r.Sources, s)
	}
}
