package kernelname

import (
	"regexp"
	"strings"
)

// DefaultName is the name of [DefaultClasses].
const DefaultName = "default"

// DefaultClasses returns the default rules: communication by [IsCommunication], copies, and kernels that
// certainly compute. Copies that the profiler recorded as such count as memory, whatever their name.
func DefaultClasses() *Classes {
	c := &Classes{Name: DefaultName}
	parts := func(class Class, rules []nameRule) {
		for i := range rules {
			c.Rules = append(c.Rules, ClassRule{Class: class, Source: rules[i].source, part: &rules[i]})
		}
	}
	memory := func(source, pattern string) {
		c.Rules = append(c.Rules, ClassRule{Class: ClassMemory, Source: source, Regexp: regexp.MustCompile(pattern)})
	}
	parts(ClassCompute, mixedRules)
	parts(ClassCommunication, commRules)
	memory("copies in the words of PyTorch's profiler", `^Mem(?:cpy|set)\b`)
	memory("copies in the words of nsys stats", `^\[CUDA mem(?:cpy|set)`)
	memory("copies by kernels of ROCm's runtime", `^__amd_rocclr_(?:copy|fill)`)
	memory("copies by MTIA's control cores", `^dma_request$`)
	c.Rules = append(c.Rules, ClassRule{Class: ClassOther, Source: "waits of MTIA's control cores", Regexp: regexp.MustCompile(`^event_(?:wait|record)$`)})
	parts(ClassCompute, computeRules)
	return c
}

// htaNotCompute are prefixes of names that Holistic Trace Analysis does not count as computation, nor as
// anything else. Some of them are calls of the host, to which it applies the same rules.
var htaNotCompute = []string{
	`nccl`, `.*Memcpy`, `.*Memset`, `.*dma`, `.*Sync`, `Stream Wait Event`, `cuda.*LaunchKernel`, `runFunction`, `hip`,
	`job_exe`, `packet`, `pe_exe`, `cpum_exe_subgraph`, `hccl`, `collective_subgraph_execution`,
}

// HTAClasses returns the rules of Holistic Trace Analysis 0.6, for comparison with its tables. They recognize
// NCCL by its name and count all other communication as computation.
func HTAClasses() *Classes {
	const source = "Holistic Trace Analysis 0.6, hta/common/types.py"
	rule := func(class Class, pattern string) ClassRule {
		return ClassRule{Class: class, Regexp: regexp.MustCompile(pattern), Source: source}
	}
	return &Classes{Name: "hta", Rules: []ClassRule{
		rule(ClassCommunication, `^(?:nccl|hip|hccl|.*ncclKernel)`),
		rule(ClassMemory, `^(?:(?:hip)?Memcpy|(?:hip)?Memset|dma)`),
		rule(ClassOther, `^(?:`+strings.Join(htaNotCompute, "|")+`)`),
		rule(ClassCompute, `.*`),
	}}
}
