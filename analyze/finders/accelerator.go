package finders

import (
	"regexp"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/finding"
)

// An accelerator is a kind of device that sentences have words of its own for. Without one they say GPU, and CUDA.
type accelerator struct {
	name  string   // what one is called, where that is not GPU
	graph string   // what "CUDA graph" is there
	api   string   // what CUDA is there
	marks []string // calls, or categories of calls, of which a recording has one
}

var accelerators = []accelerator{
	{"", "HIP graph", "HIP", []string{"hipLaunchKernel", "hipModuleLaunchKernel", "hipExtModuleLaunchKernel", "hipGraphLaunch", "hipMemcpyWithStream", "hipMemcpyAsync", "hipMemcpy"}},
	{"NPU", "NPU graph", "CANN", []string{"privateuse1_runtime"}},
	{"accelerator", "graph", "the runtime", []string{"mtia_runtime"}},
}

// accelerator returns what devices are, as calls tell that no other library has; nil are GPUs of CUDA, devices
// of several kinds, or ones of which no call was recorded.
func (m *Measured) accelerator() (found *accelerator) {
	if m.Of.Profiles == nil || m.Of.Profiles.Syms == nil {
		return nil
	}
	has := func(names ...string) bool {
		for _, name := range names {
			if _, ok := m.Of.Profiles.Syms.Lookup(name); ok {
				return true
			}
		}
		return false
	}
	if has("cudaLaunchKernel", "cudaLaunchKernelExC", "cuLaunchKernel", "cudaGraphLaunch", "cudaMemcpyAsync") {
		return nil
	}
	for i := range accelerators {
		if has(accelerators[i].marks...) {
			if found != nil {
				return nil
			}
			found = &accelerators[i]
		}
	}
	return found
}

var gpuWord = regexp.MustCompile(`\bGPU(s?)\b`)

// text says the same of such devices.
func (a *accelerator) text(s string) string {
	s = strings.NewReplacer("CUDA graph", a.graph, "CUDA calls", "calls", "[CUDA mem", "[mem", "while CUDA,", "while "+a.api+",", "starting CUDA", "starting "+a.api, "CUDA starts", a.api+" starts",
		"asks CUDA again", "asks the driver again", "cudaMemPrefetchAsync", "a prefetch").Replace(s)
	if a.name != "" {
		s = gpuWord.ReplaceAllString(s, a.name+"$1")
	}
	return s
}

// callThem makes sentences about devices say what these are called.
func (m *Measured) callThem(r *Result) {
	a := m.accelerator()
	if a == nil {
		return
	}
	for _, list := range [...][]finding.Finding{r.All, r.Findings} {
		for i := range list {
			f := &list[i]
			f.Text, f.BasisText = a.text(f.Text), a.text(string(f.CostBasis))
			evidence := make([]finding.Evidence, len(f.Evidence))
			for k, e := range f.Evidence {
				e.Text = a.text(e.Text)
				evidence[k] = e
			}
			f.Evidence = evidence
		}
	}
	for i := range r.Checks {
		c := &r.Checks[i].Check
		c.What, c.Reason = a.text(c.What), a.text(c.Reason)
	}
}
