package clocks

import (
	"slices"

	"github.com/sgtrace/sgtrace/align/matching"
	"github.com/sgtrace/sgtrace/convert/inputs"
	"github.com/sgtrace/sgtrace/convert/ranks"
	"github.com/sgtrace/sgtrace/internal/parallel"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// ReadCollectives reads the collectives of inputs whose rows are walked, of which
// nothing is known so far. Those of a process that a PyTorch trace has too stay that trace's, which
// tells more about them.
func (m *Clocks) ReadCollectives() {
	if len(m.Tracks) == 1 && m.Tracks[0].Captures[0].File.Meta.Backend == "" {
		return // nobody to meet, and no sizes
	}
	type process struct {
		source *inputs.Indexed
		pid    int64
	}
	byProcess := map[process]*inputs.Recording{}
	for _, r := range m.Tracks {
		if slices.ContainsFunc(r.Captures, func(c *ranks.Capture) bool { return !c.IsBeside() }) {
			continue
		}
		for _, c := range r.Captures {
			byProcess[process{c.File.Source, c.File.Meta.PID}] = c.File
		}
	}
	parallel.Each(len(m.Sources), func(i int) {
		x := m.Sources[i]
		if x.Rows == nil {
			return
		}
		opt := m.Options(profile.Filter{IndexOnly: true, CollectivesOnly: true}, 0)
		opt.Diags, opt.Args = &trace.Diags{}, nil // what is wrong with the file was reported when it was opened
		profiles, err := x.Stream(opt)
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

// Ahead returns how far the clock of each wanted rank is ahead of the reference, in the
// middle of what was recorded of it, ns.
func (m *Clocks) Ahead() []int64 {
	ahead := make([]int64, len(m.Tracks))
	for i, r := range m.Tracks {
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

// ForgetMatches gives up which collectives are the same, and the collectives themselves:
// [Clocks.Meetings] has all that reports want of them.
func (m *Clocks) ForgetMatches() {
	m.alignRanks, m.AlignOf, m.Calls, m.Matches, m.whats = nil, nil, nil, matching.Matches{}, nil
	for _, r := range m.Tracks {
		for _, c := range r.Captures {
			c.File.Collectives = profile.Collectives{}
		}
	}
}
