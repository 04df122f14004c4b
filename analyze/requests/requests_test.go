package requests

import (
	"slices"
	"testing"

	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/testkit/testset"
	"github.com/sgtrace/sgtrace/trace"
	"github.com/sgtrace/sgtrace/trace/naming"
)

func TestFindRequests(t *testing.T) {
	s := testset.Fixture(t)
	for id, want := range map[string][]int{
		"chat-1":                           {0}, // the user's id
		"22222222bbbb":                     {0}, // a server's rid
		"11111111":                         {0}, // prefix of a rid
		"gnt-1":                            {0}, // the gateway's
		"0x7c54":                           {0}, // bootstrap room
		"00000000000000000000000000000002": {1}, // trace
		"0000":                             {0, 1},
		"nothing":                          nil,
		"":                                 nil,
	} {
		if got := Find(s, id); !slices.Equal(got, want) {
			t.Errorf("%q names %v, want %v", id, got, want)
		}
	}
}

// The list can be sorted by each of its columns.
func TestRequestsSortable(t *testing.T) {
	r := Requests(testset.LoadDump(t, "b_pd_smg_tp2.jsonl.zst"))
	for c, column := range r.Columns {
		if err := r.Sort(column.Key(), true); err != nil {
			t.Fatal(err)
		}
		for row := 1; row < r.Len(); row++ {
			before, after := r.Cell(row-1, c), r.Cell(row, c)
			if before.Unknown && !after.Unknown || !after.Unknown && (before.N < after.N || before.Text < after.Text) {
				t.Errorf("%s: row %d is out of order", column.Name, row)
				break
			}
		}
	}
}

// A selection narrows all reports, but leaves the metrics of each request unchanged.
func TestSelection(t *testing.T) {
	s := testset.Fixture(t)
	if err := s.Select(request.Selection{RIDs: []string{"chat-1"}, Ranks: []naming.Want{{Rank: trace.Rank{TP: 1, PP: -1, DP: -1, EP: -1, Global: -1}}}, Stages: []string{"prefill_forward"}}); err != nil {
		t.Fatal(err)
	}
	groups := GroupStages(s, mustParse(t, "stage")).Groups
	if len(groups) != 1 || groups[0].Key[0] != "prefill_forward" || groups[0].N != 1 {
		t.Errorf("stages of TP1: %+v", groups)
	}
	if r := Requests(s); r.Len() != 1 {
		t.Errorf("%d requests, want 1", r.Len())
	}
	w := NewWaterfall(s, 0)
	if len(w.Lanes) != 1 || len(w.Lanes[0].Rows) != 1 || w.Request.Metrics.Queue != 5_500_000 {
		t.Errorf("waterfall of TP1: %+v", w.Lanes)
	}
}
