package request

import (
	"slices"
	"testing"

	"github.com/sgtrace/sgtrace/trace"
)

// tables returns a set of three rows that did not come from spans: a part, a stage with two
// instants, and a nested stage.
func tables() *Set {
	syms := trace.NewSymbols()
	name := syms.Intern("step")
	s := NewSet(syms, trace.NewArgs(), &trace.Diags{})
	s.Files = []File{{Name: "a.jsonl"}, {Name: "b.bin"}}
	s.Writers = []Writer{{}}
	s.Sources = []Source{{File: 0}, {File: 1}}
	s.Offsets = []int64{70, 90}
	s.Rows = []Row{
		{Start: 0, End: 100, Place: trace.InLine(7), Kind: Root, Thread: None},
		{Start: 10, End: 60, Name: name, Source: 1, Place: trace.AtOffset(0), Kind: Stage, Phase: DecodePhase, Means: Answering},
		{Start: 20, End: 60, Name: name, Source: 1, Place: trace.AtOffset(1), Instants: 2, Kind: Stage, Phase: DecodePhase, Means: Stepping},
	}
	s.Instants = []Instant{{Time: 11, Kind: Scheduled, Batch: 4}, {Time: 12, Kind: Retracted, Batch: Unknown}}
	s.Tree = Tree{Above: []int32{None, 0, 1}, First: []uint32{0, 1, 2, 2}, Below: []uint32{1, 2}}
	s.Procs = []Proc{{Label: "Scheduler", Rank: trace.NoRank, Schedules: true}}
	s.Threads = []Thread{{Row: None}}
	s.SetStages(0, []uint32{1})
	s.Parts = []Part{{Root: 0, Role: Unified, Gateway: None, End: 100}}
	s.OwnThreads(func([]int) {})
	s.AddRequest(Request{RID: s.NewText("7ca07386"), Gateway: None, GatewayID: s.NewText("gw-1"), End: 100}, 0)
	s.Stages = []StageInfo{
		{Name: "answer", Phase: DecodePhase, Means: Answering}, {Name: "step", Phase: DecodePhase, Means: Stepping},
		{Name: "wait", Phase: QueuePhase, Means: Queueing}, {Name: "beside"},
	}
	s.Own()
	return s
}

// Tables work without spans: tokens, names, and positions can be filled in directly.
func TestTablesWithoutSpans(t *testing.T) {
	s := tables()
	if got := s.TokenTimes(&s.Parts[0]); !slices.Equal(got, []trace.Time{60}) {
		t.Errorf("tokens at %v", got)
	}
	if got := s.InstantsOf(1); len(got) != 2 || got[0].Batch != 4 {
		t.Errorf("instants %v", got)
	}
	if len(s.InstantsOf(0))+len(s.InstantsOf(2)) != 0 {
		t.Error("the instants of one row are those of another")
	}
	if got := slices.Collect(s.ThreadRows(0)); !slices.Equal(got, []int{1, 2}) {
		t.Errorf("rows of the thread are %v", got)
	}
	var outermost []int
	s.EachSelectedStage(s.StagesOf(0), true, func(i int, outer bool) {
		if outer {
			outermost = append(outermost, i)
		}
	})
	if !slices.Equal(outermost, []int{1}) {
		t.Errorf("outermost stages are %v", outermost)
	}
	for i, want := range []string{"a.jsonl:7", "b.bin+70", "b.bin+90"} {
		if got := s.Pos(i).String(); got != want {
			t.Errorf("row %d is at %s, want %s", i, got, want)
		}
	}
	if s.RequestOf(0) != 0 || s.Kind(1) != Stage || s.Name(2) != "step" {
		t.Error("rows are not what they were made")
	}
	if got := s.IDs(&s.Requests[0]); !slices.Equal(got, []string{"7ca07386", "gw-1"}) {
		t.Errorf("ids %v", got)
	}
}

// Stages come in the order in which requests pass them; side activities and unknown stages come
// last.
func TestStagesInOrder(t *testing.T) {
	s := tables()
	names := []string{"zzz", "step", "beside", "aaa", "wait", "answer"}
	slices.SortFunc(names, s.CompareStages)
	if want := []string{"wait", "answer", "step", "beside", "aaa", "zzz"}; !slices.Equal(names, want) {
		t.Errorf("%v, want %v", names, want)
	}
	if s.StageCalled(Queueing) != "wait" || s.StageCalled(Sending) != "" {
		t.Error("stages are called otherwise")
	}
}

// Rows with equal start and end are ordered by Ties.
func TestCompareBreaksTies(t *testing.T) {
	s := tables()
	s.Rows[2].Start = s.Rows[1].Start
	if s.Compare(0, 1) >= 0 || s.Compare(1, 2) != 0 {
		t.Error("rows are not ordered by start")
	}
	s.Ties = []uint32{0, 2, 1}
	if s.Compare(1, 2) <= 0 {
		t.Error("ties are ignored")
	}
}

// Selecting by stage, level, and duration removes rows, but keeps each request that still has some.
func TestSelectRows(t *testing.T) {
	s := tables()
	if err := s.Select(Selection{Stages: []string{"step"}, MinDur: 45}); err != nil {
		t.Fatal(err)
	}
	if s.Kind(1) != Stage || s.Kind(2) != Unselected || len(s.Requests) != 1 || !s.Any() {
		t.Errorf("%v %v, %d requests", s.Kind(1), s.Kind(2), len(s.Requests))
	}
}
