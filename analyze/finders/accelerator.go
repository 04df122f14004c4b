package finders

import (
	"regexp"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/collective"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/gpu"
	"github.com/sgtrace/sgtrace/analyze/hardware"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/series"
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

// slowClocks finds GPUs whose clocks are lower, and the ranks of recordings that they are of.
func slowClocks(m *Measured) ([]finding.Finding, finding.Check) {
	return hardware.Clocks(m.Of.Series, m.uses())
}

// uses are the GPUs that ranks used, of those that used one only.
func (m *Measured) uses() []hardware.Use { return usesOf(m.Of.Profiles, m.GPUs) }

// usesOf are the GPUs that ranks used, of those that used one only; gpus is nil if there are none.
func usesOf(set *profile.Set, gpus *gpu.GPUs) (list []hardware.Use) {
	if gpus == nil {
		return nil
	}
	for i := range gpus.GPUs {
		g := &gpus.GPUs[i]
		k := int(g.RankIndex)
		other := func(o gpu.GPU) bool { return o.RankIndex == g.RankIndex && o.Device != g.Device }
		if k >= len(set.Placements) || slices.ContainsFunc(gpus.GPUs, other) {
			continue
		}
		at := &set.Placements[k]
		u := hardware.Use{Rank: g.Rank, Host: at.Host, UUID: at.UUID, GPU: int(at.GPU), From: g.First, To: g.Last}
		if at.GPU < 0 { // PyTorch counts as its process does
			u.GPU, u.Sees = int(g.Device), at.Devices
		}
		list = append(list, u)
	}
	return list
}

// SMClocks returns what metrics have of the clock of each rank's GPU while it was recorded, in MHz, by rank; 0 is
// unknown. It is nil where metrics have no clocks.
func SMClocks(metrics *series.Set, set *profile.Set, opt gpu.Options) []float64 {
	if metrics == nil || !slices.ContainsFunc(metrics.List, func(x series.Series) bool { return x.Metric == series.SMClock }) {
		return nil
	}
	byRank := hardware.ClocksOf(metrics, usesOf(set, gpu.Measure(set, opt)))
	return order.Each(set.Ranks, func(rank string) float64 { return byRank[rank] })
}

// besideClocks adds to ranks that come late what metrics have of the clocks of their GPUs: a cause that
// they refute is none.
func (m *Measured) besideClocks(late []finding.Finding) {
	if m.Of.Series == nil || len(late) == 0 {
		return
	}
	uses := m.uses()
	for i := range late {
		text, equal := hardware.Beside(m.Of.Series, uses, late[i].At)
		if text == "" {
			continue
		}
		if equal {
			late[i].Text = strings.Replace(late[i].Text, collective.AsLowClock, ", but metrics have its clock as high as others", 1)
		}
		late[i].Evidence = append(late[i].Evidence, finding.Sentence("%s", text))
	}
}
