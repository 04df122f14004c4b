package ranks

import (
	"maps"
	"slices"

	"github.com/sgtrace/sgtrace/trace/tracename"
)

// ProfilerOverhead tells what makes hosts slower in recordings than they are otherwise: what was
// recorded besides events, and that CUDA graphs are captured at start.
func (m *Assignment) ProfilerOverhead() (recorded []string, graphCapture bool) {
	words := map[string]bool{}
	for _, r := range m.Tracks {
		for _, c := range r.Captures {
			for _, word := range c.File.Meta.Recorded {
				words[word] = true
			}
			graphCapture = graphCapture || c.known.Name.What == tracename.GraphCapture
		}
	}
	return slices.Sorted(maps.Keys(words)), graphCapture
}
