package finders

import (
	"slices"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/gaps"
	"github.com/sgtrace/sgtrace/analyze/gpu"
	"github.com/sgtrace/sgtrace/analyze/gpuloss"
	"github.com/sgtrace/sgtrace/analyze/hardware"
	"github.com/sgtrace/sgtrace/docs"
	"github.com/sgtrace/sgtrace/testkit/testset"
)

// docs/METRICS.md has a row for each finder and each kind.
func TestPage(t *testing.T) {
	testset.ComparePage(t, "../../docs/METRICS.md", Markdown(All))
	_, kinds, _ := strings.Cut(docs.Metrics, "\n| kind | when it is found | cost |\n")
	kinds, _, _ = strings.Cut(kinds, "\n\n")
	for i := range All {
		if kind := All[i].Kind; strings.Count(kinds, "| `"+string(kind)+"` | ") != 1 {
			t.Errorf("docs/METRICS.md does not say once when a finding is of the kind %s", kind)
		}
	}
	for line := range strings.Lines(strings.TrimPrefix(kinds, "|---|---|---|\n")) {
		name := strings.Split(line, "`")[1]
		if !slices.ContainsFunc(All, func(f Finder) bool { return f.Kind == finding.Kind(name) }) {
			t.Errorf("nothing finds the kind %s", name)
		}
	}
}

// Every row is whole: it says what it needs, what its findings are like, and what shows more.
func TestRowsAreWhole(t *testing.T) {
	docs := map[string]bool{}
	for i := range All {
		f := &All[i]
		if f.Doc == "" || f.Needs == 0 || f.Severity == "" || f.Confidence == "" || f.CostOf == "" || len(f.Show) == 0 || f.Find == nil {
			t.Errorf("%+v lacks something", f)
		}
		if docs[f.Doc] {
			t.Errorf("two finders say that they look for %s", f.Doc)
		}
		docs[f.Doc] = true
	}
}

// Ranks whose recordings name one GPU shared it: each may be what holds up the other.
func TestRanksOnOneGPU(t *testing.T) {
	uses := []hardware.Use{{Rank: "TP0", UUID: "GPU-a"}, {Rank: "TP1", UUID: "GPU-b"}, {Rank: "TP2"}, {Rank: "TP3"}, {Rank: "draft", UUID: "GPU-b"}}
	if got := onOneGPU(uses); len(got) != 1 || !slices.Equal(got[0], []string{"TP1", "draft"}) {
		t.Errorf("%v", got)
	}
}

// What hosts did is told with the idle time that is theirs, and costs nothing beside it.
func TestTellsHost(t *testing.T) {
	late, copied, start := finding.Finding{Subkind: gpuloss.HostSubkind}, finding.Finding{Subkind: "copies"}, finding.Finding{Subkind: gpuloss.StartSubkind}
	host, cold := []finding.Finding{{Text: "half of host wait is a lock"}}, []finding.Finding{{Subkind: gaps.ColdSubkind}}
	if !tellsHost(&late, host) || !tellsHost(&start, cold) || tellsHost(&start, host) || tellsHost(&copied, host) || tellsHost(&late, nil) {
		t.Error("told where there is nothing to tell, or not where there is")
	}
	// A device may idle most of all for another reason: what hosts did is still a part of all its idle time.
	migrating := finding.Finding{Subkind: "idle", Metric: finding.Metric{Name: gpuloss.IdleMetric}}
	if !tellsHost(&migrating, host) || tellsHost(&migrating, cold) {
		t.Error("part of the idle time costs something beside it")
	}
}

// A rank whose decode steps are all launched kernel by kernel is told, where those of as many requests are graphs on all others.
func TestWithoutGraphs(t *testing.T) {
	use := func(rank string, batch int32, graph, eager int) gpu.GraphUse {
		u := gpu.GraphUse{Rank: rank, MinBatch: batch, MaxBatch: batch}
		u.Graph.N, u.Eager.N = graph, eager
		return u
	}
	for name, c := range map[string]struct {
		uses []gpu.GraphUse
		want bool
	}{
		"one rank":            {[]gpu.GraphUse{use("TP0", 32, 9, 0), use("TP1", 32, 0, 9), use("TP2", 32, 9, 0)}, true},
		"some of its steps":   {[]gpu.GraphUse{use("TP0", 32, 9, 0), use("TP1", 32, 1, 8)}, false},
		"another one, too":    {[]gpu.GraphUse{use("TP0", 32, 8, 1), use("TP1", 32, 0, 9)}, false},
		"larger batches":      {[]gpu.GraphUse{use("TP0", 32, 9, 0), use("TP1", 64, 0, 9)}, false},
		"nobody has a graph":  {[]gpu.GraphUse{use("TP0", 32, 0, 9), use("TP1", 32, 0, 9)}, false},
		"it has nothing else": {[]gpu.GraphUse{use("TP1", 32, 0, 9)}, false},
	} {
		m := &Measured{GPUs: &gpu.GPUs{Graphs: c.uses}}
		if got := m.withoutGraphs("TP1"); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
