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

// expertKernels are parts of the names of kernels that multiply the matrices of experts, in lower case: those
// whose time depends on how many tokens experts of the GPU get. What routes, sorts, and sends tokens
// depends on the tokens of the rank itself.
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

// rankOf returns the EP rank that the name of a rank tells, of so many; -1 if it does not. Where attention is
// divided over all GPUs, the TP rank is the EP rank.
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

// sizeInProfiles returns how many EP ranks the names of ranks tell; 0 is unknown.
func sizeInProfiles(set *profile.Set) int {
	most := trace.NoRank.EP
	for _, name := range set.Ranks {
		if w, err := naming.Parse(name); err == nil {
			most = max(most, w.Rank.EP)
		}
	}
	return int(most) + 1
}

// confirm adds how long the kernels of experts took by rank.
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

// trials is how often experts are placed at random. With none that gets as much, p is below 0.001.
const trials = 1000

// count finds the rank that got most, and what others wait for it alone. ahead is by rank: how many tokens it
// had more than the one behind it where it was the busiest one, added up.
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

// misplaced returns how often some rank gets so many tokens if the experts of each layer, with what they got, change
// places at random. That is chance twice over: which tokens came, and that some experts are
// popular, wherever they are. If that is rare, those of one rank are popular for another reason.
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
	rng := rand.New(rand.NewPCG(1, 1)) // the same input gives the same p
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
		if float64(as) > 2*rarely*trials { // it will not get rare any more
			return float64(as) / float64(n+2)
		}
	}
	return float64(as) / (trials + 1)
}

// logs adds what logs say of the balancedness of passes.
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
