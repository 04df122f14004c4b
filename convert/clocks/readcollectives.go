package clocks

import (
	"slices"

	"github.com/sgtrace/sgtrace/convert/inputs"
	"github.com/sgtrace/sgtrace/convert/ranks"
	"github.com/sgtrace/sgtrace/internal/parallel"
)

// ReadCollectives reads the collectives of inputs whose rows are walked: no index has them. A process that a PyTorch trace has, too, keeps
// the collectives of that trace, which tells more about them.
func ReadCollectives(in *inputs.Loaded, of *ranks.Assignment) {
	if len(of.Tracks) == 1 && of.Tracks[0].Captures[0].File.Meta.Backend == "" {
		return // there is no other rank, and nothing tells sizes
	}
	type process struct {
		source *inputs.Source
		pid    int64
	}
	byProcess := map[process]*inputs.ProcessProfile{}
	for _, r := range of.Tracks {
		if slices.ContainsFunc(r.Captures, func(c *ranks.Capture) bool { return !c.IsBeside() }) {
			continue
		}
		for _, c := range r.Captures {
			byProcess[process{c.File.Source, c.File.Meta.PID}] = c.File
		}
	}
	parallel.Each(len(in.Sources), func(i int) {
		x := in.Sources[i]
		if x.Content.Rows == nil {
			return
		}
		profiles, err := in.Collectives(x)
		if err != nil {
			return
		}
		for _, p := range profiles {
			if f := byProcess[process{x, p.Meta.PID}]; f != nil {
				f.Rows, f.Collectives = p.Rows, p.Collectives
			}
		}
	})
}

// ClockOffsets returns how far the clock of each wanted rank is ahead of the reference, in the
// middle of what was recorded of it, ns.
func (m *Alignment) ClockOffsets(of *ranks.Assignment) []int64 {
	ahead := make([]int64, len(of.Tracks))
	for i, r := range of.Tracks {
		middle := int64(0)
		for k, c := range r.Captures {
			if at := int64(c.First) + (int64(c.Last)-int64(c.First))/2; k == 0 || at < middle {
				middle = at
			}
		}
		ahead[i] = middle - m.HostClocks[r.Clock].Fit.ToReference(middle)
	}
	return ahead
}

// ForgetMatches gives up which collectives are the same: [Alignment.CollectiveMatches] has all that
// reports want of them.
func (m *Alignment) ForgetMatches() {
	m.Meetings, m.hosts = Meetings{}, Meetings{}
}
