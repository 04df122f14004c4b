package finders

import (
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
		late[i].Brief = late[i].At.RankName() + " is late in its collectives"
		if equal {
			late[i].Brief = ""
			late[i].Text = strings.Replace(late[i].Text, collective.AsLowClock, ", but metrics have its clock as high as others", 1)
		}
		late[i].Evidence = append(late[i].Evidence, finding.Sentence("%s", text))
	}
}
