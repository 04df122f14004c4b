package diff

import (
	"cmp"
	"math"
	"slices"

	"github.com/sgtrace/sgtrace/profile/kernelname"
)

const (
	minAlike     = 20      // kernels of a name in each capture that count
	clockPart    = 0.9     // of their time that has to change by about as much, half of which beyond doubt
	clockChange  = 0.1     // from which on that is a clock, and no other day
	clockScatter = 1.0 / 4 // by how much of the change, as a logarithm, names may differ
)

// computes reports whether the row is of a kernel that takes as long whatever requests and routers ask for.
func (r *Row) computes() bool {
	return r.Kind == Kernel && !kernelname.KindOf(r.Name).Varies()
}

// likeClock says what the clock of the GPUs seems to be: "lower" if nearly all kernels that compute take longer, each by about as
// much, "higher" if they take less long, else "". Nothing that is about one kernel does that.
func (d *Diff) likeClock() string {
	type kernel struct {
		change, weight float64
		known          bool
	}
	var list []kernel
	total := 0.0
	for i := range d.Rows {
		if r := &d.Rows[i]; r.computes() && min(r.Before.N, r.After.N) >= minAlike && r.Before.Mean > 0 && r.After.Mean > 0 {
			k := kernel{math.Log(float64(r.After.Mean) / float64(r.Before.Mean)), float64(r.Before.Mean) * float64(r.Before.N), r.Changed()}
			list, total = append(list, k), total+k.weight
		}
	}
	slices.SortFunc(list, func(a, b kernel) int { return cmp.Compare(a.change, b.change) })
	half, middle := 0.0, 0.0
	for _, k := range list {
		if middle = k.change; half+k.weight >= total/2 {
			break
		}
		half += k.weight
	}
	alike, known := 0.0, 0.0
	for _, k := range list {
		if math.Abs(k.change-middle) > clockScatter*math.Abs(middle) {
			continue
		}
		if alike += k.weight; k.known {
			known += k.weight
		}
	}
	switch {
	case math.Abs(middle) < math.Log1p(clockChange) || alike < clockPart*total || known < alike/2:
		return ""
	case middle > 0:
		return "lower"
	}
	return "higher"
}
