package gpuloss

import (
	"github.com/sgtrace/sgtrace/analyze/graphs"
	"github.com/sgtrace/sgtrace/analyze/operators"
	"github.com/sgtrace/sgtrace/analyze/profilewalk"
	"github.com/sgtrace/sgtrace/internal/parallel"
	"github.com/sgtrace/sgtrace/profile"
)

// Faster is what of the work of GPUs could be faster, and what tells it.
type Faster struct {
	*Opportunities
	Fills *Fills
	Roofs *operators.Rooflines
}

// FindFaster finds what could be faster.
func FindFaster(set *profile.Set, replays *graphs.Graphs, beside operators.Beside, opt profilewalk.Options) *Faster {
	f, captured := &Faster{Opportunities: newOpportunities()}, replays.Captured()
	roofs := operators.NewRooflineSum(set, captured, beside, opt)
	found, fills, of := make([]*seeker, len(set.Streams)), make([]fillSums, len(set.Streams)), serverOf(set)
	profilewalk.EachStream(set, func(i int, s profile.Stream) {
		steps := profilewalk.ReadKernelSteps(set, s)
		parallel.All(
			func() { roofs.Add(i, s, steps) },
			func() { found[i] = seek(set, s, steps, of, &opt) },
			func() { fills[i] = sumFills(set, s, steps, &opt) },
		)
	})
	f.Roofs, f.Fills = roofs.Rooflines(), fillsOf(set, fills)
	inPattern := f.neighbors(found)
	f.padding(captured)
	f.farFromRoof(f.Roofs, f.Fills, inPattern)
	f.singleThreads(f.Fills)
	f.finish()
	return f
}
