package operators

import (
	"slices"

	"github.com/sgtrace/sgtrace/analyze/profilewalk"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// A Beside is what inputs beside profiles say of what GPUs could do.
type Beside struct {
	Routed *RoutedTokens // nil where it was not recorded which experts tokens went to
	Clocks []float64     // of the units of the GPU of each rank while it was recorded, MHz; 0 is unknown, as is what is missing
}

// clockCounters are the profilers' names of the clock of the units that compute, in MHz: Nsight Systems samples that of
// the graphics processing clusters, in which multiprocessors are, and RPD asks ROCm's SMI.
var clockCounters = []string{"GPC Clock Frequency", "sclk"}

// clocksOf returns the clock of the units of each rank's GPU, in MHz: the median of what the recording itself
// sampled in a window, or else what was measured beside; 0 is unknown. A rank with several GPUs has none.
func clocksOf(set *profile.Set, beside []float64, opt *profilewalk.Options) []float64 {
	clocks := make([]float64, len(set.Ranks))
	copy(clocks, beside)
	var names []trace.Sym
	for _, name := range clockCounters {
		if sym, ok := set.Syms.Lookup(name); ok {
			names = append(names, sym)
		}
	}
	if len(names) == 0 {
		return clocks
	}
	mega, _ := set.Syms.Lookup("MHz")
	sampled := make([][]float64, len(set.Ranks))
	source := make([]trace.Sym, len(set.Ranks))
	for _, s := range set.Streams {
		for c := range s.CounterValues {
			if c.Rank < 0 || c.Value <= 0 || c.Unit != mega || !slices.Contains(names, c.Name) || opt.From != 0 && c.Time < opt.From || opt.To != 0 && c.Time > opt.To {
				continue
			}
			if source[c.Rank] == 0 {
				source[c.Rank] = c.Source
			}
			if source[c.Rank] == c.Source {
				sampled[c.Rank] = append(sampled[c.Rank], c.Value)
			} else {
				source[c.Rank] = severalSources
			}
		}
	}
	for rank, list := range sampled {
		if len(list) > 0 && source[rank] != severalSources {
			clocks[rank] = order.SortedMedian(list)
		}
	}
	return clocks
}

// severalSources is no source of a counter.
const severalSources = ^trace.Sym(0)
