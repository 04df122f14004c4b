package routing

import (
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/profile/kernelname"
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
