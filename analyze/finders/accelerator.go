package finders

import (
	"regexp"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/finding"
)

// An accelerator is a kind of device that sentences have words of its own for. Without one they say GPU, and CUDA.
type accelerator struct {
	name  string   // what one is called, where that is not GPU
	graph string   // what "CUDA graph" is there
	api   string   // what CUDA is there
	marks []string // what calls begin with, or kernels that nobody else has, of which a recording has one
	makes []string // what names of such devices have
}

var accelerators = []accelerator{
	{"", "HIP graph", "HIP", []string{"hipLaunchKernel", "hipModuleLaunchKernel", "hipExtModuleLaunchKernel", "hipGraphLaunch", "hipMemcpy"}, []string{"AMD", "Radeon", "gfx"}},
	{"NPU", "NPU graph", "CANN", []string{"AscendCL@", "hcom_", "aclnn"}, []string{"Ascend"}},
	{"", "SYCL graph", "SYCL", []string{"urEnqueueKernelLaunch", "piEnqueueKernelLaunch", "zeCommandListAppendLaunchKernel"}, []string{"Intel"}},
	{"accelerator", "graph", "the runtime", []string{"runFunction - job_prep_and_submit"}, nil}, // of MTIA
}

// cudaMarks are what calls begin with where devices are GPUs of CUDA.
var cudaMarks = []string{"cudaLaunchKernel", "cuLaunchKernel", "cudaGraphLaunch", "cudaMemcpyAsync"}

// accelerator returns what devices are, as calls tell that no other library has, or their names, where no call of CUDA was
// recorded; nil are GPUs of CUDA, devices of several kinds, or ones of which neither is known.
func (m *Measured) accelerator() (found *accelerator) {
	if m.Of.Profiles == nil || m.Of.Profiles.Syms == nil {
		return nil
	}
	several := false
	is := func(a *accelerator) {
		several = several || found != nil && found != a
		found = a
	}
	for i := range accelerators {
		if accelerators[i].made(m.Of.Profiles.GPUs) {
			is(&accelerators[i])
		}
	}
	// By names of calls: those of their categories are in the table whoever has some.
	for _, name := range m.Of.Profiles.Syms.Names() {
		begins := func(mark string) bool { return strings.HasPrefix(name, mark) }
		if slices.ContainsFunc(cudaMarks, begins) {
			return nil
		}
		for i := range accelerators {
			if a := &accelerators[i]; slices.ContainsFunc(a.marks, begins) {
				is(a)
			}
		}
	}
	if several {
		return nil
	}
	return found
}

// made reports whether some devices are such by their names.
func (a *accelerator) made(devices []string) bool {
	return slices.ContainsFunc(devices, func(device string) bool {
		return slices.ContainsFunc(a.makes, func(part string) bool { return strings.Contains(device, part) })
	})
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
