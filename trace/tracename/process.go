package tracename

import (
	"regexp"
	"strings"

	"github.com/sgtrace/sgtrace/trace"
)

// worker is the title of a process that runs a model. SGLang leaves the parts
// of size 1 out, and all of them with one GPU: "sglang::scheduler".
var worker = regexp.MustCompile(`(?i)^(?:sglang::scheduler|vllm::worker|vllm::enginecore|worker)((?:[-_ ][a-z]+\d*)*)$`)

// ParseProcess reads the title that SGLang ("sglang::scheduler_DP1_TP0_EP0")
// and vLLM ("VLLM::Worker_TP1_EP1") give their processes; other names know no
// rank. "ATTN_CP0", "MOE_DP0", "PCP0", "DCP0" and "NP0" (the node) are parts
// that a [trace.Rank] does not have.
func ParseProcess(name string) trace.Rank {
	r := trace.NoRank
	m := worker.FindStringSubmatch(strings.TrimSpace(name))
	if m == nil {
		return r
	}
	words := strings.FieldsFunc(strings.ToLower(m[1]), func(c rune) bool { return !alnum(byte(c)) })
	for i, w := range words {
		if i > 0 && (words[i-1] == "attn" || words[i-1] == "moe") {
			continue
		}
		if len(w) > 2 && isPart(w[:2]) && !setRank(&r, w[:2], w[2:]) {
			return trace.NoRank
		}
	}
	return r
}
