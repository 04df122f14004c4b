package gpuloss

import (
	"fmt"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/gpu"
	"github.com/sgtrace/sgtrace/analyze/profilewalk"
	"github.com/sgtrace/sgtrace/analyze/words"
)

// muchEager is the part of the time of devices that steps without CUDA graphs have to
// cost.
const muchEager = 0.02

// EagerSteps tells of decode steps that were not launched as CUDA graphs though others of
// about that batch size were.
func EagerSteps(g *gpu.GPUs) ([]finding.Finding, finding.Check) {
	t, check := total(g, "decode steps without a CUDA graph")
	lost, eager, graph := int64(0), 0, 0
	var worst *gpu.GraphUse
	for i := range g.Graphs {
		u := &g.Graphs[i]
		if u.Graph.N == 0 {
			continue // nothing to compare: no graph of that batch size may exist
		}
		eager, graph = eager+u.Eager.N, graph+u.Graph.N
		lost = distribution.AddTimes(lost, u.Lost())
		if worst == nil || u.Lost() > worst.Lost() {
			worst = u
		}
	}
	if graph == 0 && check.Reason == "" {
		check.Reason = "no decode step ran as a CUDA graph"
	}
	check.Of, check.N, check.Needed = "decode step", eager+graph, 1
	share := min(1, t.part(lost))
	if check.State() != finding.LookedAt || share < muchEager {
		return nil, check
	}
	batch := ""
	if words := profilewalk.BatchWords(worst.MinBatch, worst.MaxBatch); words != "" {
		batch = " of " + words + " requests"
	}
	return []finding.Finding{shareFinding("graphs", "time lost without CUDA graphs", share,
		fmt.Sprintf("%s of %s decode steps ran without a CUDA graph, though others of that batch size have one", words.Thousands(int64(eager)), words.Thousands(int64(eager+graph))),
		finding.Sentence("decode%s on %s: median %s with a graph, %s without", batch, worst.Rank, words.Nearly(worst.Graph.P50), words.Nearly(worst.Eager.P50)))}, check
}

// noGraphs tells of decode steps that no CUDA graph was made for: of all if none was launched
// as a graph, or else of those with more requests than any that was.
func noGraphs(g *gpu.GPUs) finding.Evidence {
	eager, graph, beyond := 0, 0, 0
	for i := range g.Graphs {
		u := &g.Graphs[i]
		eager, graph, beyond = eager+u.Eager.N, graph+u.Graph.N, beyond+u.Beyond
	}
	switch {
	case beyond > 0:
		return finding.Sentence("%s of %s decode steps had more requests than any that ran as a CUDA graph", words.Thousands(int64(beyond)), words.Thousands(int64(eager+graph)))
	case graph > 0 || eager == 0:
		return finding.Evidence{}
	}
	return finding.Sentence("none of %s decode steps ran as a CUDA graph: the host launches every kernel by itself", words.Thousands(int64(eager)))
}
