package torch

import "github.com/sgtrace/sgtrace/golden/simulator"

// Groups returns the truth about the groups of a recording.
func Groups(r *simulator.Run, c Config) ([]GroupTruth, error) {
	p, err := NewProfile(r, c)
	if err != nil {
		return nil, err
	}
	var groups []GroupTruth
	for _, g := range p.groups {
		groups = append(groups, g.truth())
	}
	return groups, nil
}
