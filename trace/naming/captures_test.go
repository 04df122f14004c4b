package naming

import (
	"strconv"
	"testing"

	"github.com/sgtrace/sgtrace/trace"
)

// Processes without a known rank are grouped by process id, across two sessions. Comparing all
// pairs would take a minute.
func TestCapturesOfManyProcesses(t *testing.T) {
	const n = 50_000
	files := make([]Resolved, 0, 2*n)
	for session := range 2 {
		for pid := range int64(n) {
			files = append(files, Resolved{Path: "node" + strconv.Itoa(session) + ".sqlite", Host: "node", Rank: trace.NoRank, PID: pid + 1})
		}
	}
	groups := Captures(files)
	if len(groups) != n {
		t.Fatalf("%d groups, want %d", len(groups), n)
	}
	for _, g := range groups {
		if len(g.Files) != 2 || files[g.Files[0]].PID != files[g.Files[1]].PID {
			t.Fatalf("a group has %v", g.Files)
		}
	}
}

// A file with few facts joins its group by any of them, even by one that the first file of the
// group lacks.
func TestCapturesOfOneRankThatKnowDifferentParts(t *testing.T) {
	rank := func(tp int16, global int32) trace.Rank {
		r := trace.NoRank
		r.TP, r.Global = tp, global
		return r
	}
	groups := Captures([]Resolved{
		{Path: "a", Rank: rank(3, 11)}, {Path: "b", Rank: rank(3, -1)}, {Path: "c", Rank: rank(-1, 11)}, {Path: "d", Rank: rank(4, 12)},
	})
	if len(groups) != 2 || len(groups[0].Files) != 3 || len(groups[1].Files) != 1 {
		t.Errorf("%+v", groups)
	}
}
