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

// An accelerator is a kind of device that sentences have words of its own for. For others they say GPU and CUDA.
type accelerator struct {
	name  string   // what a device is called, if not GPU
	graph string   // its word for "CUDA graph"
	api   string   // its word for CUDA
	marks []string // prefixes of its calls, or of kernels that no other device has; one is in every recording
	makes []string // parts of the names of such devices
}

var accelerators = []accelerator{
	{"", "HIP graph", "HIP", []string{"hipLaunchKernel", "hipModuleLaunchKernel", "hipExtModuleLaunchKernel", "hipGraphLaunch", "hipMemcpy"}, []string{"AMD", "Radeon", "gfx"}},
	{"NPU", "NPU graph", "CANN", []string{"AscendCL@", "hcom_", "aclnn"}, []string{"Ascend"}},
	{"", "SYCL graph", "SYCL", []string{"urEnqueueKernelLaunch", "piEnqueueKernelLaunch", "zeCommandListAppendLaunchKernel"}, []string{"Intel"}},
	{"accelerator", "graph", "the runtime", []string{"runFunction - job_prep_and_submit"}, nil}, // MTIA
}

// cudaMarks are prefixes of calls that show that devices are CUDA GPUs.
var cudaMarks = []string{"cudaLaunchKernel", "cuLaunchKernel", "cudaGraphLaunch", "cudaMemcpyAsync"}

// accelerator returns the kind of the devices, from their names, or from calls that only one kind of
// library has. It returns nil for CUDA GPUs, for devices of several kinds, and if the kind is unknown.
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
	// Look for the names of calls: names of their categories are in the symbol table whoever made it.
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

// made reports whether any device has such a name.
func (a *accelerator) made(devices []string) bool {
	return slices.ContainsFunc(devices, func(device string) bool {
		return slices.ContainsFunc(a.makes, func(part string) bool { return strings.Contains(device, part) })
	})
}

var gpuWord = regexp.MustCompile(`\bGPU(s?)\b`)

// text rewrites a sentence with the words for such devices.
func (a *accelerator) text(s string) string {
	s = strings.NewReplacer("CUDA graph", a.graph, "CUDA calls", "calls", "[CUDA mem", "[mem", "while CUDA,", "while "+a.api+",", "starting CUDA", "starting "+a.api, "CUDA starts", a.api+" starts",
		"asks CUDA again", "asks the driver again", "cudaMemPrefetchAsync", "a prefetch").Replace(s)
	if a.name != "" {
		s = gpuWord.ReplaceAllString(s, a.name+"$1")
	}
	return s
}

// callThem rewrites sentences about devices with the words for their kind.
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

// slowClocks finds GPUs with lower clocks, and their ranks in recordings.
func slowClocks(m *Measured) ([]finding.Finding, finding.Check) {
	return hardware.Clocks(m.Of.Series, m.uses())
}

// uses returns which GPU each rank used, for ranks that used a single one.
func (m *Measured) uses() []hardware.Use { return usesOf(m.Of.Profiles, m.GPUs) }

// usesOf returns which GPU each rank used, for ranks that used a single one; gpus may be nil.
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
		if at.GPU < 0 { // PyTorch numbers devices as its process sees them
			u.GPU, u.Sees = int(g.Device), at.Devices
		}
		list = append(list, u)
	}
	return list
}

// SMClocks returns the clock of each rank's GPU while it was recorded, in MHz, by rank, from
// metrics; 0 if unknown. It returns nil if metrics have no clocks.
func SMClocks(metrics *series.Set, set *profile.Set, opt gpu.Options) []float64 {
	if metrics == nil || !slices.ContainsFunc(metrics.List, func(x series.Series) bool { return x.Metric == series.SMClock }) {
		return nil
	}
	byRank := hardware.ClocksOf(metrics, usesOf(set, gpu.Measure(set, opt)))
	return order.Each(set.Ranks, func(rank string) float64 { return byRank[rank] })
}

// besideClocks adds what metrics say about GPU clocks to findings of late ranks. If metrics
// refute a low clock as the cause, the sentence says so.
func (m *Measured) besideClocks(late []finding.Finding) {
	if m.Of.Series == nil || len(late) == 0 {
		return
	}
	uses := m.uses()
	for i := range late {
		text, equal := hardware.CompareClock(m.Of.Series, uses, late[i].At)
		if text == "" {
			continue
		}
		if equal {
			late[i].Text = strings.Replace(late[i].Text, collective.AsLowClock, ", but metrics have its clock as high as others", 1)
		}
		late[i].Evidence = append(late[i].Evidence, finding.Sentence("%s", text))
	}
}
